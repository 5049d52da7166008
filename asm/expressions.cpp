// Numbers: literals, constants, and C's operators between them.
//
//      r1 = 1 << FLAG | 0x40           a level an operator, as in C: |  ^  &  << >>  + -  * / %; a level first reads the next one
//      r2 = @task_struct.mm + 8        a member's place and a number: the place is CO-RE's, the number is added to it
//
// The arithmetic has 128 bits, so that a result that doesn't fit 64 is refused and never cut.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2") // -Os, as releases are built, takes three times as long
#endif

#include "asm/assembling.h"
#include "asm/lookup.h"
#include "asm/nearest.h"

namespace rawbpf::inline v0::assembling {

namespace {

constexpr int kDeepestExpression = 64;
constexpr Number kMostNumber = (Number{1} << 64) - 1;

} // namespace

bool Assembler::literal(Number &out, bool &is_hex) {
    const char *start = p_;
    uint64_t value = 0;
    bool beyond = false;
    is_hex = false;
    if (*p_ == '0' && (p_[1] == 'x' || p_[1] == 'X')) {
        is_hex = true;
        const char *digits = p_ += 2;
        for (unsigned digit; (digit = hex_value(*p_)) < 16; ++p_) {
            beyond |= (value >> 60) != 0;
            value = value << 4 | digit;
        }
        if (p_ == digits) return expected("hexadecimal digits");
    } else if (*p_ == '0' && (p_[1] == 'b' || p_[1] == 'B')) {
        const char *digits = p_ += 2;
        for (; *p_ == '0' || *p_ == '1'; ++p_) {
            beyond |= (value >> 63) != 0;
            value = value << 1 | static_cast<unsigned>(*p_ - '0');
        }
        if (p_ == digits) return expected("binary digits");
    } else if (*p_ == '\'') {
        if (p_[1] == '\\' && p_[2] != '\n' && p_[3] == '\'') {
            constexpr std::string_view from = "nrt0\\'\"", to("\n\r\t\0\\'\"", 7);
            const size_t which = from.find(p_[2]);
            if (which == std::string_view::npos) return fail(p_ + 1, "there is no escape \\" + std::string(1, p_[2]));
            value = static_cast<unsigned char>(to[which]);
            p_ += 4;
        } else if (p_[1] != '\n' && p_[1] != '\0' && p_[1] != '\\' && p_[2] == '\'') {
            value = static_cast<unsigned char>(p_[1]);
            p_ += 3;
        } else
            return fail(p_, "expected one character between the quotation marks");
    } else {
        if (*p_ == '0' && is_digit(p_[1]))
            return fail(p_, "a number with a leading zero: is it meant to be octal?", "write it in decimal or with 0x");
        for (; is_digit(*p_); ++p_) {
            const unsigned digit = static_cast<unsigned>(*p_ - '0');
            beyond |= value > (UINT64_MAX - digit) / 10;
            value = value * 10 + digit;
        }
    }
    if (is_name(*p_)) return fail(p_, "expected the end of the number, found " + found());
    if (beyond) return fail(start, "the number has more than 64 bits");
    out = value;
    return true;
}

bool Assembler::term(Number &out, int depth) {
    skip_space();
    if (depth > kDeepestExpression) return fail(p_, "the expression is nested too deeply");
    if (is_digit(*p_) || *p_ == '\'') {
        bool is_hex;
        return literal(out, is_hex);
    }
    if (*p_ == '-' || *p_ == '~' || *p_ == '+') {
        const char sign = *p_++;
        if (!term(out, depth + 1)) return false;
        if (sign == '-') out = -out;
        if (sign == '~') out = -out - 1;
        return true;
    }
    if (eat('(')) return binary(out, 0, depth + 1) && need(')');
    const char *at = p_;
    const std::string_view word = name();
    if (word.empty()) return expected("a number");
    if (word == "sizeof" && eat('(')) {
        skip_space();
        TypeRef of;
        if (!type(of) || !need(')')) return false;
        out = of.size;
        return true;
    }
    if (auto found = constants_.find(word); found != constants_.end()) {
        if (auto unused = unused_.find(word); unused != unused_.end()) unused_.erase(unused);
        out = found->second;
        return true;
    }
    if (auto other = names_.find(word); other != names_.end())
        return fail(at,
                    "`" + std::string(word) + "` isn't a number; to load its address, write rN = " + std::string(word) + " ll");
    if (near_register(word) == word) return fail(at, "expected a number, found the register `" + std::string(word) + "`");
    Nearest near(word);
    for (auto &[known, number] : constants_) near.offer(known);
    if (is_basic_type(word)) return fail(at, "expected a number, found the type `" + std::string(word) + "`");
    return fail(at, "there is no constant `" + std::string(word) + "`", near.hint_or_register());
}

/// Levels as in C: 0 |, 1 ^, 2 &, 3 << >>, 4 + -, 5 * / %.
bool Assembler::binary(Number &out, int level, int depth) {
    if (level == 6) return term(out, depth);
    if (!binary(out, level + 1, depth)) return false;
    for (;;) {
        skip_space();
        const char *at = p_;
        const char c = *p_;
        switch (level) {
        case 0:
            if (c != '|') return true;
            break;
        case 1:
            if (c != '^') return true;
            break;
        case 2:
            if (c != '&') return true;
            break;
        case 3:
            if ((c != '<' && c != '>') || p_[1] != c) return true;
            ++p_;
            break;
        case 4:
            if (c != '+' && c != '-') return true;
            break;
        default:
            if (c != '*' && c != '%' && (c != '/' || p_[1] == '/' || p_[1] == '*')) return true;
        }
        ++p_;
        Number right = 0;
        if (!binary(right, level + 1, depth)) return false;
        switch (c) {
        case '|': out |= right; break;
        case '^': out ^= right; break;
        case '&': out &= right; break;
        case '<':
        case '>':
            if (right < 0 || right > 63) return fail(at, "a shift by a number that isn't 0 to 63");
            // Within 65 bits before, so within 128 afterwards.
            out = c == '<' ? out * (Number{1} << static_cast<int>(right)) : out >> static_cast<int>(right);
            break;
        case '+': out += right; break;
        case '-': out -= right; break;
        case '*':
            if (out != 0 && (right > kMostNumber / (out < 0 ? -out : out) || right < -(kMostNumber / (out < 0 ? -out : out))))
                return fail(at, "the product has more than 64 bits");
            out *= right;
            break;
        default:
            if (right == 0) return fail(at, "a division by zero");
            out = c == '/' ? out / right : out % right;
        }
        if (out > kMostNumber || out < -kMostNumber - 1) return fail(at, "the number has more than 64 bits");
    }
}

bool Assembler::number(Number &out) {
    skip_space();
    // By far the most are a literal and nothing else.
    const char *start = p_;
    const bool negative = *p_ == '-';
    if (negative) ++p_;
    if (is_digit(*p_)) {
        bool is_hex;
        if (!literal(out, is_hex)) return false;
        if (negative) out = -out;
        const char *end = p_;
        skip_space();
        switch (*p_) {
        case '+':
        case '-':
        case '*':
        case '/':
        case '%':
        case '<':
        case '>':
        case '&':
        case '^':
        case '|': break;
        default: p_ = end; return true;
        }
    }
    p_ = start;
    return binary(out, 0, 0);
}

bool Assembler::number(int64_t &out, int64_t least, int64_t most, std::string_view what) {
    skip_space();
    const char *at = p_;
    Number wide = 0;
    if (!number(wide)) return false;
    if (wide < least || wide > most)
        return fail(at, std::string(what) + " may be " + std::to_string(least) + " to " + std::to_string(most));
    out = static_cast<int64_t>(wide);
    return true;
}

bool Assembler::value(Value &out) {
    skip_space();
    if (*p_ != '@') {
        const char *start = p_;
        out.is_hex = *p_ == '0' && (p_[1] | 32) == 'x';
        if (!number(out.number)) return false;
        for (const char *at = start; out.is_hex && at < p_; ++at) out.is_hex = is_name(*at);
        return true;
    }
    ++p_;
    const char *at = p_;
    out.field = name();
    const size_t dot = out.field.find('.');
    if (out.field.empty() || dot == 0 || dot == std::string_view::npos || out.field.ends_with('.') ||
        out.field.find("..") != std::string_view::npos)
        return fail(at, "expected the path of a member in a kernel struct, like @task_struct.mm");
    skip_space();
    if (*p_ == '+' || *p_ == '-') return binary(out.number, 4, 0); // from its sign on: the member's place stands for nothing
    return true;
}

} // namespace rawbpf::inline v0::assembling
