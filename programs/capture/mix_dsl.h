// 64 bits that words are mixed into, one after the other: xor, multiply, fold the upper half down. The keys of equal stacks
// (counting_dsl.cpp) and the numbers of code objects (programs/languages) are made so.
#pragma once

#include <cstdint>

#include "asm/builder.h"

namespace rawbpf::inline v0 {

inline constexpr uint64_t kMixMultiplier = 0xbf58476d1ce4e5b9; ///< of splitmix64

/// Mixes r5 into r4; r3 is kMixMultiplier. r5 is gone.
inline void mix_in(Code &f) {
    f.xor_(r4, r5);
    f.mul(r4, r3);
    f.mov(r5, r4);
    f.rsh(r5, 32);
    f.xor_(r4, r5);
}

} // namespace rawbpf::inline v0
