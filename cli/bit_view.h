// What `encode` and `decode` show of instructions: pictures for people, a line each for programs.
#pragma once

#include <span>
#include <string_view>

#include "asm/insn.h"
#include "cli/common_options.h"
#include "cli/options.h"

namespace rawbpf::inline v0::cli {

inline constexpr Option kBitsOptions[] = {
    format_option("text", "text json"),
    kJsonOption,
    kOutputOption,
};

/// Writes pictures, an empty line between two, or NDJSON with a header, as kBitsOptions say. `undefined` is told whether one of
/// them is no instruction. Returns the exit status.
[[nodiscard]] int print_bits(std::string_view who, std::span<const Insn> insns, const Arguments &a, bool &undefined);

} // namespace rawbpf::inline v0::cli
