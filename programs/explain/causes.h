// Why a program was refused, from where the bad value began: the chain of causes. PURE.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "programs/explain/trace.h"
#include "runtime/kernel/refusal_advice.h"

namespace rawbpf::inline v0::explain {

/// One link of the chain.
struct Cause {
    enum class Kind : uint8_t {
        origin,  ///< where the value began: a call, a load, a constant, an entry
        carried, ///< copied, stored, read back, passed on, computed with
        check,   ///< compared
        use,     ///< where it was refused
    };
    Kind kind;
    size_t at;        ///< of the path: its index
    uint32_t insn;    ///< the instruction
    std::string text; ///< "r0 is what bpf_map_lookup_elem() returned: a pointer to a value of map counts, or NULL"
};

/// The chain, in the order in which it happened.
struct Chain {
    int reg = -1;               ///< the register that is at fault where it was refused; -1: none
    std::vector<Cause> causes;  ///< the last is the refused instruction
    std::string conclusion;     ///< "r7 was never compared with 0 on this path"
    std::vector<size_t> needed; ///< places of the path that the shortest path has to go through, rising
};

/// `path`: Trace::path_to(). `refusal`: what is known of it by its words. Empty where no way was walked.
[[nodiscard]] Chain causes_of(const Trace &trace, const ProgramSpec &program, const std::vector<uint32_t> &path,
                              const Refusal &refusal);

/// The path without what it need not have done: rounds of loops, and calls, between two causes. Indices into the path.
[[nodiscard]] std::vector<size_t> shortest_path(const Trace &trace, const std::vector<uint32_t> &path, const Chain &chain);

/// What a register holds, in words: "a number from 0 to 64", "a pointer to a value of map counts, or NULL".
[[nodiscard]] std::string words_of(std::string_view value);

} // namespace rawbpf::inline v0::explain
