// An exporter with a thread of its own, so that a slow receiver never holds up the events' ring.
#pragma once

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
    /// Sends what waits, for at most so long, not counting the request under way, which ends by its own time-out. Then the report
    /// is final.
    ExportReport stop(uint64_t within_ns);

  private:
    void run();
    Exporter &exporter_;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool woken_ = false, stopping_ = false; ///< under mutex_
    std::thread thread_;
};

} // namespace rawbpf::inline v0::telemetry
