// Days and dates of the Gregorian calendar, in UTC. By hand: std::chrono brings along <format> for every kind of number, and with
// it libm (libstdc++ 16: 60 KB of code in each program); gmtime_r brings the time zones.
//
//      days before a year   365 for each year since 1970, and one for each leap year between
#pragma once

#include <cstdint>
#include <optional>

namespace rawbpf::inline v0 {

struct Date {
    int64_t year = 1970;
    unsigned month = 1; ///< 1 to 12
    unsigned day = 1;   ///< 1 to 31
    bool operator==(const Date &) const = default;
};

constexpr bool is_leap_year(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

constexpr unsigned days_in_month(int64_t year, unsigned month) {
    constexpr unsigned kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return kDays[month - 1] + (month == 2 && is_leap_year(year) ? 1 : 0);
}

/// Days from 1970-01-01 to the year's first, negative before 1970. The year is 1 or later.
constexpr int64_t days_before_year(int64_t year) {
    constexpr auto leap_years_to = [](int64_t last) { return last / 4 - last / 100 + last / 400; };
    return 365 * (year - 1970) + leap_years_to(year - 1) - leap_years_to(1969);
}

/// Days since 1970-01-01; nullopt: the calendar has no such day, or it is before the year 1.
constexpr std::optional<int64_t> days_since_1970(const Date &date) {
    if (date.year < 1 || date.month < 1 || date.month > 12) return std::nullopt;
    if (date.day < 1 || date.day > days_in_month(date.year, date.month)) return std::nullopt;
    int64_t days = days_before_year(date.year) + date.day - 1;
    for (unsigned month = 1; month < date.month; ++month) days += days_in_month(date.year, month);
    return days;
}

/// The date that is so many days after 1970-01-01.
constexpr Date date_after_1970(uint64_t days) {
    constexpr uint64_t kDaysIn400Years = 146097;
    const auto day = static_cast<int64_t>(days);
    Date out;
    out.year += static_cast<int64_t>(days / kDaysIn400Years * 400 + days % kDaysIn400Years * 400 / kDaysIn400Years);
    while (days_before_year(out.year) > day) --out.year; // the leap years aren't spread evenly: it may be one off
    while (days_before_year(out.year + 1) <= day) ++out.year;
    auto left = static_cast<unsigned>(day - days_before_year(out.year));
    for (; left >= days_in_month(out.year, out.month); ++out.month) left -= days_in_month(out.year, out.month);
    out.day = left + 1;
    return out;
}

} // namespace rawbpf::inline v0
