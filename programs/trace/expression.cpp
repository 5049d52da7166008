// Precedence climbing: a value, then as long as an operator that binds more tightly than the one we came from follows, that
// operator and the value to its right. The table below is C's, so that nobody has to look it up.
#include "programs/trace/expression.h"

#include <charconv>

#include "runtime/base/fail.h"
#include "runtime/base/hex.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr uint32_t kDeepest = 64;
constexpr size_t kMostNodes = 256;

constexpr OperatorRow kUnary[] = {{"-", Operator::negate, 0}, {"~", Operator::complement, 0}, {"!", Operator::not_, 0}};

struct Suffix {
    std::string_view text;
    uint64_t factor;
};
constexpr Suffix kSuffixes[] = {{"", 1},
                                {"ns", 1},
                                {"us", 1000},
                                {"ms", 1'000'000},
                                {"s", 1'000'000'000},
                                {"k", 1024},
                                {"m", 1 << 20},
                                {"g", uint64_t{1} << 30}};

// Not <cctype>: it asks a locale, which costs a static program 100 KB.
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool in_name(char c) { return starts_name(c) || is_digit(c); }

class Parser {
  public:
    explicit Parser(std::string_view source) { out_.source = source; }

    Result<Expression> expression() {
        out_.root = TRY(binary(1));
        skip_spaces();
        if (at_ != out_.source.size()) return Unexpected(here(format("`{}` isn't expected here", rest().substr(0, 1))));
        return std::move(out_);
    }
    Result<Expression> path() {
        skip_spaces();
        if (at_ == out_.source.size() || !starts_name(out_.source[at_]))
            return Unexpected(here("a name is expected", "as in arg0, file->f_inode->i_size"));
        out_.root = TRY(name());
        skip_spaces();
        if (at_ != out_.source.size()) return Unexpected(here("a name and its members are all that can be shown"));
        return std::move(out_);
    }

  private:
    [[nodiscard]] std::string_view rest() const { return std::string_view(out_.source).substr(at_); }
    void skip_spaces() {
        while (at_ < out_.source.size() && is_space(out_.source[at_])) ++at_;
    }
    [[nodiscard]] Error here(std::string_view message, std::string hint = {}) const {
        return out_.complaint(at_, message, std::move(hint));
    }
    uint32_t add(Node node) {
        out_.nodes.push_back(std::move(node));
        return static_cast<uint32_t>(out_.nodes.size() - 1);
    }

    [[nodiscard]] const OperatorRow *operator_here() const {
        for (const OperatorRow &row : kBinaryOperators)
            if (rest().starts_with(row.text)) return &row;
        return nullptr;
    }

    Result<uint32_t> binary(int level) {
        uint32_t left = TRY(unary());
        for (;;) {
            skip_spaces();
            const OperatorRow *row = operator_here();
            if (!row && rest().starts_with('=')) return Unexpected(here("`=` isn't a comparison", "did you mean `==`?"));
            if (!row || row->level < level) return left;
            Node node{.kind = Node::Kind::binary, .op = row->op, .left = left, .column = at_};
            at_ += static_cast<uint32_t>(row->text.size());
            node.right = TRY(binary(row->level + 1));
            left = add(std::move(node));
            if (out_.nodes.size() > kMostNodes) return Unexpected(here(format("more than {} parts", kMostNodes)));
        }
    }

    Result<uint32_t> unary() {
        skip_spaces();
        if (++depth_ > kDeepest) return Unexpected(here(format("more than {} levels deep", kDeepest)));
        struct Leave {
            uint32_t &depth;
            ~Leave() { --depth; }
        } leave{depth_};
        for (const OperatorRow &row : kUnary) {
            if (!rest().starts_with(row.text)) continue;
            Node node{.kind = Node::Kind::unary, .op = row.op, .column = at_};
            at_ += static_cast<uint32_t>(row.text.size());
            node.left = TRY(unary());
            return add(std::move(node));
        }
        return value();
    }

    Result<uint32_t> value() {
        if (at_ == out_.source.size()) return Unexpected(here("a value is expected, and the filter ends"));
        const char c = out_.source[at_];
        if (c == '(') {
            const uint32_t open = at_++;
            const uint32_t inner = TRY(binary(1));
            skip_spaces();
            if (!rest().starts_with(')')) return Unexpected(out_.complaint(open, "this `(` is never closed"));
            ++at_;
            return inner;
        }
        if (c == '"') return text();
        if (c == '\'') return character();
        if (is_digit(c)) return number();
        if (starts_name(c)) return name();
        return Unexpected(here(format("a value is expected, not `{}`", c)));
    }

    // One character of a text, escapes as C has the usual ones.
    Result<char> one_character() {
        char c = out_.source[at_++];
        if (c != '\\') return c;
        if (at_ == out_.source.size()) return Unexpected(here("the text ends in a backslash"));
        c = out_.source[at_++];
        constexpr std::string_view kNames = "ntr0\\\"'", kCharacters("\n\t\r\0\\\"'", 7);
        if (size_t i = kNames.find(c); i != std::string_view::npos) return kCharacters[i];
        if (c == 'x' && at_ + 2 <= out_.source.size()) {
            const int high = hex_digit(out_.source[at_]), low = hex_digit(out_.source[at_ + 1]);
            if (high >= 0 && low >= 0) return at_ += 2, static_cast<char>(high << 4 | low);
        }
        --at_;
        return Unexpected(here(format("`\\{}` is no escape", c), "known are \\n \\t \\r \\0 \\\\ \\\" \\' \\xNN"));
    }

    Result<uint32_t> text() {
        Node node{.kind = Node::Kind::text, .column = at_++};
        while (at_ < out_.source.size() && out_.source[at_] != '"') node.text += TRY(one_character());
        if (at_ == out_.source.size()) return Unexpected(out_.complaint(node.column, "this text is never closed"));
        ++at_;
        if (node.text.find('\0') != std::string::npos)
            return Unexpected(out_.complaint(node.column, "a text ends at a zero byte, and this one has one inside"));
        return add(std::move(node));
    }

    Result<uint32_t> character() {
        Node node{.kind = Node::Kind::number, .column = at_++};
        if (at_ < out_.source.size()) node.number = static_cast<unsigned char>(TRY(one_character()));
        if (!rest().starts_with('\'')) return Unexpected(out_.complaint(node.column, "a character and a `'` are expected"));
        ++at_;
        return add(std::move(node));
    }

    Result<uint32_t> number() {
        Node node{.kind = Node::Kind::number, .column = at_};
        const bool hex = rest().starts_with("0x") || rest().starts_with("0X");
        const std::string_view digits = rest().substr(hex ? 2 : 0);
        const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), node.number, hex ? 16 : 10);
        if (wrong == std::errc::result_out_of_range) return Unexpected(here("this number has more than 64 bits"));
        if (wrong != std::errc()) return Unexpected(here("digits are expected after 0x"));
        at_ = static_cast<uint32_t>(end - out_.source.data());
        size_t length = 0;
        while (length < rest().size() && in_name(rest()[length])) ++length;
        const std::string_view unit = rest().substr(0, length);
        for (const Suffix &suffix : kSuffixes) {
            if (suffix.text != unit) continue;
            if (__builtin_mul_overflow(node.number, suffix.factor, &node.number))
                return Unexpected(out_.complaint(node.column, "this number has more than 64 bits"));
            at_ += static_cast<uint32_t>(length);
            return add(std::move(node));
        }
        return Unexpected(here(format("`{}` is no unit", unit), "known are ns us ms s (time) and k m g (times 1024)"));
    }

    std::string word() {
        const uint32_t begin = at_;
        while (at_ < out_.source.size() && in_name(out_.source[at_])) ++at_;
        return out_.source.substr(begin, at_ - begin);
    }

    Result<uint32_t> name() {
        Node node{.kind = Node::Kind::name, .column = at_};
        node.text = word();
        for (;;) {
            Step step;
            step.column = at_;
            if (rest().starts_with("->") || rest().starts_with('.')) {
                at_ += out_.source[at_] == '.' ? 1 : 2;
                skip_spaces();
                step.column = at_;
                step.member = word();
                if (step.member.empty()) return Unexpected(here("the name of a member is expected"));
            } else if (rest().starts_with('[')) {
                ++at_;
                skip_spaces();
                const uint32_t before = at_;
                if (at_ == out_.source.size() || !is_digit(out_.source[at_])) return Unexpected(here("an index is a number"));
                const uint32_t index = TRY(number());
                step.index = out_.nodes[index].number;
                step.column = before;
                out_.nodes.pop_back();
                skip_spaces();
                if (!rest().starts_with(']')) return Unexpected(here("a `]` is expected"));
                ++at_;
            } else {
                return add(std::move(node));
            }
            node.steps.push_back(std::move(step));
        }
    }

    Expression out_;
    uint32_t at_ = 0, depth_ = 0;
};

} // namespace

std::string_view operator_text(Operator op) {
    for (const OperatorRow &row : kBinaryOperators)
        if (row.op == op) return row.text;
    for (const OperatorRow &row : kUnary)
        if (row.op == op) return row.text;
    return "?";
}

Error Expression::complaint(uint32_t column, std::string_view message, std::string hint) const {
    std::string text = format("{}\n  {}\n  ", message, source);
    for (uint32_t i = 0; i < column && i < source.size(); ++i) text += source[i] == '\t' ? '\t' : ' ';
    text += '^';
    return make_error(Errc::invalid_argument, std::move(text), std::move(hint));
}

Result<Expression> parse_expression(std::string_view source) { return Parser(source).expression(); }
Result<Expression> parse_path(std::string_view source) { return Parser(source).path(); }

} // namespace rawbpf::inline v0::trace
