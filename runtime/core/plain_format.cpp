// A text with {} in it, taken apart from left to right. fmt checked at compile time that each argument is there and fits its
// specification, so nothing is checked again here; fmt's own engine is 40 KB, half of it floating point.
//
//      "{:<{}} {:#06x}"
//        ^^^^ ^^^^^^^^
//        |    `-- fill and alignment, sign, #, 0, width, precision, type
//        `------- a width that is the next argument
//
// An argument becomes a sign and digits, or a text; then it is padded.
#include "runtime/core/plain_format.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <type_traits>

namespace rawbpf::inline v0 {
namespace {

using Argument = fmt::basic_format_arg<fmt::format_context>;

template <class Visitor> auto visit(const Argument &argument, Visitor visitor) {
#if FMT_VERSION >= 110000
    return argument.visit(visitor);
#else
    return fmt::visit_format_arg(visitor, argument);
#endif
}

struct Spec {
    std::string_view fill = " ";
    char align = 0, sign = 0, type = 0;
    bool alternate = false, zeros = false;
    size_t width = 0, precision = std::string_view::npos;
};

size_t characters(std::string_view text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}
size_t bytes_of_first(std::string_view text) {
    size_t n = 1;
    while (n < text.size() && (text[n] & 0xc0) == 0x80) ++n;
    return n;
}
bool is_digit(std::string_view text) { return !text.empty() && text[0] >= '0' && text[0] <= '9'; }
bool is_align(std::string_view text) { return !text.empty() && (text[0] == '<' || text[0] == '>' || text[0] == '^'); }

class Formatter {
  public:
    Formatter(std::string &out, std::string_view text, fmt::format_args args) : out_(out), rest_(text), args_(args) {}

    void run() {
        while (!rest_.empty()) {
            const size_t mark = std::min(rest_.find_first_of("{}"), rest_.size());
            out_.append(rest_.substr(0, mark));
            rest_.remove_prefix(mark);
            if (rest_.empty()) return;
            if (rest_.size() > 1 && rest_[1] == rest_[0]) { // {{ or }}
                out_ += rest_[0];
                rest_.remove_prefix(2);
                continue;
            }
            rest_.remove_prefix(1);
            field();
        }
    }

  private:
    bool take(char c) {
        if (rest_.empty() || rest_[0] != c) return false;
        rest_.remove_prefix(1);
        return true;
    }
    size_t number() {
        size_t n = 0;
        for (; is_digit(rest_); rest_.remove_prefix(1)) n = n * 10 + static_cast<size_t>(rest_[0] - '0');
        return n;
    }
    Argument argument() { return args_.get(static_cast<int>(is_digit(rest_) ? number() : next_++)); }
    // A width or a precision: digits, or an argument in braces.
    size_t amount() {
        if (!take('{')) return number();
        const Argument which = argument();
        take('}');
        return visit(which, [](auto value) -> size_t {
            if constexpr (std::is_integral_v<decltype(value)>) return static_cast<size_t>(value);
            std::abort();
        });
    }
    void field() {
        const Argument what = argument();
        Spec spec;
        if (take(':')) specification(spec);
        take('}');
        visit(what, [&](auto value) { write(value, spec); });
    }
    void specification(Spec &spec) {
        const size_t fill = bytes_of_first(rest_);
        if (fill < rest_.size() && is_align(rest_.substr(fill))) {
            spec.fill = rest_.substr(0, fill);
            rest_.remove_prefix(fill);
        }
        if (is_align(rest_)) {
            spec.align = rest_[0];
            rest_.remove_prefix(1);
        }
        for (char sign : {'+', ' ', '-'})
            if (take(sign)) spec.sign = sign;
        spec.alternate = take('#');
        spec.zeros = take('0');
        spec.width = amount();
        if (take('.')) spec.precision = amount();
        if (!rest_.empty() && rest_[0] != '}') {
            spec.type = rest_[0];
            rest_.remove_prefix(1);
        }
    }

    void pad(std::string_view front, std::string_view text, const Spec &spec, char usual) {
        const size_t size = front.size() + characters(text), missing = spec.width > size ? spec.width - size : 0;
        const char align = spec.align ? spec.align : usual;
        const bool zeros = spec.zeros && !spec.align && usual == '>';
        const size_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
        if (!zeros) fill(spec.fill, left);
        out_.append(front);
        if (zeros) fill("0", missing);
        out_.append(text);
        if (!zeros) fill(spec.fill, missing - left);
    }
    void fill(std::string_view with, size_t count) {
        for (; count > 0; --count) out_.append(with);
    }

    template <class T> void write(T value, const Spec &spec) {
        if constexpr (std::is_same_v<T, bool>) {
            if (spec.type == 0 || spec.type == 's') return text(value ? "true" : "false", spec);
            integer(value, false, spec);
        } else if constexpr (std::is_same_v<T, char>) {
            if (spec.type == 0 || spec.type == 'c') return text({&value, 1}, spec);
            integer(static_cast<uint64_t>(value < 0 ? -value : value), value < 0, spec);
        } else if constexpr (std::is_integral_v<T> && sizeof(T) <= sizeof(uint64_t)) {
            const bool negative = std::is_signed_v<T> && value < T{};
            const auto bits = static_cast<uint64_t>(value);
            integer(negative ? 0 - bits : bits, negative, spec);
        } else if constexpr (std::is_same_v<T, const char *>) {
            text(value, spec);
        } else if constexpr (std::is_same_v<T, fmt::string_view>) {
            text({value.data(), value.size()}, spec);
        } else if constexpr (std::is_same_v<T, const void *>) {
            Spec hexadecimal = spec;
            hexadecimal.type = 'x';
            hexadecimal.alternate = true;
            integer(reinterpret_cast<uintptr_t>(value), false, hexadecimal);
        } else {
            std::abort(); // floating point, 128 bits, types with formatters of their own
        }
    }
    void text(std::string_view value, const Spec &spec) {
        size_t end = 0;
        for (size_t left = spec.precision; left > 0 && end < value.size(); --left) end += bytes_of_first(value.substr(end));
        pad("", value.substr(0, end), spec, '<');
    }
    void integer(uint64_t value, bool negative, const Spec &spec) {
        if (spec.type == 'c') {
            const char one = static_cast<char>(value);
            return text({&one, 1}, spec);
        }
        constexpr size_t kMost = 64; // binary digits
        char digits[kMost];
        char *begin = digits + kMost;
        const bool upper = spec.type == 'X' || spec.type == 'B';
        const uint64_t base = spec.type == 'x' || spec.type == 'X'   ? 16
                              : spec.type == 'o'                     ? 8
                              : spec.type == 'b' || spec.type == 'B' ? 2
                                                                     : 10;
        const bool zero = value == 0;
        do {
            *--begin = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[value % base];
        } while ((value /= base) != 0);
        std::string front;
        if (negative)
            front = "-";
        else if (spec.sign == '+' || spec.sign == ' ')
            front = spec.sign;
        if (spec.alternate && base != 10 && !(base == 8 && zero)) {
            front += '0';
            if (base != 8) front += spec.type;
        }
        pad(front, {begin, static_cast<size_t>(digits + kMost - begin)}, spec, '>');
    }

    std::string &out_;
    std::string_view rest_;
    fmt::format_args args_;
    size_t next_ = 0;
};

} // namespace

void plain_format_to(std::string &out, fmt::string_view text, fmt::format_args args) {
    Formatter(out, {text.data(), text.size()}, args).run();
}

} // namespace rawbpf::inline v0
