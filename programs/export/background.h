// An exporter with a thread of its own, so that a slow receiver never stops the reading of the events' ring.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "programs/export/exporter.h"

namespace rawbpf::inline v0::telemetry {

/// Starts its thread when it is made, ends it in stop() or when it is dropped. The exporter outlives it; nobody else polls it.
class Background {
  public:
    explicit Background(Exporter &exporter);
    Background(const Background &) = delete;
    Background &operator=(const Background &) = delete;
    ~Background() { (void)stop(0); }

    /// Exporter::add(), and wakes the thread when a batch is full. From any thread.
    bool add(Span span);
    /// What waits is sent for at most so long from now; done() when that has ended. A second call may shorten it.
    void begin_stop(uint64_t within_ns);
    [[nodiscard]] bool done() const { return done_; }
    /// begin_stop(), and waits for its end. Then the report is final.
    ExportReport stop(uint64_t within_ns);

  private:
    void run();
    Exporter &exporter_;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool woken_ = false, stopping_ = false; ///< under mutex_
    std::atomic<bool> done_{false};
    std::thread thread_;
};

} // namespace rawbpf::inline v0::telemetry
