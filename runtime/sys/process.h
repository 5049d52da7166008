// Processes: commands that rawbpf starts, and the signals that end rawbpf.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::sys {

/// Who a workload runs as.
struct User {
    uint32_t uid = 0, gid = 0;
    std::vector<uint32_t> groups; ///< supplementary, gid included
    std::string name, home;       ///< empty when unknown
};

/// The user behind sudo, from SUDO_UID, SUDO_GID, /etc/passwd and /etc/group; nullopt when this isn't sudo, or it is root's.
/// Errors: invalid_argument when those two aren't both numbers: whoever wants a user's rights must not get root's instead.
[[nodiscard]] Result<std::optional<User>> invoking_user();
/// The same from given texts. PURE. nullopt when `uid` or `gid` isn't a number, or uid is 0.
[[nodiscard]] std::optional<User> user_from(std::string_view uid, std::string_view gid, std::string_view passwd,
                                            std::string_view group);

/// How a process ended, and what it used.
struct Exit {
    bool signalled = false;
    int code = 0; ///< exit status, or the signal
    uint64_t user_ns = 0, system_ns = 0;
    uint64_t max_rss_bytes = 0;
    /// "exited with status 3", "was killed by SIGTERM".
    [[nodiscard]] std::string text() const;
};

/// A child process that waits, before its exec, until it is told to go: so that probes can be attached before its first
/// instruction. It doesn't outlive its owner: dropping it ends it, and should this process die without dropping it (SIGKILL, a
/// crash), the kernel sends it SIGTERM. Only let_run() lets it run on.
class [[nodiscard]] Child {
  public:
    /// Forks, and returns when the child waits: its next system call is the exec. `argv[0]` is looked up in PATH by its user, and
    /// a text without `#!` is run by sh (execvp(3)). The child gets this process's stdin, stdout, stderr and environment, default
    /// signal handling and, with `user`, that identity (HOME, USER and LOGNAME follow). `output`: what it has as its standard
    /// output in place of this process's own, a descriptor (borrowed for the call). Errors: not_found when no such program;
    /// invalid_argument (EACCES) when `argv[0]` is a path that can't be searched.
    static Result<Child> spawn(const std::vector<std::string> &argv, const std::optional<User> &user = {}, int output = -1);
    Child() = default;
    Child(Child &&other) noexcept;
    Child &operator=(Child &&other) noexcept;
    /// Before start() it hasn't begun, and never does. Afterwards: end(0, 2 s), and SIGKILL if that wasn't enough.
    ~Child();

    /// -1: there is none.
    [[nodiscard]] int pid() const { return pid_; }
    /// Readable when the process has ended: for epoll.
    [[nodiscard]] int pidfd() const { return pidfd_.get(); }
    /// Lets it exec. Errors: the errno of its exec (or of changing its identity), in words.
    [[nodiscard]] Result<void> start();
    /// Waits for its end.
    [[nodiscard]] Result<Exit> wait();
    /// The same without waiting: nullopt while it runs.
    [[nodiscard]] Result<std::optional<Exit>> poll();
    [[nodiscard]] Result<void> kill(int signal) const;
    [[nodiscard]] bool ended() const { return exit_.has_value(); }
    /// Waits `patience_ns` for its own end, then asks for it by SIGTERM and waits `grace_ns`. True when it has ended.
    [[nodiscard]] bool end(uint64_t patience_ns, uint64_t grace_ns);
    /// end(patience_ns, 2 s), told: "exited with status 3", or "runs on as process 4711", which it then may (let_run()).
    [[nodiscard]] std::string end_in_words(uint64_t patience_ns);
    /// It may outlive its owner, but still not a death of this process.
    void let_run() { may_stay_ = true; }

  private:
    Result<std::optional<Exit>> reap(int options);
    [[nodiscard]] bool ends_within(uint64_t ns);
    int pid_ = -1;
    Fd pidfd_;
    Fd gate_;         // reading held_ bytes lets it exec; then its errno comes, or end of file when the exec worked
    size_t held_ = 0; // one more than the pipe holds
    std::optional<Exit> exit_;
    bool may_stay_ = false;
};

/// The signals that would end this process and can be caught, as a mask (bit N-1 for signal N): what a user, a terminal, a
/// service manager or a limit sends. Not those of a crash (SIGSEGV ...), nor SIGPIPE and SIGXFSZ, which stand for the error of a
/// write.
inline constexpr uint64_t kEndingSignals = [] {
    uint64_t mask = ~uint64_t{0} << 33; // the real-time ones, 34 to 64; libc keeps 32 and 33 to itself
    for (int signal :
         {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGSTKFLT, SIGXCPU, SIGVTALRM, SIGPROF, SIGIO, SIGPWR})
        mask |= uint64_t{1} << (signal - 1);
    return mask;
}();

/// Signals as something to read, so that a poll loop sees Ctrl-C like any other event. Blocks them while it lives.
class [[nodiscard]] SignalFd {
  public:
    static Result<SignalFd> open(uint64_t mask);
    static Result<SignalFd> open(std::initializer_list<int> signals);
    SignalFd() = default;
    SignalFd(SignalFd &&other) noexcept : fd_(std::move(other.fd_)), before_(other.before_) {}
    SignalFd &operator=(SignalFd &&other) noexcept;
    ~SignalFd();
    [[nodiscard]] int fd() const { return fd_.get(); }
    /// The next pending signal; 0 when there is none.
    [[nodiscard]] Result<int> read() const;

  private:
    void restore() noexcept;
    Fd fd_;
    uint64_t before_ = 0; // the mask to go back to
};

/// execve(2) with this process's environment: doesn't return, unless it fails. The errno in words: not_found when there is no
/// such file.
[[nodiscard]] Error become(const std::string &path, const std::vector<std::string> &argv);
/// kill(2). Errors: not_found when there is no such process.
[[nodiscard]] Result<void> send_signal(int pid, int signal);
/// True when the process exists (also when it belongs to somebody else).
[[nodiscard]] bool process_exists(int pid);
/// A number from /proc/PID/status, as it stands there: status_number(pid, "PPid"). nullopt: no such process, or no such field.
[[nodiscard]] std::optional<uint64_t> status_number(int pid, std::string_view field);
/// pidfd_open(2), 5.3: readable when the process has ended.
[[nodiscard]] Result<Fd> pidfd_open(int pid);
/// Whether the process of a pidfd has ended (a zombie has, too).
[[nodiscard]] bool has_ended(int pidfd);
/// Raises the soft limit of open descriptors to the hard one. Not done for nothing: children inherit it, and select(2) can't take
/// descriptors above 1023.
void raise_open_files();
/// What a process may use: bytes of address space, bytes in any one file, seconds of processor time.
struct Bounded {
    uint64_t memory_bytes = 0, file_bytes = 0, cpu_s = 0;
};
/// Takes these bounds for this process and its children, for good (prlimit64(2)); a lower limit that is there already stays. No
/// core files. Beyond them: allocations fail, SIGXFSZ, SIGXCPU.
Result<void> bound_self(const Bounded &bounds);
/// dup3(2): `number`, one of the standard descriptors, becomes another name of `fd`; children inherit it.
Result<void> become_standard(int fd, int number);
[[nodiscard]] int own_pid();
[[nodiscard]] uint32_t effective_uid();

/// What this process has used so far (getrusage(2)).
struct Usage {
    uint64_t user_ns = 0, system_ns = 0;
    uint64_t max_rss_bytes = 0;
    uint64_t voluntary_switches = 0, involuntary_switches = 0;
};
[[nodiscard]] Usage own_usage();

} // namespace rawbpf::inline v0::sys
