// The parts of a header of C that depend on nothing around them.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2") // as c_header.cpp
#endif

#include "runtime/btf/c_header_text.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>

namespace rawbpf::inline v0::btf {
namespace {

constexpr uint64_t kMostPads = 32; // unnamed bit-fields in a row; a wider gap is an array with a name

} // namespace

void append_number(std::string &out, uint64_t value) {
    char digits[24];
    out.append(digits, static_cast<size_t>(std::to_chars(digits, digits + sizeof digits, value).ptr - digits));
}

void append_line(std::string &out, int indent) {
    out += '\n';
    out.append(static_cast<size_t>(indent), '\t');
}

void append_literal(std::string &out, uint64_t value, bool is_signed) {
    const int64_t as_signed = static_cast<int64_t>(value);
    if (!is_signed || as_signed >= 0) {
        append_number(out, value);
        if (value > INT64_MAX)
            out += "ULL";
        else if (value > UINT32_MAX)
            out += "LL";
    } else if (as_signed == INT64_MIN) {
        out += "-9223372036854775807LL - 1"; // C has no literal for it
    } else {
        out += '-';
        append_number(out, static_cast<uint64_t>(-as_signed));
        if (as_signed < INT32_MIN) out += "LL";
    }
}

void append_enum_base(std::string &out, uint32_t size, bool is_signed) {
    out += is_signed ? " : " : " : unsigned ";
    out += size == 1 ? "char" : size == 2 ? "short" : size == 8 ? "long long" : "int";
}

void append_enum_mode(std::string &out, uint32_t size, bool wide) {
    switch (size) {
    case 1: out += " __attribute__((mode(QI)))"; break;
    case 2: out += " __attribute__((mode(HI)))"; break;
    case 8:
        if (!wide) out += " __attribute__((mode(DI)))";
        break;
    default: break;
    }
}

void append_impossible(std::string &out, std::string_view name, uint64_t at, int indent, std::string_view why) {
    append_line(out, indent);
    out += "/* ";
    out += name;
    out += ", bit ";
    append_number(out, at);
    out += ": ";
    out += why;
    out += " */";
}

void append_pad_array(std::string &out, uint64_t at, uint64_t bytes, int indent) {
    append_line(out, indent);
    out += "unsigned char __pad_";
    append_number(out, at);
    out += '[';
    append_number(out, bytes);
    out += "];";
}

void append_pads(std::string &out, uint64_t at, uint64_t end, int indent, uint64_t align, bool packed) {
    struct Unit {
        uint64_t bits;
        std::string_view word;
    };
    constexpr Unit kUnits[] = {{64, "long long: "}, {32, "int: "}, {16, "short: "}, {8, "char: "}};
    const Unit *unit = kUnits;
    while (!packed && unit->bits > align && unit->bits > 8) ++unit;
    if ((end - at) / unit->bits > kMostPads) {
        // As an array, from one byte boundary to another.
        const uint64_t from = round_up(at, 8), to = end / 8 * 8;
        if (from > at) append_pads(out, at, from, indent, align, packed);
        append_pad_array(out, from / 8, (to - from) / 8, indent);
        if (end > to) append_pads(out, to, end, indent, align, packed);
        return;
    }
    while (at < end) {
        const uint64_t bits = std::min(end - at, unit->bits - at % unit->bits);
        append_line(out, indent);
        out += unit->word;
        append_number(out, bits);
        out += ';';
        at += bits;
    }
}

} // namespace rawbpf::inline v0::btf
