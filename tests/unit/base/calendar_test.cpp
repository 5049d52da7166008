// Against the C library's calendar.
#include <cstdint>
#include <time.h>

#include "tests/support/test.h"

#include "programs/render/text.h"
#include "runtime/base/calendar.h"

using namespace rawbpf;

TEST_CASE("calendar: every day of six centuries as the C library has it") {
    const int64_t last = *days_since_1970({2570, 12, 31});
    for (int64_t day = 0; day <= last; ++day) {
        const time_t at = static_cast<time_t>(day) * 86400;
        tm there{};
        REQUIRE(gmtime_r(&at, &there));
        const Date date = date_after_1970(static_cast<uint64_t>(day));
        const Date wanted{there.tm_year + 1900, static_cast<unsigned>(there.tm_mon) + 1, static_cast<unsigned>(there.tm_mday)};
        if (date != wanted || days_since_1970(date) != day) {
            CAPTURE(day);
            CHECK(date == wanted);
            CHECK(days_since_1970(date) == day);
        }
    }
}

TEST_CASE("calendar: days before 1970, and days that there are not") {
    CHECK(days_since_1970({1969, 12, 31}) == -1);
    CHECK(days_since_1970({1900, 3, 1}) == -25508);
    CHECK(days_since_1970({1, 1, 1}) == -719162);
    for (const Date none : {Date{2023, 2, 29}, Date{1900, 2, 29}, Date{2024, 4, 31}, Date{2024, 13, 1}, Date{2024, 0, 1},
                            Date{2024, 1, 0}, Date{0, 1, 1}})
        CHECK_FALSE(days_since_1970(none));
    CHECK(days_since_1970({2000, 2, 29}) == 11016);
}

TEST_CASE("calendar: the last nanosecond that 64 bits can tell") {
    CHECK(render::rfc3339(UINT64_MAX) == "2554-07-21T23:34:33.709551615Z");
    CHECK(render::rfc3339(0) == "1970-01-01T00:00:00.000000000Z");
}
