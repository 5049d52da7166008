// The numbers of HotSpot's streams, as its UNSIGNED5 has them: one to five bytes, the low ones first.
//
//      a byte below 192 ends a number; each counts 64 times as much as the one before it
//      since JDK 19 all bytes are one higher and end below 191, so that no byte is 0
//
// Which of the two a virtual machine has isn't told. But it can be learnt where it matters (lines.h, scopes.h): at its end a
// chain of scopes has the number 0, which is a byte of 0 or of 1; and an instruction's distance from the one before it is never
// negative. PURE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace rawbpf::inline v0::languages::hotspot {

/// Reads a stream from its beginning.
class Numbers {
  public:
    Numbers(std::span<const std::byte> bytes, bool without_zero) : bytes_(bytes), lowest_(without_zero ? 1 : 0) {}

    /// nullopt: the stream ends, or has a byte that can't be.
    [[nodiscard]] std::optional<uint32_t> next() {
        constexpr uint32_t kHigh = 64;
        constexpr int kMost = 5, kBits = 6;
        const uint32_t low = 256 - kHigh - lowest_; // what ends a number
        uint32_t out = 0;
        for (int i = 0; i < kMost; ++i) {
            const auto one = byte();
            if (!one || *one < lowest_) return std::nullopt;
            const uint32_t value = *one - lowest_;
            out += value << (kBits * i);
            if (value < low) break;
        }
        return out;
    }
    /// With a sign, which is the lowest bit.
    [[nodiscard]] std::optional<int32_t> next_signed() {
        const auto value = next();
        if (!value) return std::nullopt;
        return static_cast<int32_t>(*value >> 1 ^ (~(*value & 1) + 1));
    }
    /// As it is.
    [[nodiscard]] std::optional<uint8_t> byte() {
        return at_ < bytes_.size() ? std::optional(std::to_integer<uint8_t>(bytes_[at_++])) : std::nullopt;
    }
    /// The next one, which stays the next.
    [[nodiscard]] std::optional<uint8_t> peek() const {
        return at_ < bytes_.size() ? std::optional(std::to_integer<uint8_t>(bytes_[at_])) : std::nullopt;
    }

  private:
    std::span<const std::byte> bytes_;
    uint8_t lowest_;
    size_t at_ = 0;
};

} // namespace rawbpf::inline v0::languages::hotspot
