// The fields of a message (protobuf.h has their picture). Groups (types 3 and 4) are no part of proto3.
#include "programs/render/protobuf_fields.h"

#include "runtime/base/fail.h"

namespace rawbpf::inline v0::render {
namespace {

Result<uint64_t> varint(ByteReader &in) {
    const size_t start = in.offset();
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        const auto byte = TRY(in.read<uint8_t>());
        if (shift == 63 && byte > 1) break;
        value |= uint64_t{byte & 0x7fu} << shift;
        if (byte < 0x80) return value;
    }
    return Unexpected(in.error_at(start, "a number of more than 64 bits"));
}

} // namespace

Result<ProtobufField> next_field(ByteReader &in) {
    const size_t start = in.offset();
    const uint64_t key = TRY(varint(in));
    ProtobufField field{key >> 3, 0, {}, static_cast<unsigned>(key & 7)};
    if (field.number == 0) return Unexpected(in.error_at(start, "a field without a number"));
    switch (field.type) {
    case 0: field.value = TRY(varint(in)); break;
    case 1: {
        const Bytes bytes = TRY(in.take(8)); // low byte first, whatever the machine
        for (size_t i = 0; i < bytes.size(); ++i) field.value |= static_cast<uint64_t>(bytes[i]) << (8 * i);
        break;
    }
    case 2: field.bytes = TRY(in.take(TRY(varint(in)))); break;
    case 5: TRY(in.skip(4)); break;
    default: return Unexpected(in.error_at(start, "no type of a field"));
    }
    return field;
}

} // namespace rawbpf::inline v0::render
