// rawbpf with a kernel that fails once: the same commands, and a backend behind invoke() that counts calls.
//
//      FAULT_LOG=FILE                a line for each call that could fail: its name
//      FAULT="5:openat /etc/passwd"  the first call of that name fails with errno 5
//      FAULT="5:openat /etc/passwd#3"  the third one
//
// A call's name has to be the same in every run, or it could not be found again: what it is, the file that it is about, and the
// clause of the scope that it is made in (sys::Because). Numbers of processes, descriptors and addresses are left out.
//
//      read /proc/N/maps [the code that a process has mapped]
//
// It is its own executable so that what users run has no such thing in it: this file is linked in front of the command line's
// library, and its one global object installs the backend before main().
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <map>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/format.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/names.h"

namespace rawbpf {
namespace {

struct Name {
    long number;
    std::string_view text;
    enum Kind : uint8_t { plain, path_first, path_second, descriptor } kind = plain;
};
// The calls that can fail. What isn't here can't (getpid), or isn't one whose failure anybody could act on (munmap).
constexpr Name kNames[] = {
    {__NR_bpf, "bpf"},
    {__NR_capget, "capget"},
    {__NR_clone, "clone"},
    {__NR_close, "close", Name::descriptor},
    {__NR_epoll_create1, "epoll_create1"},
    {__NR_epoll_ctl, "epoll_ctl"},
    {__NR_epoll_pwait, "epoll_pwait"},
    {__NR_fcntl, "fcntl", Name::descriptor},
    {__NR_fstat, "fstat", Name::descriptor},
    {__NR_ftruncate, "ftruncate", Name::descriptor},
    {__NR_getdents64, "getdents64", Name::descriptor},
    {__NR_getrandom, "getrandom"},
    {__NR_ioctl, "ioctl"},
    {__NR_kill, "kill"},
    {__NR_membarrier, "membarrier"},
    {__NR_memfd_create, "memfd_create"},
    {__NR_mkdirat, "mkdirat", Name::path_second},
    {__NR_mmap, "mmap"},
    {__NR_newfstatat, "newfstatat", Name::path_second},
    {__NR_openat, "openat", Name::path_second},
    {437, "openat2", Name::path_second},
    {__NR_perf_event_open, "perf_event_open"},
    {__NR_pidfd_open, "pidfd_open"},
    {__NR_pidfd_send_signal, "pidfd_send_signal"},
    {__NR_pipe2, "pipe2"},
    {__NR_ppoll, "ppoll"},
    {__NR_pread64, "pread64", Name::descriptor},
    {__NR_prlimit64, "prlimit64"},
    {__NR_read, "read", Name::descriptor},
    {__NR_readlinkat, "readlinkat", Name::path_second},
    {__NR_recvfrom, "recvfrom"},
    {__NR_sched_getaffinity, "sched_getaffinity"},
    {__NR_sched_setscheduler, "sched_setscheduler"},
    {__NR_sendto, "sendto"},
    {__NR_setsockopt, "setsockopt"},
    {__NR_signalfd4, "signalfd4"},
    {__NR_socket, "socket"},
    {__NR_statfs, "statfs", Name::path_first},
    {__NR_unlinkat, "unlinkat", Name::path_second},
    {__NR_wait4, "wait4"},
    {__NR_write, "write", Name::descriptor},
    {430, "fsopen"},
    {431, "fsconfig"},
    {432, "fsmount"},
};

// "/proc/4711/maps" -> "/proc/N/maps", "/proc/N/map_files/55e0-55f0" -> "/proc/N/map_files/N"
std::string without_numbers(std::string_view path) {
    constexpr std::string_view kMapFiles = "/map_files/";
    std::string out;
    for (size_t i = 0; i < path.size(); ++i) {
        const bool digit = path[i] >= '0' && path[i] <= '9';
        if (digit && (out.empty() || out.back() != 'N')) out += 'N';
        if (!digit) out += path[i];
    }
    if (const size_t at = out.find(kMapFiles); at != std::string::npos) out.resize(at + kMapFiles.size() - 1);
    return out;
}

class Faulty final : public sys::Backend {
  public:
    Faulty() {
        if (const char *log = std::getenv("FAULT_LOG")) log_ = ::open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (const char *fault = std::getenv("FAULT")) {
            char *end = nullptr;
            os_ = static_cast<int>(std::strtol(fault, &end, 10));
            fails_ = *end == ':' ? end + 1 : end;
            if (const size_t hash = fails_.rfind('#'); hash != std::string::npos) {
                nth_ = std::atoi(fails_.c_str() + hash + 1);
                fails_.resize(hash);
            }
        }
        // What is started by the command is no matter of ours.
        unsetenv("FAULT_LOG");
        unsetenv("FAULT");
        sys::use_backend(this);
    }
    long call(const sys::Call &call) override {
        const auto known =
            std::find_if(std::begin(kNames), std::end(kNames), [&](const Name &n) { return n.number == call.number; });
        if (known == std::end(kNames)) return sys::kernel_backend().call(call);
        std::string path = path_of(*known, call);
        std::string name(known->text);
        if (call.number == __NR_bpf) append(name, " {}", sys::command_name(static_cast<uint32_t>(call.args[0])));
        if (call.number == __NR_ioctl) append(name, " {:#x}", call.args[1]);
        if (!path.empty()) append(name, " {}", path);
        if (!call.why.empty()) append(name, " [{}]", without_numbers(call.why));
        if (log_ >= 0) {
            const std::string line = name + "\n";
            (void)!::write(log_, line.data(), line.size());
        }
        long result = -os_;
        if (name == fails_ && ++seen_ == nth_) {
            if (call.number == __NR_close) (void)sys::kernel_backend().call(call); // it is closed even so
        } else {
            result = sys::kernel_backend().call(call);
        }
        if (result >= 0 && (call.number == __NR_openat || call.number == 437)) files_[static_cast<int>(result)] = path;
        if (call.number == __NR_close) files_.erase(static_cast<int>(call.args[0]));
        return result;
    }

  private:
    std::string path_of(const Name &name, const sys::Call &call) {
        if (name.kind == Name::path_first || name.kind == Name::path_second)
            return without_numbers(reinterpret_cast<const char *>(call.args[name.kind == Name::path_second]));
        if (name.kind != Name::descriptor) return {};
        const int fd = static_cast<int>(call.args[0]);
        if (const auto it = files_.find(fd); it != files_.end()) return it->second;
        return fd == 1 ? "stdout" : fd == 2 ? "stderr" : fd == 0 ? "stdin" : "";
    }

    int log_ = -1, os_ = 0, nth_ = 1, seen_ = 0;
    std::string fails_;
    std::map<int, std::string> files_;
};

// Never destroyed: calls are made until the very end.
const Faulty &faulty = *new Faulty;

} // namespace
} // namespace rawbpf
