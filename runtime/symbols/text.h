// Small scanning helpers for the kernel's text tables (maps, kallsyms, perf maps): they advance, or say no and stay.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/hex.h"

namespace rawbpf::inline v0::symbols {

/// Cuts the first line off `text` and returns it without its newline.
[[nodiscard]] inline std::string_view take_line(std::string_view &text) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return line;
}

/// A cursor over one line.
class TextCursor {
  public:
    explicit TextCursor(std::string_view text) : text_(text) {}

    /// One to sixteen hex digits.
    [[nodiscard]] bool hex(uint64_t &value) {
        size_t n = 0;
        value = 0;
        for (int digit; n < text_.size() && n < 16 && (digit = hex_digit(text_[n])) >= 0; ++n)
            value = value << 4 | static_cast<unsigned>(digit);
        if (n == 0 || (n < text_.size() && hex_digit(text_[n]) >= 0)) return false;
        text_.remove_prefix(n);
        return true;
    }
    /// Decimal digits; a number above 2^64 is refused.
    [[nodiscard]] bool decimal(uint64_t &value) {
        size_t n = 0;
        value = 0;
        for (; n < text_.size() && text_[n] >= '0' && text_[n] <= '9'; ++n)
            if (__builtin_mul_overflow(value, uint64_t{10}, &value) ||
                __builtin_add_overflow(value, static_cast<uint64_t>(text_[n] - '0'), &value))
                return false;
        if (n == 0) return false;
        text_.remove_prefix(n);
        return true;
    }
    [[nodiscard]] bool skip(char c) {
        if (!text_.starts_with(c)) return false;
        text_.remove_prefix(1);
        return true;
    }
    void skip_spaces() {
        while (text_.starts_with(' ')) text_.remove_prefix(1);
    }
    [[nodiscard]] bool take(size_t count, std::string_view &part) {
        if (text_.size() < count) return false;
        part = text_.substr(0, count);
        text_.remove_prefix(count);
        return true;
    }
    [[nodiscard]] std::string_view rest() const { return text_; }

  private:
    std::string_view text_;
};

} // namespace rawbpf::inline v0::symbols
