// The path that the verifier took to the instruction it refused, and where on this path a register got its value. Private to
// the loader.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "asm/insn.h"

namespace rawbpf::inline v0 {

struct PathStep {
    uint32_t insn = 0;
    std::string_view text;       ///< "r1 = *(u64 *)(r0 +0)", in the log
    bool tried = false;          ///< a branch whose other side came later in the log
    std::string_view after = {}; ///< the registers that it changed: "R1=scalar()"; empty before 5.18
};

/// The instructions from the program's start (or from where the log starts, if that is cut) to the last one in the log. PURE.
[[nodiscard]] std::vector<PathStep> verifier_path(std::string_view log);

/// Where a register's value comes from, going back along a path.
struct Origin {
    enum class Kind : uint8_t {
        unknown,  ///< the path doesn't tell
        entry,    ///< nobody set it since the program started
        call,     ///< what a call returned
        cleared,  ///< a call cleared it: r1 to r5
        load,     ///< read from memory other than the stack
        constant, ///< a number or an address in the program
        computed, ///< arithmetic on numbers
    };
    Kind kind = Kind::unknown;
    size_t step = 0; ///< of the path; not for entry
};
/// Of register `reg` as it is before path[end]. Copies, additions and the stack are looked through. PURE.
[[nodiscard]] Origin origin_of(std::span<const PathStep> path, size_t end, std::span<const Insn> insns, int reg);

/// The loop that a path went round most often, if it went round at least eight times.
struct PathLoop {
    size_t rounds = 0;           ///< 0: no loop
    size_t begin = 0, end = 0;   ///< its last whole round: steps of the path
    uint32_t head = 0, back = 0; ///< the instruction it goes back to, and the jump
};
[[nodiscard]] PathLoop busiest_loop(std::span<const PathStep> path, size_t least_rounds);

} // namespace rawbpf::inline v0
