// What a ByteReader says when its bytes end early. In a file of its own: the header has no formatting.
#include "runtime/base/bytes.h"

#include <cstdint>
#include <string_view>

#include "runtime/base/format.h"

namespace rawbpf::inline v0 {

Error ByteReader::error_at(uint64_t offset, std::string_view problem) const {
    return make_error(Errc::bad_input, format("{}: offset {:#x}: {}", what_, base_ + offset, problem));
}

Error ByteReader::short_of(uint64_t size) const {
    return error_at(offset_, format("needs {} bytes, and {} are left", size, left()));
}

} // namespace rawbpf::inline v0
