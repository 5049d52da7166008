// JSON as RFC 8259 has it. Numbers are read by hand: std::from_chars for double asks for the locale in a static executable
// (runtime/base/numbers.cpp). Up to 2^53 whole numbers are exact; others are off by some units in the last place, the same ones
// each time.
#include "programs/compare/json_tree.h"

#include <algorithm>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::compare {
namespace {

constexpr int kMostLevels = 32;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string &out, uint32_t c) {
    if (c < 0x80) {
        out += static_cast<char>(c);
    } else if (c < 0x800) {
        out += static_cast<char>(0xc0 | c >> 6);
        out += static_cast<char>(0x80 | (c & 63));
    } else if (c < 0x10000) {
        out += static_cast<char>(0xe0 | c >> 12);
        out += static_cast<char>(0x80 | (c >> 6 & 63));
        out += static_cast<char>(0x80 | (c & 63));
    } else {
        out += static_cast<char>(0xf0 | c >> 18);
        out += static_cast<char>(0x80 | (c >> 12 & 63));
        out += static_cast<char>(0x80 | (c >> 6 & 63));
        out += static_cast<char>(0x80 | (c & 63));
    }
}

class Reader {
  public:
    explicit Reader(std::string_view text) : text_(text) {}

    Result<Json> whole() {
        Json out;
        TRY(value(out, 0));
        blanks();
        if (at_ != text_.size()) return wrong("nothing more");
        return out;
    }

  private:
    Unexpected wrong(std::string_view expected) const {
        return fail(Errc::bad_input, "column {}: expected {}", at_ + 1, expected);
    }
    void blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r' || text_[at_] == '\n')) ++at_;
    }
    [[nodiscard]] char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    bool take(std::string_view word) {
        if (!text_.substr(at_).starts_with(word)) return false;
        at_ += word.size();
        return true;
    }

    Result<void> value(Json &out, int level) {
        blanks();
        if (level > kMostLevels) return wrong(format("at most {} levels", kMostLevels));
        switch (next()) {
        case '{':
        case '[': return several(out, level);
        case '"': out.kind = Json::Kind::text; return quoted(out.text);
        case 't':
        case 'f':
            out.kind = Json::Kind::truth;
            out.truth = next() == 't';
            if (!take(out.truth ? "true" : "false")) return wrong("a value");
            return {};
        case 'n':
            if (!take("null")) return wrong("a value");
            return {};
        default: return number(out);
        }
    }

    Result<void> several(Json &out, int level) {
        const bool object = next() == '{';
        const char end = object ? '}' : ']';
        out.kind = object ? Json::Kind::object : Json::Kind::list;
        ++at_;
        for (bool first = true;; first = false) {
            blanks();
            if (next() == end && first) break;
            if (object) {
                if (next() != '"') return wrong("a name in quotes");
                TRY(quoted(out.names.emplace_back()));
                blanks();
                if (!take(":")) return wrong("':'");
            }
            TRY(value(out.items.emplace_back(), level + 1));
            blanks();
            if (next() == end) break;
            if (!take(",")) return wrong(object ? "',' or '}'" : "',' or ']'");
        }
        ++at_;
        return {};
    }

    Result<uint32_t> four_digits() {
        uint32_t out = 0;
        for (int i = 0; i < 4; ++i, ++at_) {
            const char c = next();
            const int digit = is_digit(c)            ? c - '0'
                              : c >= 'a' && c <= 'f' ? c - 'a' + 10
                              : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                     : -1;
            if (digit < 0) return wrong("four hexadecimal digits");
            out = out << 4 | static_cast<uint32_t>(digit);
        }
        return out;
    }
    Result<void> escape(std::string &out) {
        constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
        if (next() != 'u') {
            const size_t which = at_ < text_.size() ? kLetters.find(next()) : kLetters.npos;
            if (which == kLetters.npos) return wrong("an escape");
            out += kMeanings[which];
            ++at_;
            return {};
        }
        ++at_;
        uint32_t c = TRY(four_digits());
        if (c >= 0xd800 && c < 0xdc00 && take("\\u")) {
            const uint32_t low = TRY(four_digits());
            c = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
        } else if (c >= 0xd800 && c < 0xe000) {
            c = 0xfffd; // half of a pair
        }
        append_utf8(out, c);
        return {};
    }
    Result<void> quoted(std::string &out) {
        ++at_;
        for (;;) {
            if (at_ == text_.size() || static_cast<unsigned char>(next()) < 0x20) return wrong("the end of a text, '\"'");
            const char c = text_[at_++];
            if (c == '"') return {};
            if (c == '\\')
                TRY(escape(out));
            else
                out += c;
        }
    }

    Result<void> number(Json &out) {
        const bool negative = take("-");
        if (!is_digit(next())) return wrong("a value");
        if (next() == '0' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1])) return wrong("a number without a 0 in front");
        uint64_t digits = 0;
        int exponent = 0;
        const auto digit = [&](int if_kept, int if_left_out) {
            if (digits < 1'000'000'000'000'000'000)
                digits = digits * 10 + static_cast<uint64_t>(next() - '0'), exponent += if_kept;
            else
                exponent += if_left_out;
            ++at_;
        };
        while (is_digit(next())) digit(0, 1);
        if (take(".")) {
            if (!is_digit(next())) return wrong("a digit");
            while (is_digit(next())) digit(-1, 0);
        }
        if (next() == 'e' || next() == 'E') {
            ++at_;
            const bool down = next() == '-';
            if (down || next() == '+') ++at_;
            if (!is_digit(next())) return wrong("a digit");
            int tens = 0;
            for (; is_digit(next()); ++at_) tens = std::min(tens * 10 + (next() - '0'), 1000);
            exponent += down ? -tens : tens;
        }
        out.kind = Json::Kind::number;
        out.number = static_cast<double>(digits);
        double scale = 1;
        for (int i = std::min(exponent < 0 ? -exponent : exponent, 400); i > 0; --i) scale *= 10;
        out.number = exponent < 0 ? out.number / scale : digits == 0 ? 0 : out.number * scale;
        if (out.number > 1e300) return wrong("a number below 1e300"); // sums of some are finite
        if (negative) out.number = -out.number;
        return {};
    }

    std::string_view text_;
    size_t at_ = 0;
};

} // namespace

const Json *Json::member(std::string_view name) const {
    for (size_t i = 0; i < names.size() && i < items.size(); ++i)
        if (names[i] == name) return &items[i];
    return nullptr;
}

std::string_view Json::text_of(std::string_view name) const {
    const Json *found = member(name);
    return found && found->kind == Kind::text ? std::string_view(found->text) : std::string_view();
}

Result<Json> parse_json(std::string_view text) { return Reader(text).whole(); }

} // namespace rawbpf::inline v0::compare
