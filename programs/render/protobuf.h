// Writing protobuf's wire format (https://protobuf.dev/programming-guides/encoding): all that a flat schema needs. PURE.
//
//      field = varint(number << 3 | type) value        type 0: varint, 1: 8 bytes, 2: varint(length) bytes
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rawbpf::inline v0::render {

/// One message, appended to a string field by field. Fields with the default value are left out, as proto3 has it, but for those
/// marked `optional` there: present() writes them whatever they are.
class Message {
  public:
    explicit Message(std::string &out) : out_(out) {}

    Message &number(uint32_t field, uint64_t value) { return value ? present(field, value) : *this; }
    Message &present(uint32_t field, uint64_t value) {
        varint(uint64_t{field} << 3);
        varint(value);
        return *this;
    }
    /// sint64: zigzag.
    Message &signed_number(uint32_t field, int64_t value) {
        return present(field, static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
    }
    Message &fixed64(uint32_t field, uint64_t value) {
        varint(uint64_t{field} << 3 | 1);
        for (int i = 0; i < 8; ++i) out_ += static_cast<char>(value >> 8 * i);
        return *this;
    }
    Message &bytes(uint32_t field, std::string_view value) {
        varint(uint64_t{field} << 3 | 2);
        varint(value.size());
        out_ += value;
        return *this;
    }
    /// A proto3 string: valid UTF-8, other bytes replaced by U+FFFD. Empty ones are left out.
    Message &text(uint32_t field, std::string_view value);
    /// A message within, made by `fill(Message &)`.
    template <class Fill> Message &message(uint32_t field, Fill &&fill) {
        std::string inner;
        Message one(inner);
        fill(one);
        return bytes(field, inner);
    }
    void varint(uint64_t value) {
        for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
        out_ += static_cast<char>(value);
    }

  private:
    std::string &out_;
};

} // namespace rawbpf::inline v0::render
