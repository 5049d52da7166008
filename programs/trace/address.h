// Internet addresses as text. PURE.
#pragma once

#include <cstdint>
#include <string>

namespace rawbpf::inline v0::trace {

/// "192.0.2.1"; `bytes`: four, in the order of the network.
void append_ipv4(std::string &out, const uint8_t *bytes);
/// "2001:db8::1", "::ffff:192.0.2.1" (RFC 5952); `bytes`: sixteen.
void append_ipv6(std::string &out, const uint8_t *bytes);

} // namespace rawbpf::inline v0::trace
