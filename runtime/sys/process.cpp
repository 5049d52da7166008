// Starts a command that waits before its exec.
//
//      parent                                 child
//      clone(CLONE_PIDFD) ------------------> unblock signals, default handlers; become the user; search PATH
//                                             write(gate): more than the pipe holds, so this call waits
//      ppoll(gate): there is something  <---- it waits
//      ... attach probes to its pid ...
//      start(): read all of it -------------> the write returns
//                                             execve(argv)
//      read(gate): end of file <------------- (closed by exec: it worked)
//                or an errno   <------------- (exec failed)
//
// One call says that the child waits, and is the wait: from the return of spawn() to start() the child makes no other, and the
// next one is the exec. So what is attached in between sees nothing of rawbpf's copy but the end of that write. (Who stops and
// continues the child meanwhile ends the write early; it is then called again with the rest.)
//
// If the parent dies, whenever that is, the kernel sends the child SIGTERM (PR_SET_PDEATHSIG; a set-user-ID program is exempt
// from that): nothing is left behind. Where SIGTERM is ignored, a child that waits ends by SIGPIPE, as nobody can read any more:
// it has closed its own end, and those that were forked after it and wait, too, end by the same. Between clone and exec the
// child makes raw system calls only: it is a copy of a process whose locks may be held by threads that don't exist in it. The
// observer doesn't see these calls: --syscalls shows rawbpf's calls, not the command's.
#include "runtime/sys/process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/prctl.h>
#include <new>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "runtime/base/fail.h"
#include "runtime/sys/command_search.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000 // 5.2; old glibc headers lack it
#endif

namespace rawbpf::inline v0::sys {
namespace {

constexpr size_t kSignalSetSize = 8;         // the kernel's sigset_t: 64 signals
constexpr uint64_t kGraceNs = 2'000'000'000; // for what is told to end
constexpr const char *kShell = "/bin/sh";

uint64_t nanoseconds(const timeval &t) {
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_usec) * 1000;
}

// "4711" -> 4711
std::optional<uint32_t> decimal(std::string_view text) {
    if (text.empty() || text.size() > 10) return {};
    uint64_t value = 0;
    for (char c : text) {
        if (c < '0' || c > '9') return {};
        value = value * 10 + static_cast<uint64_t>(c - '0');
    }
    if (value >= 0xffffffff) return {};
    return static_cast<uint32_t>(value);
}

std::string_view cut(std::string_view &rest, char at) {
    size_t n = rest.find(at);
    std::string_view part = rest.substr(0, n);
    rest = n == std::string_view::npos ? std::string_view() : rest.substr(n + 1);
    return part;
}

struct Plan {
    std::vector<Candidate> files;
    std::vector<char *> argv, envp;       // NULL-ended
    std::vector<char *> by_shell;         // argv for a text that sh runs: the second one is its path
    std::vector<std::string> environment; // owns what envp points at, where it was changed
};

Plan plan_for(const std::vector<std::string> &argv, const std::optional<User> &user) {
    Plan plan;
    for (const std::string &a : argv) plan.argv.push_back(const_cast<char *>(a.c_str()));
    plan.argv.push_back(nullptr);
    plan.by_shell = {const_cast<char *>(kShell), nullptr};
    plan.by_shell.insert(plan.by_shell.end(), plan.argv.begin() + 1, plan.argv.end());
    const char *path = getenv("PATH");
    plan.files = candidates(argv[0], path ? path : "/usr/local/bin:/usr/bin:/bin");
    const bool rename = user && !user->name.empty();
    for (char **e = environ; e && *e; ++e) {
        std::string_view entry(*e);
        if (rename &&
            (entry.starts_with("USER=") || entry.starts_with("LOGNAME=") || (entry.starts_with("HOME=") && !user->home.empty())))
            continue;
        plan.environment.emplace_back(entry);
    }
    if (rename) {
        plan.environment.push_back("USER=" + user->name);
        plan.environment.push_back("LOGNAME=" + user->name);
        if (!user->home.empty()) plan.environment.push_back("HOME=" + user->home);
    }
    for (std::string &e : plan.environment) plan.envp.push_back(e.data());
    plan.envp.push_back(nullptr);
    return plan;
}

/// What a child says when it couldn't begin.
struct Report {
    enum Step : int32_t { exec, identity };
    int32_t os = 0, step = exec;
};

void take_default_signals() {
    uint64_t none = 0;
    direct(__NR_rt_sigprocmask, SIG_SETMASK, reg(&none), 0, kSignalSetSize);
    struct { // the kernel's struct sigaction
        unsigned long handler, flags, restorer, mask[8 / sizeof(long)];
    } action{reinterpret_cast<uintptr_t>(SIG_DFL), 0, 0, {}}, before{};
    for (uint64_t signal = 1; signal <= 64; ++signal) {
        // What nohup ignores stays ignored. INT and QUIT are ignored by what a script starts with &: that was meant for us.
        direct(__NR_rt_sigaction, signal, 0, reg(&before), kSignalSetSize);
        if (before.handler == reinterpret_cast<uintptr_t>(SIG_IGN) && signal != SIGINT && signal != SIGQUIT &&
            signal != SIGCHLD && signal != SIGPIPE)
            continue;
        direct(__NR_rt_sigaction, signal, reg(&action), 0, kSignalSetSize);
    }
}

// 0, or -errno.
long take_identity(const User &user) {
    long r = direct(__NR_setgroups, user.groups.size(), reg(user.groups.data()));
    if (r >= 0) r = direct(__NR_setresgid, user.gid, user.gid, user.gid);
    if (r >= 0) r = direct(__NR_setresuid, user.uid, user.uid, user.uid);
    return std::min(r, 0L);
}

// Returns when nothing could be run: why. The first file that runs is the command, unless it has vanished since the search, or
// the interpreter of its first line isn't there.
int32_t run_command(Plan &plan) {
    const auto exec = [&](const char *path, const std::vector<char *> &argv) {
        return direct(__NR_execve, reg(path), reg(argv.data()), reg(plan.envp.data()));
    };
    int32_t os = ENOENT;
    for (Candidate &file : plan.files) {
        if (file.is == Candidate::Is::missing) continue;
        long r = -EACCES;
        if (file.runs()) r = exec(file.path.c_str(), plan.argv);
        if (r == -ENOEXEC && file.is == Candidate::Is::text) {
            plan.by_shell[1] = file.path.data();
            r = exec(kShell, plan.by_shell);
        }
        if (r == -ENOENT || r == -ENOTDIR) continue;
        os = static_cast<int32_t>(-r);
        if (r != -EACCES) break; // EACCES: another directory of PATH may still have one that can be run
    }
    return os;
}

[[noreturn]] void child_main(Plan &plan, const std::optional<User> &user, int output, uint64_t gate,
                             std::string_view more_than_it_holds, int parent) {
    take_default_signals();
    if (output >= 0) direct(__NR_dup3, static_cast<uint64_t>(output), 1, 0);
    Report report;
    if (user) report = {static_cast<int32_t>(-take_identity(*user)), Report::identity};
    // After the change of identity, which takes it away again. Who died before it could be said gets no more work done.
    direct(__NR_prctl, PR_SET_PDEATHSIG, SIGTERM);
    if (direct(__NR_getppid) != parent) direct(__NR_exit_group, 127);
    if (report.os == 0) look_at(plan.files);

    while (!more_than_it_holds.empty()) { // a stop, as by Ctrl-Z, ends the call early
        const long n = direct(__NR_write, gate, reg(more_than_it_holds.data()), more_than_it_holds.size());
        if (n < 0 && n != -EINTR) direct(__NR_exit_group, 127);
        if (n > 0) more_than_it_holds.remove_prefix(static_cast<size_t>(n));
    }
    if (report.os == 0) report = {run_command(plan), Report::exec};
    direct(__NR_write, gate, reg(&report), sizeof report);
    direct(__NR_exit_group, 127);
    __builtin_unreachable();
}

struct Pipe {
    Fd read, write;
};

Result<Pipe> make_pipe() {
    int fds[2] = {-1, -1};
    long r = invoke(__NR_pipe2, reg(fds), O_CLOEXEC);
    if (r < 0) return fail_os(static_cast<int>(-r), "pipe2");
    return Pipe{Fd(fds[0]), Fd(fds[1])};
}

} // namespace

std::optional<User> user_from(std::string_view uid, std::string_view gid, std::string_view passwd, std::string_view group) {
    std::optional<uint32_t> u = decimal(uid), g = decimal(gid);
    if (!u || !g || *u == 0) return {};
    User user;
    user.uid = *u;
    user.gid = *g;
    user.groups.push_back(*g);
    while (!passwd.empty()) { // name:password:uid:gid:full name:home:shell
        std::string_view line = cut(passwd, '\n');
        std::string_view name = cut(line, ':');
        cut(line, ':');
        if (decimal(cut(line, ':')) != u) continue;
        cut(line, ':');
        cut(line, ':');
        user.name = name;
        user.home = cut(line, ':');
        break;
    }
    while (!group.empty() && !user.name.empty()) { // name:password:gid:member,member
        std::string_view line = cut(group, '\n');
        cut(line, ':');
        cut(line, ':');
        std::optional<uint32_t> id = decimal(cut(line, ':'));
        while (id && !line.empty())
            if (cut(line, ',') == user.name && *id != user.gid) user.groups.push_back(*id);
    }
    return user;
}

Result<std::optional<User>> invoking_user() {
    const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");
    if (!uid || effective_uid() != 0 || decimal(uid) == 0u) return std::optional<User>();
    if (!gid) gid = "";
    std::string passwd = read_file("/etc/passwd").value_or(std::string());
    std::string group = read_file("/etc/group").value_or(std::string());
    std::optional<User> user = user_from(uid, gid, passwd, group);
    if (!user)
        return fail(Errc::invalid_argument, "SUDO_UID='{}' and SUDO_GID='{}' name no user to run the command as", uid, gid);
    return user;
}

std::string Exit::text() const {
    if (!signalled) return format("exited with status {}", code);
    const char *name = sigabbrev_np(code);
    return name ? format("was killed by SIG{}", name) : format("was killed by signal {}", code);
}

Result<Child> Child::spawn(const std::vector<std::string> &argv, const std::optional<User> &user, int output) {
    if (argv.empty() || argv[0].empty()) return fail(Errc::invalid_argument, "no command to run");
    Plan plan = plan_for(argv, user);
    bool found = false;
    for (const Candidate &file : plan.files)
        if (exists(file.path)) found = true;
    if (!found) {
        // A folder of PATH that can't be searched is passed over; of a path it is the reason. Its kind: see start().
        if (argv[0].find('/') != std::string::npos)
            if (Result<struct stat> st = stat_file(argv[0]); !st && st.error().kind == Errc::permission) {
                Error error = std::move(st).error();
                error.kind = Errc::invalid_argument;
                return Unexpected(std::move(error));
            }
        return fail(Errc::not_found, "{}: no such program", argv[0]);
    }

    Pipe gate = TRY(make_pipe());
    const long holds = invoke(__NR_fcntl, static_cast<uint64_t>(gate.read.get()), F_GETPIPE_SZ);
    if (holds < 0) return fail_os(static_cast<int>(-holds), "asking how much a pipe holds");
    const std::string more_than_it_holds(static_cast<size_t>(holds) + 1, '.');
    Child child;
    const int parent = own_pid();
    int pidfd = -1;
    long pid = invoke(__NR_clone, CLONE_PIDFD | SIGCHLD, 0, reg(&pidfd), 0, 0);
    if (pid < 0) return fail_os(static_cast<int>(-pid), "starting {}", argv[0]);
    if (pid == 0) {
        direct(__NR_close, static_cast<uint64_t>(gate.read.get())); // else its write would never end when the parent dies
        child_main(plan, user, output, static_cast<uint64_t>(gate.write.get()), more_than_it_holds, parent);
    }
    child.pid_ = static_cast<int>(pid);
    child.pidfd_ = Fd(pidfd);
    child.gate_ = std::move(gate.read);
    child.held_ = more_than_it_holds.size();
    gate.write.reset();
    pollfd waits{child.gate_.get(), POLLIN, 0}; // or it has been killed
    long r;
    do r = invoke(__NR_ppoll, reg(&waits), 1, 0, 0, 0);
    while (r == -EINTR);
    if (r < 0) return fail_os(static_cast<int>(-r), "starting {}", argv[0]);
    return child;
}

Child::Child(Child &&other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)), gate_(std::move(other.gate_)), held_(other.held_),
      exit_(other.exit_), may_stay_(other.may_stay_) {}

Child &Child::operator=(Child &&other) noexcept {
    if (this != &other) {
        this->~Child();
        new (this) Child(std::move(other));
    }
    return *this;
}

Child::~Child() {
    if (pid_ < 0 || exit_ || may_stay_) return;
    const bool waits = static_cast<bool>(gate_);
    gate_.reset();
    if (waits || !end(0, kGraceNs)) (void)kill(SIGKILL);
    (void)reap(0);
}

bool Child::ends_within(uint64_t ns) {
    pollfd end{pidfd_.get(), POLLIN, 0};
    timespec left{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    long r;
    do r = invoke(__NR_ppoll, reg(&end), 1, reg(&left), 0, kSignalSetSize); // the kernel counts `left` down
    while (r == -EINTR);
    const auto exit = reap(WNOHANG);
    return exit && *exit;
}

bool Child::end(uint64_t patience_ns, uint64_t grace_ns) {
    if (pid_ < 0 || exit_) return true;
    if (ends_within(patience_ns)) return true;
    if (!kill(SIGTERM)) return false;
    return ends_within(grace_ns);
}

std::string Child::end_in_words(uint64_t patience_ns) {
    if (pid_ < 0) return {};
    if (end(patience_ns, kGraceNs)) return exit_->text();
    let_run();
    return format("runs on as process {}", pid_);
}

Result<void> Child::start() {
    if (!gate_) return fail(Errc::invalid_argument, "the process was started already");
    const Fd gate = std::move(gate_);
    const auto take = [&](void *to, size_t bytes) -> Result<size_t> {
        return TRY_IN(sys::read(gate.get(), to, bytes), "starting process {}", pid_);
    };
    char some[4096];
    for (size_t left = held_; left > 0;) {
        const size_t n = TRY(take(some, std::min(left, sizeof some)));
        if (n == 0) return {}; // it was killed while it waited: its end says that
        left -= n;
    }
    Report report;
    if (TRY(take(&report, sizeof report)) != sizeof report) return {};
    (void)reap(0);
    Error error = os_error(report.os, report.step == Report::identity ? "changing to the invoking user"
                                      // spawn() has seen the file itself
                                      : report.os == ENOENT
                                          ? "running the command: the interpreter that its first line names, or its loader"
                                          : "running the command");
    // A file that may not be executed is no matter of our privileges, and nothing that more of them would mend.
    if (report.step == Report::exec && error.kind == Errc::permission) error.kind = Errc::invalid_argument;
    return Unexpected(std::move(error));
}

Result<std::optional<Exit>> Child::reap(int options) {
    if (exit_) return exit_;
    if (pid_ < 0) return fail(Errc::invalid_argument, "no process to wait for");
    int status = 0;
    rusage usage{};
    long r;
    do r = invoke(__NR_wait4, static_cast<uint64_t>(pid_), reg(&status), static_cast<uint64_t>(options), reg(&usage));
    while (r == -EINTR);
    if (r < 0) return fail_os(static_cast<int>(-r), "waiting for process {}", pid_);
    if (r == 0) return std::optional<Exit>();
    Exit exit;
    exit.signalled = WIFSIGNALED(status);
    exit.code = exit.signalled ? WTERMSIG(status) : WEXITSTATUS(status);
    exit.user_ns = nanoseconds(usage.ru_utime);
    exit.system_ns = nanoseconds(usage.ru_stime);
    exit.max_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
    exit_ = exit;
    return exit_;
}

Result<Exit> Child::wait() { return *TRY(reap(0)); }
Result<std::optional<Exit>> Child::poll() { return reap(WNOHANG); }

Result<void> Child::kill(int signal) const {
    if (pid_ < 0 || exit_) return fail(Errc::not_found, "the process has ended");
    // By the descriptor: a pid that was reused can't be hit.
    long r = invoke(__NR_pidfd_send_signal, static_cast<uint64_t>(pidfd_.get()), static_cast<uint64_t>(signal), 0, 0);
    if (r < 0) return fail_os(static_cast<int>(-r), "sending a signal to process {}", pid_);
    return {};
}

Result<SignalFd> SignalFd::open(std::initializer_list<int> signals) {
    uint64_t mask = 0;
    for (int s : signals) mask |= 1ULL << (s - 1);
    return open(mask);
}

Result<SignalFd> SignalFd::open(uint64_t mask) {
    SignalFd out;
    long r = invoke(__NR_rt_sigprocmask, SIG_BLOCK, reg(&mask), reg(&out.before_), kSignalSetSize);
    if (r < 0) return fail_os(static_cast<int>(-r), "rt_sigprocmask");
    r = invoke(__NR_signalfd4, static_cast<uint64_t>(-1), reg(&mask), kSignalSetSize, SFD_CLOEXEC | SFD_NONBLOCK);
    if (r < 0) {
        invoke(__NR_rt_sigprocmask, SIG_SETMASK, reg(&out.before_), 0, kSignalSetSize);
        return fail_os(static_cast<int>(-r), "signalfd4");
    }
    out.fd_ = Fd(static_cast<int>(r));
    return out;
}

SignalFd &SignalFd::operator=(SignalFd &&other) noexcept {
    if (this != &other) {
        restore();
        fd_ = std::move(other.fd_);
        before_ = other.before_;
    }
    return *this;
}

SignalFd::~SignalFd() { restore(); }

void SignalFd::restore() noexcept {
    if (!fd_) return;
    // What is still pending was meant for us and has been seen or is being ignored on purpose: take it, or restoring the mask
    // would deliver it and end the process in the middle of its farewell.
    while (read().value_or(0) != 0) {
    }
    fd_.reset();
    invoke(__NR_rt_sigprocmask, SIG_SETMASK, reg(&before_), 0, kSignalSetSize);
}

Result<int> SignalFd::read() const {
    signalfd_siginfo info{};
    long n = invoke(__NR_read, static_cast<uint64_t>(fd_.get()), reg(&info), sizeof info);
    if (n == -EAGAIN || n == -EINTR) return 0;
    if (n < 0) return fail_os(static_cast<int>(-n), "reading a signal");
    return n == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

Error become(const std::string &path, const std::vector<std::string> &argv) {
    std::vector<const char *> words;
    words.reserve(argv.size() + 1);
    for (const std::string &word : argv) words.push_back(word.c_str());
    words.push_back(nullptr);
    const long r = invoke(__NR_execve, reg(path.c_str()), reg(words.data()), reg(environ));
    return os_error(static_cast<int>(-r), "execve");
}

Result<void> send_signal(int pid, int signal) {
    long r = invoke(__NR_kill, static_cast<uint64_t>(pid), static_cast<uint64_t>(signal));
    if (r < 0) return fail_os(static_cast<int>(-r), "process {}", pid);
    return {};
}

bool process_exists(int pid) {
    if (pid <= 0) return false;
    long r = invoke(__NR_kill, static_cast<uint64_t>(pid), 0);
    return r >= 0 || r == -EPERM;
}

std::optional<uint64_t> status_number(int pid, std::string_view field) {
    const auto text = read_file(format("/proc/{}/status", pid));
    if (!text) return std::nullopt;
    const std::string wanted = format("\n{}:\t", field);
    const size_t at = text->find(wanted);
    if (at == std::string::npos) return std::nullopt;
    char *end = nullptr;
    const char *number = text->c_str() + at + wanted.size();
    const uint64_t value = std::strtoull(number, &end, 10);
    if (end == number) return std::nullopt;
    return value;
}

Result<Fd> pidfd_open(int pid) {
    long fd = invoke(__NR_pidfd_open, static_cast<uint64_t>(pid), 0);
    if (fd < 0) return fail_os(static_cast<int>(-fd), "process {}", pid);
    return Fd(static_cast<int>(fd));
}

bool has_ended(int pidfd) {
    pollfd end{pidfd, POLLIN, 0};
    timespec at_once{};
    return invoke(__NR_ppoll, reg(&end), 1, reg(&at_once), 0, 0) > 0;
}

void raise_open_files() {
    rlimit limit{};
    if (invoke(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, reg(&limit)) < 0 || limit.rlim_cur >= limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    invoke(__NR_prlimit64, 0, RLIMIT_NOFILE, reg(&limit), 0);
}

Result<void> bound_self(const Bounded &bounds) {
    const std::pair<int, uint64_t> wanted[] = {
        {RLIMIT_AS, bounds.memory_bytes}, {RLIMIT_FSIZE, bounds.file_bytes}, {RLIMIT_CPU, bounds.cpu_s}, {RLIMIT_CORE, 0}};
    for (const auto &[which, most] : wanted) {
        rlimit limit{};
        long r = invoke(__NR_prlimit64, 0, static_cast<uint64_t>(which), 0, reg(&limit));
        if (r == 0) {
            limit.rlim_max = std::min<rlim_t>(limit.rlim_max, most);
            limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
            r = invoke(__NR_prlimit64, 0, static_cast<uint64_t>(which), reg(&limit), 0);
        }
        if (r < 0) return fail_os(static_cast<int>(-r), "prlimit64");
    }
    return {};
}

Result<void> become_standard(int fd, int number) {
    const long r = invoke(__NR_dup3, static_cast<uint64_t>(fd), static_cast<uint64_t>(number), 0);
    if (r < 0) return fail_os(static_cast<int>(-r), "dup3");
    return {};
}

int own_pid() { return static_cast<int>(invoke(__NR_getpid)); }
uint32_t effective_uid() { return static_cast<uint32_t>(invoke(__NR_geteuid)); }

Usage own_usage() {
    rusage usage{};
    invoke(__NR_getrusage, static_cast<uint64_t>(RUSAGE_SELF), reg(&usage));
    return Usage{nanoseconds(usage.ru_utime), nanoseconds(usage.ru_stime), static_cast<uint64_t>(usage.ru_maxrss) * 1024,
                 static_cast<uint64_t>(usage.ru_nvcsw), static_cast<uint64_t>(usage.ru_nivcsw)};
}

} // namespace rawbpf::inline v0::sys
