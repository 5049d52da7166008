// What the formats of a trace have in common: events in, text (or bytes) out.
//
//      View --Shown--> Sink --text--> the writer       one Sink a format: lines.cpp, json_events.cpp, chrome.cpp, folded.cpp,
//                                                      protobuf.cpp (those of programs/render have stack_counts.h)
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "programs/trace/calls.h"
#include "programs/trace/decode.h"
#include "programs/trace/histogram.h"
#include "programs/trace/names.h"
#include "programs/trace/tracer.h"

namespace rawbpf::inline v0::render {
class Renderer;
}

namespace rawbpf::inline v0::trace {

// What events are written as, beside folded, which can be stacks or calls. csv and prometheus show groups of events (aggregate.h)
// only.
#define RAWBPF_TRACE_FORMATS(X) X(text) X(json) X(csv) X(prometheus) X(chrome) X(protobuf)

#define RAWBPF_TRACE_FORMAT_ID(format) format,
enum class Format : uint8_t {
    RAWBPF_TRACE_FORMATS(RAWBPF_TRACE_FORMAT_ID) //
    folded,                                      ///< the times of calls; with ViewOptions::stacks how often each stack came
    stacks ///< another one of programs/render: nothing but stacks, counted (ViewOptions::stacks)
};
#undef RAWBPF_TRACE_FORMAT_ID

/// The names of a trace's own formats, in the order of Format.
#define RAWBPF_TRACE_FORMAT_NAME(format) #format,
inline constexpr std::string_view kTraceFormats[] = {RAWBPF_TRACE_FORMATS(RAWBPF_TRACE_FORMAT_NAME) "folded"};
#undef RAWBPF_TRACE_FORMAT_NAME
/// Of a name as -f takes it: what isn't a trace's own is one of programs/render.
[[nodiscard]] constexpr Format format_named(std::string_view name) {
    size_t i = 0;
    while (i < std::size(kTraceFormats) && kTraceFormats[i] != name) ++i;
    return static_cast<Format>(i);
}

struct SpanOptions; // spans.h

struct ViewOptions {
    Format format = Format::text;
    bool graph = false;                 ///< calls indented by depth, with durations
    bool latency = false;               ///< a histogram and percentiles for each function, at the end
    bool count = false;                 ///< no events, only how often
    bool calls = true;                  ///< calls are seen: not only their returns
    bool returns = false;               ///< returns are seen too, so that calls have a depth
    bool stack = false;                 ///< records bring stacks along
    bool quiet = false;                 ///< no statistics at the end
    const SpanOptions *spans = nullptr; ///< not events, but the spans they make: text and json
    render::Renderer *stacks = nullptr; ///< not events, but how often each stack: Format::stacks, and folded with `stack`
    bool threads_apart = false;         ///< of them: stacks of different threads aren't equal (TraceOptions::threads_apart)
    bool group_stacks = false;          ///< not events, but the stacks of groups of events
    processes::DebugInfo *debug_info = nullptr; ///< where lines and inlined functions of stacks come from
    processes::SourceDetail source = {};        ///< which of these
};

/// An event with what is known of it beside its record.
struct Shown {
    const Event &event;
    std::string_view comm;
    uint64_t t_ns = 0, wall_ns = 0; ///< since the start; of Unix
    bool is_result = false;
    std::optional<uint32_t> depth = {};
    std::optional<uint64_t> duration = {}; ///< ns; of a result that has a call
    uint64_t self = 0;                     ///< of that, outside of the traced calls within it
    /// The calls of this thread that go on, outermost first: those that this event lies in.
    std::span<const Calls::Open> within = {};
    const NamedStack *stack = nullptr; ///< with ViewOptions::stack
    const Labels *labels = nullptr;    ///< the running request's; nullptr: it has none of those asked for
};

/// What is known at the end.
struct Ending {
    const std::vector<PlaceCounts> &counts;
    const Ledger &ledger;
    const std::map<uint32_t, Histogram> &latency; ///< by place
};

struct SinkOptions {
    const ViewOptions &view;
    const std::vector<ProbeSite> &places;
    const std::vector<std::string> &names; ///< of the places: the function's, or where several have one name, the whole probe.
                                           ///< Empty: another site of a probe that is there already, and counted with it
    const RunInfo &run;
    Decoding decoding;
};

class Sink {
  public:
    explicit Sink(SinkOptions options) : o_(options) {}
    virtual ~Sink() = default;
    Sink(const Sink &) = delete;
    Sink &operator=(const Sink &) = delete;
    virtual void begin(std::string &) {}
    virtual void event(std::string &out, const Shown &shown) = 0;
    /// Nothing has come for a while: what was held back is shown.
    virtual void idle(std::string &) {}
    /// Called often, with the time: ns of Unix time.
    virtual void tick(std::string &, uint64_t) {}
    virtual void end(std::string &, const Ending &) {}
    /// Values whose memory couldn't be read.
    [[nodiscard]] uint64_t unreadable() const { return unreadable_; }

  protected:
    /// What all events of a place and kind have in common: looked up and spelled out once.
    struct Plan {
        std::vector<ColumnPlan> columns;
        // Text of the sink's own:
        std::string head;                ///< before the first column
        std::vector<std::string> before; ///< of each column
        std::string after;               ///< the last one
    };
    virtual void spell_out(Plan &, const Event &) {}
    [[nodiscard]] const Plan &plan(const Event &event) {
        const size_t at = 2 * size_t{event.header.place} + (event.header.what == What::result);
        if (plans_.size() <= at) plans_.resize(at + 1);
        if (!plans_[at]) make_plan(at, event);
        return *plans_[at];
    }
    [[nodiscard]] Decoded argument(const Shown &shown, size_t i) {
        Decoded out = decode(shown.event, i, plan(shown.event).columns[i], o_.decoding);
        unreadable_here_ |= out.kind == Decoded::Kind::unreadable;
        return out;
    }
    /// The event has been written: one with unreadable values counts once.
    void done() {
        unreadable_ += unreadable_here_;
        unreadable_here_ = false;
    }
    SinkOptions o_;

  private:
    void make_plan(size_t at, const Event &event) {
        auto made = std::make_unique<Plan>();
        for (size_t i = 0; i < event.layout->arguments(); ++i)
            made->columns.push_back(plan_column(*event.place, *event.layout, i));
        spell_out(*made, event);
        plans_[at] = std::move(made);
    }

    std::vector<std::unique_ptr<Plan>> plans_; ///< by place; of its calls, of its returns
    uint64_t unreadable_ = 0;
    bool unreadable_here_ = false;
};

// One factory a format.
[[nodiscard]] std::unique_ptr<Sink> make_lines(SinkOptions options);
[[nodiscard]] std::unique_ptr<Sink> make_json_events(SinkOptions options);
[[nodiscard]] std::unique_ptr<Sink> make_chrome(SinkOptions options);
[[nodiscard]] std::unique_ptr<Sink> make_folded_calls(SinkOptions options);
[[nodiscard]] std::unique_ptr<Sink> make_protobuf(SinkOptions options);

// What every NDJSON of a trace ends with: a line of times for each function with --latency, and the ledger with each place's.
void append_json_latency(std::string &out, const SinkOptions &options, const Ending &ending);
void append_json_trace_ledger(std::string &out, const SinkOptions &options, const Ending &ending);

} // namespace rawbpf::inline v0::trace
