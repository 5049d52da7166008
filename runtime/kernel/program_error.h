// Why a program was not loaded, in words. Part of the loader.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {

/// `refusal` is the error of the load without a log, `log` what the verifier said when it was asked again.
[[nodiscard]] Error explain_refusal(const ObjectSpec &spec, const ProgramSpec &program, Error refusal, std::string log);

/// True when the log is about function or line information and no instruction was looked at.
[[nodiscard]] bool complains_of_btf(std::string_view log);

} // namespace rawbpf::inline v0
