// Which characters are blanks, names and comments, and which braces of C are open. Private to the room.
#pragma once

#include <cstddef>
#include <string_view>

namespace rawbpf::inline v0::experiment {

[[nodiscard]] constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
[[nodiscard]] constexpr bool in_name(char c) { return begins_name(c) || is_digit(c); }

[[nodiscard]] inline std::string_view trimmed(std::string_view text) {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    return text;
}
[[nodiscard]] inline std::string_view first_word(std::string_view line) {
    line = trimmed(line);
    size_t end = 0;
    while (end < line.size() && in_name(line[end])) ++end;
    return line.substr(0, end);
}
// Where the comment of a line begins; its size: it has none.
[[nodiscard]] inline size_t comment_of(std::string_view line) {
    char quote = 0;
    for (size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (quote) {
            if (c == '\\') ++i;
            if (c == quote) quote = 0;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '#') {
            return i;
        }
    }
    return line.size();
}

// Which braces of C are open, line by line: not those in texts and comments.
class CBraces {
  public:
    [[nodiscard]] bool open() const { return depth_ > 0; }
    void read(std::string_view line) {
        char quote = 0;
        for (size_t i = 0; i < line.size(); ++i) {
            const char c = line[i];
            const char next = i + 1 < line.size() ? line[i + 1] : '\0';
            if (comment_) {
                if (c == '*' && next == '/') comment_ = false, ++i;
            } else if (quote) {
                if (c == '\\') ++i;
                if (c == quote) quote = 0;
            } else if (c == '/' && next == '/') {
                return;
            } else if (c == '/' && next == '*') {
                comment_ = true, ++i;
            } else if (c == '"' || c == '\'') {
                quote = c;
            } else {
                depth_ += (c == '{') - (c == '}');
            }
        }
    }

  private:
    int depth_ = 0;
    bool comment_ = false;
};
[[nodiscard]] inline bool begins_c(std::string_view bare) {
    return first_word(bare) == "c" && bare.ends_with('{') && trimmed(bare.substr(1)) == "{";
}

} // namespace rawbpf::inline v0::experiment
