// Call paths with the time spent in them, for flamegraph.pl, speedscope and whatever else takes folded stacks:
//
//      work;mid;leaf 2400        nanoseconds in leaf() itself, called by mid(), in threads called "work"
//      work;mid 6600             in mid() itself, without leaf()
//
// With --label the running request's labels, as they were at the return, stand in front: user=alice;work;mid 6600.
//
// Only traced functions are in a path. A line's time is the function's own, so that the lines add up to the time in all of them.
#include <algorithm>
#include <unordered_map>

#include "programs/render/text.h"
#include "programs/trace/sink.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::trace {
namespace {

class FoldedCalls final : public Sink {
  public:
    using Sink::Sink;

    void event(std::string &, const Shown &shown) override {
        if (!shown.is_result || !shown.duration) return;
        path_.clear();
        if (shown.labels) render::append_folded_labels(path_, *shown.labels);
        render::append_comm(path_, shown.comm);
        for (const Calls::Open &call : shown.within) append_place(call.place);
        append_place(shown.event.header.place);
        times_[path_] += shown.self;
    }

    void end(std::string &out, const Ending &) override {
        std::vector<std::pair<std::string_view, uint64_t>> lines(times_.begin(), times_.end());
        std::sort(lines.begin(), lines.end());
        for (const auto &[path, ns] : lines)
            if (ns) append(out, "{} {}\n", path, ns);
    }

  private:
    void append_place(uint32_t place) {
        path_ += ';';
        render::append_symbol(path_, o_.names[place]);
    }
    std::string path_;
    std::unordered_map<std::string, uint64_t> times_;
};

} // namespace

std::unique_ptr<Sink> make_folded_calls(SinkOptions options) { return std::make_unique<FoldedCalls>(options); }

} // namespace rawbpf::inline v0::trace
