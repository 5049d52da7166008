// Rust's second mangling ("v0"), which is a language of its own: RFC 2603 and its later additions, as in
// https://doc.rust-lang.org/rustc/symbol-mangling/v0.html.
//
//     _R  N v  C s1_5crate  3foo          crate::foo          (C crate root, N path and namespace, s1_ disambiguator)
//     _R  I    <path>  l t  E             path::<i32, u16>    (I generic arguments ... E, lower-case letters basic types)
//     _R  X .. <type> <path>              <type as path>      (X trait impl, M inherent impl, Y the trait itself)
//     B 4_                                what stood at byte 5 after "_R" (a back reference)
//
// The grammar is LL(1) on one letter, so this is plain recursive descent that prints as it reads. Two things are not plain:
// - Back references make the readable text exponential in the mangled one (each can double it). Depth, steps and output are
//   all bounded; a name that goes over is left mangled.
// - Parts that aren't shown (an impl's own path, the instantiating crate) are read with printing off, and then a back reference
//   isn't followed, so that skipping costs no more than the bytes skipped.
//
// Shown is what rustc's own demangler calls the alternate form: no crate hashes, no type behind a constant.
#include "runtime/symbols/demangle.h"

#include <cstdint>
#include <utility>

#include "runtime/base/format.h"
#include "runtime/symbols/clones.h"
#include "runtime/symbols/punycode.h"
#include "runtime/symbols/text.h"
#include "runtime/symbols/utf8.h"

namespace rawbpf::inline v0::symbols {
namespace {

constexpr int kMaxDepth = 200;
constexpr size_t kMaxSteps = 100'000;
constexpr size_t kMaxOutput = 64 << 10;

constexpr Text basic_type(char tag) {
    switch (tag) {
    case 'a': return "i8";
    case 'b': return "bool";
    case 'c': return "char";
    case 'd': return "f64";
    case 'e': return "str";
    case 'f': return "f32";
    case 'h': return "u8";
    case 'i': return "isize";
    case 'j': return "usize";
    case 'l': return "i32";
    case 'm': return "u32";
    case 'n': return "i128";
    case 'o': return "u128";
    case 's': return "i16";
    case 't': return "u16";
    case 'u': return "()";
    case 'v': return "...";
    case 'x': return "i64";
    case 'y': return "u64";
    case 'z': return "!";
    case 'p': return "_";
    default: return {};
    }
}

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

// One parser for one name. Every function either succeeds or sets failed_ for good; callers need not look until the end,
// because a failed parser reads nothing more, and every loop looks at failed_.
class V0 {
  public:
    explicit V0(std::string_view text) : text_(text) {}

    std::optional<std::string> run() {
        path(true);
        if (!failed_ && is_upper(peek())) { // the crate that made this copy of a generic function
            Silence quiet(*this);
            path(false);
        }
        if (failed_ || out_.empty()) return std::nullopt;
        std::string_view suffix = text_.substr(at_);
        if (!suffix.empty() && suffix[0] != '.' && suffix[0] != '$') return std::nullopt;
        append_clones(out_, suffix);
        return std::move(out_);
    }

  private:
    struct Identifier {
        std::string_view text;
        bool punycode = false;
    };

    // Reads on without printing while it lives.
    struct Silence {
        explicit Silence(V0 &parser) : parser(parser), before(parser.silent_) { parser.silent_ = true; }
        ~Silence() { parser.silent_ = before; }
        V0 &parser;
        bool before;
    };

    // One level of the recursion; ends the parse when it is too deep or the name makes too much work.
    struct Level {
        explicit Level(V0 &parser) : parser(parser) {
            if (++parser.depth_ > kMaxDepth || ++parser.steps_ > kMaxSteps) parser.failed_ = true;
        }
        ~Level() { --parser.depth_; }
        V0 &parser;
    };

    // --- letters and numbers

    char peek() const { return at_ < text_.size() && !failed_ ? text_[at_] : '\0'; }
    bool eat(char c) {
        if (peek() != c) return false;
        ++at_;
        return true;
    }
    char next() {
        char c = peek();
        if (c == '\0')
            failed_ = true;
        else
            ++at_;
        return c;
    }
    void print(Text written) {
        if (silent_ || failed_) return;
        const std::string_view text = written.view();
        if (out_.size() + text.size() > kMaxOutput)
            failed_ = true;
        else
            out_ += text;
    }
    void print_number(uint64_t number) { print(Text(format("{}", number))); }

    // "_" is 0, "0_" is 1, "Z_" is 62, "10_" is 63.
    uint64_t base_62() {
        if (eat('_')) return 0;
        uint64_t value = 0;
        while (!failed_ && !eat('_')) {
            char c = next();
            unsigned digit = c >= '0' && c <= '9' ? static_cast<unsigned>(c - '0')
                             : is_lower(c)        ? static_cast<unsigned>(c - 'a' + 10)
                             : is_upper(c)        ? static_cast<unsigned>(c - 'A' + 36)
                                                  : 62;
            if (digit == 62 || __builtin_mul_overflow(value, uint64_t{62}, &value) ||
                __builtin_add_overflow(value, uint64_t{digit}, &value))
                failed_ = true;
        }
        if (__builtin_add_overflow(value, uint64_t{1}, &value)) failed_ = true;
        return value;
    }
    // A base-62 number behind a letter; 0 without the letter, else one more than what is written.
    uint64_t optional_base_62(char tag) {
        if (!eat(tag)) return 0;
        uint64_t value = base_62();
        if (__builtin_add_overflow(value, uint64_t{1}, &value)) failed_ = true;
        return value;
    }
    uint64_t disambiguator() { return optional_base_62('s'); }

    Identifier identifier() {
        Identifier id;
        id.punycode = eat('u');
        char c = next();
        if (c < '0' || c > '9') return failed_ = true, Identifier{};
        size_t length = static_cast<size_t>(c - '0');
        if (length != 0) {
            while (peek() >= '0' && peek() <= '9') {
                length = length * 10 + static_cast<size_t>(next() - '0');
                if (length > text_.size()) return failed_ = true, Identifier{};
            }
        }
        eat('_'); // stands between the length and a name that begins with a digit or '_'
        if (failed_ || text_.size() - at_ < length) return failed_ = true, Identifier{};
        id.text = text_.substr(at_, length);
        at_ += length;
        return id;
    }
    void print(const Identifier &id) {
        if (!id.punycode) return print(Text(id.text));
        if (silent_ || failed_) return;
        if (std::optional<std::string> decoded = decode_punycode(id.text)) return print(Text(*decoded));
        print("punycode{");
        print(Text(id.text));
        print("}");
    }

    // Runs `read` at the place that the back reference names, unless nothing is printed anyway.
    template <class Read> void back_reference(Read read) {
        size_t from = at_ - 1; // of its 'B': a reference may only go backwards, so it can't loop
        uint64_t target = base_62();
        if (failed_ || target >= from) {
            failed_ = true;
            return;
        }
        if (silent_) return;
        Level level(*this);
        size_t back = std::exchange(at_, static_cast<size_t>(target));
        if (!failed_) read();
        at_ = back;
    }

    // Items up to 'E', with a separator between them; how many there were.
    template <class Item> size_t list(Text separator, Item item) {
        size_t count = 0;
        while (!failed_ && !eat('E')) {
            if (count++ > 0) print(separator);
            item();
        }
        return count;
    }

    // --- lifetimes

    void print_lifetime(uint64_t index) { // counted from the innermost binder; 0 is erased
        if (index == 0) return print("'_");
        if (index > bound_lifetimes_) {
            failed_ = true;
            return;
        }
        uint64_t depth = bound_lifetimes_ - index;
        if (depth < 26) {
            char name[] = {'\'', static_cast<char>('a' + depth)};
            print(Text(std::string_view(name, 2)));
        } else {
            print("'_"), print_number(depth);
        }
    }
    // "for<'a, 'b> " around what `read` prints.
    template <class Read> void in_binder(Read read) {
        uint64_t count = optional_base_62('G');
        if (count > kMaxSteps) failed_ = true;
        uint64_t outer = bound_lifetimes_;
        if (count > 0 && !failed_) {
            print("for<");
            for (uint64_t i = 0; i < count && !failed_; ++i) {
                if (i > 0) print(", ");
                ++bound_lifetimes_;
                if (!silent_) print_lifetime(1);
                if (++steps_ > kMaxSteps) failed_ = true;
            }
            print("> ");
        }
        read();
        bound_lifetimes_ = outer;
    }

    // --- paths

    // `value`: in an expression, where generic arguments are written "::<...>".
    void path(bool value) {
        Level level(*this);
        if (failed_) return;
        char tag = next();
        switch (tag) {
        case 'C': disambiguator(); return print(identifier());
        case 'N': return nested_path(value);
        case 'M':
        case 'X': {
            disambiguator();
            Silence quiet(*this); // where the impl stands says nothing to a reader
            path(false);
        }
            [[fallthrough]];
        case 'Y':
            print("<");
            type();
            if (tag != 'M') {
                print(" as ");
                path(false);
            }
            return print(">");
        case 'I':
            path(value);
            print(value ? Text("::<") : Text("<"));
            list(", ", [&] { generic_argument(); });
            return print(">");
        case 'B': return back_reference([&] { path(value); });
        default: failed_ = true;
        }
    }

    void nested_path(bool value) {
        char space = next();
        if (!is_upper(space) && !is_lower(space)) {
            failed_ = true;
            return;
        }
        path(value);
        uint64_t number = disambiguator();
        Identifier name = identifier();
        if (is_lower(space)) { // types, values ...: which of them, the reader doesn't need to know
            if (name.text.empty()) return;
            print("::");
            return print(name);
        }
        print("::{");
        print(space == 'C' ? Text("closure") : space == 'S' ? Text("shim") : Text(std::string_view(&space, 1)));
        if (!name.text.empty()) {
            print(":");
            print(name);
        }
        print("#"), print_number(number), print("}");
    }

    // A path whose "<...>" may stay open, for a trait object's associated types to join; true when it did.
    bool open_path() {
        Level level(*this);
        if (failed_) return false;
        if (eat('B')) {
            bool open = false;
            back_reference([&] { open = open_path(); });
            return open;
        }
        if (!eat('I')) return path(false), false;
        path(false);
        print("<");
        list(", ", [&] { generic_argument(); });
        return true;
    }

    void generic_argument() {
        if (eat('L'))
            print_lifetime(base_62());
        else if (eat('K'))
            constant(false);
        else
            type();
    }

    // --- types

    void type() {
        Level level(*this);
        if (failed_) return;
        char tag = next();
        if (const Text name = basic_type(tag); !name.view().empty()) return print(name);
        switch (tag) {
        case 'R':
        case 'Q':
            print("&");
            if (eat('L')) {
                if (uint64_t lifetime = base_62(); lifetime != 0) {
                    print_lifetime(lifetime);
                    print(" ");
                }
            }
            if (tag == 'Q') print("mut ");
            return type();
        case 'P': return print("*const "), type();
        case 'O': return print("*mut "), type();
        case 'A':
        case 'S':
            print("[");
            type();
            if (tag == 'A') {
                print("; ");
                constant(true);
            }
            return print("]");
        case 'T': {
            print("(");
            size_t count = list(", ", [&] { type(); });
            return print(count == 1 ? Text(",)") : Text(")"));
        }
        case 'F': return in_binder([&] { function_type(); });
        case 'D':
            print("dyn ");
            in_binder([&] { list(" + ", [&] { dyn_trait(); }); });
            if (!eat('L')) {
                failed_ = true;
                return;
            }
            if (uint64_t lifetime = base_62(); lifetime != 0) {
                print(" + ");
                print_lifetime(lifetime);
            }
            return;
        case 'W': return type(), print(" is "), pattern();
        case 'B': return back_reference([&] { type(); });
        default: --at_; return path(false);
        }
    }

    void function_type() {
        if (eat('U')) print("unsafe ");
        if (eat('K')) {
            print("extern \"");
            if (eat('C')) {
                print("C");
            } else {
                Identifier abi = identifier();
                if (abi.punycode || abi.text.empty()) failed_ = true;
                for (char c : abi.text) print(c == '_' ? Text("-") : Text(std::string_view(&c, 1)));
            }
            print("\" ");
        }
        print("fn(");
        list(", ", [&] { type(); });
        print(")");
        if (eat('u')) return; // "-> ()" is not written
        print(" -> ");
        type();
    }

    void dyn_trait() {
        bool open = open_path();
        while (!failed_ && eat('p')) {
            print(open ? Text(", ") : Text("<"));
            open = true;
            print(identifier());
            print(" = ");
            type();
        }
        if (open) print(">");
    }

    void pattern() {
        Level level(*this);
        if (failed_) return;
        switch (next()) {
        case 'R': return constant(false), print("..="), constant(false);
        case 'O': list(" | ", [&] { pattern(); }); return;
        case 'N': return print("!null");
        default: failed_ = true;
        }
    }

    // --- constants

    // `value`: where an expression may stand as it is; elsewhere anything but a literal goes into braces.
    void constant(bool value) {
        Level level(*this);
        if (failed_) return;
        char tag = next();
        switch (tag) {
        case 'p': return print("_");
        case 'B': return back_reference([&] { constant(value); });
        case 'a':
        case 's':
        case 'l':
        case 'x':
        case 'n':
        case 'i':
            if (eat('n')) print("-");
            return integer();
        case 'h':
        case 't':
        case 'm':
        case 'y':
        case 'o':
        case 'j': return integer();
        case 'b': {
            std::string_view digits = hex_digits();
            if (digits != "0" && digits != "1") failed_ = true;
            return print(digits == "1" ? Text("true") : Text("false"));
        }
        case 'c': return character();
        default: break;
        }
        if (tag == 'R' && peek() == 'e') return ++at_, string_literal();
        if (!value) print("{");
        switch (tag) {
        case 'e': print("*"), string_literal(); break;
        case 'R':
        case 'Q': print(tag == 'R' ? Text("&") : Text("&mut ")), constant(true); break;
        case 'A':
            print("[");
            list(", ", [&] { constant(true); });
            print("]");
            break;
        case 'T': {
            print("(");
            size_t count = list(", ", [&] { constant(true); });
            print(count == 1 ? Text(",)") : Text(")"));
            break;
        }
        case 'V': variant(); break;
        default: failed_ = true;
        }
        if (!value) print("}");
    }

    void variant() { // a struct or one variant of an enum
        path(true);
        switch (next()) {
        case 'U': return;
        case 'T':
            print("(");
            list(", ", [&] { constant(true); });
            return print(")");
        case 'S':
            print(" { ");
            list(", ", [&] {
                disambiguator();
                print(identifier());
                print(": ");
                constant(true);
            });
            return print(" }");
        default: failed_ = true;
        }
    }

    std::string_view hex_digits() { // lower-case, up to '_', which is eaten
        size_t from = at_;
        while (hex_digit(peek()) >= 0 && !is_upper(peek())) ++at_;
        std::string_view digits = text_.substr(from, at_ - from);
        if (!eat('_')) failed_ = true;
        return digits;
    }
    void integer() {
        std::string_view digits = hex_digits();
        while (digits.size() > 1 && digits[0] == '0') digits.remove_prefix(1);
        if (digits.empty()) failed_ = true;
        if (digits.size() > 16) return print("0x"), print(Text(digits));
        uint64_t value = 0;
        for (char c : digits) value = value << 4 | static_cast<unsigned>(hex_digit(c));
        print_number(value);
    }
    void character() {
        std::string_view digits = hex_digits();
        uint32_t value = 0;
        if (digits.empty() || digits.size() > 6) failed_ = true;
        for (char c : digits) value = value << 4 | static_cast<unsigned>(hex_digit(c));
        print("'");
        print_escaped(value, '\'');
        print("'");
    }
    void string_literal() {
        std::string_view digits = hex_digits();
        if (digits.size() % 2 != 0) failed_ = true;
        print("\"");
        for (size_t i = 0; i + 1 < digits.size() && !failed_; i += 2) {
            auto byte = static_cast<unsigned>(hex_digit(digits[i]) << 4 | hex_digit(digits[i + 1]));
            char raw = static_cast<char>(byte);
            if (byte < 0x80)
                print_escaped(byte, '"');
            else
                print(Text(std::string_view(&raw, 1))); // part of a longer letter
        }
        print("\"");
    }
    void print_escaped(uint32_t letter, char quote) {
        std::string text;
        switch (letter) {
        case '\n': text = "\\n"; break;
        case '\r': text = "\\r"; break;
        case '\t': text = "\\t"; break;
        case '\0': text = "\\0"; break;
        case '\\': text = "\\\\"; break;
        default:
            if (letter < 0x20 || letter == 0x7f)
                append(text, "\\u{{{:x}}}", letter);
            else if (letter == static_cast<unsigned char>(quote))
                text = {'\\', quote};
            else if (!append_utf8(text, letter))
                failed_ = true;
        }
        print(Text(text));
    }

    std::string_view text_; // after "_R"; back references count from its start
    size_t at_ = 0;
    std::string out_;
    bool failed_ = false, silent_ = false;
    int depth_ = 0;
    size_t steps_ = 0;
    uint64_t bound_lifetimes_ = 0;
};

} // namespace

std::optional<std::string> demangle_rust_v0(std::string_view mangled) {
    // A digit would be the version of an encoding that doesn't exist yet.
    if (!mangled.starts_with("_R") || mangled.size() < 3 || !is_upper(mangled[2])) return std::nullopt;
    for (char c : mangled)
        if (static_cast<unsigned char>(c) < 0x21 || static_cast<unsigned char>(c) > 0x7e) return std::nullopt;
    return V0(mangled.substr(2)).run();
}

} // namespace rawbpf::inline v0::symbols
