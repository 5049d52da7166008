// gzip, unpacked: the kernel's configuration is in /proc/config.gz. PURE.
#pragma once

#include <string>

#include "runtime/base/bytes.h"

namespace rawbpf::inline v0 {

/// The contents of a gzip file (RFC 1952) of one member. `what` names it in messages.
/// Errors: bad_input (no gzip, damaged, checksum or length wrong), no_memory when it would come to more than `limit` bytes.
[[nodiscard]] Result<std::string> gunzip(Bytes bytes, std::string_view what, size_t limit = 16 << 20);

} // namespace rawbpf::inline v0
