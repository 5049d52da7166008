// Unpacks gzip and zlib: the kernel's configuration is in /proc/config.gz, sections of ELF files may be compressed. PURE.
#pragma once

#include <string>

#include "runtime/base/bytes.h"

namespace rawbpf::inline v0 {

/// The contents of a gzip file (RFC 1952) of one member. `what` names it in messages.
/// Errors: bad_input (no gzip, damaged, checksum or length wrong), no_memory when it would come to more than `limit` bytes.
[[nodiscard]] Result<std::string> gunzip(Bytes bytes, std::string_view what, size_t limit = 16 << 20);

/// The contents of a zlib stream (RFC 1950), which sections of ELF files are compressed as. Errors as gunzip's.
[[nodiscard]] Result<std::string> unzlib(Bytes bytes, std::string_view what, size_t limit);

} // namespace rawbpf::inline v0
