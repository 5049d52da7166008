// An explanation for programs: lines of JSON.
//
//      {"type":"verdict", ...}            one for each program: what verify says, and the remedy
//      {"type":"cause", ...}              the chain, first to last
//      {"type":"path", ...}               each instruction on the shortest path, with what it changed
//      {"type":"instruction", ...}        each of the program: visits, where paths went, what was known
#include "asm/kinds.h"
#include "programs/explain/summary.h"
#include "programs/render/json_line.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::explain {

namespace {

void append_place_fields(render::JsonObject &line, const ProgramPlace &at) {
    line.text_or_null("file", at.file);
    at.line ? line.number("line", at.line) : line.null("line");
    line.text_or_null("source", at.source);
}

std::string_view kind_word(Cause::Kind kind) {
    switch (kind) {
    case Cause::Kind::origin: return "origin";
    case Cause::Kind::carried: return "carried";
    case Cause::Kind::check: return "check";
    case Cause::Kind::use: return "use";
    }
    return "";
}

std::string_view how_word(Remedy::How how) {
    switch (how) {
    case Remedy::How::none: return "";
    case Remedy::How::insert: return "insert";
    case Remedy::How::replace: return "replace";
    case Remedy::How::declare: return "declare";
    case Remedy::How::append: return "append";
    }
    return "";
}

void append_texts(std::string &out, const std::vector<std::string> &all) {
    out += '[';
    for (size_t i = 0; i < all.size(); ++i) {
        if (i) out += ',';
        render::append_json(out, all[i]);
    }
    out += ']';
}

void append_verdict(std::string &out, const Explanation &e) {
    const bool refused = e.trace.outcome == verifier::Outcome::refused;
    render::JsonLine line(out, "verdict");
    line.text("program", e.program.name).text("section", e.program.section);
    line.text("by", e.trace.own ? "model" : "kernel");
    line.text("verdict", refused ? "refused" : e.trace.outcome == verifier::Outcome::accepted ? "accepted" : "not decided");
    e.trace.insn >= 0 ? line.number("insn", static_cast<uint64_t>(e.trace.insn)) : line.null("insn");
    line.text_or_null("reason", e.trace.reason).text_or_null("class", refused ? e.refusal.kind : std::string_view());
    append_place_fields(line, e.refusal.at);
    line.text_or_null("conclusion", e.chain.conclusion).text_or_null("hint", e.refusal.hint);
    std::string &remedy = line.raw("remedy");
    if (e.remedy.how == Remedy::How::none) {
        remedy += "null";
    } else {
        render::JsonObject fields(remedy);
        fields.text("how", how_word(e.remedy.how)).text("text", e.remedy.text);
        e.remedy.at.insn >= 0 ? fields.number("insn", static_cast<uint64_t>(e.remedy.at.insn)) : fields.null("insn");
        append_place_fields(fields, e.remedy.at);
        fields.truth("assembly", e.remedy.assembly);
        append_texts(fields.raw("lines"), e.remedy.lines);
    }
    line.number("instructions", e.program.insns.size()).number("processed", e.trace.processed).number("states", e.trace.states);
}

} // namespace

void append_json_lines(std::string &out, const Explanation &e) {
    append_verdict(out, e);
    for (const Cause &cause : e.chain.causes) {
        render::JsonLine line(out, "cause");
        line.text("program", e.program.name)
            .text("kind", kind_word(cause.kind))
            .number("insn", cause.insn)
            .text("text", cause.text);
        append_place_fields(line, e.places.at(cause.insn));
    }
    for (size_t at : e.shortest) {
        const TraceStep &step = e.trace.steps[e.path[at]];
        render::JsonLine line(out, "path");
        line.text("program", e.program.name)
            .number("insn", step.insn)
            .number("frame", step.frame)
            .text("instruction", insn_text(e, step.insn));
        const bool branch = step.end == StepEnd::split || step.end == StepEnd::decided;
        branch ? line.truth("jumps", step.taken) : line.null("jumps");
        std::string &known = line.raw("known");
        render::JsonObject fields(known);
        for (uint32_t n = 0; n < step.known_count; ++n) {
            const Known &one = e.trace.known[step.known + n];
            fields.text_or_null(place_name(one), one.text);
        }
    }
    const std::vector<InsnSummary> all = summarize(e);
    for (uint32_t i = 0; i < e.program.insns.size(); i += is_wide(e.program.insns[i]) ? 2 : 1) {
        render::JsonLine line(out, "instruction");
        line.text("program", e.program.name).number("insn", i).text("instruction", insn_text(e, i));
        append_place_fields(line, e.places.at(i));
        line.number("visits", all[i].visits)
            .number("jumps", all[i].jumps)
            .number("straight", all[i].straight)
            .number("pruned", all[i].pruned)
            .number("ends", all[i].ends);
        std::string &known = line.raw("known");
        render::JsonObject fields(known);
        for (const InsnSummary::ChangedPlace &place : all[i].places)
            append_texts(fields.raw(place_name(place.known)), place.values);
    }
}

} // namespace rawbpf::inline v0::explain
