// What the verifier knows about kernel functions beside their types: kfuncs.def. PURE.
#pragma once

#include <cstdint>
#include <string_view>

#include "asm/opcodes.h"

namespace rawbpf::inline v0::verifier {

/// Bits of KernelFunction::flags.
namespace kfunc {
inline constexpr uint16_t plain = 0, acquires = 1, releases = 2, trusted = 4, rcu = 8, or_null = 16, sleeps = 32, in_rcu = 64,
                          iter_new = 128, iter_next = 256, iter_destroy = 512, destructive = 1024;
}

/// One row.
struct KernelFunction {
    std::string_view name; ///< as in the kernel's BTF
    KernelVersion since;   ///< the first kernel that has it
    std::string_view sets; ///< "all", or letters of programs.cpp
    uint16_t flags;

    [[nodiscard]] bool has(uint16_t flag) const { return (flags & flag) != 0; }
    [[nodiscard]] bool for_set(char set) const { return sets == "all" || sets.find(set) != std::string_view::npos; }
};

/// nullptr: there is no row.
[[nodiscard]] const KernelFunction *find_kernel_function(std::string_view name);

} // namespace rawbpf::inline v0::verifier
