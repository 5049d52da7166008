// Signals arrive at a descriptor (signalfd), so one epoll_wait(2) waits for them and for a time.
#include "cli/waiting.h"

#include <algorithm>
#include <array>
#include <sys/epoll.h>

#include "cli/running.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
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

Result<LooksAsked> looks_asked(const Arguments &a, Id every, Id duration, uint64_t least_ms) {
    const auto ns = [&](Id id) { return static_cast<uint64_t>(a.seconds(id) * 1e9); };
    if (ns(every) < least_ms * 1'000'000) return wrong_usage(format("--every is {}ms at least", least_ms));
    return LooksAsked{ns(every), a.has(duration) ? ns(duration) : UINT64_MAX};
}

Result<Looks> Looks::begin(const LooksAsked &asked) {
    Waiting waiting = TRY(Waiting::open());
    const uint64_t now = sys::monotonic_ns(), left = UINT64_MAX - now;
    return Looks(std::move(waiting), asked.every_ns, now, now + std::min(asked.duration_ns, left));
}

Result<bool> Looks::next() {
    if (waited_ && (stopped_ || sys::monotonic_ns() >= end_ns_)) return false;
    due_ns_ = std::max(due_ns_ + every_ns_, sys::monotonic_ns());
    stopped_ = TRY(waiting_.stopped_before(std::min(due_ns_, end_ns_)));
    waited_ = true;
    return true;
}

uint64_t Looks::elapsed_ns() const { return sys::monotonic_ns() - started_ns_; }

} // namespace rawbpf::inline v0::cli
