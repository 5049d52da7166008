// Ranges: what an instruction does to some numbers is inside of what the verifier derives from what is known of them. Wherever
// that isn't so, a kernel would run a program that it shouldn't.
//
// Operands are sets of a few numbers at the edges, of which the tightest ranges are made; then each result of two of the numbers
// must be held. The same for comparisons: what is decided is so for all, and what is learnt holds for all that go that way.
#include <algorithm>
#include <array>
#include <vector>

#include "runtime/verifier/arithmetic.h"
#include "runtime/verifier/comparison.h"
#include "runtime/verifier/rules.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::verifier;

namespace {

class Random {
  public:
    uint64_t next() {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return state_ * 0x2545f4914f6cdd1d;
    }
    uint64_t below(uint64_t n) { return next() % n; }
    uint64_t number() {
        static constexpr uint64_t kEdges[] = {0,
                                              1,
                                              7,
                                              8,
                                              31,
                                              32,
                                              63,
                                              64,
                                              255,
                                              0x7fff,
                                              0xffff,
                                              INT32_MAX,
                                              0x80000000,
                                              UINT32_MAX,
                                              0x100000000,
                                              INT64_MAX,
                                              uint64_t(1) << 63,
                                              UINT64_MAX};
        switch (below(4)) {
        case 0: return next() >> below(64);
        case 1: return kEdges[below(std::size(kEdges))] + below(9) - 4;
        case 2: return static_cast<uint64_t>(-static_cast<int64_t>(below(100)));
        default: return below(100);
        }
    }
    /// One to four numbers, far from each other or near.
    std::vector<uint64_t> numbers() {
        std::vector<uint64_t> out = {number()};
        for (uint64_t n = below(4); n > 0; --n) out.push_back(below(2) ? out[0] + below(16) : number());
        return out;
    }

  private:
    uint64_t state_ = 0x123456789abcdef;
};

// The tightest bounds of some numbers, and then perhaps some that are less tight.
Bounds bounds_of(const std::vector<uint64_t> &numbers, Random &random, const Deductions &rules) {
    Bounds out = Bounds::of(numbers[0]);
    for (uint64_t n : numbers) {
        const uint64_t known = ~(out.bits.mask | (out.bits.value ^ n));
        out.bits = {out.bits.value & known, ~known};
        const Bounds one = Bounds::of(n);
        auto widen = [](auto &range, const auto &by) {
            range = {std::min(range.least, by.least), std::max(range.most, by.most)};
        };
        widen(out.u64, one.u64), widen(out.s64, one.s64), widen(out.u32, one.u32), widen(out.s32, one.s32);
    }
    switch (random.below(6)) {
    case 0: out.forget64(); break;
    case 1: out.forget32(); break;
    case 2: out.bits = {}; break;
    case 3: out.s64 = {INT64_MIN, INT64_MAX}; break;
    default: break;
    }
    out.settle(rules);
    return out;
}

uint64_t result_of(Op op, bool half, uint64_t a, uint64_t b) {
    const auto x = static_cast<uint32_t>(a), y = static_cast<uint32_t>(b);
    switch (op) {
    case Op::add: return half ? static_cast<uint32_t>(x + y) : a + b;
    case Op::sub: return half ? static_cast<uint32_t>(x - y) : a - b;
    case Op::mul: return half ? static_cast<uint32_t>(x * y) : a * b;
    case Op::div: return half ? (y ? x / y : 0) : b ? a / b : 0;
    case Op::mod: return half ? (y ? x % y : x) : b ? a % b : a;
    case Op::or_: return half ? x | y : a | b;
    case Op::and_: return half ? x & y : a & b;
    case Op::xor_: return half ? x ^ y : a ^ b;
    case Op::lsh: return half ? x << (y & 31) : a << (b & 63);
    case Op::rsh: return half ? x >> (y & 31) : a >> (b & 63);
    default:
        return half ? static_cast<uint32_t>(static_cast<int32_t>(x) >> (y & 31))
                    : static_cast<uint64_t>(static_cast<int64_t>(a) >> (b & 63));
    }
}

template <class U, class S> bool truth_of(Compare op, U a, U b) {
    const auto x = static_cast<S>(a), y = static_cast<S>(b);
    switch (op) {
    case Compare::eq: return a == b;
    case Compare::ne: return a != b;
    case Compare::gt: return a > b;
    case Compare::ge: return a >= b;
    case Compare::lt: return a < b;
    case Compare::le: return a <= b;
    case Compare::set: return (a & b) != 0;
    case Compare::sgt: return x > y;
    case Compare::sge: return x >= y;
    case Compare::slt: return x < y;
    default: return x <= y;
    }
}

constexpr KernelVersion kKernels[] = {{5, 10}, {6, 8}, {6, 14}, {6, 18}};
constexpr int kRounds = 30'000;

} // namespace

TEST_CASE("verifier, arithmetic: no result is outside of the ranges that are derived") {
    static constexpr Op kOps[] = {Op::add,  Op::sub,  Op::mul, Op::div, Op::mod, Op::or_,
                                  Op::and_, Op::xor_, Op::lsh, Op::rsh, Op::arsh};
    Random random;
    for (int round = 0; round < kRounds; ++round) {
        const Deductions rules = deductions_of(kKernels[random.below(std::size(kKernels))]);
        const std::vector<uint64_t> left = random.numbers(), right = random.numbers();
        const Bounds a = bounds_of(left, random, rules), b = bounds_of(right, random, rules);
        const Op op = kOps[random.below(std::size(kOps))];
        const bool half = random.below(2);
        const Bounds result = compute(op, half, a, b, rules);
        for (uint64_t x : left)
            for (uint64_t y : right) {
                if (result.holds(result_of(op, half, x, y))) continue;
                INFO("operation ", int(op), half ? " of 32 bits: " : " of 64 bits: ", x, ", ", y);
                REQUIRE(result.holds(result_of(op, half, x, y)));
            }
    }
}

TEST_CASE("verifier, arithmetic: parts of numbers and extended signs are held") {
    Random random;
    for (int round = 0; round < kRounds; ++round) {
        const Deductions rules = deductions_of(kKernels[random.below(std::size(kKernels))]);
        const std::vector<uint64_t> numbers = random.numbers();
        const Bounds all = bounds_of(numbers, random, rules);
        const unsigned bytes = 1u << random.below(3), shift = 64 - bytes * 8;
        const bool half = bytes < 4 && random.below(2);
        Bounds part = all, extended = all, low = all;
        part.cut_to(bytes, rules);
        extended.extend_sign(bytes, half, rules);
        low.clear_upper_half(rules);
        for (uint64_t n : numbers) {
            REQUIRE(all.holds(n));
            REQUIRE(part.holds(n << shift >> shift));
            const auto wide = static_cast<uint64_t>(static_cast<int64_t>(n << shift) >> shift);
            REQUIRE(extended.holds(half ? static_cast<uint32_t>(wide) : wide));
            REQUIRE(low.holds(static_cast<uint32_t>(n)));
        }
    }
}

TEST_CASE("verifier, comparison: what is decided is so, and what is learnt holds") {
    static constexpr Compare kOps[] = {Compare::eq,  Compare::gt, Compare::ge, Compare::set, Compare::ne, Compare::sgt,
                                       Compare::sge, Compare::lt, Compare::le, Compare::slt, Compare::sle};
    Random random;
    uint64_t decided = 0;
    for (int round = 0; round < kRounds; ++round) {
        const Deductions rules = deductions_of(kKernels[random.below(std::size(kKernels))]);
        const std::vector<uint64_t> left = random.numbers(), right = random.numbers();
        const Bounds a = bounds_of(left, random, rules), b = bounds_of(right, random, rules);
        const Compare op = kOps[random.below(std::size(kOps))];
        const bool half = random.below(2);
        const std::optional<bool> way = decide(op, half, a, b, rules);
        decided += way.has_value();
        std::array<Bounds, 2> sides[2] = {{a, b}, {a, b}};
        for (bool truth : {false, true}) refine(op, half, truth, sides[truth][0], sides[truth][1], rules);
        for (uint64_t x : left)
            for (uint64_t y : right) {
                const bool truth = half ? truth_of<uint32_t, int32_t>(op, static_cast<uint32_t>(x), static_cast<uint32_t>(y))
                                        : truth_of<uint64_t, int64_t>(op, x, y);
                INFO("comparison ", int(op), half ? " of 32 bits: " : " of 64 bits: ", x, ", ", y);
                if (way) REQUIRE(*way == truth);
                REQUIRE(sides[truth][0].holds(x));
                REQUIRE(sides[truth][1].holds(y));
            }
    }
    CHECK(decided > kRounds / 10);
}

TEST_CASE("verifier, bounds: the views inform each other") {
    const Deductions rules = deductions_of({6, 18});
    Bounds small;
    small.u64 = {0, 7};
    small.settle(rules);
    CHECK(small.bits == Tnum{0, 7});
    CHECK(small.s32 == verifier::Range<int32_t>{0, 7});
    Bounds negative;
    negative.s64 = {-8, -1};
    negative.settle(rules);
    CHECK(negative.u64 == verifier::Range<uint64_t>{UINT64_MAX - 7, UINT64_MAX});
    Bounds both = small, nothing = small; // 0 to 7, and above 7
    Bounds seven = Bounds::of(7);
    refine(Compare::gt, false, true, nothing, seven, rules);
    CHECK((nothing.u64 ==
           verifier::Range<uint64_t>{0, 7})); // no run comes there; the lower half's range takes the contradiction's place
    CHECK(both.contains(Bounds::of(3)));
    CHECK(!both.contains(Bounds::of(8)));
}
