// Traces as text, JSON lines, folded stacks or a flame graph.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "programs/custom/names.h"
#include "programs/custom/tally.h"
#include "programs/custom/tracer.h"
#include "programs/render/frame.h"
#include "programs/render/tool_formats.h"
#include "programs/render/writer.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::custom {

/// All forms: two of its own, one trace at a time, and those of the render stage.
inline constexpr std::string_view kFormatChoices = "text json" RAWBPF_FORMATS_OF_TRACES;
/// What of the render stage is meant; nullopt: text and json, which are its own.
[[nodiscard]] inline std::optional<render::Format> rendered(std::string_view format) {
    return format == "json" ? std::nullopt : render::format_named(format);
}
/// Whether the format counts equal stacks, so that they can be weighed.
[[nodiscard]] constexpr bool is_weighed(const std::optional<render::Format> &format) {
    return format && render::aggregates(*format);
}

struct ViewOptions {
    std::optional<render::Format> format = {}; ///< rendered()
    bool json = false;                         ///< of its own forms
    /// is_weighed(): what a stack's weight is the sum of.
    enum class Weight : uint8_t { count, context, off_cpu };
    Weight weight = Weight::count;
    bool off_cpu = false;              ///< the line of totals has these, too
    bool origins = false;              ///< is_weighed(): stacks of different origins stay apart, below "[custom]", "[sampling]"
    bool guarded = true;               ///< contexts by way of the per-CPU map are checked to be their thread's
    render::RenderOptions render = {}; ///< of `format`; `traces` is found out
};

class View {
  public:
    View(const ViewOptions &options, TraceNames &names, const RunInfo &run, uint64_t start_ns, render::Writer &writer);
    /// Errors: unsupported (JSON, and formats that are JSON, in a build without).
    [[nodiscard]] Result<void> start();
    void trace(const LocatedTrace &trace);
    /// Shows what can be named; what needs a pass over the kernel's symbols waits until one is affordable, two seconds at most.
    [[nodiscard]] Result<void> flush(uint64_t now_ns);
    /// Names and shows everything; what is left to do is finish().
    void drain();
    [[nodiscard]] Result<void> finish(const Ledger &ledger);

    [[nodiscard]] const Tally &tally() const { return tally_; }

  private:
    struct Key {
        uint32_t pid, kernel, user, labels;
        Origin origin;
        std::string comm;
        bool missed;
        bool operator==(const Key &) const = default;
    };
    struct KeyHash {
        size_t operator()(const Key &key) const;
    };
    void show(const LocatedTrace &trace);
    [[nodiscard]] std::vector<uint32_t> kernel_stacks() const; ///< of what waits
    void show_waiting();
    void text(const LocatedTrace &trace, const Named &named);
    void json(const LocatedTrace &trace, const Named &named);
    [[nodiscard]] NamedSample sample(const LocatedTrace &trace, Named &&named) const;
    void hand_over_sums();
    void forget_stacks();
    void count_ends();

    ViewOptions options_;
    TraceNames &names_;
    RunInfo run_;
    uint64_t start_ns_;
    render::Writer &writer_;
    render::TraceOrigin origin_;                 ///< of the trace that renderer_ is given
    std::unique_ptr<render::Renderer> renderer_; ///< of all formats but text and json
    std::vector<LocatedTrace> waiting_;
    struct Sum {
        uint64_t weight = 0;
        size_t order = 0; ///< in which they came
    };
    std::unordered_map<Key, Sum, KeyHash> sums_;
    std::unordered_map<uint64_t, uint64_t> user_ends_; ///< traces, by node and ending, whose user stacks weren't cut
    uint64_t numbered_[4] = {};                        ///< by origin, in text
    Tally tally_;
};

/// fired = shown + filtered + lost. `filtered`: those that were left out here, beside the programs'.
[[nodiscard]] Ledger ledger_of(const CustomTracer &tracer, const Counts &counts, uint64_t shown, uint64_t filtered);

} // namespace rawbpf::inline v0::custom
