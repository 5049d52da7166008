// An explanation as text:
//
//      count.asm: program count (tracepoint/...): refused at instruction 6
//      count.asm:8:5: R0 invalid mem access 'map_value_or_null'
//      ...
//      cause:
//        count.asm:7   r0 is what bpf_map_lookup_elem() returned: a pointer to a value of map counts, or NULL
//        count.asm:8   refused: r1 = *(u64 *)(r0 + 0)
//        r0 was never compared with 0 on this path
//      path: 7 instructions, straight on
//      remedy: in front of count.asm:8, leave where there is nothing: if r0 != 0 goto +2; r0 = 0; exit
//
// and then every instruction with its source, how often it was looked at, what it changed, and where paths part and end.
#include <algorithm>

#include "asm/kinds.h"
#include "programs/explain/summary.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::explain {

namespace {

constexpr size_t kPathShown = 40; // instructions; of longer paths, causes and branches alone

bool is_branch_step(const TraceStep &step) { return step.end == StepEnd::split || step.end == StepEnd::decided; }

std::string trimmed_source(const ProgramPlace &at) {
    const size_t from = at.source.find_first_not_of(" \t");
    return from == std::string::npos ? std::string() : at.source.substr(from);
}

// "17 instructions, 3 branches: p.c:11 straight on, p.c:12 jumps"
std::string way_text(const Explanation &e, size_t most) {
    size_t branches = 0;
    std::string all;
    for (size_t at : e.shortest) {
        const TraceStep &step = e.trace.steps[e.path[at]];
        if (!is_branch_step(step)) continue;
        if (++branches <= most)
            append(all, "{}{} {}", branches == 1 ? "" : ", ", place_text(e.places.at(step.insn)),
                   step.taken ? "jumps" : "straight on");
    }
    std::string out = format("{} instruction{}", e.shortest.size(), e.shortest.size() == 1 ? "" : "s");
    if (e.shortest.size() < e.path.size()) append(out, " (of {} that the verifier went)", e.path.size());
    if (branches == 0) return out + ", no branch";
    append(out, ", {} branch{}: {}", branches, branches == 1 ? "" : "es", all);
    if (branches > most) append(out, ", and {} more", branches - most);
    return out;
}

std::string cause_line(const Explanation &e) {
    std::string out;
    const Cause *origin = e.chain.causes.empty() ? nullptr : &e.chain.causes.front();
    if (origin && origin->kind != Cause::Kind::use) {
        append(out, "{}: {}", place_text(e.places.at(origin->insn)), origin->text);
        size_t carried = 0;
        for (const Cause &cause : e.chain.causes) carried += cause.kind == Cause::Kind::carried;
        if (carried) append(out, "; it comes here in {} step{}", carried, carried == 1 ? "" : "s");
    }
    if (!e.chain.conclusion.empty()) append(out, "{}{}", out.empty() ? "" : "; ", e.chain.conclusion);
    if (out.empty()) out = e.refusal.notes.empty() ? e.refusal.reason : e.refusal.notes[0].text;
    return out;
}

void append_causes(std::string &out, const Explanation &e) {
    if (e.chain.causes.size() < 2 && e.chain.conclusion.empty()) return;
    out += "cause:\n";
    size_t widest = 0;
    for (const Cause &cause : e.chain.causes) widest = std::max(widest, place_text(e.places.at(cause.insn)).size());
    for (const Cause &cause : e.chain.causes) {
        const std::string place = place_text(e.places.at(cause.insn));
        append(out, "  {}{}  {}\n", place, std::string(widest - place.size(), ' '), cause.text);
    }
    if (!e.chain.conclusion.empty()) append(out, "  so: {}\n", e.chain.conclusion);
}

void append_way(std::string &out, const Explanation &e) {
    if (e.path.empty()) return;
    append(out, "path: {}\n", way_text(e, 4));
    const bool all = e.shortest.size() <= kPathShown;
    size_t left_out = 0;
    for (size_t at : e.shortest) {
        const TraceStep &step = e.trace.steps[e.path[at]];
        const bool cause = std::find(e.chain.needed.begin(), e.chain.needed.end(), at) != e.chain.needed.end();
        if (!all && !cause && !is_branch_step(step)) {
            ++left_out;
            continue;
        }
        if (left_out) append(out, "        ... {} more\n", left_out);
        left_out = 0;
        append(out, "  {:>4}  {}{}", step.insn, std::string(step.frame * 2u, ' '), insn_text(e, step.insn));
        if (is_branch_step(step)) out += step.taken ? "   (jumps)" : "   (straight on)";
        std::string changed;
        for (uint32_t n = 0; n < step.known_count; ++n) {
            const Known &known = e.trace.known[step.known + n];
            if (!known.text.empty()) append(changed, "{}{} = {}", changed.empty() ? "" : ", ", place_name(known), known.text);
        }
        if (!changed.empty()) append(out, "   ; {}", changed);
        out += "\n";
    }
}

void append_listing(std::string &out, const Explanation &e) {
    const std::vector<InsnSummary> all = summarize(e);
    append(out, "instructions: {} of {} looked at, {} visits, {} states kept\n",
           std::count_if(all.begin(), all.end(), [](const InsnSummary &s) { return s.visits > 0; }), e.program.insns.size(),
           e.trace.processed, e.trace.states);
    std::string last;
    for (uint32_t i = 0; i < e.program.insns.size(); i += is_wide(e.program.insns[i]) ? 2 : 1) {
        const ProgramPlace at = e.places.at(i);
        const std::string place = at.line ? format("{}:{}  {}", at.file, at.line, trimmed_source(at)) : std::string();
        if (!place.empty() && place != last) append(out, "{}\n", place);
        last = place;
        const InsnSummary &here = all[i];
        append(out, "  {:>4} {:>7}  {}", i, here.visits ? format("x{}", here.visits) : "-", insn_text(e, i));
        std::string notes;
        for (const InsnSummary::ChangedPlace &known : here.places) {
            append(notes, "{}{} = ", notes.empty() ? "" : ", ", place_name(known.known));
            for (size_t n = 0; n < known.values.size(); ++n) append(notes, "{}{}", n ? " | " : "", known.values[n]);
        }
        const std::string remarks = here.remarks();
        if (!remarks.empty()) append(notes, "{}{}", notes.empty() ? "" : "; ", remarks);
        if (e.trace.insn == i)
            append(notes, "{}{}", notes.empty() ? "" : "; ",
                   e.trace.outcome == verifier::Outcome::refused ? "refused here" : "not decided here");
        if (!notes.empty()) append(out, "   ; {}", notes);
        out += "\n";
    }
}

} // namespace

std::string short_text(const Explanation &e, bool alone) {
    if (e.trace.outcome != verifier::Outcome::refused || (!alone && e.path.empty())) return {};
    std::string out;
    if (alone || e.chain.causes.size() > 1 || !e.chain.conclusion.empty()) append(out, "cause: {}\n", cause_line(e));
    append(out, "path: {}\n", e.path.empty() ? "none was walked: the program as a whole is refused" : way_text(e, 3));
    if (!e.remedy.text.empty())
        append(out, "remedy: {}\n", e.remedy.text);
    else if (alone && !e.refusal.hint.empty())
        append(out, "remedy: {}\n", e.refusal.hint.substr(0, e.refusal.hint.find('\n')));
    return out;
}

void append_text(std::string &out, const Explanation &e, TextStyle style) {
    const std::string who = e.program.section.empty() ? e.program.name : format("{} ({})", e.program.name, e.program.section);
    const std::string_view by = e.trace.own ? "" : "by the kernel, ";
    switch (e.trace.outcome) {
    case verifier::Outcome::accepted:
        append(out, "{}: {}accepted: {} instructions, {} looked at, {} states kept\n", who, by, e.program.insns.size(),
               e.trace.processed, e.trace.states);
        break;
    case verifier::Outcome::undecided:
        append(out, "{}: {}not decided{}: {}\n", who, by,
               e.trace.insn >= 0 ? format(" at instruction {}", e.trace.insn) : std::string(), e.trace.reason);
        break;
    case verifier::Outcome::refused: {
        append(out, "{}: {}refused{}\n", who, by,
               e.refusal.at.insn >= 0 ? format(" at instruction {}", e.refusal.at.insn) : std::string());
        out += print_refusal(e.refusal);
        if (!e.trace.whole) out += "the log's beginning is missing: what was before it isn't told\n";
        append_causes(out, e);
        append_way(out, e);
        if (!e.remedy.text.empty()) append(out, "remedy: {}\n", e.remedy.text);
        if (!e.refusal.hint.empty()) append(out, "hint: {}\n", e.refusal.hint);
        break;
    }
    }
    if (style.listing) append_listing(out, e);
}

} // namespace rawbpf::inline v0::explain
