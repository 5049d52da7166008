// SPDX-License-Identifier: MIT
// Reads bytes that another program wrote.
//
// Object files, BTF, notes and captures are hostile until proven otherwise. A ByteReader never reads outside its span and
// never assumes alignment. When it refuses, it says where: "profile.o: .BTF: offset 0x1c: needs 12 bytes, and 4 are left".
//
//      bytes:   [ consumed | rest ...                ]
//      base_:    ^ file offset of the first byte, for messages only
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// Bytes that somebody else owns: valid as long as what they lie in.
using Bytes = std::span<const std::byte>;

/// The bytes of a text, or of a plain object in the machine's byte order with its padding. They refer to what was given.
///@{
inline Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
template <class T>
requires std::is_trivially_copyable_v<T> Bytes bytes_of_object(const T &object) { return std::as_bytes(std::span(&object, 1)); }
///@}

/// An integer with its bytes in the opposite order.
template <class T> [[nodiscard]] constexpr T byte_swap(T value) {
    static_assert(std::is_integral_v<T>);
    if constexpr (sizeof(T) == 1)
        return value;
    else if constexpr (sizeof(T) == 2)
        return static_cast<T>(__builtin_bswap16(static_cast<uint16_t>(value)));
    else if constexpr (sizeof(T) == 4)
        return static_cast<T>(__builtin_bswap32(static_cast<uint32_t>(value)));
    else
        return static_cast<T>(__builtin_bswap64(static_cast<uint64_t>(value)));
}

/// An unaligned load in host order. The caller has checked the bounds.
template <class T> [[nodiscard]] T load(const std::byte *at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

/// A bounds-checked cursor over bytes; errors carry `what` and the offset.
class ByteReader {
  public:
    /// `what` names the bytes in messages ("profile.o: .BTF"); `base` is added to the offsets shown. `swap`: the file has the
    /// other byte order. The bytes must outlive the reader; `what` is copied.
    ByteReader(Bytes bytes, std::string_view what, uint64_t base = 0, bool swap = false)
        : bytes_(bytes), what_(what), base_(base), swap_(swap) {}

    /// Bytes read so far, without `base`.
    [[nodiscard]] size_t offset() const { return offset_; }
    /// Bytes not yet read.
    [[nodiscard]] size_t left() const { return bytes_.size() - offset_; }
    /// True at the end.
    [[nodiscard]] bool done() const { return left() == 0; }
    /// All bytes, from the beginning, whatever has been read.
    [[nodiscard]] Bytes all() const { return bytes_; }

    // Errors of all of these: bad_input, with the offset. What failed has not moved the reader.

    /// The next integer, converted from the file's byte order. Error: bad_input where too few bytes are left.
    template <class T> [[nodiscard]] Result<T> read() {
        static_assert(std::is_integral_v<T>);
        if (left() < sizeof(T)) return Unexpected(short_of(sizeof(T)));
        T value = load<T>(bytes_.data() + offset_);
        offset_ += sizeof(T);
        return swap_ ? byte_swap(value) : value;
    }
    /// The next plain struct, as it lies there (not byte-swapped). Error: bad_input where too few bytes are left.
    template <class T> [[nodiscard]] Result<T> read_struct() {
        static_assert(std::is_trivially_copyable_v<T>);
        if (left() < sizeof(T)) return Unexpected(short_of(sizeof(T)));
        T value = load<T>(bytes_.data() + offset_);
        offset_ += sizeof(T);
        return value;
    }
    /// The next `size` bytes, which are not copied. Error: bad_input where too few bytes are left.
    [[nodiscard]] Result<Bytes> take(uint64_t size) {
        if (left() < size) return Unexpected(short_of(size));
        Bytes part = bytes_.subspan(offset_, size);
        offset_ += size;
        return part;
    }
    /// Moves `size` bytes on. Error: bad_input where too few bytes are left.
    [[nodiscard]] Result<void> skip(uint64_t size) {
        Result<Bytes> skipped = take(size);
        if (!skipped) return std::move(skipped).failure();
        return {};
    }
    /// Moves to an offset from the beginning, without `base`; the end is allowed. Error: bad_input past the end.
    [[nodiscard]] Result<void> seek(uint64_t offset) {
        if (offset > bytes_.size()) return Unexpected(error_at(offset, "is past the end"));
        offset_ = offset;
        return {};
    }
    /// The NUL-terminated string here, without its NUL; not copied. Moves behind the NUL. Error: bad_input where there is no NUL.
    [[nodiscard]] Result<std::string_view> c_string() {
        const char *start = reinterpret_cast<const char *>(bytes_.data()) + offset_;
        const void *end = left() ? std::memchr(start, 0, left()) : nullptr;
        if (!end) return Unexpected(error_at(offset_, "string has no end"));
        std::string_view text(start, static_cast<const char *>(end) - start);
        offset_ += text.size() + 1;
        return text;
    }
    /// Moves up to the next multiple of `alignment` (a power of two), or to the end.
    void align(size_t alignment) { offset_ = std::min(bytes_.size(), (offset_ + alignment - 1) & ~(alignment - 1)); }

    /// A bad_input error with the text "WHAT: offset 0x1c: PROBLEM"; `base` is added to the offset.
    [[nodiscard]] Error error_at(uint64_t offset, std::string_view problem) const;

  private:
    [[nodiscard]] Error short_of(uint64_t size) const;
    Bytes bytes_;
    std::string what_;
    uint64_t base_;
    size_t offset_ = 0;
    bool swap_;
};

} // namespace rawbpf::inline v0
