// What people write of a Go function, read as Go's grammar has it: the name comes before the type, and one type may serve several
// names.
//
//      func (s *srv) Handle(id int, key, value string) (n int, err error)
//
// A type counts by its words, so that a name says enough where the language, or everybody's library, fixes what it stands for
// (string, time.Duration, context.Context); any other name is only known as something pointed at. Its structure can be written
// out: struct{X int; Y string}.
#include <algorithm>
#include <optional>

#include "programs/trace/go_abi.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::trace {
namespace {

using Kind = GoType::Kind;

constexpr int kDeepest = 16;
constexpr size_t kMostParameters = 32;
constexpr uint64_t kLongestArray = 1 << 20;

struct Named {
    std::string_view name;
    Kind kind;
    uint8_t size;
    bool is_signed = false;
    bool has_methods = false;
};
constexpr Named kNamed[] = {
    {"bool", Kind::boolean, 1},
    {"int", Kind::integer, 8, true},
    {"int8", Kind::integer, 1, true},
    {"int16", Kind::integer, 2, true},
    {"int32", Kind::integer, 4, true},
    {"int64", Kind::integer, 8, true},
    {"uint", Kind::integer, 8},
    {"uint8", Kind::integer, 1},
    {"uint16", Kind::integer, 2},
    {"uint32", Kind::integer, 4},
    {"uint64", Kind::integer, 8},
    {"byte", Kind::integer, 1},
    {"rune", Kind::integer, 4, true},
    {"uintptr", Kind::address, 8},
    {"unsafe.Pointer", Kind::address, 8},
    {"float32", Kind::real, 4},
    {"float64", Kind::real, 8},
    {"complex64", Kind::complex, 8},
    {"complex128", Kind::complex, 16},
    {"string", Kind::text, 16},
    {"any", Kind::interface, 16},
    {"error", Kind::interface, 16, false, true},
    {"context.Context", Kind::interface, 16, false, true},
    {"fmt.Stringer", Kind::interface, 16, false, true},
    {"io.Reader", Kind::interface, 16, false, true},
    {"io.Writer", Kind::interface, 16, false, true},
    {"io.Closer", Kind::interface, 16, false, true},
    {"io.ReadCloser", Kind::interface, 16, false, true},
    {"net.Conn", Kind::interface, 16, false, true},
    {"net.Addr", Kind::interface, 16, false, true},
    {"http.Handler", Kind::interface, 16, false, true},
    {"http.ResponseWriter", Kind::interface, 16, false, true},
    {"time.Duration", Kind::integer, 8, true},
};

// What C's declarations begin with: "int fd" isn't a parameter of Go's called int.
constexpr std::string_view kOfC[] = {"const",  "void",   "char",  "short", "int",  "long",  "unsigned", "signed", "float",
                                     "double", "struct", "union", "enum",  "bool", "_Bool", "u8",       "u16",    "u32",
                                     "u64",    "s8",     "s16",   "s32",   "s64",  "ptr",   "str"};
constexpr std::string_view kKeywords[] = {"map", "chan", "func", "interface", "struct"};

template <size_t n> bool is_one(std::string_view word, const std::string_view (&of)[n]) {
    return std::find(std::begin(of), std::end(of), word) != std::end(of);
}
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool starts_name(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0; }
bool goes_on(char c) { return starts_name(c) || (c >= '0' && c <= '9'); }

class Parser {
  public:
    explicit Parser(std::string_view text) : text_(text) {}

    Result<GoSignature> parse() {
        GoSignature out;
        if (word("func") && peek() == '(') { // a receiver, or the parameters
            out.parameters = TRY(group());
            const size_t before = at_;
            if (!identifier().empty() && peek() == '(') { // it was a receiver
                for (GoVariable &one : TRY(group())) out.parameters.push_back(std::move(one));
            } else {
                at_ = before;
            }
            out.results = TRY(results());
        } else {
            const size_t before = at_;
            const std::string name = identifier();
            if (peek() == '(' && !is_one(name, kKeywords)) {
                if (is_one(name, kOfC)) return Unexpected(wrong(before, format("`{}` isn't a function's name in Go", name)));
                out.parameters = TRY(group());
                out.results = TRY(results());
            } else {
                at_ = before;
                out.results_known = false;
                out.parameters = TRY(list('\0'));
            }
        }
        if (peek() != '\0') return Unexpected(wrong(at_, format("`{}` isn't expected here", peek())));
        if (out.parameters.size() > kMostParameters || out.results.size() > kMostParameters)
            return Unexpected(wrong(0, format("more than {} arguments", kMostParameters)));
        return out;
    }

  private:
    using Variables = std::vector<GoVariable>;

    [[nodiscard]] Error wrong(size_t at, std::string_view message, std::string hint = {}) const {
        return signature_error(text_, at, message, std::move(hint));
    }
    char peek() {
        while (at_ < text_.size() && is_space(text_[at_])) ++at_;
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    bool take(std::string_view token) {
        (void)peek();
        if (!text_.substr(at_).starts_with(token)) return false;
        at_ += token.size();
        return true;
    }
    bool word(std::string_view wanted) {
        (void)peek();
        const std::string_view rest = text_.substr(at_);
        if (!rest.starts_with(wanted) || (rest.size() > wanted.size() && goes_on(rest[wanted.size()]))) return false;
        at_ += wanted.size();
        return true;
    }
    std::string identifier() {
        (void)peek();
        const size_t begin = at_;
        if (at_ < text_.size() && starts_name(text_[at_]))
            while (at_ < text_.size() && goes_on(text_[at_])) ++at_;
        return std::string(text_.substr(begin, at_ - begin));
    }

    Result<Variables> group() {
        const size_t open = at_;
        if (!take("(")) return Unexpected(wrong(at_, "`(` is expected"));
        Variables out = TRY(list(')'));
        if (!take(")")) return Unexpected(wrong(open, "this `(` is never closed"));
        return out;
    }

    Result<Variables> results() {
        if (peek() == '(') return group();
        Variables out;
        if (peek() == '\0') return out;
        GoVariable one;
        one.type = TRY(whole_type());
        out.push_back(std::move(one));
        return out;
    }

    // "a, b int, c string" or "int, string", up to `end`.
    Result<Variables> list(char end) {
        struct Entry {
            std::string name;
            std::optional<GoType> type;
            size_t at = 0;
        };
        std::vector<Entry> entries;
        bool named = false;
        while (peek() != end && peek() != '\0') {
            Entry entry;
            entry.at = at_;
            if (names_parameter()) {
                entry.name = identifier();
                if (is_one(entry.name, kOfC)) return Unexpected(wrong(entry.at, "Go writes the name before the type"));
                named = true;
                entry.type = TRY(type(0));
            } else {
                const size_t before = at_;
                const std::string lone = identifier();
                const char next = peek();
                at_ = before;
                entry.type = TRY(type(0));
                if (!lone.empty() && (next == ',' || next == end || next == '\0') && !is_one(lone, kKeywords)) entry.name = lone;
            }
            entries.push_back(std::move(entry));
            if (entries.size() > kMostParameters) break;
            if (!take(",")) break;
            if (peek() == end || peek() == '\0') return Unexpected(wrong(at_, "a type is expected"));
        }
        Variables out;
        for (size_t i = 0; i < entries.size(); ++i) {
            GoVariable one;
            if (named) { // a name alone has the type of those behind it
                size_t with = i;
                while (with < entries.size() && is_lone(entries[with].name, *entries[with].type)) ++with;
                if (with == entries.size() || entries[with].name.empty())
                    return Unexpected(wrong(entries[i].at, "a name without a type, or a type without a name"));
                one.name = entries[i].name;
                one.type = *entries[with].type;
            } else {
                one.type = std::move(*entries[i].type);
            }
            TRY(known(one.type, entries[i].at));
            out.push_back(std::move(one));
        }
        return out;
    }
    // An entry that is one word, which stands for itself as a type as well.
    static bool is_lone(const std::string &name, const GoType &type) { return !name.empty() && type.name == name; }

    // Whether a name stands here with its type behind it.
    bool names_parameter() {
        const size_t before = at_;
        const std::string name = identifier();
        const char next = peek();
        const std::string_view rest = text_.substr(std::min(at_, text_.size()));
        const char second = rest.size() > 1 ? rest[1] : '\0';
        at_ = before;
        if (name.empty() || is_one(name, kKeywords)) return false;
        if (next == '[') return second == ']' || (second >= '0' && second <= '9'); // else List[int]
        return next == '*' || next == '(' || next == '<' || starts_name(next) || rest.starts_with("...");
    }

    // What a value is made of has to be known.
    Result<void> known(const GoType &type, size_t at) const {
        if (type.kind == Kind::unknown)
            return Unexpected(wrong(at, format("type `{}` isn't known", type.name),
                                    "known are Go's own, pointers to anything, struct{NAME TYPE; ...}, interface{...}"));
        for (const GoVariable &field : type.fields) TRY(known(field.type, at));
        if (type.kind == Kind::array) TRY(known(*type.element, at));
        return {};
    }
    Result<GoType> whole_type() {
        const size_t at = at_;
        GoType out = TRY(type(0));
        TRY(known(out, at));
        return out;
    }

    Result<GoType> type(int depth) {
        (void)peek();
        const size_t begin = at_;
        if (depth > kDeepest) return Unexpected(wrong(at_, "nested too deep"));
        GoType out = TRY(bare_type(depth));
        if (out.name.empty()) out.name = std::string(text_.substr(begin, at_ - begin));
        return out;
    }

    static GoType made(Kind kind, uint64_t size) {
        GoType out;
        out.kind = kind;
        out.size = size;
        return out;
    }

    Result<GoType> bare_type(int depth) {
        if (take("*")) {
            (void)TRY(type(depth + 1));
            return made(Kind::address, 8);
        }
        if (take("(")) {
            GoType inner = TRY(type(depth + 1));
            if (!take(")")) return Unexpected(wrong(at_, "`)` is expected"));
            return inner;
        }
        if (take("...")) return slice(depth);
        if (take("[")) {
            if (take("]")) return slice(depth);
            return array(depth);
        }
        if (take("<-")) {
            if (!word("chan")) return Unexpected(wrong(at_, "`chan` is expected"));
            (void)TRY(type(depth + 1));
            return made(Kind::address, 8);
        }
        if (word("chan")) {
            (void)take("<-");
            (void)TRY(type(depth + 1));
            return made(Kind::address, 8);
        }
        if (word("map")) {
            if (!take("[")) return Unexpected(wrong(at_, "`[` is expected"));
            (void)TRY(type(depth + 1));
            if (!take("]")) return Unexpected(wrong(at_, "`]` is expected"));
            (void)TRY(type(depth + 1));
            return made(Kind::address, 8);
        }
        if (word("func")) {
            TRY(skip('(', ')'));
            if (peek() == '(')
                TRY(skip('(', ')'));
            else if (peek() != ',' && peek() != ')' && peek() != '\0' && peek() != ';' && peek() != '}')
                (void)TRY(type(depth + 1));
            return made(Kind::address, 8);
        }
        if (word("interface")) {
            const size_t open = at_;
            TRY(skip('{', '}'));
            GoType out = made(Kind::interface, 16);
            const std::string_view inside = text_.substr(open, at_ - open);
            out.has_methods = std::any_of(inside.begin(), inside.end(), [](char c) { return starts_name(c); });
            return out;
        }
        if (word("struct")) return structure(depth);
        return name();
    }

    Result<GoType> slice(int depth) {
        GoType out = made(Kind::slice, 24);
        out.element = std::make_shared<GoType>(TRY(type(depth + 1)));
        return out;
    }

    Result<GoType> array(int depth) {
        GoType out = made(Kind::array, 0);
        const size_t begin = at_;
        while (peek() >= '0' && peek() <= '9' && out.count <= kLongestArray)
            out.count = out.count * 10 + uint64_t(text_[at_++] - '0');
        if (out.count > kLongestArray) return Unexpected(wrong(begin, "an array as long as that isn't passed by value"));
        if (at_ == begin || !take("]")) return Unexpected(wrong(begin, "a number and `]` are expected"));
        out.element = std::make_shared<GoType>(TRY(type(depth + 1)));
        out.size = out.element->size * out.count;
        if (out.size > kLongestArray) return Unexpected(wrong(begin, "an array as long as that isn't passed by value"));
        return out;
    }

    Result<GoType> structure(int depth) {
        GoType out = made(Kind::structure, 0);
        const size_t open = at_;
        if (!take("{")) return Unexpected(wrong(at_, "`{` is expected"));
        while (peek() != '}' && peek() != '\0') {
            std::vector<std::string> names;
            do {
                names.push_back(identifier());
                if (names.back().empty()) return Unexpected(wrong(at_, "a field's name is expected"));
            } while (take(","));
            const GoType field = TRY(type(depth + 1));
            for (std::string &one : names) out.fields.push_back({std::move(one), field});
            if (out.fields.size() > kMostParameters)
                return Unexpected(wrong(open, format("more than {} fields", kMostParameters)));
            if (!take(";")) break;
        }
        if (!take("}")) return Unexpected(wrong(open, "this `{` is never closed"));
        lay_out_go_structure(out);
        return out;
    }

    // Up to the bracket that closes this one.
    Result<void> skip(char open, char close) {
        if (peek() != open) return Unexpected(wrong(at_, format("`{}` is expected", open)));
        const size_t begin = at_;
        int depth = 0;
        for (; at_ < text_.size(); ++at_) {
            if (text_[at_] == open) ++depth;
            if (text_[at_] == close && --depth == 0) {
                ++at_;
                return {};
            }
        }
        return Unexpected(wrong(begin, format("this `{}` is never closed", open)));
    }

    Result<GoType> name() {
        const size_t begin = at_;
        std::string text = identifier();
        if (text.empty()) {
            const char c = peek();
            return Unexpected(
                wrong(begin, c == '\0' ? "a type is expected" : format("`{}` isn't expected in a type of Go's", c)));
        }
        while (at_ < text_.size() && (text_[at_] == '.' || text_[at_] == '/') && at_ + 1 < text_.size() &&
               starts_name(text_[at_ + 1])) {
            text += text_[at_++];
            text += identifier();
        }
        if (at_ < text_.size() && text_[at_] == '[') { // of a generic type
            const size_t from = at_;
            TRY(skip('[', ']'));
            text += text_.substr(from, at_ - from);
        }
        GoType out;
        out.name = text;
        for (const Named &row : kNamed)
            if (row.name == text) {
                out.kind = row.kind;
                out.size = row.size;
                out.is_signed = row.is_signed;
                out.has_methods = row.has_methods;
            }
        return out;
    }

    std::string_view text_;
    size_t at_ = 0;
};

} // namespace

Result<GoSignature> parse_go_signature(std::string_view text) { return Parser(text).parse(); }

} // namespace rawbpf::inline v0::trace
