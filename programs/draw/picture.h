// An object as one picture, an SVG document: its programs and maps and who uses which; of each program its control flow and its
// stack. PURE.
#pragma once

#include <span>
#include <string>

#include "programs/explain/explanation.h"

namespace rawbpf::inline v0::draw {

/// `programs`: of this object, those to draw; their explanations say what the verifier knew.
[[nodiscard]] std::string picture(const ObjectSpec &spec, std::span<const explain::Explanation> programs);

} // namespace rawbpf::inline v0::draw
