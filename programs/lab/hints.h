// What a check's author says about an expectation, in comments directly above it:
//
//      # why 0: the addition never happens
//      # why: each packet counts once
//      # at: += 1
//      expect counts[1] == 3
//
// PURE.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "programs/experiment/run.h"

namespace rawbpf::inline v0::lab {

/// "# instruction TEXT | TEXT: WHY" and the "# at:" lines below it: what results can't show, as that an addition is atomic.
struct WantedInstruction {
    std::vector<std::string> texts; ///< one instruction of the student's has one of these, as rawbpf disasm writes it
    std::string why;                ///< what is wrong if there is none
    std::vector<std::string> at;    ///< as Hint::at
};

/// What the whole check asks for, by comments anywhere in it.
struct Terms {
    bool kernel = false;  ///< "# needs: kernel"
    bool verified = true; ///< not "# verify: no"
    std::string refused;  ///< "# verify: refused TEXT"
    std::vector<WantedInstruction> instructions;
};
[[nodiscard]] Terms terms_of(std::string_view check);

struct Hint {
    std::string why;             ///< empty: nothing is said
    std::vector<std::string> at; ///< texts of the line that it is about, the best first
    bool exact = false;          ///< of this value: "why 0:"
};
/// Of the expectation in that line (from 1), when the value on its left is `value`.
[[nodiscard]] Hint hint_of(const std::vector<std::string_view> &check, uint32_t line, std::string_view value);

/// The first line, from 1, that has the first of these texts that any line has; 0: none.
[[nodiscard]] uint32_t line_with(const std::vector<std::string_view> &lines, const std::vector<std::string> &texts);

/// "counts[0]: expected 1000, got 998"; of an expectation that is no simple comparison "expected `a < b`: a is 3, b is 2".
/// `value`: what was got, empty for these.
[[nodiscard]] std::string sentence_of(const experiment::Failure &failure, std::string &value);

/// The lines of a text, without their ends.
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);

} // namespace rawbpf::inline v0::lab
