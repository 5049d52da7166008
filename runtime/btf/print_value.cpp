// A value is walked with its type: the type says what the next bytes are, the bytes say which text.
//
//      struct { u32 pid; char comm[16]; u64 hits[64]; }      ->      {.pid = 12, .comm = "bash", .hits = {[3] = 7}}
//
// Two decisions for people: an array of char is text when it reads as text (printable, zeros only at its end), and a longer array
// that is mostly zero shows the elements that aren't, by index, as C lets one write it. JSON gets every element, since scripts
// count.
//
// Types may be hostile: depth is bounded, and so is the text. An element of size zero would go on for ever and is an error.
#include "runtime/btf/print_value.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0::btf {
namespace {

constexpr int kMaxDepth = 32;
constexpr size_t kMaxText = 4 << 20;
constexpr size_t kMaxSteps = 2'000'000;
constexpr uint32_t kSparse = 8;         // arrays longer than this may be shown by their elements that aren't zero
constexpr uint64_t kExact = 1ULL << 53; // JSON readers keep numbers as doubles

bool all_zero(Bytes bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

// Printable ASCII and UTF-8's bytes, with nothing but zeros behind the first zero.
bool reads_as_text(Bytes bytes) {
    size_t n = 0;
    for (; n < bytes.size() && bytes[n] != std::byte{0}; ++n) {
        auto c = static_cast<unsigned char>(bytes[n]);
        if ((c < 0x20 && c != '\n' && c != '\t') || c >= 0x7f) return false;
    }
    return n > 0 && all_zero(bytes.subspan(n));
}

void append_text(std::string &out, Bytes bytes) {
    out += '"';
    for (std::byte b : bytes) {
        char c = static_cast<char>(b);
        if (c == 0) break;
        if (c == '"' || c == '\\')
            append(out, "\\{}", c);
        else if (c == '\n')
            out += "\\n";
        else if (c == '\t')
            out += "\\t";
        else
            out += c;
    }
    out += '"';
}

// A name out of BTF as JSON's key or C's member: identifiers, but files may be hostile.
std::string clean(std::string_view name) {
    std::string out;
    for (char c : name) out += (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') ? c : '?';
    return out;
}

class ValuePrinter {
  public:
    ValuePrinter(std::string &into, const Btf &btf, ValueStyle style)
        : out(into), btf_(btf), start_(into.size()), json_(style == ValueStyle::json) {}

    Result<void> value(TypeId id, Bytes bytes, int depth) {
        if (depth > kMaxDepth) return fail(Errc::bad_input, "{}: type {} is nested too deeply", btf_.name(), id);
        TRY(step());
        if (out.size() - start_ > kMaxText)
            return fail(Errc::bad_input, "{}: the text of a value has more than {} bytes", btf_.name(), kMaxText);
        Type type = TRY(btf_.resolve(id));
        switch (type.kind) {
        case Kind::int_: return integer(type, bytes);
        case Kind::enum_:
        case Kind::enum64: return enumerator(type, bytes);
        case Kind::ptr: return pointer(bytes);
        case Kind::float_: return floating(type, bytes);
        case Kind::array: return array(type, bytes, depth);
        case Kind::struct_:
        case Kind::union_: return members(type, bytes, depth);
        default: append_untyped(out, bytes, json_ ? ValueStyle::json : ValueStyle::c); return {};
        }
    }
    std::string &out;

  private:
    // Members of anonymous members multiply, and need no text to do so.
    Result<void> step() {
        if (++steps_ > kMaxSteps)
            return fail(Errc::bad_input, "{}: a type has more than {} parts in all", btf_.name(), kMaxSteps);
        return {};
    }
    Result<Bytes> take(Bytes bytes, uint64_t size, const Type &type) {
        if (size > bytes.size())
            return fail(Errc::bad_input, "{}: type {} ({}) needs {} bytes, and there are {}", btf_.name(), type.id, type.name,
                        size, bytes.size());
        return bytes.first(size);
    }
    void number(uint64_t value, bool negative) {
        if (json_ && value > kExact)
            append(out, "\"{}{}\"", negative ? "-" : "", value);
        else
            append(out, "{}{}", negative ? "-" : "", value);
    }
    // `bits` bits of a value as a number, signed or not, a character or a truth.
    void scalar(uint64_t value, unsigned bits, const IntEncoding &encoding) {
        if (encoding.is_bool && value <= 1) {
            out += value ? "true" : "false";
            return;
        }
        if (encoding.is_signed && bits > 0 && bits <= 64 && value >> (bits - 1) & 1) {
            uint64_t magnitude = ~value + 1;
            if (bits < 64) magnitude &= (uint64_t{1} << bits) - 1;
            number(magnitude, true);
            return;
        }
        number(value, false);
    }
    static uint64_t load_up_to_8(Bytes bytes) {
        uint64_t value = 0;
        std::memcpy(&value, bytes.data(), std::min<size_t>(bytes.size(), 8)); // little-endian, as the programs we run are
        return value;
    }
    Result<void> integer(const Type &type, Bytes given) {
        Bytes bytes = TRY(take(given, type.size_or_type, type));
        if (bytes.size() > 8) {
            out += json_ ? "\"0x" : "0x";
            for (size_t i = bytes.size(); i-- > 0;) append(out, "{:02x}", static_cast<unsigned>(bytes[i]));
            if (json_) out += '"';
            return {};
        }
        IntEncoding encoding = btf_.int_encoding(type);
        unsigned bits = std::min<unsigned>(encoding.bits ? encoding.bits : static_cast<unsigned>(bytes.size() * 8), 64);
        uint64_t value = load_up_to_8(bytes);
        value = encoding.bit_offset < 64 ? value >> encoding.bit_offset : 0;
        if (bits < 64) value &= (uint64_t{1} << bits) - 1;
        scalar(value, bits, encoding);
        return {};
    }
    Result<void> enumerator(const Type &type, Bytes given) {
        Bytes bytes = TRY(take(given, type.size_or_type, type));
        if (bytes.empty() || bytes.size() > 8)
            return fail(Errc::bad_input, "{}: enum {} has {} bytes, and 1 to 8 are possible", btf_.name(), type.name,
                        bytes.size());
        return named(type, load_up_to_8(bytes), static_cast<unsigned>(bytes.size() * 8));
    }
    Result<void> named(const Type &type, uint64_t value, unsigned bits) {
        const uint64_t mask = bits < 64 ? (uint64_t{1} << bits) - 1 : ~uint64_t{0};
        for (uint32_t i = 0; i < type.vlen; ++i) {
            TRY(step());
            EnumValue one = TRY(btf_.enum_value(type, i));
            if ((one.value & mask) != (value & mask)) continue;
            append(out, "{0}{1}{0}", json_ ? "\"" : "", clean(one.name));
            return {};
        }
        IntEncoding encoding;
        encoding.is_signed = type.kind_flag;
        scalar(value & mask, bits, encoding);
        return {};
    }
    Result<void> pointer(Bytes bytes) {
        if (bytes.size() < 8)
            return fail(Errc::bad_input, "{}: a pointer needs 8 bytes, and there are {}", btf_.name(), bytes.size());
        append(out, "{0}{1:#x}{0}", json_ ? "\"" : "", load<uint64_t>(bytes.data()));
        return {};
    }
    Result<void> floating(const Type &type, Bytes given) {
        Bytes bytes = TRY(take(given, type.size_or_type, type));
        double value;
        if (bytes.size() == 4)
            value = load<float>(bytes.data());
        else if (bytes.size() == 8)
            value = load<double>(bytes.data());
        else {
            append_untyped(out, bytes, json_ ? ValueStyle::json : ValueStyle::c);
            return {};
        }
        if (json_ && !std::isfinite(value))
            out += "null";
        else
            append(out, "{}", value);
        return {};
    }
    bool is_character(const Type &type) {
        if (type.kind != Kind::int_ || type.size_or_type != 1) return false;
        IntEncoding encoding = btf_.int_encoding(type);
        // clang gives char no CHAR bit, but signedness and the name.
        return encoding.is_char || type.name == "char" || type.name == "signed char";
    }
    Result<void> array(const Type &type, Bytes given, int depth) {
        Array shape = btf_.array(type);
        uint64_t size = TRY(btf_.size_of(shape.element));
        uint64_t count = shape.count;
        if (size == 0 && count > 0)
            return fail(Errc::bad_input, "{}: the elements of array {} have no size", btf_.name(), type.id);
        if (count == 0) count = size ? given.size() / size : 0; // a flexible array takes what is left
        uint64_t whole = 0;
        if (__builtin_mul_overflow(size, count, &whole)) whole = UINT64_MAX;
        Bytes bytes = TRY(take(given, whole, type));
        Type element = TRY(btf_.resolve(shape.element));
        if (is_character(element) && (reads_as_text(bytes) || (all_zero(bytes) && !bytes.empty()))) {
            append_text(out, bytes);
            return {};
        }
        bool sparse = false;
        if (!json_ && count > kSparse) {
            uint64_t zeros = 0;
            for (uint64_t i = 0; i < count; ++i) zeros += all_zero(bytes.subspan(i * size, size));
            sparse = zeros * 2 > count;
        }
        out += json_ ? '[' : '{';
        bool first = true;
        for (uint64_t i = 0; i < count; ++i) {
            Bytes one = bytes.subspan(i * size, size);
            if (sparse && all_zero(one)) continue;
            if (!first) out += json_ ? "," : ", ";
            first = false;
            if (sparse) append(out, "[{}] = ", i);
            TRY(value(shape.element, one, depth + 1));
        }
        out += json_ ? ']' : '}';
        return {};
    }
    Result<void> members(const Type &type, Bytes given, int depth) {
        Bytes bytes = TRY(take(given, type.size_or_type, type));
        out += '{';
        bool first = true;
        TRY(each_member(type, bytes, depth, first));
        out += '}';
        return {};
    }
    Result<void> each_member(const Type &type, Bytes bytes, int depth, bool &first) {
        if (depth > kMaxDepth) return fail(Errc::bad_input, "{}: type {} is nested too deeply", btf_.name(), type.id);
        for (uint32_t i = 0; i < type.vlen; ++i) {
            TRY(step());
            Member member = TRY(btf_.member(type, i));
            Type inner = TRY(btf_.resolve(member.type));
            if (member.bit_offset / 8 > bytes.size())
                return fail(Errc::bad_input, "{}: member {} of {} is outside of it", btf_.name(), member.name, type.name);
            Bytes at = bytes.subspan(member.bit_offset / 8);
            const bool composite = inner.kind == Kind::struct_ || inner.kind == Kind::union_;
            if (member.name.empty() && composite) { // its members are reached as if they were ours
                TRY(each_member(inner, TRY(take(at, inner.size_or_type, inner)), depth + 1, first));
                continue;
            }
            if (member.name.empty()) continue; // padding
            if (!first) out += json_ ? "," : ", ";
            first = false;
            append(out, "{}{}{}", json_ ? "\"" : ".", clean(member.name), json_ ? "\":" : " = ");
            if (member.bit_size != 0)
                TRY(bitfield(member, inner, bytes));
            else if (inner.kind == Kind::array && btf_.array(inner).count == 0 && i + 1 == type.vlen)
                out += json_ ? "[]" : "{}"; // a flexible array has no bytes within its struct
            else
                TRY(value(member.type, at, depth + 1));
        }
        return {};
    }
    Result<void> bitfield(const Member &member, const Type &type, Bytes bytes) {
        const uint64_t end = uint64_t{member.bit_offset} + member.bit_size;
        if (member.bit_size > 64 || (end + 7) / 8 > bytes.size())
            return fail(Errc::bad_input, "{}: bitfield {} is outside of its struct", btf_.name(), member.name);
        uint64_t value = 0;
        for (uint32_t bit = 0; bit < member.bit_size; ++bit) {
            uint32_t place = member.bit_offset + bit;
            value |= static_cast<uint64_t>(static_cast<unsigned>(bytes[place / 8]) >> (place % 8) & 1) << bit;
        }
        if (type.kind == Kind::enum_ || type.kind == Kind::enum64) return named(type, value, member.bit_size);
        scalar(value, member.bit_size, type.kind == Kind::int_ ? btf_.int_encoding(type) : IntEncoding{});
        return {};
    }

    const Btf &btf_;
    const size_t start_;
    bool json_;
    size_t steps_ = 0;
};

} // namespace

void append_untyped(std::string &out, Bytes bytes, ValueStyle style) {
    const bool json = style == ValueStyle::json;
    if (bytes.size() == 1 || bytes.size() == 2 || bytes.size() == 4 || bytes.size() == 8) {
        uint64_t value = 0;
        std::memcpy(&value, bytes.data(), bytes.size());
        if (json && value > kExact)
            append(out, "\"{}\"", value);
        else
            append(out, "{}", value);
        return;
    }
    out += json ? '"' : '{';
    for (size_t i = 0; i < bytes.size(); ++i)
        append(out, "{}{}{:02x}", i == 0 ? "" : json ? " " : ", ", json ? "" : "0x", static_cast<unsigned>(bytes[i]));
    out += json ? '"' : '}';
}

std::string print_untyped(Bytes bytes, ValueStyle style) {
    std::string out;
    append_untyped(out, bytes, style);
    return out;
}

Result<void> append_value(std::string &out, const Btf &btf, TypeId id, Bytes bytes, ValueStyle style) {
    const size_t start = out.size();
    Result<void> done = ValuePrinter(out, btf, style).value(id, bytes, 0);
    if (!done) out.resize(start);
    return done;
}

Result<std::string> print_value(const Btf &btf, TypeId id, Bytes bytes, ValueStyle style) {
    std::string out;
    TRY(append_value(out, btf, id, bytes, style));
    return out;
}

} // namespace rawbpf::inline v0::btf
