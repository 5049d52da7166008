// 128-bit numbers of the project's own, beside the compiler's where it has them.
#include <array>
#include <cstdint>

#include "asm/int128.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

using Own = TwoWords<true>;
using OwnUnsigned = TwoWords<false>;
constexpr OwnUnsigned kTwo64 = OwnUnsigned(1) << 64;

} // namespace

TEST_CASE("int128: the project's own numbers, by hand") {
    static_assert(Own(-1).low() == UINT64_MAX && Own(-1).high() == UINT64_MAX);
    static_assert(Own(UINT64_MAX).high() == 0);
    static_assert(Own(INT64_MIN) < 0 && Own(INT64_MIN) == -(Own(1) << 63));
    static_assert(Own(UINT64_MAX) + 1 == (Own(1) << 64));
    static_assert(OwnUnsigned(Own(-1)) > kTwo64 && Own(-1) < Own(0));
    static_assert(Own(7) / -2 == -3 && Own(7) % -2 == 1 && Own(-7) / 2 == -3 && Own(-7) % 2 == -1);        // towards 0, as C's
    static_assert(Own(UINT64_MAX) * UINT64_MAX == (Own(1) << 127) - (Own(1) << 65) + 1 + (Own(1) << 127)); // modulo 2^128
    static_assert((kTwo64 * 10) / kTwo64 == 10 && (kTwo64 * 10 + 3) % kTwo64 == 3);
    static_assert((Own(-5) >> 1) == -3 && (OwnUnsigned(Own(-1)) >> 127) == 1 && (Own(-1) >> 127) == -1);
    static_assert(((Own(5) << 64) >> 64) == 5 && (Own(5) << 0) == 5 && ((Own(5) << 100) >> 100) == 5);
    static_assert(static_cast<int64_t>(Own(-9)) == -9 && static_cast<uint8_t>(Own(0x1ff)) == 0xff);
    static_assert(static_cast<bool>(kTwo64) && !static_cast<bool>(Own()));
    // FNV-1a's first step.
    constexpr OwnUnsigned kBasis = (OwnUnsigned(uint64_t{0x6c62272e07bb0142}) << 64) | uint64_t{0x62b821756295c58d};
    constexpr OwnUnsigned kHash = (kBasis ^ 'a') * ((OwnUnsigned(1) << 88) | 0x13b);
    CHECK(kHash.high() == 0xd228cb696f1a8caf);
    CHECK(kHash.low() == 0x78912b704e4a8964);
}

#ifdef __SIZEOF_INT128__
namespace {

template <class Theirs, class Ours> bool same(Theirs a, Ours b) {
    return static_cast<uint64_t>(a) == b.low() && static_cast<uint64_t>(a >> 64) == b.high();
}

/// Every operation on two numbers, by both. Names the first that differs. What the language leaves undefined isn't asked for.
template <class Theirs, bool Signed> std::string differs(uint64_t low, uint64_t high, uint64_t low2, uint64_t high2, int shift) {
    using Ours = TwoWords<Signed>;
    const Uint128 bits = Uint128{high} << 64 | low, bits2 = Uint128{high2} << 64 | low2;
    const auto a = static_cast<Theirs>(bits), b = static_cast<Theirs>(bits2);
    const Ours c = Ours(OwnUnsigned(high)) << 64 | Ours(OwnUnsigned(low)),
               d = Ours(OwnUnsigned(high2)) << 64 | Ours(OwnUnsigned(low2));
    // Sums and products of the bits: those of signed ones may overflow.
    if (!same(bits + bits2, c + d)) return "+";
    if (!same(bits - bits2, c - d)) return "-";
    if (!same(bits * bits2, c * d)) return "*";
    if (!same(-bits, -c)) return "unary -";
    if (!same(bits << shift, c << shift)) return "<<";
    if (!same(a >> shift, c >> shift)) return ">>";
    if (!same(a & b, c & d) || !same(a | b, c | d) || !same(a ^ b, c ^ d) || !same(~a, ~c)) return "bits";
    if ((a < b) != (c < d) || (a <= b) != (c <= d) || (a == b) != (c == d) || (a > b) != (c > d)) return "order";
    const bool overflows = Signed && b == static_cast<Theirs>(-1) && bits == Uint128{1} << 127;
    if (b == 0 || overflows) return "";
    if (!same(a / b, c / d)) return "/";
    if (!same(a % b, c % d)) return "%";
    return "";
}

} // namespace

TEST_CASE("int128: the project's own numbers agree with the compiler's") {
    constexpr std::array<uint64_t, 9> kEdges = {
        0, 1, 2, 0x7fffffff, 0xffffffff, 0x100000000, INT64_MAX, uint64_t{1} << 63, UINT64_MAX};
    int tried = 0;
    const auto check = [&](uint64_t a, uint64_t b, uint64_t c, uint64_t d, int shift) {
        const std::string with_sign = differs<Int128, true>(a, b, c, d, shift);
        const std::string without = differs<Uint128, false>(a, b, c, d, shift);
        if (!with_sign.empty() || !without.empty())
            FAIL(with_sign, " ", without, " of ", b, ":", a, " and ", d, ":", c, " by ", shift);
        ++tried;
    };
    for (const uint64_t a : kEdges)
        for (const uint64_t b : kEdges)
            for (const uint64_t c : kEdges)
                for (const uint64_t d : kEdges) check(a, b, c, d, tried % 128);
    uint64_t state = 1;
    const auto next = [&] { // of any length, so that quotients aren't all 0 and 1
        state = state * 6364136223846793005 + 1442695040888963407;
        const uint64_t word = state ^ state >> 31;
        return word >> (state >> 58);
    };
    for (int i = 0; i < 20000; ++i) check(next(), next(), next(), i % 3 ? 0 : next(), i % 128);
    CHECK(tried == 20000 + 9 * 9 * 9 * 9);
}
#endif
