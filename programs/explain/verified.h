// The model's verdict on a program, with a refusal put into words: what `verify` and the page say.
#pragma once

#include <string_view>

#include "programs/render/json_line.h"
#include "runtime/base/error.h"
#include "runtime/kernel/refusal.h"
#include "runtime/object/spec.h"
#include "runtime/verifier/verify.h"

namespace rawbpf::inline v0::explain {

struct Verified {
    verifier::Verdict verdict;
    Refusal refusal; ///< refused
    Error error;     ///< refused: the message for people, its hint, and the model's log
};
/// Verifies one program and explains a refusal.
[[nodiscard]] Verified verified(const ObjectSpec &spec, size_t program, const verifier::VerifyOptions &options);

/// "accepted", "refused" or "not decided".
[[nodiscard]] std::string_view verdict_word(verifier::Outcome outcome);
/// Adds the fields of `rawbpf verify --json`: program, section, verdict, insn, reason, class, message, hint, and numbers.
void append_verdict(render::JsonObject &out, const ProgramSpec &program, const Verified &verified);

} // namespace rawbpf::inline v0::explain
