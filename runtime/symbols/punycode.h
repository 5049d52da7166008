// Punycode (RFC 3492): how Rust's mangling writes identifiers that aren't ASCII.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rawbpf::inline v0::symbols {

/// Decodes "ASCII part, '_', code" (Rust uses '_' where the RFC has '-') to UTF-8; nullopt when it is malformed or longer than
/// 256 characters.
[[nodiscard]] std::optional<std::string> decode_punycode(std::string_view text);

} // namespace rawbpf::inline v0::symbols
