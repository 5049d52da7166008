// The opposite of print_value.cpp, for one value at a time.
//
//      u32 pid                 1234  0x4d2  'a'          what doesn't fit is refused: 300 is no __u8, -1 no unsigned
//      bool on                 true
//      enum mode mode          STRICT                    by name, or by number
//      char comm[16]           bash  "bash"              with room for the zero at its end
//      u16 ports[4]            80,443                    the rest becomes zero
//      struct config c         {.limits = {1, 2}, .mode.on = true}     the rest becomes zero; or member by member: c.limits[2]=5
//
// Types come from a file and may be hostile: depth is bounded, and nothing is written past `bytes`.
#include "runtime/btf/parse_value.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/base/fail.h"
#include "runtime/base/numbers.h"
#include "runtime/btf/print_c.h"

namespace rawbpf::inline v0::btf {
namespace {

constexpr int kMaxDepth = 32;

struct Number {
    uint64_t bits = 0;
    bool negative = false;
};

std::optional<Number> read_number(std::string_view text) {
    if (text.size() == 3 && text.front() == '\'' && text.back() == '\'') return Number{static_cast<unsigned char>(text[1])};
    Number out;
    if (text.starts_with('-')) {
        out.negative = true;
        text.remove_prefix(1);
    } else if (text.starts_with('+')) {
        text.remove_prefix(1);
    }
    int base = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) {
        base = 16;
        text.remove_prefix(2);
    }
    if (!parse_whole(text, out.bits, base)) return std::nullopt;
    if (out.negative && out.bits > uint64_t{1} << 63) return std::nullopt;
    if (out.bits == 0) out.negative = false;
    return out;
}

class Parser {
  public:
    explicit Parser(const Btf &btf) : btf_(btf) {}

    Result<void> parse(TypeId id, std::string_view text, std::span<std::byte> bytes, int depth) {
        if (depth == 0) return fail(Errc::bad_input, "type {} of {} is nested more than {} deep", id, btf_.name(), kMaxDepth);
        const Type type = TRY(btf_.resolve(id));
        const uint64_t size = TRY(btf_.size_of(type.id));
        if (size != bytes.size())
            return fail(Errc::bad_input, "{}: {} bytes were given for a type of {}", btf_.name(), bytes.size(), size);
        switch (type.kind) {
        case Kind::int_: return integer(id, type, text, bytes);
        case Kind::ptr: return store(id, text, false, bytes);
        case Kind::enum_:
        case Kind::enum64: return enumerator(id, type, text, bytes);
        case Kind::array: return elements(id, type, text, bytes, depth);
        case Kind::struct_:
        case Kind::union_: return members(id, text, bytes, depth);
        default: return fail(Errc::unsupported, "rawbpf can't read a value of type {} from text", shown(id));
        }
    }

  private:
    [[nodiscard]] std::string shown(TypeId id) const { return describe(btf_, id); }
    Unexpected no_value(TypeId id, std::string_view text, std::string_view wanted) const {
        return fail(Errc::invalid_argument, "\"{}\" isn't a value of type {}: {}", text.substr(0, 64), shown(id), wanted);
    }

    Result<void> integer(TypeId id, const Type &type, std::string_view text, std::span<std::byte> bytes) {
        const IntEncoding encoding = btf_.int_encoding(type);
        if (encoding.is_bool) {
            if (text == "true" || text == "false") text = text == "true" ? "1" : "0";
            if (text != "0" && text != "1") return no_value(id, text, "give true or false");
        }
        return store(id, text, encoding.is_signed, bytes);
    }

    Result<void> store(TypeId id, std::string_view text, bool is_signed, std::span<std::byte> bytes) {
        const std::optional<Number> number = read_number(text);
        if (!number || bytes.size() > 8) return no_value(id, text, "give a whole number");
        const uint32_t bits = static_cast<uint32_t>(bytes.size() * 8);
        const uint64_t most = ~uint64_t{0} >> (64 - bits), most_signed = most >> 1;
        // A number in hex may be meant as bits: 0xffffffff is an int, too.
        const bool as_bits = text.starts_with("0x") || text.starts_with("0X");
        const bool fits = number->negative ? is_signed && number->bits <= most_signed + 1
                                           : number->bits <= (is_signed && !as_bits ? most_signed : most);
        if (!fits)
            return no_value(id, text,
                            is_signed ? format("give -{} to {}", most_signed + 1, most_signed) : format("give 0 to {}", most));
        const uint64_t value = number->negative ? 0 - number->bits : number->bits;
        std::memcpy(bytes.data(), reinterpret_cast<const char *>(&value) + low_bytes(bytes.size()), bytes.size());
        return {};
    }
    static constexpr size_t low_bytes(size_t size) {
        return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : sizeof(uint64_t) - size;
    }

    Result<void> enumerator(TypeId id, const Type &type, std::string_view text, std::span<std::byte> bytes) {
        std::string names;
        for (uint32_t i = 0; i < type.vlen; ++i) {
            const EnumValue value = TRY(btf_.enum_value(type, i));
            if (value.name == text) {
                std::memcpy(bytes.data(), reinterpret_cast<const char *>(&value.value) + low_bytes(bytes.size()),
                            std::min(bytes.size(), sizeof value.value));
                return {};
            }
            if (i < 8) append(names, "{}{}", i ? ", " : "", value.name);
        }
        if (!read_number(text)) return no_value(id, text, format("give one of {}{}", names, type.vlen > 8 ? ", ..." : ""));
        return store(id, text, true, bytes).has_value() ? Result<void>() : store(id, text, false, bytes);
    }

    Result<void> elements(TypeId id, const Type &type, std::string_view text, std::span<std::byte> bytes, int depth) {
        const Array array = btf_.array(type);
        const Type element = TRY(btf_.resolve(array.element));
        const uint64_t size = TRY(btf_.size_of(array.element));
        if (size == 0) return fail(Errc::unsupported, "rawbpf can't read a value of type {} from text", shown(id));
        const bool letters = element.kind == Kind::int_ && size == 1 &&
                             (btf_.int_encoding(element).is_char || element.name == "char" || element.name == "signed char");
        if (letters) return words(id, text, bytes);
        if (text.starts_with('{') && text.ends_with('}')) text = text.substr(1, text.size() - 2);
        std::vector<std::byte> all(bytes.size()); // so that a mistake in the third leaves the first two alone
        uint64_t at = 0;
        while (!text.empty()) {
            const std::string_view one = next_item(text);
            if (at + size > all.size()) return no_value(id, one, format("there are {} elements", array.count));
            TRY(parse(array.element, one, std::span(all).subspan(at, size), depth - 1));
            at += size;
        }
        std::copy(all.begin(), all.end(), bytes.begin());
        return {};
    }

    Result<void> members(TypeId id, std::string_view text, std::span<std::byte> bytes, int depth) {
        if (!text.starts_with('{') || !text.ends_with('}') || text.size() < 2)
            return fail(Errc::invalid_argument,
                        "it is a {}: write {{.MEMBER = VALUE, ...}}, or set its members one by one, as NAME.MEMBER=VALUE",
                        shown(id));
        text = text.substr(1, text.size() - 2);
        std::vector<std::byte> all(bytes.size());
        while (!text.empty()) {
            const std::string_view one = next_item(text);
            const size_t equals = one.find('=');
            if (!one.starts_with('.') || equals == std::string_view::npos)
                return no_value(id, one, "write its members as .MEMBER = VALUE");
            const std::string_view path = trimmed(one.substr(0, equals));
            const ValuePart part = TRY(find_part(btf_, id, path));
            const uint64_t size = TRY(btf_.size_of(part.type));
            if (part.offset > all.size() || size > all.size() - part.offset)
                return fail(Errc::bad_input, "{}: {} is outside of its {} bytes", btf_.name(), path, all.size());
            TRY_IN(parse(part.type, trimmed(one.substr(equals + 1)), std::span(all).subspan(part.offset, size), depth - 1), "{}",
                   path);
        }
        std::copy(all.begin(), all.end(), bytes.begin());
        return {};
    }

    static std::string_view trimmed(std::string_view text) {
        while (text.starts_with(' ')) text.remove_prefix(1);
        while (text.ends_with(' ')) text.remove_suffix(1);
        return text;
    }
    /// Takes what stands before the next comma off the text; commas in quotes and braces are part of it.
    static std::string_view next_item(std::string_view &text) {
        size_t at = 0, open = 0;
        bool quoted = false;
        for (; at < text.size() && (quoted || open != 0 || text[at] != ','); ++at) {
            if (text[at] == '"') quoted = !quoted;
            if (quoted) continue;
            if (text[at] == '{') ++open;
            if (text[at] == '}' && open != 0) --open;
        }
        const std::string_view out = trimmed(text.substr(0, at));
        text.remove_prefix(std::min(at + 1, text.size()));
        return out;
    }

    Result<void> words(TypeId id, std::string_view text, std::span<std::byte> bytes) {
        if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
        if (text.size() >= bytes.size())
            return no_value(
                id, text,
                format("it holds at most {} characters, and a zero byte after them", bytes.empty() ? 0 : bytes.size() - 1));
        std::fill(bytes.begin(), bytes.end(), std::byte{0});
        std::memcpy(bytes.data(), text.data(), text.size());
        return {};
    }

    const Btf &btf_;
};

/// The member of that name, also in anonymous members; nullopt: none.
Result<std::optional<ValuePart>> find_member(const Btf &btf, const Type &type, std::string_view name, int depth) {
    if (depth == 0) return fail(Errc::bad_input, "{}: anonymous members are nested more than {} deep", btf.name(), kMaxDepth);
    for (uint32_t i = 0; i < type.vlen; ++i) {
        const Member member = TRY(btf.member(type, i));
        if (member.name == name) {
            if (member.bit_size != 0 || member.bit_offset % 8 != 0)
                return fail(Errc::unsupported, "{} is a bitfield, and rawbpf can't set a bitfield alone", name);
            return std::optional(ValuePart{member.type, member.bit_offset / 8});
        }
        if (!member.name.empty()) continue;
        const Type inner = TRY(btf.resolve(member.type));
        if (inner.kind != Kind::struct_ && inner.kind != Kind::union_) continue;
        if (std::optional<ValuePart> found = TRY(find_member(btf, inner, name, depth - 1))) {
            found->offset += member.bit_offset / 8;
            return found;
        }
    }
    return std::optional<ValuePart>();
}

/// The names that find_member() finds, the first dozen.
void add_member_names(const Btf &btf, const Type &type, int depth, std::vector<std::string_view> &out) {
    for (uint32_t i = 0; i < type.vlen && depth > 0 && out.size() < 13; ++i) {
        const Result<Member> member = btf.member(type, i);
        if (!member) return;
        if (!member->name.empty()) {
            out.push_back(member->name);
        } else if (const Result<Type> inner = btf.resolve(member->type);
                   inner && (inner->kind == Kind::struct_ || inner->kind == Kind::union_)) {
            add_member_names(btf, *inner, depth - 1, out);
        }
    }
}
std::string member_names(const Btf &btf, const Type &type) {
    std::vector<std::string_view> names;
    add_member_names(btf, type, kMaxDepth, names);
    std::string out;
    for (size_t i = 0; i < std::min<size_t>(names.size(), 12); ++i) append(out, "{}{}", i ? ", " : "", names[i]);
    return out + (names.size() > 12 ? ", ..." : "");
}

} // namespace

Result<ValuePart> find_part(const Btf &btf, TypeId id, std::string_view path) {
    ValuePart part{id, 0};
    while (!path.empty()) {
        const Type type = TRY(btf.resolve(part.type));
        const bool index = path.front() == '[';
        const size_t end = index ? path.find(']') : std::min(path.find_first_of(".[", 1), path.size());
        if (end == std::string_view::npos) return fail(Errc::invalid_argument, "\"{}\" has no closing bracket", path);
        const std::string_view word = path.substr(1, end - 1);
        path.remove_prefix(end + (index ? 1 : 0));
        if (index) {
            if (type.kind != Kind::array)
                return fail(Errc::invalid_argument, "[{}]: {} isn't an array", word, describe(btf, part.type));
            const Array array = btf.array(type);
            const std::optional<Number> number = read_number(word);
            if (!number || number->negative || number->bits >= array.count)
                return fail(Errc::invalid_argument, "[{}]: there are {} elements, counted from 0", word, array.count);
            part = {array.element, part.offset + number->bits * TRY(btf.size_of(array.element))};
            continue;
        }
        if (type.kind != Kind::struct_ && type.kind != Kind::union_)
            return fail(Errc::invalid_argument, ".{}: {} has no members", word, describe(btf, part.type));
        const std::optional<ValuePart> member = word.empty() ? std::nullopt : TRY(find_member(btf, type, word, kMaxDepth));
        if (!member)
            return Unexpected(make_error(Errc::invalid_argument, format("{} has no member {}", describe(btf, part.type), word),
                                         format("its members: {}", member_names(btf, type))));
        part = {member->type, part.offset + member->offset};
    }
    return part;
}

Result<void> parse_value(const Btf &btf, TypeId id, std::string_view text, std::span<std::byte> bytes) {
    return Parser(btf).parse(id, text, bytes, kMaxDepth);
}

} // namespace rawbpf::inline v0::btf
