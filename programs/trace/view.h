// Events to what the user asked to see.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "programs/render/frame.h"
#include "programs/render/writer.h"
#include "programs/trace/calls.h"
#include "programs/trace/tracer.h"

namespace rawbpf::inline v0::trace {

enum class Format : uint8_t { text, json };

struct ViewOptions {
    Format format = Format::text;
    bool graph = false;   ///< calls indented by depth, with durations
    bool latency = false; ///< a histogram and percentiles for each function, at the end
    bool count = false;   ///< no events, only how often
    bool returns = false; ///< returns are seen too, so that calls have a depth
    bool quiet = false;   ///< no statistics at the end
};

/// Times of one function's calls: exact sums, and for percentiles buckets of an eighth of a power of two.
class Histogram {
  public:
    void add(uint64_t ns);
    [[nodiscard]] uint64_t count() const { return count_; }
    [[nodiscard]] uint64_t sum() const { return sum_; }
    [[nodiscard]] uint64_t least() const { return least_; }
    [[nodiscard]] uint64_t most() const { return most_; }
    /// The time that `share` (0 to 1) of the calls stayed within, to an eighth of its size.
    [[nodiscard]] uint64_t percentile(double share) const;
    /// Calls of [2^i, 2^(i+1)) ns.
    [[nodiscard]] uint64_t power(uint32_t i) const;

  private:
    static constexpr uint32_t kParts = 8;
    static uint32_t bucket(uint64_t ns);
    static uint64_t upper(uint32_t bucket);
    std::vector<uint64_t> buckets_;
    uint64_t count_ = 0, sum_ = 0, least_ = UINT64_MAX, most_ = 0;
};

class View {
  public:
    View(const ViewOptions &options, const std::vector<Place> &places, const RunInfo &run, const btf::Btf *kernel,
         uint64_t start_ns, render::Writer &writer);

    [[nodiscard]] Result<void> start();
    void event(const Event &event);
    /// Writes what has been gathered.
    [[nodiscard]] Result<void> flush();
    /// Counts, statistics, tables, the ledger.
    [[nodiscard]] Result<void> finish(const std::vector<PlaceCounts> &counts, const Ledger &ledger);
    [[nodiscard]] uint64_t unreadable() const { return unreadable_; }
    [[nodiscard]] const Calls &calls() const { return calls_; }

  private:
    void text_event(const Event &event, uint32_t depth, const Calls::Returned &returned);
    void json_event(const Event &event, uint32_t depth, const Calls::Returned &returned);
    void arguments(const Event &event, bool json);
    void counts_table(const std::vector<PlaceCounts> &counts);
    void latency_tables();
    void stamp(uint64_t t_ns);
    void note_unreadable(bool unreadable);
    [[nodiscard]] std::string name_of(uint32_t place) const;

    ViewOptions options_;
    const std::vector<Place> &places_;
    const RunInfo &run_;
    const btf::Btf *kernel_;
    uint64_t start_ns_;
    render::Writer &writer_;
    std::string out_;
    Calls calls_;
    std::map<uint32_t, Histogram> latency_;  ///< by place
    std::vector<uint64_t> called_, returns_; ///< events of each kind, by place
    uint64_t unreadable_ = 0;
    uint64_t second_ = UINT64_MAX; ///< that stamp_ was made for
    std::string stamp_;
};

} // namespace rawbpf::inline v0::trace
