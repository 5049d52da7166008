// strcmp and its kin of static executables, under other names, against the C library's own.
#include <cstddef>
#include <cstring>
#include <random>
#include <string>

#include "tests/support/test.h"

// clang-format off
namespace own {
#define strncmp own_strncmp
#define strcmp own_strcmp
#define strchrnul own_strchrnul
#define __strchrnul own_strchrnul2
#define strchr own_strchr
#define index own_index
#define strrchr own_strrchr
#define rindex own_rindex
#define stpcpy own_stpcpy
#define __stpcpy own_stpcpy2
#include "cli/static/strings.cpp"
#undef strncmp
#undef strcmp
#undef strchrnul
#undef __strchrnul
#undef strchr
#undef index
#undef strrchr
#undef rindex
#undef stpcpy
#undef __stpcpy
} // namespace own
// clang-format on

namespace {
int sign(int n) { return (n > 0) - (n < 0); }
} // namespace

TEST_CASE("static: strings compare, and are searched, as the C library does it") {
    std::mt19937 random(7);
    for (int round = 0; round < 20'000; ++round) {
        std::string a, b;
        for (std::string *text : {&a, &b})
            for (unsigned n = random() % 6; n > 0; --n) *text += "ab\x7f\x80\xff"[random() % 5];
        const size_t most = random() % 8;
        const int wanted = "ab\x80\xff"[random() % 5]; // its end, too
        CAPTURE(round);
        CHECK(sign(own::own_strcmp(a.c_str(), b.c_str())) == sign(std::strcmp(a.c_str(), b.c_str())));
        CHECK(sign(own::own_strncmp(a.c_str(), b.c_str(), most)) == sign(std::strncmp(a.c_str(), b.c_str(), most)));
        CHECK(own::own_strchr(a.c_str(), wanted) == std::strchr(a.c_str(), wanted));
        CHECK(own::own_index(a.c_str(), wanted) == std::strchr(a.c_str(), wanted));
        CHECK(own::own_strrchr(a.c_str(), wanted) == std::strrchr(a.c_str(), wanted));
        CHECK(own::own_rindex(a.c_str(), wanted) == std::strrchr(a.c_str(), wanted));
        CHECK(own::own_strchrnul(a.c_str(), wanted) == ::strchrnul(a.c_str(), wanted));
        CHECK(own::own_strchrnul2(a.c_str(), wanted) == ::strchrnul(a.c_str(), wanted));
        char to[16] = "----------";
        CHECK(own::own_stpcpy(to, a.c_str()) == to + a.size());
        CHECK(to == a);
        CHECK(own::own_stpcpy2(to, b.c_str()) == to + b.size());
        CHECK(to == b);
    }
}
