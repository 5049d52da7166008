// SPDX-License-Identifier: MIT
// Values and walks as text. PURE.
#pragma once

#include <string>

#include "runtime/object/spec.h"
#include "runtime/verifier/verify.h"

namespace rawbpf::inline v0::verifier {

/// As the kernel's log writes it: "map_value_or_null(id=1,map=counts,ks=4,vs=8)".
[[nodiscard]] std::string value_text(const Value &value, const ObjectSpec &spec);

/// The path that leads to a refusal in the form of the kernel's log of level 1, with the verdict at its end. Whoever reads the
/// kernel's log reads this.
[[nodiscard]] std::string log_text(const ObjectSpec &spec, const ProgramSpec &program, const Verdict &verdict);

} // namespace rawbpf::inline v0::verifier
