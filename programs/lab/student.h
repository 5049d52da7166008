// A student's file as an experiment: programs, maps and probes, no steps. PURE.
#pragma once

#include <string_view>

#include "programs/experiment/parse.h"

namespace rawbpf::inline v0::lab {

/// Whether a file of that name is one that steps can be carried out on: lab.asm, lab.hex, lab.exp, lab.c.
[[nodiscard]] bool is_program(std::string_view name);
/// Whether there is anything in it but blanks and comments.
[[nodiscard]] bool says_anything(std::string_view text);
/// `name`: "lab.asm"; its ending says what the text is. Line N of the experiment is line N of the text.
[[nodiscard]] experiment::Parsed student_experiment(std::string_view text, std::string_view name);

} // namespace rawbpf::inline v0::lab
