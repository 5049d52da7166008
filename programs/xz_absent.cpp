// Stands in for xz.cpp in a build without liblzma (-Dlzma=disabled), and in the small static executable, of which liblzma would
// be a thirtieth: stripped files whose symbols are packed into .gnu_debugdata are Fedora's, and rawbpf-lab reads them.
#include "programs/xz.h"

namespace rawbpf::inline v0 {

std::optional<std::vector<std::byte>> unpack_xz(Bytes) { return std::nullopt; }
bool knows_xz() { return false; }

} // namespace rawbpf::inline v0
