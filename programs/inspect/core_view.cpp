// CO-RE relocations for people: what each asks for, the result, and why.
//
// A relocation that can't be resolved is no error by itself: a program may first ask whether a field exists, and never access
// it where it doesn't. So there are three answers: resolved; missing but guarded (dead code once the questions are answered,
// see reach.cpp); missing and reachable. With the last, the verifier will refuse the program, unless something that is known
// only at load time (a constant in .rodata, .kconfig) makes the code unreachable.
#include "programs/inspect/core_view.h"

#include <algorithm>

#include "programs/inspect/reach.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::inspect {

using render::JsonLine;

namespace {

std::string number(uint64_t value) { return format("{}", static_cast<int64_t>(value)); }

void candidates_json(std::string &out, const std::vector<CoreCandidate> &list) {
    out += '[';
    for (const CoreCandidate &c : list) {
        if (&c != &list.front()) out += ',';
        render::JsonObject candidate(out);
        candidate.text("btf", c.btf).number("type_id", c.type).text("name", c.name).truth("fits", c.fits).text("why", c.why);
    }
    out += ']';
}

void relocation_json(std::string &out, const CoreView &view, const CoreResultLine &entry, std::string_view object) {
    const CoreOutcome &o = entry.outcome;
    JsonLine json(out, "relocation");
    json.text("object", object).text("btf", view.target).text("program", o.program).number("insn", o.insn);
    json.text("kind", core_kind_name(o.kind)).text("what", o.what);
    json.text("before", number(o.before));
    if (o.poisoned)
        json.null("after");
    else
        json.text("after", number(o.after));
    json.truth("resolved", !o.poisoned).truth("reachable", entry.reachable).text_or_null("reason", o.why);
    candidates_json(json.raw("candidates"), o.candidates);
}

} // namespace

Result<CoreView> view_core(const ObjectSpec &spec, const CoreTargets &targets, std::string target) {
    CoreView view;
    view.target = std::move(target);
    ObjectSpec copy = spec;
    for (ProgramSpec &program : copy.programs) program.autoload = true;
    CoreReport report = TRY(relocate_core(copy, targets, {.details = true}));
    const ProgramSpec *program = nullptr;
    std::vector<bool> reached;
    for (CoreOutcome &outcome : report.outcomes) {
        if (!program || program->name != outcome.program) {
            program = copy.find_program(outcome.program);
            reached = program ? reachable(program->insns) : std::vector<bool>();
        }
        CoreResultLine entry{std::move(outcome), true};
        if (entry.outcome.insn < reached.size()) entry.reachable = reached[entry.outcome.insn];
        ++(!entry.outcome.poisoned ? view.resolved : entry.reachable ? view.unresolved : view.guarded);
        view.lines.push_back(std::move(entry));
    }
    return view;
}

void append_relocs_text(std::string &out, const CoreView &view) {
    render::append_line(out, format("against {}: {} resolved, {} missing but guarded, {} missing", view.target, view.resolved,
                                    view.guarded, view.unresolved));
    std::string_view program;
    for (const CoreResultLine &entry : view.lines) {
        const CoreOutcome &o = entry.outcome;
        if (program != o.program) render::append_line(out, format("program {}", o.program));
        program = o.program;
        std::string text = format("  {:5}: {:<14} {}  {} -> ", o.insn, core_kind_name(o.kind), o.what, number(o.before));
        if (o.poisoned)
            append(text, "{}: {}", entry.reachable ? "missing" : "missing, guarded", o.why);
        else
            append(text, "{}{}{}", number(o.after), o.why.empty() ? "" : ": ", o.why);
        render::append_line(out, text);
        for (const CoreCandidate &c : o.candidates) {
            const bool only = c.fits && o.candidates.size() == 1;
            if (!only)
                render::append_line(
                    out, format("         {} [{}] {} of {}: {}", c.fits ? "took" : "not ", c.type, c.name, c.btf, c.why));
        }
    }
}

void append_relocs_json(std::string &out, const CoreView &view, std::string_view object) {
    for (const CoreResultLine &entry : view.lines) relocation_json(out, view, entry, object);
}

void append_check_text(std::string &out, const CoreView &view, bool all) {
    render::append_line(out, format("{}: {}, {} relocations resolved, {} missing but guarded, {} missing", view.target,
                                    view.unresolved ? "no" : "ok", view.resolved, view.guarded, view.unresolved));
    for (const CoreResultLine &entry : view.lines) {
        const CoreOutcome &o = entry.outcome;
        if (!o.poisoned || (!entry.reachable && !all)) continue;
        render::append_line(out, format("  {}{}: instruction {}: {} of {}: {}", entry.reachable ? "" : "guarded: ", o.program,
                                        o.insn, core_kind_name(o.kind), o.what, o.why));
    }
}

void append_check_json(std::string &out, const CoreView &view, std::string_view object) {
    for (const CoreResultLine &entry : view.lines)
        if (entry.outcome.poisoned) relocation_json(out, view, entry, object);
    JsonLine json(out, "check");
    json.text("object", object).text("btf", view.target).truth("ok", view.unresolved == 0);
    json.number("resolved", view.resolved).number("guarded", view.guarded).number("unresolved", view.unresolved);
}

} // namespace rawbpf::inline v0::inspect
