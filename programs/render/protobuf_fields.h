// Reading protobuf's wire format: the fields of one message, one after the other. What it says may be anything. PURE.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/bytes.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::render {

/// A field of a message.
struct ProtobufField {
    uint64_t number = 0;
    uint64_t value = 0; ///< of types 0 and 1
    Bytes bytes;        ///< of type 2; not copied
    unsigned type = 0;  ///< 0: varint, 1: 8 bytes, 2: text, bytes or a message, 5: 4 bytes

    /// Whether it has this number and text, bytes or a message.
    [[nodiscard]] bool is_bytes(uint64_t wanted) const { return number == wanted && type == 2; }
    [[nodiscard]] std::string_view text() const { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }
};

/// The next field; those that nobody asks for are got past this way, too. Errors: bad_input, with the offset.
[[nodiscard]] Result<ProtobufField> next_field(ByteReader &in);

} // namespace rawbpf::inline v0::render
