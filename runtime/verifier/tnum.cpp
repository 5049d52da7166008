// Arithmetic with numbers of which some bits are unknown (tnums).
//
// Bitwise operations treat each bit by itself: a bit of `a & b` is known to be 0 if that bit of either side is. Addition is
// harder, because an unknown bit may carry into all bits above it. The two extremes help:
//
//      a = 0?1   b = 001        least:  001 + 001 = 010        a bit that is the same in both extremes, and that no carry from an
//                               most:   011 + 001 = 100        unknown bit can reach, is known; xor of the two shows the others
//
// (Vishwanathan, Shachnai, Narayana, Nagarakatte: "Sound, Precise, and Fast Abstract Interpretation with Tristate Numbers",
// CGO 2022, proves that nothing more can be known of sums.) A product is the sum of one shifted copy of `b` for each bit of `a`:
// if the bit is unknown, all of the copy's bits may be there or not.
#include "runtime/verifier/tnum.h"

namespace rawbpf::inline v0::verifier {

Tnum add(Tnum a, Tnum b) {
    const uint64_t least = a.value + b.value, most = least + a.mask + b.mask;
    const uint64_t unknown = (least ^ most) | a.mask | b.mask;
    return {least & ~unknown, unknown};
}

Tnum subtract(Tnum a, Tnum b) {
    const uint64_t middle = a.value - b.value;
    const uint64_t unknown = ((middle + a.mask) ^ (middle - b.mask)) | a.mask | b.mask;
    return {middle & ~unknown, unknown};
}

Tnum multiply(Tnum a, Tnum b) {
    const uint64_t known = a.value * b.value;
    Tnum unknown = tnum_of(0);
    for (; a.value || a.mask; a = shift_right(a, 1), b = shift_left(b, 1)) {
        if (a.value & 1)
            unknown = add(unknown, {0, b.mask});
        else if (a.mask & 1)
            unknown = add(unknown, {0, b.value | b.mask});
    }
    return add(tnum_of(known), unknown);
}

Tnum and_bits(Tnum a, Tnum b) {
    const uint64_t maybe = (a.value | a.mask) & (b.value | b.mask), surely = a.value & b.value;
    return {surely, maybe & ~surely};
}

Tnum or_bits(Tnum a, Tnum b) {
    const uint64_t surely = a.value | b.value;
    return {surely, (a.mask | b.mask) & ~surely};
}

Tnum xor_bits(Tnum a, Tnum b) {
    const uint64_t unknown = a.mask | b.mask;
    return {(a.value ^ b.value) & ~unknown, unknown};
}

Tnum shift_left(Tnum a, unsigned by) { return {a.value << by, a.mask << by}; }
Tnum shift_right(Tnum a, unsigned by) { return {a.value >> by, a.mask >> by}; }

Tnum shift_right_signed(Tnum a, unsigned by, unsigned bits) {
    if (bits == 32)
        return {static_cast<uint32_t>(static_cast<int32_t>(a.value) >> by),
                static_cast<uint32_t>(static_cast<int32_t>(a.mask) >> by)};
    return {static_cast<uint64_t>(static_cast<int64_t>(a.value) >> by),
            static_cast<uint64_t>(static_cast<int64_t>(a.mask) >> by)};
}

Tnum swap_bytes(Tnum a, unsigned bytes) {
    const unsigned by = 64 - bytes * 8;
    return {__builtin_bswap64(a.value) >> by, __builtin_bswap64(a.mask) >> by};
}

Tnum intersect(Tnum a, Tnum b) {
    const uint64_t known = a.value | b.value, unknown = a.mask & b.mask;
    return {known & ~unknown, unknown};
}

Tnum with_low_half(Tnum a, Tnum low) {
    constexpr uint64_t kHigh = ~uint64_t(UINT32_MAX);
    return {(a.value & kHigh) | low.value, (a.mask & kHigh) | low.mask};
}

bool contains(Tnum a, Tnum b) { return (b.mask & ~a.mask) == 0 && a.value == (b.value & ~a.mask); }

} // namespace rawbpf::inline v0::verifier
