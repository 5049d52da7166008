// doctest, and two things that it lacks: a test that finds out at run time that it can't run here, and one that passes only
// because it has measured something again, which is counted (./dev test allows few of these).
//
//     TEST_CASE("ring buffer: delivers every record") {
//         if (!probe_ring_buffer()) SKIP("needs ring buffers, 5.8");
//         if (rounds > 1) FLAKY("no record in the first " + std::to_string(rounds - 1) + " rounds");
#pragma once

#include <string>

// An assertion is a call then, without a handler of exceptions of its own: a tenth less to compile.
#define DOCTEST_CONFIG_SUPER_FAST_ASSERTS
#include <doctest/doctest.h>

namespace rawbpf::test {
/// Marks the running test as skipped; the reporter prints the reason.
void skip(const std::string &reason);
/// Marks the running test as flaky: if it passes, the reporter says FLAKY, and the reason.
void flaky(const std::string &reason);
} // namespace rawbpf::test

#define FLAKY(reason) ::rawbpf::test::flaky(reason)

#define SKIP(reason)                                                                                                             \
    do {                                                                                                                         \
        ::rawbpf::test::skip(reason);                                                                                            \
        return;                                                                                                                  \
    } while (0)
