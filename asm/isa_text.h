// The instruction set for people: what `rawbpf isa` prints.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "asm/opcodes.h"

namespace rawbpf::inline v0 {

/// Every row in one line: name, how it is written, since when.
[[nodiscard]] std::string isa_table();
/// The rows that a word means: a name ("add", "jslt32"), with all its kinds; a symbol ("+=", "s>>="), or "0x07".
[[nodiscard]] std::vector<const Form *> find_forms(std::string_view word);
/// One row: its bytes as a picture, what it does, an example in three dialects, since when.
[[nodiscard]] std::string isa_entry(const Form &form);
/// An instruction of the form as text: "r1 += 5".
[[nodiscard]] std::string isa_example(const Form &form);
/// What an instruction of the form does, in words: "dst = dst + src, 64 bits".
[[nodiscard]] std::string isa_meaning(const Form &form);
/// The name nearest to a word, as a sentence; empty when none is near.
[[nodiscard]] std::string isa_hint(std::string_view word);

} // namespace rawbpf::inline v0
