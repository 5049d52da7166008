// What Go's values look like to who reads them.
//
//      []int{1, 2, 3}          [3]{1, 2, 3}       of long ones the first, and "..."
//      errors.New("no")        *errors.errorString("no")
//      any(7)                  int(7)
//      (*T)(p) as a Stringer   *main.T(0xc000012345)
//
// A type's description, in the file (internal/abi/type.go; the same since Go 1.14):
//
//      0 size  8 pointers  16 hash  20 flags  23 kind  24 equal  32 gc  40 NAME (32 bits, from runtime.types on)  44 ...
//      name:   | flags | length (varint) | text |             flags & 2 of the type: one `*` too many in front of it
#include "programs/trace/go_values.h"

#include <algorithm>
#include <bit>

#include <elf.h>

#include "runtime/base/format.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr uint64_t kMostName = 256;

std::string_view text_at(Bytes bytes, size_t from, size_t size) {
    return {reinterpret_cast<const char *>(bytes.data()) + from, size};
}

Decoded number_of(uint64_t value, bool is_signed) {
    Decoded out;
    out.kind = Decoded::Kind::number;
    out.negative = is_signed && static_cast<int64_t>(value) < 0;
    out.number = out.negative ? -value : value;
    return out;
}

Decoded element_of(const Type &type, const std::byte *at) {
    const uint32_t size = type.length;
    uint64_t raw = 0;
    for (uint32_t i = 0; i < size; ++i) raw |= uint64_t{static_cast<uint8_t>(at[i])} << (8 * i);
    if (type.element == Show::integer) {
        if (type.is_signed && size < 8)
            raw = static_cast<uint64_t>(static_cast<int64_t>(raw << (64 - 8 * size)) >> (64 - 8 * size));
        return number_of(raw, type.is_signed);
    }
    Decoded out;
    out.number = raw;
    switch (type.element) {
    case Show::boolean:
        out.kind = Decoded::Kind::truth;
        out.number = raw != 0;
        break;
    case Show::real:
        out.kind = Decoded::Kind::real;
        out.real = size == 4 ? double(std::bit_cast<float>(static_cast<uint32_t>(raw))) : std::bit_cast<double>(raw);
        break;
    default: out.kind = Decoded::Kind::address;
    }
    return out;
}

// One of a slice of strings.
Decoded string_of(Bytes copied, size_t index) {
    const auto address = load<uint64_t>(copied.data() + 8 + 16 * index), length = load<uint64_t>(copied.data() + 16 + 16 * index);
    const uint32_t room = go_string_room(static_cast<uint32_t>(copied.size()));
    Decoded out;
    out.number = address;
    out.kind = length == UINT64_MAX ? Decoded::Kind::unreadable : Decoded::Kind::text;
    if (out.kind == Decoded::Kind::unreadable) return out;
    out.text = text_at(copied, kGoStringsText + index * room, std::min<uint64_t>(length, room));
    out.cut = length > room;
    return out;
}

struct Integer {
    std::string_view name;
    uint8_t size;
    bool is_signed;
};
constexpr Integer kIntegers[] = {
    {"int", 8, true},      {"int64", 8, true},          {"int32", 4, true},         {"int16", 2, true},   {"int8", 1, true},
    {"uint", 8, false},    {"uint64", 8, false},        {"uint32", 4, false},       {"uint16", 2, false}, {"uint8", 1, false},
    {"uintptr", 8, false}, {"syscall.Errno", 8, false}, {"time.Duration", 8, true},
};

// Values whose text is where `data` points: a string, or a structure that begins with one.
constexpr std::string_view kTexts[] = {"string",          "*errors.errorString", "*fmt.wrapError",
                                       "*fmt.wrapErrors", "*poll.errNetClosing", "*strings.Builder"};

} // namespace

Decoded decode_go_slice(const Type &type, uint64_t raw, Bytes copied) {
    Decoded out;
    out.kind = Decoded::Kind::list;
    out.number = raw;
    if (copied.size() < 8) {
        out.kind = Decoded::Kind::unreadable;
        return out;
    }
    out.length = load<uint64_t>(copied.data());
    if (type.element == Show::counted) {
        for (size_t i = 0; i < std::min<uint64_t>(out.length, kGoStrings) && copied.size() > kGoStringsText; ++i)
            out.parts.push_back(string_of(copied, i));
        out.cut = out.length > out.parts.size();
        if (out.cut) append_text(out.name, out);
        return out;
    }
    const size_t shown = type.length ? (copied.size() - 8) / type.length : 0;
    for (size_t i = 0; i < shown; ++i) out.parts.push_back(element_of(type, copied.data() + 8 + i * type.length));
    out.cut = out.length > shown;
    if (out.cut) append_text(out.name, out);
    return out;
}

Decoded decode_go_interface(Bytes copied, std::string_view type_name) {
    Decoded out;
    if (copied.size() < kGoInterfaceText) {
        out.kind = Decoded::Kind::unreadable;
        return out;
    }
    const auto type = load<uint64_t>(copied.data()), data = load<uint64_t>(copied.data() + 8);
    if (type == 0) {
        out.kind = Decoded::Kind::nil;
        return out;
    }
    out.kind = Decoded::Kind::words;
    if (type_name.empty())
        append(out.text, "type {:#x}", type);
    else
        out.text = type_name;
    out.text += '(';
    for (const std::string_view name : kTexts)
        if (name == type_name) {
            Decoded text;
            text.kind = Decoded::Kind::text;
            text.text = text_at(copied, kGoInterfaceText, copied.size() - kGoInterfaceText);
            text.cut = load<uint64_t>(copied.data() + 24) > text.text.size();
            append_text(out.text, text);
            out.text += ')';
            return out;
        }
    for (const Integer &row : kIntegers)
        if (row.name == type_name) {
            Type element{"", Show::go_slice, 8, row.is_signed};
            element.length = row.size;
            element.element = Show::integer;
            append_text(out.text, element_of(element, copied.data() + 16));
            out.text += ')';
            return out;
        }
    append(out.text, "{:#x})", data);
    return out;
}

// --- Names of types

GoTypeNames::GoTypeNames(const elf::Elf &elf, Bytes image) : elf_(elf), image_(image) {
    for (const elf::Section &section : elf.sections()) {
        if (section.type != SHT_SYMTAB) continue;
        const Result<elf::SymbolTable> symbols = elf.symbol_table(section);
        for (size_t i = 0; symbols && i < symbols->size() && types_ == 0; ++i) {
            const Result<std::string_view> name = symbols->name(i);
            if (name && *name == "runtime.types") types_ = symbols->at(i).value;
        }
    }
    // Of a stripped one: they have a section of their own since Go 1.26, before that the linker puts them first.
    for (const std::string_view name : {".go.type", ".data.rel.ro.go.type", elf.type() == ET_EXEC ? ".rodata" : ".data.rel.ro"})
        if (const elf::Section *section = types_ == 0 ? elf.find_section(name) : nullptr) types_ = section->address;
}

Bytes GoTypeNames::at(uint64_t address, uint64_t size) const {
    const std::optional<uint64_t> offset = elf_.file_offset(address);
    if (!offset || *offset > image_.size() || image_.size() - *offset < size) return {};
    return image_.subspan(*offset, size);
}

std::string GoTypeNames::name(uint64_t address) const {
    if (types_ == 0 || address < types_) return {};
    const Bytes type = at(address, 48);
    if (type.empty()) return {};
    const auto flags = static_cast<uint8_t>(type[20]);
    const uint64_t where = types_ + load<uint32_t>(type.data() + 40);
    const Bytes head = at(where, 3);
    if (head.empty() || static_cast<uint8_t>(head[0]) > 15) return {};
    uint64_t size = static_cast<uint8_t>(head[1]);
    uint64_t from = 2;
    if (size & 0x80) {
        size = (size & 0x7f) | uint64_t{static_cast<uint8_t>(head[2])} << 7;
        from = 3;
    }
    if (size == 0 || size > kMostName) return {};
    const Bytes text = at(where + from, size);
    if (text.empty()) return {};
    std::string out(text_at(text, 0, size));
    for (const char c : out)
        if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f) return {};
    if ((flags & 2) && out.starts_with('*')) out.erase(0, 1); // tflagExtraStar
    return out;
}

} // namespace rawbpf::inline v0::trace
