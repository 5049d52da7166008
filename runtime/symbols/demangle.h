// SPDX-License-Identifier: MIT
// Mangled names to readable ones.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rawbpf::inline v0::symbols {

/// C++ (Itanium) and Rust (legacy and v0) names to readable ones; anything else comes back unchanged. What the compiler appended
/// (".cold", ".isra.0", ".llvm.123") is kept, as "name [.cold]" for C++ and Rust alike is what c++filt shows too. Time, stack and
/// output are bounded (64 KiB of text), whatever the name.
[[nodiscard]] std::string demangle(std::string_view mangled);

/// One Itanium name ("_Z..."), nullopt when it isn't one.
[[nodiscard]] std::optional<std::string> demangle_cxx(std::string_view mangled);
/// A Rust name of the first scheme ("_ZN...17h<16 hex digits>E"), without its hash; nullopt when it isn't one.
[[nodiscard]] std::optional<std::string> demangle_rust_legacy(std::string_view mangled);
/// A Rust name of the second scheme ("_R...", RFC 2603), without hashes; nullopt when it isn't one.
[[nodiscard]] std::optional<std::string> demangle_rust_v0(std::string_view mangled);

} // namespace rawbpf::inline v0::symbols
