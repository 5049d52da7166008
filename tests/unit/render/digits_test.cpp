// Numbers as text, beside what the general formatter makes of them.
#include <vector>

#include "programs/render/digits.h"

#include "runtime/base/format.h"
#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("digits: as the general formatter has them") {
    std::vector<uint64_t> numbers{0, 1, 9, 10, 99, 100, 101, 999, 1000, 4294967295, 4294967296, UINT64_MAX, UINT64_MAX - 1};
    for (uint64_t power = 1, i = 0; i < 20; ++i, power *= 10) numbers.insert(numbers.end(), {power - 1, power, power + 1});
    for (uint64_t bit = 1; bit != 0; bit <<= 1) numbers.insert(numbers.end(), {bit - 1, bit});
    for (const uint64_t number : numbers) {
        std::string decimal = "x", hex = "x";
        render::append_decimal(decimal, number);
        render::append_hex(hex, number);
        CHECK(decimal == format("x{}", number));
        CHECK(hex == format("x{:#x}", number));
    }
}

TEST_CASE("digits: padded, and only the lowest") {
    std::string text;
    render::append_padded(text, 7, 3);
    render::append_padded(text, 1'234'567, 3);
    render::append_padded(text, 0, 9);
    render::append_padded(text, UINT64_MAX, 20);
    CHECK(text == "00756700000000018446744073709551615");
}
