// Rules read out of arm64 instructions, for code that no entry of .eh_frame covers: assembly, and the vdso. Inside of this room;
// PURE.
//
// Instructions have 4 bytes each, and few of them touch x29, x30 or sp, so what a function does to its frame can be followed from
// its first instruction along every way through it:
//
//      stp x29, x30, [sp, #-16]!        CFA = sp + 16, x29 at CFA - 16, the return address at CFA - 8
//      mov x29, sp                      CFA = x29 + 16
//      cbnz x2, 1f --------.
//      ldr x29, [sp], #16  |            CFA = sp, x30 has the return address (nothing was called)
//      ret                 |            nothing goes on from here; what follows is code only if a branch comes to it
//   1: ...               <-'            CFA = x29 + 16 again: as at the branch
//
// What two ways disagree about is unknown, and what no way comes to is left without a rule: a stack stops there, as it did
// before. Source: the Arm Architecture Reference Manual for A-profile, C4.1 (the encodings), and AAPCS64 (x29 and sp are the
// callee's to keep).
#pragma once

#include <span>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/unwind/cfi.h"

namespace rawbpf::inline v0::unwind {

/// Instructions one behind the other; `address` is a multiple of 4.
struct Arm64Code {
    uint64_t address = 0;
    Bytes bytes;
    [[nodiscard]] uint64_t end() const { return address + bytes.size() / 4 * 4; }
};

/// Between functions: udf #0, nop.
[[nodiscard]] inline bool is_arm64_padding(uint32_t word) { return word == 0 || word == 0xd503201f; }

/// Appends the addresses that `bl` calls from `code`.
void find_arm64_calls(const Arm64Code &code, std::vector<uint64_t> &out);

/// What is known of `code`, whose parts are in ascending order and don't overlap: changes in ascending order, the first of each
/// part at its beginning; UNWIND_NONE where nothing is known. `entries`: where functions begin; some may lie outside of `code`.
/// Those that begin with stp x29, x30, [sp, #-N]! are found besides. Rules have UNWIND_ADDED.
[[nodiscard]] std::vector<Change> arm64_rules(std::span<const Arm64Code> code, std::span<const uint64_t> entries);

/// Likewise of one function, from its first instruction on.
[[nodiscard]] std::vector<Change> arm64_function_rules(const Arm64Code &function);

/// Whether both have the frame begin at the same place. One may count from sp and the other from x29: then x29 is to point at its
/// own saved value.
[[nodiscard]] bool same_cfa(const UnwindRule &a, const UnwindRule &b);

} // namespace rawbpf::inline v0::unwind
