// How the verifier keeps five descriptions of a number consistent: each tells something about the others.
//
// After `if r1 > 7 goto`, the unsigned range of r1 is 0 to 7. So the signed range is the same, because 7 isn't negative; the
// 32-bit ranges are the same, because no bit above bit 31 is set; the bits 3 to 63 are 0. A verifier that deduces too little
// refuses good programs. One that deduces something wrong accepts programs that crash the kernel; most security holes of
// verifiers were of this kind. So every line here is a small theorem:
//
//      bits -> ranges      no number is below its known ones, none above its known ones and unknown ones together
//      64 -> 32            if the upper halves of both ends are equal, the lower halves are a range
//      u <-> s             a range that doesn't cross the sign bit is the same range in both
//      32 -> 64            the lower half can't be below its own least: the ends move to the next numbers that have such a half
//      range -> bits       ends that share their upper bits give those bits to all between
//
// The result of one rule may allow another rule to deduce more, so the code applies all of them three times, as the kernel does
// (6.17; before 6.8 once, and without 32 -> 64: Deductions).
#include "runtime/verifier/bounds.h"

#include <algorithm>

namespace rawbpf::inline v0::verifier {

namespace {

constexpr uint64_t kSign64 = uint64_t(1) << 63;
constexpr uint32_t kSign32 = uint32_t(1) << 31;

uint32_t low(uint64_t n) { return static_cast<uint32_t>(n); }
int32_t signed_low(uint64_t n) { return static_cast<int32_t>(n); }
uint32_t high(uint64_t n) { return static_cast<uint32_t>(n >> 32); }

void ranges_from_bits(Bounds &b) {
    const Tnum half = low_half(b.bits);
    b.s32.narrow(signed_low(half.value | (half.mask & kSign32)), signed_low(half.value | (half.mask & ~kSign32)));
    b.u32.narrow(low(half.least()), low(half.most()));
    b.s64.narrow(static_cast<int64_t>(b.bits.value | (b.bits.mask & kSign64)),
                 static_cast<int64_t>(b.bits.value | (b.bits.mask & ~kSign64)));
    b.u64.narrow(b.bits.least(), b.bits.most());
}

// The two ends of a 64-bit range, as seen by the lower half.
void half_from_ends(Bounds &b, uint64_t least, uint64_t most) {
    if (high(least) == high(most)) {
        if (low(least) <= low(most)) b.u32.narrow(low(least), low(most));
        if (signed_low(least) <= signed_low(most)) b.s32.narrow(signed_low(least), signed_low(most));
    } else if (static_cast<uint32_t>(high(least) + 1) == high(most) && signed_low(least) < 0 && signed_low(most) >= 0) {
        b.s32.narrow(signed_low(least), signed_low(most)); // ...ffff_fffx to ...0000_000y: -x to y
    }
}

// A range that doesn't cross the sign bit is the same range in both views.
template <class U, class S> void deduce_sign(Range<U> &u, Range<S> &s, bool across_sign) {
    if (static_cast<S>(u.least) <= static_cast<S>(u.most)) s.narrow(static_cast<S>(u.least), static_cast<S>(u.most));
    const auto least = static_cast<U>(s.least), most = static_cast<U>(s.most);
    if (least <= most) {
        u.narrow(least, most);
    } else if (across_sign) {
        // As unsigned numbers the signed range is two pieces: 0 to `most` and `least` to the end. If the unsigned range touches
        // only one of them, the value is in that one.
        if (u.most < least) {
            s.least = static_cast<S>(u.least);
            u.most = std::min(u.most, most);
        } else if (most < u.least) {
            s.most = static_cast<S>(u.most);
            u.least = std::max(u.least, least);
        }
    }
}

void deduce32(Bounds &b, const Deductions &rules) {
    if (rules.halves) {
        half_from_ends(b, b.u64.least, b.u64.most);
        half_from_ends(b, static_cast<uint64_t>(b.s64.least), static_cast<uint64_t>(b.s64.most));
    }
    deduce_sign(b.u32, b.s32, rules.across_sign_half);
}

void deduce_across(Bounds &b) {
    constexpr uint64_t kHigh = ~uint64_t(UINT32_MAX);
    b.u64.narrow((b.u64.least & kHigh) | b.u32.least, (b.u64.most & kHigh) | b.u32.most);
    b.s64.narrow(static_cast<int64_t>((static_cast<uint64_t>(b.s64.least) & kHigh) | b.u32.least),
                 static_cast<int64_t>((static_cast<uint64_t>(b.s64.most) & kHigh) | b.u32.most));
    // A number that fits into 32 signed bits, and whose lower half isn't negative, is that half: the kernel puts its range in
    // place of the others, which on a path that no run takes may be wider.
    if (b.s32.least < 0 || b.s64.least < INT32_MIN || b.s64.most > INT32_MAX) return;
    b.s64 = {b.s32.least, b.s32.most};
    b.u64 = {static_cast<uint64_t>(int64_t(b.s32.least)), static_cast<uint64_t>(int64_t(b.s32.most))};
    b.bits = intersect(b.bits, tnum_range(b.u64.least, b.u64.most));
}

} // namespace

Bounds Bounds::of(uint64_t number) {
    Bounds out;
    out.bits = tnum_of(number);
    out.u64 = {number, number};
    out.s64 = {static_cast<int64_t>(number), static_cast<int64_t>(number)};
    out.u32 = {low(number), low(number)};
    out.s32 = {signed_low(number), signed_low(number)};
    return out;
}

bool Bounds::is_empty() const {
    return u64.least > u64.most || s64.least > s64.most || u32.least > u32.most || s32.least > s32.most;
}

bool Bounds::contradicts(bool half) const {
    if (half) return s32.least > s32.most || u32.least > u32.most || (half_is_known() && !(u32.is_known() && s32.is_known()));
    return s64.least > s64.most || u64.least > u64.most || (is_known() && !(u64.is_known() && s64.is_known()));
}

void Bounds::keep_sane() {
    const Bounds whole = of(bits.value), part = of(low_half(bits).value);
    const bool whole_differs = is_known() && (u64 != whole.u64 || s64 != whole.s64);
    const bool part_differs = half_is_known() && (u32 != part.u32 || s32 != part.s32);
    if (!whole_differs && !part_differs && !is_empty()) return;
    forget64();
    forget32();
}

void Bounds::settle(const Deductions &rules) {
    ranges_from_bits(*this);
    for (int round = 0; round < (rules.halves ? 3 : 1); ++round) {
        deduce32(*this, rules);
        deduce_sign(u64, s64, rules.across_sign);
        if (rules.halves) deduce_across(*this);
    }
    const Tnum all = intersect(bits, tnum_range(u64.least, u64.most));
    bits = with_low_half(all, intersect(low_half(all), tnum_range(u32.least, u32.most)));
    ranges_from_bits(*this);
}

void Bounds::forget64() {
    u64 = {0, UINT64_MAX};
    s64 = {INT64_MIN, INT64_MAX};
}

void Bounds::forget32() {
    u32 = {0, UINT32_MAX};
    s32 = {INT32_MIN, INT32_MAX};
}

void Bounds::from_bits() {
    forget64();
    forget32();
    ranges_from_bits(*this);
}

void Bounds::clear_upper_half(const Deductions &rules) {
    bits = low_half(bits);
    u64 = {u32.least, u32.most};
    s64 = s32.least >= 0 && s32.most >= 0 ? Range<int64_t>{s32.least, s32.most} : Range<int64_t>{0, UINT32_MAX};
    settle(rules);
}

void Bounds::cut_to(unsigned bytes, const Deductions &rules) {
    if (bytes >= 8) return;
    bits = cut(bits, bytes);
    const uint64_t mask = (uint64_t(1) << bytes * 8) - 1;
    if ((u64.least & ~mask) == (u64.most & ~mask))
        u64 = {u64.least & mask, u64.most & mask};
    else
        u64 = {0, mask};
    s64 = {static_cast<int64_t>(u64.least), static_cast<int64_t>(u64.most)};
    if (bytes < 4) forget32(); // four bytes or more leave the lower half alone
    settle(rules);
}

void Bounds::extend_sign(unsigned bytes, bool to_half, const Deductions &rules) {
    const unsigned shift = 64 - bytes * 8;
    auto extended = [shift](uint64_t n) { return static_cast<int64_t>(n << shift) >> shift; };
    if (is_known()) {
        *this = of(static_cast<uint64_t>(extended(number())));
    } else {
        const int64_t least = -(int64_t(1) << (bytes * 8 - 1)), most = -(least + 1);
        Range<int64_t> range = {least, most};
        // Ends with the same bits above, and of the same sign, are a range below as well.
        const int64_t first = extended(static_cast<uint64_t>(s64.least)), last = extended(static_cast<uint64_t>(s64.most));
        const uint64_t above = ~((uint64_t(1) << bytes * 8) - 1);
        if ((static_cast<uint64_t>(s64.least) & above) == (static_cast<uint64_t>(s64.most) & above) &&
            (first >= 0) == (last >= 0))
            range = {std::min(first, last), std::max(first, last)};
        Bounds out;
        out.s64 = range;
        out.s32 = {static_cast<int32_t>(range.least), static_cast<int32_t>(range.most)};
        if (range.least >= 0 || range.most < 0) {
            out.u64 = {static_cast<uint64_t>(range.least), static_cast<uint64_t>(range.most)};
            out.u32 = {static_cast<uint32_t>(range.least), static_cast<uint32_t>(range.most)};
            out.bits = tnum_range(out.u64.least, out.u64.most);
        }
        *this = out;
        settle(rules);
    }
    if (to_half) clear_upper_half(rules);
}

bool Bounds::contains(const Bounds &inner) const {
    return u64.contains(inner.u64) && s64.contains(inner.s64) && u32.contains(inner.u32) && s32.contains(inner.s32) &&
           verifier::contains(bits, inner.bits);
}

bool Bounds::holds(uint64_t number) const { return contains(of(number)); }

} // namespace rawbpf::inline v0::verifier
