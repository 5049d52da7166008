// doctest, and the one thing it lacks: a test that finds out at run time that it can't run here.
//
//     TEST_CASE("ring buffer: delivers every record") {
//         if (!probe_ring_buffer()) SKIP("needs ring buffers, 5.8");
#pragma once

#include <string>

#include <doctest/doctest.h>

namespace rawbpf::test {
/// Marks the running test as skipped; the reporter prints the reason.
void skip(const std::string &reason);
} // namespace rawbpf::test

#define SKIP(reason)                                                                                                             \
    do {                                                                                                                         \
        ::rawbpf::test::skip(reason);                                                                                            \
        return;                                                                                                                  \
    } while (0)
