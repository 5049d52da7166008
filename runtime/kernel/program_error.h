// Why a program was not loaded, in words. Part of the loader.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/kernel/refusal.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {

/// `refusal` is the error of the load without a log, `log` what the verifier said when it was asked again.
/// `kernel`: its types, for near names; may be nullptr. The message is laid out in lines; KeepRefusal gets it as a value.
[[nodiscard]] Error explain_refusal(const ObjectSpec &spec, const ProgramSpec &program, const btf::Btf *kernel, Error refusal,
                                    std::string log);

/// Adds to an error about a kernel function or variable that isn't there where the program asks for it: instruction `insn`.
[[nodiscard]] Error explain_missing(const ObjectSpec &spec, const ProgramSpec &program, uint32_t insn, std::string_view name,
                                    Error error);

/// The part of explain_refusal() for where the verifier had nothing to say: a missing type, a missing way of attaching,
/// privileges.
[[nodiscard]] Error explain_unverified(const ProgramSpec &program, Error refusal, std::string log);
/// A tracing program for a way of attaching that this kernel hasn't is refused for whatever it stumbles over first: `error` says
/// so.
void name_missing_attach_type(const ProgramSpec &program, const Error &refusal, Error &error);
/// "program count (socket)".
[[nodiscard]] std::string name_of(const ProgramSpec &program);

/// True when the log is about function or line information and no instruction was looked at.
[[nodiscard]] bool complains_of_btf(std::string_view log);

} // namespace rawbpf::inline v0
