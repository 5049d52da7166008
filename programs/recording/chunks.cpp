#include "programs/recording/chunks.h"

#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/symbols/long_names.h"

namespace rawbpf::inline v0::recording {

void put(std::string &out, uint64_t value) {
    for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
    out.push_back(static_cast<char>(value));
}
void put_signed(std::string &out, int64_t value) {
    put(out, static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}
void put(std::string &out, std::string_view text) {
    put(out, uint64_t{text.size()});
    out.append(text);
}
void put_reference(std::string &out, uint32_t id) { put(out, id == processes::kNone ? 0 : uint64_t{id} + 1); }
void put_counts(std::string &out, const Counted &counts) {
    put(out, uint64_t{counts.size()});
    for (const auto &[name, count] : counts) {
        put(out, std::string_view(name));
        put(out, count);
    }
}

Result<uint64_t> Cursor::number() {
    uint64_t value = 0;
    const size_t at = in.offset();
    for (int shift = 0; shift < 64; shift += 7) {
        const uint8_t byte = TRY(in.read<uint8_t>());
        if (shift == 63 && byte > 1) break;
        value |= uint64_t{byte & 0x7fu} << shift;
        if (byte < 0x80) return value;
    }
    return Unexpected(in.error_at(at, "a number of more than 64 bits"));
}

Result<uint32_t> Cursor::number_32() {
    const size_t at = in.offset();
    const uint64_t value = TRY(number());
    if (value > UINT32_MAX) return Unexpected(in.error_at(at, format("{} is more than 32 bits", value)));
    return static_cast<uint32_t>(value);
}

Result<int64_t> Cursor::signed_number() {
    const uint64_t value = TRY(number());
    return static_cast<int64_t>(value >> 1 ^ (0 - (value & 1)));
}

Result<int32_t> Cursor::stack_bytes() {
    const size_t at = in.offset();
    const int64_t value = TRY(signed_number());
    if (value < -4095 || value > int64_t{kDeepest} * 8) return Unexpected(in.error_at(at, format("a stack of {} bytes", value)));
    return static_cast<int32_t>(value);
}

Result<Bytes> Cursor::bytes() {
    const uint64_t size = TRY(number());
    return in.take(size);
}

Result<std::string> Cursor::text() {
    const Bytes whole = TRY(bytes());
    return symbols::within_bound({reinterpret_cast<const char *>(whole.data()), whole.size()});
}

Result<uint32_t> Cursor::id(size_t count, std::string_view what) {
    const size_t at = in.offset();
    const uint64_t value = TRY(number());
    if (value >= count) return Unexpected(in.error_at(at, format("{} {} of {}", what, value, count)));
    return static_cast<uint32_t>(value);
}

Result<uint32_t> Cursor::reference(size_t count, std::string_view what) {
    const uint32_t value = TRY(id(count + 1, what));
    return value == 0 ? processes::kNone : value - 1;
}

Result<Counted> Cursor::counts() {
    Counted out;
    const uint64_t size = TRY(number());
    for (uint64_t i = 0; i < size; ++i) { // each takes two bytes at least, so this ends with the chunk
        std::string name = TRY(text());
        out.emplace_back(std::move(name), TRY(number()));
    }
    return out;
}

Result<bool> Cursor::truth() { return TRY(id(2, "yes or no")) != 0; }

} // namespace rawbpf::inline v0::recording
