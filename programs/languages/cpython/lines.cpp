#include "programs/languages/cpython/lines.h"

#include <algorithm>

#include "runtime/symbols/utf8.h"

namespace rawbpf::inline v0::languages::cpython {
namespace {

void append_character(std::string &out, uint32_t c) {
    if (!symbols::append_utf8(out, c)) out += "\ufffd"; // half of a surrogate pair
}

// 6 bits a byte, the low ones first; 0x40: there are more.
std::optional<uint64_t> take_number(Bytes table, size_t &at) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 60; shift += 6) {
        if (at >= table.size()) return std::nullopt;
        const auto byte = static_cast<uint8_t>(table[at++]);
        value |= uint64_t{byte & 0x3fu} << shift;
        if ((byte & 0x40) == 0) return value;
    }
    return std::nullopt;
}
std::optional<int64_t> take_signed(Bytes table, size_t &at) {
    const auto value = take_number(table, at);
    if (!value) return std::nullopt;
    const auto half = static_cast<int64_t>(*value >> 1);
    return *value & 1 ? -half : half;
}

uint32_t as_line(int64_t line) { return line > 0 && line <= INT32_MAX ? static_cast<uint32_t>(line) : 0; }

uint32_t by_locations(Bytes table, int64_t line, uint64_t offset) {
    constexpr unsigned kLong = 14, kNoColumns = 13, kOneLine = 10, kNone = 15;
    uint64_t begin = 0;
    for (size_t at = 0; at < table.size();) {
        const auto first = static_cast<uint8_t>(table[at++]);
        if ((first & 0x80) == 0) return 0;
        const unsigned kind = first >> 3 & 15;
        const uint64_t end = begin + ((first & 7u) + 1) * 2;
        if (kind == kLong) {
            const auto change = take_signed(table, at);
            if (!change || !take_number(table, at) || !take_number(table, at) || !take_number(table, at)) return 0;
            line += *change;
        } else if (kind == kNoColumns) {
            const auto change = take_signed(table, at);
            if (!change) return 0;
            line += *change;
        } else if (kind >= kOneLine && kind < kNoColumns) {
            line += kind - kOneLine;
            at += 2;
        } else if (kind < kOneLine) {
            at += 1;
        }
        if (offset >= begin && offset < end) return kind == kNone ? 0 : as_line(line);
        begin = end;
    }
    return 0;
}

uint32_t by_pairs(Bytes table, bool ranges, int64_t line, uint64_t offset) {
    uint64_t begin = 0;
    bool none = false;
    for (size_t at = 0; at + 1 < table.size(); at += 2) {
        const auto bytes = static_cast<uint8_t>(table[at]);
        const auto change = static_cast<int8_t>(table[at + 1]);
        if (ranges) {
            none = change == -128;
            if (!none) line += change;
            if (offset >= begin && offset < begin + bytes) return none ? 0 : as_line(line);
            begin += bytes;
        } else {
            begin += bytes;
            if (begin > offset) break;
            line += change;
        }
    }
    return ranges ? 0 : as_line(line);
}

} // namespace

std::optional<std::string> string_of(Bytes object, uint32_t head, uint32_t text) {
    const size_t at_state = size_t{head} + 16; // behind its length and its hash
    if (object.size() < at_state + 4) return std::nullopt;
    const auto length = load<uint64_t>(object.data() + head);
    const auto state = load<uint32_t>(object.data() + at_state);
    if (length > UINT32_MAX) return std::nullopt;
    // The kind (1, 2 or 4 bytes a character), compact and ASCII follow `interned`, whose width grew from 2 to 16 bits in 3.14,
    // and is 8 without the lock of the interpreter. Its values are below 4.
    for (const unsigned shift : {2u, 8u, 16u}) {
        const unsigned kind = state >> shift & 7;
        const bool compact = state >> (shift + 3) & 1, ascii = state >> (shift + 4) & 1;
        if (!compact || (kind != 1 && kind != 2 && kind != 4) || (ascii && kind != 1)) continue;
        size_t at = text;
        if (!ascii) at = text + (text >= head + 32 ? 24 : 16); // and its UTF-8, which may be elsewhere
        if (at >= object.size()) return length == 0 ? std::optional(std::string()) : std::nullopt;
        const size_t count = std::min<size_t>(length, (object.size() - at) / kind);
        std::string out;
        for (size_t i = 0; i < count; ++i) {
            const std::byte *from = object.data() + at + i * kind;
            append_character(out, kind == 1   ? static_cast<uint8_t>(*from)
                                  : kind == 2 ? load<uint16_t>(from)
                                              : load<uint32_t>(from));
        }
        if (count < length) out += "...";
        return out;
    }
    return std::nullopt;
}

LineTable line_table_of(const Layout &layout) {
    return layout.code_size != 0 ? LineTable::locations : layout.index_bytes == 2 ? LineTable::ranges : LineTable::pairs;
}

uint32_t line_at(Bytes table, LineTable format, uint32_t first_line, uint64_t offset) {
    if (format == LineTable::locations) return by_locations(table, first_line, offset);
    return by_pairs(table, format == LineTable::ranges, first_line, offset);
}

} // namespace rawbpf::inline v0::languages::cpython
