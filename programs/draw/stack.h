// What a program keeps on its stack, function by function: each slot that it uses, and what for. PURE.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "programs/explain/explanation.h"

namespace rawbpf::inline v0::draw {

/// A part of a function's stack.
struct Slot {
    int32_t offset = 0;                     ///< of its lowest byte, from r10: -8
    uint32_t size = 0;                      ///< in bytes; 0: where it ends isn't known
    std::vector<std::string> meanings;      ///< "key of counts: unsigned int", "bpf_get_current_comm(buf) by 12"
    std::vector<uint32_t> writers, readers; ///< instructions, ascending; an atomic one is both
};

/// The slots of each function of the program, those nearest to r10 first. In the order of ProgramSpec::subprograms, or of one
/// function where it names none. From instructions that name r10, and from the walk's first visit of those that use other
/// pointers to the stack: what no path reached is only known as far as its instructions name r10.
[[nodiscard]] std::vector<std::vector<Slot>> stack_of(const explain::Explanation &explanation);

/// Where the functions of a program begin, ascending; the first is its entry.
[[nodiscard]] std::vector<ProgramSpec::Subprogram> functions_of(const ProgramSpec &program);

} // namespace rawbpf::inline v0::draw
