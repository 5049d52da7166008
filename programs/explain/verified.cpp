#include "programs/explain/verified.h"

#include <cerrno>
#include <utility>

#include "runtime/kernel/program_error.h"
#include "runtime/verifier/print.h"

namespace rawbpf::inline v0::explain {

using verifier::Outcome;

Verified verified(const ObjectSpec &spec, size_t number, const verifier::VerifyOptions &options) {
    const ProgramSpec &program = spec.programs[number];
    Verified out{verifier::verify(spec, number, options), {}, {}};
    if (out.verdict.outcome != Outcome::refused) return out;
    const KeepRefusal keep(out.refusal);
    out.error = explain_refusal(spec, program, options.kernel_types, Error(Errc::rejected, EACCES, std::string()),
                                verifier::log_text(spec, program, out.verdict));
    return out;
}

std::string_view verdict_word(Outcome outcome) {
    return outcome == Outcome::accepted ? "accepted" : outcome == Outcome::refused ? "refused" : "not decided";
}

void append_verdict(render::JsonObject &out, const ProgramSpec &program, const Verified &said) {
    const verifier::Verdict &verdict = said.verdict;
    out.text("program", program.name).text("section", program.section).text("verdict", verdict_word(verdict.outcome));
    verdict.placed ? out.number("insn", verdict.insn) : out.null("insn");
    out.text_or_null("reason", verdict.reason);
    out.text_or_null("class", verdict.outcome == Outcome::refused ? said.refusal.kind : std::string_view());
    out.text_or_null("message", said.refusal.sentence).text_or_null("hint", said.refusal.hint);
    out.number("instructions", program.insns.size()).number("processed", verdict.processed).number("states", verdict.states);
}

} // namespace rawbpf::inline v0::explain
