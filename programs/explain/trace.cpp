// Our walk, taken over: values become text for the steps that somebody will read.
//
// A walk may have a million steps. What is shown of an instruction is what its first visits knew, and what the path to the
// refusal knew: only of these the values are written.
#include "programs/explain/trace.h"

#include <algorithm>

#include "runtime/verifier/print.h"

namespace rawbpf::inline v0::explain {

namespace {

constexpr uint32_t kVisitsShown = 4; // of each instruction

} // namespace

std::vector<uint32_t> Trace::path_to(uint32_t step) const {
    std::vector<uint32_t> out;
    for (; step != 0 && step < steps.size(); step = steps[step].parent) out.push_back(step);
    std::reverse(out.begin(), out.end());
    return out;
}

std::string_view Trace::value_after(const std::vector<uint32_t> &path, size_t at, int place, unsigned frame) const {
    for (size_t i = std::min(at + 1, path.size()); i-- > 0;) {
        const TraceStep &step = steps[path[i]];
        for (uint32_t n = 0; n < step.known_count; ++n) {
            const Known &one = known[step.known + n];
            if (one.place == place && one.frame == frame) return one.text;
        }
    }
    return {};
}

std::string_view Trace::value_before(const std::vector<uint32_t> &path, size_t at, int place, unsigned frame) const {
    return at == 0 ? std::string_view(place == 1 ? "ctx()" : place == 10 ? "fp0" : "") : value_after(path, at - 1, place, frame);
}

Trace trace_of(const ObjectSpec &spec, const ProgramSpec &program, const verifier::Verdict &verdict) {
    const verifier::Walk &walk = verdict.walk;
    Trace out;
    out.outcome = verdict.outcome;
    out.insn = verdict.placed ? int64_t(verdict.insn) : -1;
    out.last = verdict.step;
    out.reason = verdict.reason;
    out.processed = verdict.processed;
    out.states = verdict.states;
    out.visits = walk.visits;
    if (verdict.outcome == verifier::Outcome::refused) out.log = verifier::log_text(spec, program, verdict);
    std::vector<bool> on_path(walk.steps.size());
    for (uint32_t step : walk.path_to(verdict.step)) on_path[step] = true;
    std::vector<uint32_t> shown(program.insns.size());
    out.steps.resize(walk.steps.size());
    for (uint32_t n = 1; n < walk.steps.size(); ++n) {
        const verifier::Step &from = walk.steps[n];
        TraceStep &to = out.steps[n];
        to.insn = from.insn;
        to.parent = from.parent;
        to.frame = from.frame;
        to.end = from.end;
        const bool branches = from.end == StepEnd::split || from.end == StepEnd::decided;
        to.taken = branches && from.other != 0;
        to.before = from.end == StepEnd::pruned ? from.other : 0;
        if (!on_path[n] && shown[from.insn] >= kVisitsShown) continue;
        ++shown[from.insn];
        to.known = static_cast<uint32_t>(out.known.size());
        for (uint32_t i = 0; i < from.change_count; ++i) {
            const verifier::Change *change = walk.change(from.changes + i);
            if (!change) continue;
            const bool unset = change->value.sort == verifier::Sort::unset;
            out.known.push_back(
                {change->place, change->frame, unset ? std::string() : verifier::value_text(change->value, spec)});
            ++to.known_count;
        }
    }
    return out;
}

} // namespace rawbpf::inline v0::explain
