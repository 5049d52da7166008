// Runs are measured in parts, because other work on the machine makes some of them slower and none faster: the least says what
// a run takes, the median what it mostly took, the most how quiet the machine was. Entering and leaving a run takes as long as
// some twenty instructions; a program that only returns is measured in the same way, and its median is subtracted.
#include "programs/exec/timing.h"

#include <algorithm>
#include <vector>

#include "runtime/base/format.h"

namespace rawbpf::inline v0::exec {
namespace {

constexpr uint64_t kEmptyInstructions = 2;

Spread spread_of(std::vector<double> parts) {
    std::sort(parts.begin(), parts.end());
    const size_t n = parts.size();
    return {parts.front(), n % 2 ? parts[n / 2] : (parts[n / 2 - 1] + parts[n / 2]) / 2, parts.back()};
}

template <class Change> Spread changed(const Spread &of, Change &&change) {
    return {change(of.least), change(of.median), change(of.most)};
}

void append_spread(render::JsonObject &out, std::string_view name, const std::optional<Spread> &spread) {
    if (!spread) {
        out.null(name);
        return;
    }
    append(out.raw(name), R"({{"least":{:.3f},"median":{:.3f},"most":{:.3f}}})", spread->least, spread->median, spread->most);
}

} // namespace

Timing timing_of(const RunResult &result) {
    Timing out;
    out.parts = result.batches.size();
    out.mean = result.ns;
    out.instructions = result.instructions;
    out.run = result.batches.empty() ? Spread{result.ns, result.ns, result.ns} : spread_of(result.batches);
    if (result.empty.empty()) return out;
    out.empty = spread_of(result.empty);
    out.own = changed(out.run, [&](double ns) { return std::max(ns - out.empty->median, 0.0); });
    if (out.instructions > kEmptyInstructions)
        out.each = changed(*out.own, [&](double ns) { return ns / static_cast<double>(out.instructions - kEmptyInstructions); });
    return out;
}

std::string timing_text(const Timing &timing) {
    std::string out = format("{:.1f} ns a run", timing.run.median);
    if (timing.instructions != 0) append(out, ", {} instruction{}", timing.instructions, timing.instructions == 1 ? "" : "s");
    if (timing.parts < 2) return out;
    append(out, " (median of {} parts, {:.1f} to {:.1f}, mean {:.1f}", timing.parts, timing.run.least, timing.run.most,
           timing.mean);
    if (timing.own)
        append(out, "; an empty program {:.1f}, so {:.1f} of its own, {:.1f} to {:.1f}", timing.empty->median, timing.own->median,
               timing.own->least, timing.own->most);
    if (timing.each)
        append(out, ": {:.2f} ns each instruction more, {:.2f} to {:.2f}", timing.each->median, timing.each->least,
               timing.each->most);
    return out + ")";
}

void append_timing_json(render::JsonObject &out, const Timing &timing) {
    out.number("parts", timing.parts);
    append_spread(out, "ns", timing.run);
    append(out.raw("mean_ns"), "{:.3f}", timing.mean);
    append_spread(out, "empty_ns", timing.empty);
    append_spread(out, "own_ns", timing.own);
    timing.instructions == 0 ? out.null("instructions") : out.number("instructions", timing.instructions);
    append_spread(out, "ns_per_instruction", timing.each);
}

} // namespace rawbpf::inline v0::exec
