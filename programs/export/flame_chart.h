// Makes spans of samples: a function that stays on a thread's stack from one sample to the next counts as one call.
//
//      samples of a thread    main     main     main                main        each stands for the period that follows it
//                             work     work     work                work
//                             leaf     leaf     other               leaf
//
//      spans                  main [----------------------]         main [----]
//                             work [----------------------]         work [----]
//                             leaf [-------------]other[--]         leaf [----]
//
// The spans are as exact as the rate: a function that is called twice between two samples is one span, and a call that fell
// between them is none. Long spans are right, and these are what one looks for.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "programs/export/span.h"

namespace rawbpf::inline v0::telemetry {

/// What one sample says.
struct StackSample {
    uint32_t pid = 0, tid = 0;
    std::string_view comm;
    uint64_t time = 0;                   ///< ns of Unix time
    std::span<const std::string> frames; ///< names, outermost first
};

/// Thread-compatible. Memory: the open calls of at most 65,536 threads.
class FlameChart {
  public:
    /// `period`: ns between two samples of a thread that runs all the time. `give` gets each span when it has ended, inner ones
    /// before the one around them.
    FlameChart(IdSource &ids, uint64_t period, std::function<void(const Span &)> give)
        : ids_(ids), period_(period), give_(std::move(give)) {}

    /// A thread's samples come in the order of time; one that is earlier than the last counts as being at the same time.
    void sample(const StackSample &sample);
    /// Ends what belongs to threads that haven't been seen since `before`, ns of Unix time. To be called now and then.
    void end_silent(uint64_t before);
    /// Ends everything.
    void end();
    /// Spans given so far.
    [[nodiscard]] uint64_t made() const { return made_; }

  private:
    struct Call {
        Span span;
        int64_t samples = 0;
    };
    struct Thread {
        std::vector<Call> calls; ///< outermost first: the thread's name, then its frames
        uint64_t last = 0;       ///< time of its last sample
    };
    void end_from(Thread &thread, size_t depth, uint64_t at);
    void begin(Thread &thread, const StackSample &sample, const std::string &name, uint64_t at);

    IdSource &ids_;
    uint64_t period_;
    std::function<void(const Span &)> give_;
    std::unordered_map<uint32_t, Thread> threads_; ///< by tid
    uint64_t made_ = 0;
};

} // namespace rawbpf::inline v0::telemetry
