// A rule is eight bytes, so it is compared as a number. Never is one taken away: all of Debian's programs have 1,428.
#include "programs/unwind/rules.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0::unwind {

namespace {

uint64_t value_of(const UnwindRule &rule) {
    static_assert(sizeof rule == sizeof(uint64_t));
    uint64_t value = 0;
    std::memcpy(&value, &rule, sizeof value);
    return value;
}

} // namespace

Result<uint16_t> Rules::intern(const UnwindRule &rule) {
    const uint64_t wanted = value_of(rule);
    if (wanted == 0) return uint16_t{0};
    const auto at = std::lower_bound(sorted_.begin(), sorted_.end(), wanted,
                                     [&](uint16_t number, uint64_t value) { return value_of(rules_[number]) < value; });
    if (at != sorted_.end() && value_of(rules_[*at]) == wanted) return *at;
    if (rules_.size() >= UNWIND_RULES) {
        ++overflows_;
        return uint16_t{0};
    }
    const auto number = static_cast<uint16_t>(rules_.size());
    TRY(sink_.put(number, rule));
    rules_.push_back(rule);
    sorted_.insert(at, number);
    return number;
}

} // namespace rawbpf::inline v0::unwind
