// What a line was meant to be that is written as C has it. PURE.
#pragma once

#include <string>
#include <string_view>

namespace rawbpf::inline v0 {

/// A statement that the assembler refuses -> how it is written here: "r0 = r0 + r1" -> "an instruction has two operands: `r0 +=
/// r1`". Empty: it doesn't look like C.
[[nodiscard]] std::string hint_for_c_spelling(std::string_view statement);

} // namespace rawbpf::inline v0
