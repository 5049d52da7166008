// Signals come as something to read: a wait for them and for a time is one epoll_wait(2).
#include "cli/waiting.h"

#include <algorithm>
#include <array>
#include <sys/epoll.h>

#include "runtime/base/fail.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/epoll.h"

namespace rawbpf::inline v0::cli {

Result<Waiting> Waiting::open() {
    sys::SignalFd signals = TRY(sys::SignalFd::open(sys::kEndingSignals));
    Fd epoll = TRY(sys::epoll_create());
    TRY(sys::epoll_add(epoll.get(), signals.fd(), EPOLLIN, 0));
    return Waiting(std::move(signals), std::move(epoll));
}

Result<bool> Waiting::stopped_before(uint64_t end_ns) const {
    for (;;) {
        const uint64_t now = sys::monotonic_ns();
        if (now >= end_ns) return false;
        std::array<epoll_event, 1> event;
        const auto wait =
            end_ns == UINT64_MAX ? -1 : static_cast<int>(std::min<uint64_t>((end_ns - now + 999'999) / 1'000'000, 1'000'000));
        if (TRY(sys::epoll_wait(epoll_.get(), event, wait)) > 0) return true;
    }
}

} // namespace rawbpf::inline v0::cli
