// A profile of a workload, for tests: made, or excused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "programs/profile/profiler.h"
#include "tests/support/test.h"

namespace rawbpf::test {

inline uint64_t lost(const Outcome &outcome) {
    uint64_t sum = 0;
    for (const auto &[reason, count] : outcome.ledger.lost) sum += count;
    return sum;
}

/// True where this kernel, or these privileges, can't profile at all.
inline bool unable(const Error &error) { return error.kind == Errc::permission || error.kind == Errc::unsupported; }

} // namespace rawbpf::test

/// `outcome`, an Outcome; SKIP for an error that `excused` lets pass, and a failure for any other.
#define PROFILE_UNLESS(outcome, options, sink, excused)                                                                          \
    Result<Outcome> outcome##_result = run_profile(options, sink);                                                               \
    if (!outcome##_result && (excused)(outcome##_result.error())) SKIP(outcome##_result.error().message());                      \
    REQUIRE_MESSAGE(outcome##_result, outcome##_result.error().message() << outcome##_result.error().log);                       \
    const Outcome &outcome = *outcome##_result
#define PROFILE(outcome, options, sink) PROFILE_UNLESS(outcome, options, sink, ::rawbpf::test::unable)
