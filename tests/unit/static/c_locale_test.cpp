// The C locale's functions of static executables, under other names, against the C library's own.
#include <cctype>
#include <cerrno>
#include <climits>
#include <clocale>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "runtime/bare/stop.h"
#include "tests/support/test.h"

namespace rawbpf {
[[noreturn]] void stop(const char *) { std::abort(); }
} // namespace rawbpf

// clang-format off
namespace own {
#define isalnum own_isalnum
#define isalpha own_isalpha
#define isblank own_isblank
#define iscntrl own_iscntrl
#define isdigit own_isdigit
#define isgraph own_isgraph
#define islower own_islower
#define isprint own_isprint
#define ispunct own_ispunct
#define isspace own_isspace
#define isupper own_isupper
#define isxdigit own_isxdigit
#define tolower own_tolower
#define toupper own_toupper
#define strtol own_strtol
#define strtoll own_strtoll
#define strtoul own_strtoul
#define strtoull own_strtoull
#define __isoc23_strtol own_isoc23_strtol
#define __isoc23_strtoll own_isoc23_strtoll
#define __isoc23_strtoul own_isoc23_strtoul
#define __isoc23_strtoull own_isoc23_strtoull
#define atoi own_atoi
#define atol own_atol
#define vsnprintf own_vsnprintf
#define snprintf own_snprintf
#define __snprintf own_snprintf2
#define localeconv own_localeconv
#define dcgettext own_dcgettext
#define __dcgettext own_dcgettext2
#define __assert_fail own_assert_fail
#define __assert_perror_fail own_assert_perror_fail
#define __assert own_assert
#define __ctype_init own_ctype_init
#define __ctype_b_loc own_ctype_b_loc
#define __ctype_tolower_loc own_ctype_tolower_loc
#define __ctype_toupper_loc own_ctype_toupper_loc
#include "cli/static/c_locale.cpp"
#undef isalnum
#undef isalpha
#undef isblank
#undef iscntrl
#undef isdigit
#undef isgraph
#undef islower
#undef isprint
#undef ispunct
#undef isspace
#undef isupper
#undef isxdigit
#undef tolower
#undef toupper
#undef strtol
#undef strtoll
#undef strtoul
#undef strtoull
#undef snprintf
#undef __ctype_b_loc
#undef __ctype_tolower_loc
#undef __ctype_toupper_loc
} // namespace own
// clang-format on

TEST_CASE("static C locale: characters are classified as the C library does") {
    using Test = int(int);
    struct {
        Test *ours, *theirs;
    } const tests[] = {{own::own_isalnum, isalnum}, {own::own_isalpha, isalpha}, {own::own_isblank, isblank},
                       {own::own_iscntrl, iscntrl}, {own::own_isdigit, isdigit}, {own::own_isgraph, isgraph},
                       {own::own_islower, islower}, {own::own_isprint, isprint}, {own::own_ispunct, ispunct},
                       {own::own_isspace, isspace}, {own::own_isupper, isupper}, {own::own_isxdigit, isxdigit}};
    for (int c = -1; c < 256; ++c) {
        CAPTURE(c);
        for (const auto &test : tests) CHECK((test.ours(c) != 0) == (test.theirs(c) != 0));
        CHECK(own::own_tolower(c) == tolower(c));
        CHECK(own::own_toupper(c) == toupper(c));
        // What the macros index.
        if (c >= 0) CHECK((*own::own_ctype_b_loc())[c] == (*__ctype_b_loc())[c]);
        CHECK((*own::own_ctype_tolower_loc())[c] == (*__ctype_tolower_loc())[c]);
        CHECK((*own::own_ctype_toupper_loc())[c] == (*__ctype_toupper_loc())[c]);
    }
}

TEST_CASE("static C locale: numbers are read as the C library does") {
    std::string texts[] = {"",
                           "0",
                           "-0",
                           "  +42x",
                           "0x",
                           "0x1F",
                           "0X1f",
                           "-0x10",
                           "077",
                           "08",
                           "z",
                           "-",
                           "+-1",
                           "9223372036854775807",
                           "9223372036854775808",
                           "-9223372036854775808",
                           "-9223372036854775809",
                           "18446744073709551615",
                           "18446744073709551616",
                           "-18446744073709551615",
                           "99999999999999999999999",
                           "\t\n 7",
                           "1e5",
                           "zz",
                           "ffffffffffffffff"};
    for (const std::string &text : texts)
        for (int base : {0, 2, 8, 10, 16, 36}) {
            CAPTURE(text);
            CAPTURE(base);
            auto compare = [&](auto ours, auto theirs) {
                char *a = nullptr, *b = nullptr;
                errno = 0;
                const auto x = ours(text.c_str(), &a, base);
                const int ours_errno = errno;
                errno = 0;
                const auto y = theirs(text.c_str(), &b, base);
                CHECK(x == y);
                CHECK(a == b);
                CHECK(ours_errno == errno);
            };
            compare(own::own_strtol, strtol);
            compare(own::own_strtoll, strtoll);
            compare(own::own_strtoul, strtoul);
            compare(own::own_strtoull, strtoull);
        }
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-truncation"
TEST_CASE("static C locale: snprintf prints as the C library's") {
    std::mt19937_64 random(11);
    auto compare = [](size_t room, const std::string &format, auto value) {
        char a[128], b[128];
        std::memset(a, 'x', sizeof a);
        std::memset(b, 'x', sizeof b);
        CAPTURE(format);
        CHECK(own::own_snprintf(a, room, format.c_str(), value) == snprintf(b, room, format.c_str(), value));
        CHECK(std::memcmp(a, b, sizeof a) == 0);
    };
    for (int i = 0; i < 5000; ++i) {
        std::string flags = std::string("%") + (random() % 3 == 0 ? "-" : "") + (random() % 3 == 0 ? "0" : "");
        if (random() % 2) flags += std::to_string(random() % 30);
        if (random() % 2) flags += "." + std::to_string(random() % 20);
        const size_t room = random() % 4 ? 128 : random() % 16;
        const uint64_t value = random() >> random() % 64;
        compare(room, "a" + flags + "d", static_cast<int>(value));
        compare(room, flags + "hhd|", static_cast<int>(value));
        compare(room, flags + "hu|", static_cast<unsigned>(value));
        compare(room, flags + "ld|", static_cast<long>(value));
        compare(room, flags + "llu", static_cast<unsigned long long>(value));
        compare(room, flags + "zx", static_cast<size_t>(value));
        compare(room, "\\u" + flags + "X", static_cast<unsigned>(value));
        compare(room, flags + "s%%", "some text");
        compare(room, flags.substr(0, flags.find('.')) + "c", static_cast<int>('A' + value % 26));
    }
    compare(128, "%p", static_cast<void *>(&random));
}
#pragma GCC diagnostic pop
