// The exporter's thread. It makes no system call through invoke(), which isn't thread-safe: it waits, and it calls the
// transport, which belongs to the module and has an invoke() of its own that nobody observes. All signals are blocked in it,
// because the poll loop handles them.
#include "programs/export/background.h"

#include <algorithm>
#include <chrono>
#include <csignal>

#include "runtime/sys/clock.h"

namespace rawbpf::inline v0::telemetry {

Background::Background(Exporter &exporter) : exporter_(exporter) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); // a new thread inherits the mask
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool Background::add(Span span) {
    const bool taken = exporter_.add(std::move(span));
    if (!taken || exporter_.has_batch()) {
        const std::lock_guard lock(mutex_);
        woken_ = true;
        wake_.notify_one();
    }
    return taken;
}

void Background::begin_stop(uint64_t within_ns) {
    exporter_.stop_by(sys::monotonic_ns() + within_ns);
    const std::lock_guard lock(mutex_);
    stopping_ = woken_ = true;
    wake_.notify_one();
}

ExportReport Background::stop(uint64_t within_ns) {
    if (thread_.joinable()) {
        begin_stop(within_ns);
        thread_.join();
    }
    return exporter_.report();
}

void Background::run() {
    for (;;) {
        bool last = false; // asked before the poll: what was added before stop() is seen by it
        {
            const std::lock_guard lock(mutex_);
            last = stopping_;
        }
        const std::optional<uint64_t> wait = exporter_.poll();
        if (last && !wait) {
            done_ = true;
            return;
        }
        constexpr uint64_t kIdle = 200'000'000; // a first span wakes nobody: it has batch_ns
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, std::chrono::nanoseconds(std::min(wait.value_or(kIdle), kIdle)), [&] { return woken_; });
        woken_ = false;
    }
}

} // namespace rawbpf::inline v0::telemetry
