// Is this build one with AddressSanitizer? It takes five times the time, without optimisation up to fifty, and has threads and
// memory of its own. g++ says so by a macro, clang before release 22 only by __has_feature.
#pragma once

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
} // namespace rawbpf::test
