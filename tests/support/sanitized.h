// Is this build one with AddressSanitizer? It takes five times the time, without optimisation up to fifty, and has threads and
// memory of its own. g++ says so by a macro, clang before release 22 only by __has_feature.
#pragma once

#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#define RAWBPF_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RAWBPF_SANITIZED true
#endif
#endif
#if !defined(RAWBPF_SANITIZED)
#define RAWBPF_SANITIZED false
#endif

namespace rawbpf::test {
inline constexpr bool kSanitized = RAWBPF_SANITIZED;

/// Is the machine emulated by qemu-user, where all takes ten times the time? Who runs the tests says so (unit_suite in ./dev). Of
/// very many alike cases a test takes some there: all of them run where nothing is emulated, and here it is seen only that this
/// machine's code does the same.
inline bool emulated() { return std::getenv("RAWBPF_TEST_EMULATED") != nullptr; }
inline bool slow() { return kSanitized || emulated(); }
} // namespace rawbpf::test
