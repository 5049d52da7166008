// Start and end events become spans.
//
//      thread 7:   a_start  b_start  b_end  a_end         one stack for each thread (of Go: for each goroutine)
//      spans:      a [---------------------------]        b's parent is a: what was open when it began
//                           b [-------]
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "programs/export/pairs.h"
#include "programs/export/span.h"

namespace rawbpf::inline v0::telemetry {

struct PairingOptions {
    Conventions conventions;
    uint64_t expire_ns = 60'000'000'000; ///< a start without an end is given up after so long
    size_t most_open = 65536;            ///< starts waiting for their ends; then the oldest goes
    size_t deepest = 1024;               ///< of them in one thread or goroutine; then its outermost goes
};

/// What became of the events: starts = paired + expired + dropped + open(); ends = paired + orphans.
struct PairingCounts {
    uint64_t starts = 0, ends = 0;
    uint64_t paired = 0;  ///< spans with a length
    uint64_t wholes = 0;  ///< events that have both ends in them: spans with a length
    uint64_t points = 0;  ///< events that are spans without one
    uint64_t expired = 0; ///< starts whose end never came: given out with no length
    uint64_t dropped = 0; ///< starts forgotten since too many were open: not given out
    uint64_t orphans = 0; ///< ends whose start wasn't seen
    uint64_t ignored = 0; ///< events of probes that neither begin nor end anything
    /// Spans that were given out.
    [[nodiscard]] uint64_t made() const { return paired + wholes + points + expired; }
};

/// Thread-compatible. Memory: most_open spans, each with its attributes' texts.
class Pairing {
  public:
    explicit Pairing(IdSource &ids, PairingOptions options = {}) : ids_(ids), options_(options) {}

    /// Takes an event; a span that is complete by it is appended to `out`.
    void event(const ProbeEvent &event, std::vector<Span> &out);
    /// Gives out the starts older than expire_ns, as spans without a length that have the attribute rawbpf.unpaired = true.
    /// `now`: ns of Unix time. To be called now and then.
    void expire(uint64_t now, std::vector<Span> &out);
    /// Gives out all that is still open: the process has ended, or the trace has.
    void end_process(uint32_t pid, std::vector<Span> &out);
    void end(std::vector<Span> &out);

    [[nodiscard]] const PairingCounts &counts() const { return counts_; }
    [[nodiscard]] size_t open() const { return by_age_.size(); }

  private:
    struct Runner { // a goroutine, or a thread
        uint64_t id = 0;
        uint32_t pid = 0;
        bool goroutine = false;
        bool operator==(const Runner &) const = default;
    };
    struct RunnerHash {
        size_t operator()(const Runner &place) const;
    };
    struct Open {
        Runner place;
        std::string provider, family;
        Span span;
        bool outlived = false; ///< what it began in has ended: no parent to others any more
    };
    using Age = std::map<uint64_t, Open>;

    [[nodiscard]] static Runner runner_of(const ProbeEvent &event);
    void give_ids(Span &span, const Runner &place);
    void give_up(Age::iterator oldest, std::vector<Span> *out);

    IdSource &ids_;
    PairingOptions options_;
    PairingCounts counts_;
    uint64_t next_ = 0;
    Age by_age_;                                                           ///< by the order of their starts
    std::unordered_map<Runner, std::vector<uint64_t>, RunnerHash> stacks_; ///< keys of by_age_, outermost first
};

} // namespace rawbpf::inline v0::telemetry
