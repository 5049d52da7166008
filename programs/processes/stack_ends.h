// Why user stacks ended, counted: what every ledger says of stacks that were walked by tables.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/unwind/layout.h"

namespace rawbpf::inline v0::processes {

/// Of an ending (UNWIND_ENDED_...): whether the stack was walked by tables; else it was by frame pointers.
[[nodiscard]] constexpr bool by_tables(uint8_t ending) {
    return ending < UNWIND_ENDINGS && ending != UNWIND_ENDED_NO_PROCESS && ending != UNWIND_ENDED_NO_REGS;
}
/// As ledgers have it: "root", "no_table" ...
[[nodiscard]] std::string_view ending_name(uint8_t ending);
/// The same, for NamedSample::user_end; empty for what is no ending.
[[nodiscard]] inline std::string_view user_end(uint8_t ending) {
    return ending < UNWIND_ENDINGS ? ending_name(ending) : std::string_view();
}

class StackEnds {
  public:
    /// What is no ending isn't counted.
    void add(uint8_t ending, uint64_t count = 1) {
        if (ending < UNWIND_ENDINGS) counts_[ending] += count;
    }
    /// All of them, for Ledger::stack_ends; empty when none was ever added.
    [[nodiscard]] std::vector<std::pair<std::string, uint64_t>> list() const;

  private:
    std::array<uint64_t, UNWIND_ENDINGS> counts_{};
};

} // namespace rawbpf::inline v0::processes
