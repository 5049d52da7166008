// The one part of protobuf's wire format that needs care: a proto3 string has to be UTF-8, and a reader throws the whole message
// away when one isn't (https://protobuf.dev/programming-guides/proto3/#scalar).
#include "programs/render/protobuf.h"

#include "programs/render/text.h"

namespace rawbpf::inline v0::render {

Message &Message::text(uint32_t field, std::string_view value) {
    if (value.empty()) return *this;
    if (plain_start(value) == value.size()) return bytes(field, value);
    std::string clean;
    append_utf8(clean, value);
    return bytes(field, clean);
}

} // namespace rawbpf::inline v0::render
