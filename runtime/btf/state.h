// What parse() keeps about a BTF. Private to this room: btf.cpp fills it, find.cpp searches with it.
#pragma once

#include <array>

#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::btf {

inline constexpr uint32_t kTypeHeader = 12; // name_off, info, size or type

/// How long a type is: kTypeHeader, then `fixed` bytes, then `each` bytes for every one of vlen.
struct KindSize {
    uint32_t fixed = 0;
    uint32_t each = 0;
};
/// In `fixed`: nothing is known about this kind. Larger than any type section, so that the bounds check catches it.
inline constexpr uint32_t kUnknownSize = 0xffffffff;

// How far a pass over types or strings asks for bytes ahead of itself. The processor's own guesses end with each page; this
// halves the time of a pass over memory that isn't in its caches (1.4 to 0.7 ms for the walk over a kernel's types).
inline constexpr size_t kAhead = 2048;

// info: | 31 kind_flag | 30..24 kind | 23..0 vlen |. Before Linux 7.2 vlen had 16 bits and kind 5; the rest was zero.
inline constexpr uint32_t kind_in(uint32_t info) { return info >> 24 & 0x7f; }
inline constexpr uint32_t vlen_in(uint32_t info) { return info & 0xffffff; }

struct Btf::State {
    std::string name;
    Bytes bytes;
    std::shared_ptr<const State> base;
    bool swap = false;
    bool sorted = false;

    const std::byte *types = nullptr;
    uint32_t types_size = 0;
    uint64_t types_at = 0; // in bytes, for messages
    Bytes strings;
    uint32_t strings_start = 0; // of a split BTF: the base's end

    TypeId first = 1, end = 1;
    uint32_t shift = 0; // index[i] is the offset of type first + (i << shift)
    std::vector<uint32_t> index;
    std::array<KindSize, 128> sizes;

    [[nodiscard]] uint32_t word(const std::byte *at) const {
        uint32_t value = load<uint32_t>(at);
        return swap ? byte_swap(value) : value;
    }
    [[nodiscard]] uint32_t size_at(const std::byte *type) const {
        uint32_t info = word(type + 4);
        KindSize size = sizes[kind_in(info)];
        return kTypeHeader + size.fixed + size.each * vlen_in(info);
    }
    /// The bytes of one of this BTF's own types.
    [[nodiscard]] const std::byte *locate(TypeId id) const {
        uint32_t number = id - first;
        const std::byte *at = types + index[number >> shift];
        for (uint32_t step = number & ((1u << shift) - 1); step > 0; --step) at += size_at(at);
        return at;
    }
    [[nodiscard]] uint32_t strings_end() const { return strings_start + static_cast<uint32_t>(strings.size()); }
    /// nullopt outside the strings. The last byte of every string section is a NUL.
    [[nodiscard]] std::optional<std::string_view> string_at(uint32_t offset) const {
        if (offset == 0) return std::string_view();
        if (offset < strings_start) return base->string_at(offset);
        if (offset - strings_start >= strings.size()) return std::nullopt;
        return std::string_view(reinterpret_cast<const char *>(strings.data()) + (offset - strings_start));
    }
    /// The name of one of this BTF's own types; empty where it is broken.
    [[nodiscard]] std::string_view name_at(const std::byte *type) const {
        return string_at(word(type)).value_or(std::string_view());
    }
};

} // namespace rawbpf::inline v0::btf
