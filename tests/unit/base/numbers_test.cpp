// Numbers and times as people write them.
#include "runtime/base/numbers.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "runtime/base/hex.h"
#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("numbers: times") {
    CHECK(*parse_seconds("3") == 3);
    CHECK(*parse_seconds("0.5") == 0.5);
    CHECK(*parse_seconds(".25") == 0.25);
    CHECK(*parse_seconds("1.") == 1);
    CHECK(*parse_seconds("200ms") == doctest::Approx(0.2));
    CHECK(*parse_seconds("5s") == 5);
    CHECK(*parse_seconds("2m") == 120);
    CHECK(*parse_seconds("1h") == 3600);
    for (std::string_view wrong : {"", ".", "s", "-1", "1.2.3", "5 s", "1d", "1e3", "nan", "0x10", "9999999999", "1.0000000001"})
        CHECK(!parse_seconds(wrong));
}

TEST_CASE("numbers: whole ones, and nothing else") {
    uint8_t byte = 7;
    CHECK((parse_whole("255", byte) && byte == 255));
    CHECK((parse_whole("ff", byte, 16) && byte == 255));
    for (std::string_view wrong : {"", " 1", "1 ", "+1", "-1", "256", "0x1", "1.5"}) CHECK(!parse_whole(wrong, byte));
    int64_t least = 0;
    CHECK((parse_whole("-9223372036854775808", least) && least == INT64_MIN));
    CHECK(whole_number<uint32_t>("4294967295") == UINT32_MAX);
    CHECK(!whole_number<uint32_t>("4294967296"));
    CHECK(whole_number_or_hex<uint64_t>("0x1F") == 31u);
    CHECK(whole_number_or_hex<uint64_t>("10") == 10u);
    for (std::string_view wrong : {"", "0x", "0x0x1", "0xg", "1f", "-1", "0X1"}) CHECK(!whole_number_or_hex<uint64_t>(wrong));
}

TEST_CASE("numbers: whole real ones are those that modf(3) finds no fraction in") {
    const auto as_modf = [](auto value) {
        decltype(value) whole;
        CAPTURE(value);
        CHECK(is_whole(value) == (std::modf(value, &whole) == 0));
    };
    for (int exponent = -1070; exponent < 1020; ++exponent)
        for (const double mantissa : {1.0, 1.5, 1.75, 1.0000000000000002, 1.9999999999999998}) {
            as_modf(std::ldexp(mantissa, exponent));
            as_modf(-std::ldexp(mantissa, exponent));
            as_modf(std::ldexp(static_cast<long double>(mantissa), exponent));
            as_modf(std::nextafter(std::ldexp(static_cast<long double>(mantissa), exponent), 0.0L));
        }
    for (const double odd :
         {0.0, -0.0, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), std::nan("")}) {
        as_modf(odd);
        as_modf(static_cast<long double>(odd));
    }
}

TEST_CASE("bytes as hexadecimal digits") {
    CHECK(hex_text(std::string_view()) == "");
    CHECK(hex_text(std::string_view("\0\x2a\xff", 3)) == "002aff");
    CHECK(hex_text(std::string_view("\0\x2a\xff", 3), " ") == "00 2a ff");
}
