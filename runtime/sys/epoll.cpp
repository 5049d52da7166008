// epoll(7). arm64 never had epoll_wait or epoll_create, so the newer calls are used everywhere.
#include "runtime/sys/epoll.h"

#include <cerrno>
#include <sys/syscall.h>

#include "runtime/base/fail.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::sys {

Result<Fd> epoll_create() {
    long fd = invoke(__NR_epoll_create1, EPOLL_CLOEXEC);
    if (fd < 0) return fail_os(static_cast<int>(-fd), "epoll_create1");
    return Fd(static_cast<int>(fd));
}

Result<void> epoll_add(int epoll, int fd, uint32_t events, uint64_t data) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = data;
    long r = invoke(__NR_epoll_ctl, static_cast<uint64_t>(epoll), EPOLL_CTL_ADD, static_cast<uint64_t>(fd), reg(&event));
    if (r < 0) return fail_os(static_cast<int>(-r), "epoll_ctl: adding descriptor {}", fd);
    return {};
}

Result<void> epoll_remove(int epoll, int fd) {
    long r = invoke(__NR_epoll_ctl, static_cast<uint64_t>(epoll), EPOLL_CTL_DEL, static_cast<uint64_t>(fd));
    if (r < 0) return fail_os(static_cast<int>(-r), "epoll_ctl: removing descriptor {}", fd);
    return {};
}

Result<size_t> epoll_wait(int epoll, std::span<epoll_event> into, int timeout_ms) {
    // The sixth argument is the size of the signal mask even when there is none: the kernel checks it.
    long n = invoke(__NR_epoll_pwait, static_cast<uint64_t>(epoll), reg(into.data()), into.size(),
                    static_cast<uint64_t>(timeout_ms), 0, 8);
    if (n == -EINTR) return size_t{0};
    if (n < 0) return fail_os(static_cast<int>(-n), "epoll_pwait");
    return static_cast<size_t>(n);
}

} // namespace rawbpf::inline v0::sys
