// Types, in the Itanium C++ ABI's mangling: one letter for what is built in (i int, c char), one in front for what is made of
// another type (P pointer, K const), F..E for functions, and class names as in cxx_names.cpp.
//
//     P F i c E        int (*)(char)
//     R A3_ K i        int const (&) [3]
//     M 1X F v v E     void (X::*)()
//     DpOT_            T&&..., each of the pack's types in turn
//
// Every type that isn't built in can be substituted later.
#include "runtime/symbols/cxx_parser.h"

namespace rawbpf::inline v0::symbols::cxx {
namespace {

Text builtin(char letter) {
    switch (letter) {
    case 'v': return "void";
    case 'w': return "wchar_t";
    case 'b': return "bool";
    case 'c': return "char";
    case 'a': return "signed char";
    case 'h': return "unsigned char";
    case 's': return "short";
    case 't': return "unsigned short";
    case 'i': return "int";
    case 'j': return "unsigned int";
    case 'l': return "long";
    case 'm': return "unsigned long";
    case 'x': return "long long";
    case 'y': return "unsigned long long";
    case 'n': return "__int128";
    case 'o': return "unsigned __int128";
    case 'f': return "float";
    case 'd': return "double";
    case 'e': return "long double";
    case 'g': return "__float128";
    case 'z': return "...";
    default: return {};
    }
}

Text builtin_d(char letter) { // behind 'D'
    switch (letter) {
    case 'd': return "decimal64";
    case 'e': return "decimal128";
    case 'f': return "decimal32";
    case 'h': return "half";
    case 'i': return "char32_t";
    case 's': return "char16_t";
    case 'u': return "char8_t";
    case 'a': return "auto";
    case 'c': return "decltype(auto)";
    case 'n': return "decltype(nullptr)";
    default: return {};
    }
}

} // namespace

Node *Parser::builtin_type() {
    if (const Text text = builtin(peek()); !text.view().empty()) return ++at_, name(text);
    if (peek() != 'D') return nullptr;
    if (const Text text = builtin_d(peek(1)); !text.view().empty()) return at_ += 2, name(text);
    if (eat("DF")) { // DF16_ _Float16, DF16b std::bfloat16_t, DF32x _Float32x
        size_t from = at_ - 1;
        uint64_t bits = 0;
        if (!number(bits)) return nullptr;
        if (eat('b')) return bits == 16 ? name("std::bfloat16_t") : nullptr;
        std::string_view digits = text_.substr(from + 1, at_ - from - 1);
        Node *node = make({.kind = NodeKind::prefixed, .text = "_Float", .a = name(Text(digits))});
        if (eat('x')) return make({.kind = NodeKind::suffixed, .text = "x", .a = node});
        return eat('_') ? node : nullptr;
    }
    if (peek(1) == 'B' || peek(1) == 'U') { // _BitInt(N)
        bool is_signed = peek(1) == 'B';
        at_ += 2;
        Node *bits = nullptr;
        size_t from = at_;
        uint64_t value = 0;
        if (number(value))
            bits = name(Text(text_.substr(from, at_ - from)));
        else
            bits = expression();
        if (!bits || !eat('_')) return nullptr;
        return make({.kind = NodeKind::enclosed, .text = is_signed ? Text("_BitInt(") : Text("unsigned _BitInt("), .a = bits});
    }
    return nullptr;
}

Node *Parser::type() {
    Level level(*this);
    if (!level) return nullptr;
    if (Node *node = builtin_type()) return node;
    return plain_type();
}

Node *Parser::plain_type() {
    auto made_of = [&](Node whole, size_t letters) -> Node * {
        at_ += letters;
        whole.a = type();
        return whole.a ? substitutable(make(whole)) : nullptr;
    };
    switch (peek()) {
    case 'P': return made_of({.kind = NodeKind::pointer}, 1);
    case 'R': return made_of({.kind = NodeKind::lvalue}, 1);
    case 'O': return made_of({.kind = NodeKind::rvalue}, 1);
    case 'C': return made_of({.kind = NodeKind::suffixed, .text = " _Complex"}, 1);
    case 'G': return made_of({.kind = NodeKind::suffixed, .text = " _Imaginary"}, 1);
    case 'r':
    case 'V':
    case 'K':
    case 'U': return substitutable(qualified_type());
    case 'F': return substitutable(function_type());
    case 'A': return substitutable(array_type());
    case 'M': {
        ++at_;
        Node *of = type();
        Node *what = of ? type() : nullptr;
        return what ? substitutable(make({.kind = NodeKind::member, .a = of, .b = what})) : nullptr;
    }
    case 'u': { // a vendor's own type, or a compiler's trait over others
        ++at_;
        Node *own = source_name();
        if (own && peek() == 'I') {
            Node *args = template_args();
            own = args ? make({.kind = NodeKind::template_id, .a = own, .b = args}) : nullptr;
        }
        return substitutable(own);
    }
    case 'D':
        switch (peek(1)) {
        case 't':
        case 'T': return substitutable(decltype_type());
        case 'v': return substitutable(vector_type());
        case 'p': return made_of({.kind = NodeKind::expansion}, 2);
        case 'o':
        case 'O':
        case 'w':
        case 'x': return substitutable(function_type());
        default: return substitutable(any_name(nullptr));
        }
    case 'T': {
        static constexpr Letter kElaborated[] = {{'s', "struct "}, {'u', "union "}, {'e', "enum "}};
        for (auto [letter, text] : kElaborated) {
            if (peek(1) != letter) continue;
            at_ += 2;
            Node *inner = any_name(nullptr);
            return inner ? substitutable(make({.kind = NodeKind::prefixed, .text = text, .a = inner})) : nullptr;
        }
        Node *parameter = substitutable(template_parameter());
        if (!parameter || peek() != 'I' || plain_parameter_) return parameter;
        Node *args = template_args();
        return args ? substitutable(make({.kind = NodeKind::template_id, .a = parameter, .b = args})) : nullptr;
    }
    case 'S':
        if (peek(1) != 't') {
            Node *known = substitution();
            if (!known || peek() != 'I' || (plain_parameter_ && known->kind == NodeKind::template_parameter)) return known;
            Node *args = template_args();
            return args ? substitutable(make({.kind = NodeKind::template_id, .a = known, .b = args})) : nullptr;
        }
        [[fallthrough]];
    default: return substitutable(any_name(nullptr));
    }
}

Node *Parser::qualified_type() {
    if (eat('U')) {
        Node *qualifier = source_name();
        if (!qualifier) return nullptr;
        Node whole{.kind = NodeKind::vendor, .text = qualifier->text};
        if (peek() == 'I' && !(whole.b = template_args())) return nullptr;
        whole.a = type();
        return whole.a ? make(whole) : nullptr;
    }
    uint8_t set = cv_qualifiers();
    bool function = peek() == 'F' || (peek() == 'D' && (peek(1) == 'o' || peek(1) == 'O' || peek(1) == 'w' || peek(1) == 'x'));
    if (function) { // a member function's const is its own, not its type's
        Node *node = function_type();
        if (node) node->qualifiers |= set;
        return node;
    }
    Node *of = type();
    return of ? make({.kind = NodeKind::qualified, .qualifiers = set, .a = of}) : nullptr;
}

Node *Parser::function_type() {
    Node whole{.kind = NodeKind::function};
    if (eat("Do")) {
        whole.b = name("noexcept");
    } else if (eat("DO")) {
        Node *condition = expression();
        if (!condition || !eat('E')) return nullptr;
        whole.b = wrap("noexcept(", condition);
    } else if (eat("Dw")) {
        std::vector<Node *> thrown;
        if (!until_end(thrown, [&] { return type(); })) return nullptr;
        whole.b = make({.kind = NodeKind::list_in, .text = "throw(", .list = arena_.keep(std::move(thrown))});
    }
    eat("Dx"); // transaction-safe
    if (!eat('F')) return nullptr;
    eat('Y'); // extern "C"
    if (!(whole.a = type())) return nullptr;
    std::vector<Node *> parameters;
    for (;;) {
        if (eat('E')) break;
        if (eat('v')) continue;
        if (eat("RE")) {
            whole.qualifiers = kLvalueRef;
            break;
        }
        if (eat("OE")) {
            whole.qualifiers = kRvalueRef;
            break;
        }
        Node *parameter = type();
        if (!parameter) return nullptr;
        parameters.push_back(parameter);
    }
    whole.list = arena_.keep(std::move(parameters));
    return make(whole);
}

Node *Parser::array_type() {
    if (!eat('A')) return nullptr;
    Node whole{.kind = NodeKind::array};
    if (!number_text(whole.b) && peek() != '_' && !(whole.b = expression())) return nullptr;
    if (!eat('_') || !(whole.a = type())) return nullptr;
    return make(whole);
}

Node *Parser::vector_type() {
    if (!eat("Dv")) return nullptr;
    Node whole{.kind = NodeKind::vector};
    if (!number_text(whole.b) && (!eat('_') || !(whole.b = expression()))) return nullptr;
    if (!eat('_')) return nullptr;
    whole.a = eat('p') ? name("pixel") : type();
    return whole.a ? make(whole) : nullptr;
}

Node *Parser::decltype_type() {
    if (!eat("Dt") && !eat("DT")) return nullptr;
    Node *inner = expression();
    return inner && eat('E') ? wrap("decltype(", inner) : nullptr;
}

Node *Parser::template_parameter() {
    if (!eat('T')) return nullptr;
    uint64_t index = 0, level = 0;
    if (eat('L') && (!number(level) || !eat('_'))) return nullptr; // of a lambda's own, which are all written "auto"
    bool counted = number(index);
    if (!eat('_')) return nullptr;
    if (counted) ++index;
    return make({.kind = NodeKind::template_parameter, .number = index});
}

Node *Parser::template_args() {
    Level level(*this);
    if (!level || !eat('I')) return nullptr;
    Swap<bool> plain(plain_parameter_, false);
    std::vector<Node *> args;
    while (!eat('E')) {
        if (eat('Q')) { // a constraint, which ends them
            if (!expression() || !eat('E')) return nullptr;
            break;
        }
        if (at_parameter_declaration() && !parameter_declaration()) return nullptr;
        Node *arg = template_argument();
        if (!arg) return nullptr;
        args.push_back(arg);
    }
    return make({.kind = NodeKind::template_args, .list = arena_.keep(std::move(args))});
}

// What a parameter was declared as, where its argument alone doesn't say (C++20): Ty a type, Tn a value of a type, Tt a template,
// Tp a pack, Tk a type that meets a concept. Not shown.
bool Parser::at_parameter_declaration() const {
    return peek() == 'T' && std::string_view("yntpk").find(peek(1)) != std::string_view::npos && peek(1) != '\0';
}
bool Parser::parameter_declaration() {
    Level level(*this);
    if (!level) return false;
    char kind = peek(1);
    at_ += 2;
    switch (kind) {
    case 'n': return type() != nullptr;
    case 'k': return any_name(nullptr) != nullptr;
    case 'p': return at_parameter_declaration() && parameter_declaration();
    case 't':
        while (!eat('E')) {
            if (eat('Q') && !expression()) return false;
            if (!at_parameter_declaration() || !parameter_declaration()) return false;
        }
        return true;
    default: return true;
    }
}

Node *Parser::template_argument() {
    Level level(*this);
    if (!level) return nullptr;
    switch (peek()) {
    case 'X': {
        ++at_;
        Node *inner = expression();
        return inner && eat('E') ? inner : nullptr;
    }
    case 'J': {
        ++at_;
        std::vector<Node *> args;
        if (!until_end(args, [&] { return template_argument(); })) return nullptr;
        return make({.kind = NodeKind::argument_pack, .list = arena_.keep(std::move(args))});
    }
    case 'L':
        if (peek(1) != 'Z') return primary_expression();
        at_ += 2;
        if (Node *inner = encoding()) return eat('E') ? inner : nullptr;
        return nullptr;
    default: return type();
    }
}

} // namespace rawbpf::inline v0::symbols::cxx
