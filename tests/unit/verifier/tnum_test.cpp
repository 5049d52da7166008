// Numbers of which some bits are known: every operation, on all numbers of four bits.
#include <vector>

#include "runtime/verifier/tnum.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::verifier;

namespace {

constexpr unsigned kBits = 4;

std::vector<Tnum> all_tnums() {
    std::vector<Tnum> out;
    for (uint64_t mask = 0; mask < 1 << kBits; ++mask)
        for (uint64_t value = 0; value < 1 << kBits; ++value)
            if (!(value & mask)) out.push_back({value, mask});
    return out;
}

std::vector<uint64_t> numbers_of(Tnum t) {
    std::vector<uint64_t> out;
    for (uint64_t n = 0; n < 1 << kBits; ++n)
        if ((n & ~t.mask) == t.value) out.push_back(n);
    return out;
}

bool holds(Tnum t, uint64_t n) { return (n & ~t.mask) == t.value; }

// Each result of two of their numbers is one of what the operation says.
template <class F, class G> uint64_t missed(F abstract, G concrete) {
    uint64_t out = 0;
    for (Tnum a : all_tnums())
        for (Tnum b : all_tnums()) {
            const Tnum result = abstract(a, b);
            if (result.value & result.mask) ++out; // no Tnum at all
            for (uint64_t x : numbers_of(a))
                for (uint64_t y : numbers_of(b)) out += !holds(result, concrete(x, y));
        }
    return out;
}

} // namespace

TEST_CASE("tnum: no operation loses a number") {
    CHECK(all_tnums().size() == 81);
    CHECK(missed([](Tnum a, Tnum b) { return add(a, b); }, [](uint64_t a, uint64_t b) { return a + b; }) == 0);
    CHECK(missed([](Tnum a, Tnum b) { return subtract(a, b); }, [](uint64_t a, uint64_t b) { return a - b; }) == 0);
    CHECK(missed([](Tnum a, Tnum b) { return multiply(a, b); }, [](uint64_t a, uint64_t b) { return a * b; }) == 0);
    CHECK(missed([](Tnum a, Tnum b) { return and_bits(a, b); }, [](uint64_t a, uint64_t b) { return a & b; }) == 0);
    CHECK(missed([](Tnum a, Tnum b) { return or_bits(a, b); }, [](uint64_t a, uint64_t b) { return a | b; }) == 0);
    CHECK(missed([](Tnum a, Tnum b) { return xor_bits(a, b); }, [](uint64_t a, uint64_t b) { return a ^ b; }) == 0);
}

TEST_CASE("tnum: bitwise operations and sums say as much as can be known") {
    for (Tnum a : all_tnums())
        for (Tnum b : all_tnums()) {
            uint64_t ones[4] = {~uint64_t(0), ~uint64_t(0), ~uint64_t(0), ~uint64_t(0)}, some[4] = {};
            for (uint64_t x : numbers_of(a))
                for (uint64_t y : numbers_of(b)) {
                    const uint64_t results[] = {x & y, x | y, x ^ y, x + y};
                    for (int i = 0; i < 4; ++i) ones[i] &= results[i], some[i] |= results[i];
                }
            const Tnum said[] = {and_bits(a, b), or_bits(a, b), xor_bits(a, b), add(a, b)};
            for (int i = 0; i < 4; ++i) {
                REQUIRE(said[i].value == ones[i]);
                REQUIRE(said[i].mask == (ones[i] ^ some[i]));
            }
        }
}

TEST_CASE("tnum: shifts, parts and ranges") {
    for (Tnum a : all_tnums())
        for (uint64_t x : numbers_of(a))
            for (unsigned by = 0; by < 64; ++by) {
                REQUIRE(holds(shift_left(a, by), x << by));
                REQUIRE(holds(shift_right(shift_left(a, 60), by), x << 60 >> by));
                REQUIRE(holds(shift_right_signed(shift_left(a, 60), by, 64),
                              static_cast<uint64_t>(static_cast<int64_t>(x << 60) >> by)));
                if (by < 32)
                    REQUIRE(holds(shift_right_signed(shift_left(a, 28), by, 32),
                                  static_cast<uint32_t>(static_cast<int32_t>(x << 28) >> by)));
            }
    for (uint64_t least = 0; least < 16; ++least)
        for (uint64_t most = least; most < 16; ++most)
            for (uint64_t n = least; n <= most; ++n) REQUIRE(holds(tnum_range(least, most), n));
    CHECK(tnum_range(0, UINT64_MAX) == Tnum{});
    CHECK(cut({0x1234, 0xff0000}, 2) == Tnum{0x1234, 0});
    CHECK(with_low_half({0x500000000, 0xf00000000000}, {1, 2}) == Tnum{0x500000001, 0xf00000000002});
    CHECK(is_aligned({8, 0x30}, 8));
    CHECK(!is_aligned({8, 0x34}, 8));
}

TEST_CASE("tnum: what contains what, and what two agree on") {
    for (Tnum a : all_tnums())
        for (Tnum b : all_tnums()) {
            bool inside = true;
            for (uint64_t x : numbers_of(b)) {
                inside &= holds(a, x);
                if (holds(a, x)) REQUIRE(holds(intersect(a, b), x));
            }
            REQUIRE(contains(a, b) == inside);
        }
}
