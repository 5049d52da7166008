// The parser's place in the text: it is in one line; in a block or in parentheses it goes on to the next.
#include <algorithm>

#include "programs/experiment/parse_characters.h"
#include "programs/experiment/parsing.h"
#include "runtime/base/format.h"
#include "runtime/base/numbers.h"

namespace rawbpf::inline v0::experiment {
namespace {

constexpr double kMostSeconds = 1e7;

} // namespace

const std::string &Parser::now() const {
    static const std::string kNothing;
    return at_text_end() ? kNothing : out_.experiment.lines[line_];
}
char Parser::peek(size_t ahead) const {
    const std::string &line = now();
    return column_ + ahead < line.size() ? line[column_ + ahead] : '\0';
}
void Parser::skip_blanks() {
    for (;;) {
        while (is_blank(peek())) ++column_;
        if (peek() == '#') column_ = now().size();
        if (inside_ == 0 || at_text_end() || column_ < now().size()) return;
        next_line();
    }
}
void Parser::skip_lines() {
    while (!at_text_end()) {
        skip_blanks();
        if (column_ < now().size()) return;
        next_line();
    }
}
bool Parser::at_line_end() {
    skip_blanks();
    return column_ >= now().size();
}
std::string_view Parser::name() {
    skip_blanks();
    if (!begins_name(peek())) return {};
    const size_t begin = column_;
    while (in_name(peek())) ++column_;
    return std::string_view(now()).substr(begin, column_ - begin);
}
std::string_view Parser::word() {
    skip_blanks();
    const std::string &line = now();
    const char quote = peek();
    if (quote == '"' || quote == '\'') {
        const size_t end = line.find(quote, column_ + 1);
        if (end == std::string::npos) {
            fail(here(), "this text is never closed");
            column_ = line.size();
            return {};
        }
        const std::string_view out = std::string_view(line).substr(column_ + 1, end - column_ - 1);
        column_ = end + 1;
        return out;
    }
    const size_t begin = column_;
    while (column_ < line.size() && !is_blank(peek()) && peek() != '#') ++column_;
    return std::string_view(line).substr(begin, column_ - begin);
}
std::string_view Parser::rest() {
    skip_blanks();
    const std::string_view line = std::string_view(now()).substr(std::min(column_, now().size()));
    column_ = now().size();
    return trimmed(line.substr(0, comment_of(line)));
}
bool Parser::eat(std::string_view symbol) {
    skip_blanks();
    if (!std::string_view(now()).substr(std::min(column_, now().size())).starts_with(symbol)) return false;
    column_ += symbol.size();
    return true;
}
bool Parser::eat_word(std::string_view wanted) {
    skip_blanks();
    const size_t before = column_;
    if (name() == wanted) return true;
    column_ = before;
    return false;
}
bool Parser::need(std::string_view symbol) { return eat(symbol) || fail_expected(format("`{}`", symbol)); }
bool Parser::need_line_end() {
    if (at_line_end()) return true;
    return fail_expected("the end of the line");
}
std::string Parser::found() {
    if (at_line_end()) return "the end of the line";
    const std::string_view line = std::string_view(now()).substr(column_);
    size_t end = 0;
    while (end < line.size() && in_name(line[end])) ++end;
    return format("`{}`", line.substr(0, std::max<size_t>(std::min<size_t>(end, 40), 1)));
}
bool Parser::fail(TextPlace at, std::string message, std::string hint) {
    out_.mistakes.add(out_.experiment.lines, at, std::move(message), std::move(hint));
    return false;
}
bool Parser::fail_expected(std::string_view what, std::string hint) {
    std::string message = format("expected {}, found {}", what, found());
    return fail(here(), std::move(message), std::move(hint));
}
bool Parser::count_part(TextPlace at) {
    if (++parts_ <= kMostParts) return true;
    if (parts_ == kMostParts + 1) fail(at, format("an experiment has at most {} values and statements", kMostParts));
    return false;
}
bool Parser::number(uint64_t &out, std::string_view what) {
    skip_blanks();
    if (!is_digit(peek())) return fail_expected(what);
    return number_literal(out);
}
bool Parser::duration(double &seconds, std::string_view what) {
    skip_blanks();
    const TextPlace at = here();
    const std::string_view text = word();
    const Result<double> value = parse_seconds(text);
    if (!value || !(*value > 0) || *value > kMostSeconds)
        return fail(at, format("expected {}, like 2s, 500ms or 1m{}{}", what, text.empty() ? "" : ", found ", text));
    seconds = *value;
    return true;
}
bool Parser::quoted(std::string &out) {
    skip_blanks();
    if (peek() != '"') return fail_expected("a text in quotes");
    const TextPlace begin = here();
    ++column_;
    while (peek() != '"') {
        if (column_ >= now().size()) return fail(begin, "this text is never closed");
        out += quoted_letter();
    }
    ++column_;
    return true;
}
char Parser::quoted_letter() {
    const bool escaped = peek() == '\\';
    const char c = peek(escaped ? 1 : 0);
    column_ += escaped ? 2 : 1;
    return escaped && c == 'n' ? '\n' : escaped && c == 't' ? '\t' : c;
}

} // namespace rawbpf::inline v0::experiment
