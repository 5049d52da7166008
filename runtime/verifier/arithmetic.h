// The transfer functions: what is known about the result of an arithmetic instruction, from what is known of its operands. PURE.
#pragma once

#include <cstdint>

#include "runtime/verifier/bounds.h"

namespace rawbpf::inline v0::verifier {

/// An instruction's operation: the upper four bits of its opcode.
enum class Op : uint8_t {
    add = 0x00,
    sub = 0x10,
    mul = 0x20,
    div = 0x30,
    or_ = 0x40,
    and_ = 0x50,
    lsh = 0x60,
    rsh = 0x70,
    neg = 0x80,
    mod = 0x90,
    xor_ = 0xa0,
    mov = 0xb0,
    arsh = 0xc0,
    end = 0xd0,
};

/// `a op= b`, in 64 bits or in the lower half (`half`), whose result has an upper half of 0. Not for mov, neg and end.
[[nodiscard]] Bounds compute(Op op, bool half, Bounds a, Bounds b, const Deductions &rules);

} // namespace rawbpf::inline v0::verifier
