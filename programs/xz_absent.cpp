// Stands in for xz.cpp in a build without liblzma (-Dlzma=disabled).
#include "programs/xz.h"

namespace rawbpf::inline v0 {

std::optional<std::vector<std::byte>> unpack_xz(Bytes) { return std::nullopt; }
bool knows_xz() { return false; }

} // namespace rawbpf::inline v0
