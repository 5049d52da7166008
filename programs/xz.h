// xz, which only one thing here is packed with: the .gnu_debugdata section of stripped files.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "runtime/base/bytes.h"

namespace rawbpf::inline v0 {

/// The unpacked bytes; nullopt when they are damaged or would be more than 256 MB, or where there is no liblzma.
[[nodiscard]] std::optional<std::vector<std::byte>> unpack_xz(Bytes packed);
/// Whether this build (-Dlzma) and this system have liblzma.
[[nodiscard]] bool knows_xz();

} // namespace rawbpf::inline v0
