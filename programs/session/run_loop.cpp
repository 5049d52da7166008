#include "programs/session/run_loop.h"

#include <algorithm>
#include <utility>

#include "runtime/base/fail.h"
#include "runtime/sys/clock.h"

namespace rawbpf::inline v0::session {
namespace {

constexpr uint64_t kTarget = uint64_t{1} << 32; // what epoll says of the first of them, then one more each

} // namespace

int wait_ms(int usual, uint64_t now_ns, uint64_t begin_ns, uint64_t duration_ns) {
    if (duration_ns == 0) return usual;
    if (now_ns >= begin_ns + duration_ns) return 0;
    const uint64_t left_ms = (begin_ns + duration_ns - now_ns) / 1'000'000 + 1;
    return left_ms < static_cast<uint64_t>(usual) ? static_cast<int>(left_ms) : usual;
}

Result<void> RunLoop::open() {
    epoll_ = TRY(sys::epoll_create());
    return {};
}

Result<void> RunLoop::add(int fd) { return sys::epoll_add(epoll_.get(), fd, EPOLLIN | EPOLLET, 0); }

Result<void> RunLoop::watch(sys::Child &child) {
    child_ = &child;
    return child.pidfd() >= 0 ? sys::epoll_add(epoll_.get(), child.pidfd(), EPOLLIN, 0) : Result<void>();
}

Result<void> RunLoop::watch(std::vector<Fd> targets) {
    targets_ = std::move(targets);
    alive_ = targets_.size();
    for (size_t i = 0; i < targets_.size(); ++i)
        TRY(sys::epoll_add(epoll_.get(), targets_[i].get(), EPOLLIN | EPOLLET, kTarget + i));
    return {};
}

void RunLoop::begin(uint64_t now_ns, double duration_s, const volatile std::sig_atomic_t *stop) {
    begin_ns_ = now_ns;
    duration_ns_ = static_cast<uint64_t>(duration_s * 1e9);
    stop_ = stop;
}

Result<bool> RunLoop::wait(int most_ms) {
    ended_.clear();
    const uint64_t now = sys::monotonic_ns();
    if (told_to_stop() || (duration_ns_ != 0 && now >= begin_ns_ + duration_ns_)) return false;
    const size_t count = TRY(sys::epoll_wait(epoll_.get(), ready_, wait_ms(most_ms, now, begin_ns_, duration_ns_)));
    for (size_t i = 0; i < count; ++i)
        if (ready_[i].data.u64 >= kTarget) target_ended(ready_[i].data.u64 - kTarget);
    return true;
}

// Since Linux 6.9 a pidfd wakes twice: when the process has ended, and when its parent has taken note of that. Closing it takes
// it out of the epoll's set.
void RunLoop::target_ended(size_t target) {
    if (targets_[target].get() < 0) return; // both in one wait
    targets_[target].reset();
    ended_.push_back(target);
    --alive_;
}

Result<bool> RunLoop::over() {
    if (child_ && child_->pid() >= 0 && TRY(child_->poll())) return true;
    return targets_ended();
}

} // namespace rawbpf::inline v0::session
