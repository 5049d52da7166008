// What a comparison tells about its two sides: which way it goes, if that is certain, and what holds on either way. PURE.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/verifier/bounds.h"

namespace rawbpf::inline v0::verifier {

/// A jump's condition: the upper four bits of its opcode.
enum class Compare : uint8_t {
    eq = 0x10,
    gt = 0x20,
    ge = 0x30,
    set = 0x40, ///< a & b isn't 0
    ne = 0x50,
    sgt = 0x60,
    sge = 0x70,
    lt = 0xa0,
    le = 0xb0,
    slt = 0xc0,
    sle = 0xd0,
};

/// Whether `a OP b` is true of all numbers that the two can be, or of none; nothing: it depends. `half`: of the lower halves.
[[nodiscard]] std::optional<bool> decide(Compare op, bool half, Bounds a, Bounds b, const Deductions &rules);

/// The same of a number with itself: `a < a` never, `a <= a` always, `a & a` where a can't be 0.
[[nodiscard]] std::optional<bool> decide_with_itself(Compare op, bool half, const Bounds &a);

/// What is known of both sides where `a OP b` is true (`truth`) or false.
void refine(Compare op, bool half, bool truth, Bounds &a, Bounds &b, const Deductions &rules);

} // namespace rawbpf::inline v0::verifier
