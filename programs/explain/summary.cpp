// Visits of an instruction, added up: a loop's body of four instructions may have been looked at four hundred times, and what a
// reader asks is how often, where the paths went, and what was known.
#include "programs/explain/summary.h"

#include <algorithm>

#include "asm/helpers.h"
#include "asm/print.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::explain {

namespace {

constexpr size_t kValuesShown = 3;

std::string counted(uint32_t n, std::string_view one, std::string_view many) { return format("{} {}", n, n == 1 ? one : many); }

} // namespace

std::string InsnSummary::remarks() const {
    std::string out;
    if (jumps && straight)
        append(out, "splits: {}, {}", counted(jumps, "path jumps", "paths jump"),
               counted(straight, "goes straight on", "go straight on"));
    else if (pruned) // where a path that ended here would have gone isn't said
        append(out, "{}",
               jumps      ? counted(jumps, "path jumps", "paths jump")
               : straight ? counted(straight, "path goes straight on", "paths go straight on")
                          : "");
    else if (jumps)
        out += "always jumps";
    else if (straight)
        out += "never jumps";
    if (pruned) append(out, "{}{} here: known before", out.empty() ? "" : "; ", counted(pruned, "path ended", "paths ended"));
    if (ends) append(out, "{}{} here", out.empty() ? "" : "; ", counted(ends, "path ends", "paths end"));
    return out;
}

std::vector<InsnSummary> summarize(const Explanation &e) {
    std::vector<InsnSummary> out(e.program.insns.size());
    for (size_t i = 0; i < e.trace.visits.size() && i < out.size(); ++i) out[i].visits = e.trace.visits[i];
    for (size_t n = 1; n < e.trace.steps.size(); ++n) {
        const TraceStep &step = e.trace.steps[n];
        if (step.insn >= out.size()) continue;
        InsnSummary &here = out[step.insn];
        const unsigned kind = e.program.insns[step.insn].code & 7u;
        const bool branch = (kind == 5 || kind == 6) && (step.end == StepEnd::split || step.end == StepEnd::decided);
        if (branch) ++(step.taken ? here.jumps : here.straight);
        if (step.end == StepEnd::pruned) ++here.pruned;
        if (step.end == StepEnd::exit) ++here.ends;
        for (uint32_t k = 0; k < step.known_count; ++k) {
            const Known &known = e.trace.known[step.known + k];
            if (known.text.empty()) continue;
            auto place = std::find_if(here.places.begin(), here.places.end(), [&](const InsnSummary::ChangedPlace &p) {
                return p.known.place == known.place && p.known.frame == known.frame;
            });
            if (place == here.places.end()) place = here.places.insert(here.places.end(), {known, {}});
            if (place->values.size() < kValuesShown &&
                std::find(place->values.begin(), place->values.end(), known.text) == place->values.end())
                place->values.push_back(known.text);
        }
    }
    return out;
}

std::string place_name(const Known &known) {
    std::string out = known.place >= 0 ? format("r{}", known.place) : format("stack {}", known.place);
    if (known.frame) append(out, " of frame {}", unsigned(known.frame));
    return out;
}

std::string place_text(const ProgramPlace &at) {
    return at.line && !at.file.empty() ? format("{}:{}", at.file, at.line) : format("instruction {}", at.insn);
}

std::string insn_text(const Explanation &e, uint32_t insn) {
    const Insn &at = e.program.insns[insn];
    PrintNames names;
    std::string call, wide;
    if (at.code == 0x85 && at.src == 0)
        if (const HelperInfo *helper = find_helper(at.imm)) call = format("bpf_{}", helper->name);
    for (const Fixup &fixup : e.program.fixups) {
        if (fixup.insn != insn) continue;
        if (fixup.kind == Fixup::Kind::kfunc) call = fixup.symbol;
        if ((fixup.kind == Fixup::Kind::map_fd || fixup.kind == Fixup::Kind::map_value) && fixup.map < e.spec.maps.size()) {
            wide = fixup.kind == Fixup::Kind::map_fd ? format("map {}", e.spec.maps[fixup.map].name)
                                                     : format("value of {} + {}", e.spec.maps[fixup.map].name, fixup.offset);
        }
    }
    names.call = call;
    names.wide = wide;
    std::string out;
    append_insn(out, std::span(e.program.insns).subspan(insn), {}, names);
    return out;
}

} // namespace rawbpf::inline v0::explain
