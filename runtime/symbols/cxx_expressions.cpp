// Expressions, in the Itanium C++ ABI's mangling: they stand in decltype, array sizes, noexcept and template arguments, in Polish
// notation with two letters an operator.
//
//     decltype(t + u)     DT pl fp_ fp0_ E        pl plus, fp_ the first parameter
//     X<(N > 3)>          X gt T_ Li3E E          L type value E a literal
#include "runtime/symbols/cxx_parser.h"

#include <algorithm>
#include <cstring>

namespace rawbpf::inline v0::symbols::cxx {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Sorted by code. Those that can be a function's name have the text that follows "operator".
constexpr Operator kOperators[] = {
    {"aN", Shape::binary, kAssign, "&="},
    {"aS", Shape::binary, kAssign, "="},
    {"aa", Shape::binary, kAndIf, "&&"},
    {"ad", Shape::prefix, kUnary, "&"},
    {"an", Shape::binary, kAnd, "&"},
    {"at", Shape::of_type, kUnary, "alignof ("},
    {"aw", Shape::prefix, kUnary, "co_await "},
    {"az", Shape::of_value, kUnary, "alignof ("},
    {"cc", Shape::named_cast, kPostfix, "const_cast"},
    {"cl", Shape::call, kPostfix, "()"},
    {"cm", Shape::binary, kComma, ","},
    {"co", Shape::prefix, kUnary, "~"},
    {"cv", Shape::c_cast, kCast, ""},
    {"dV", Shape::binary, kAssign, "/="},
    {"da", Shape::destroy, kUnary, "delete[] "},
    {"dc", Shape::named_cast, kPostfix, "dynamic_cast"},
    {"de", Shape::prefix, kUnary, "*"},
    {"dl", Shape::destroy, kUnary, "delete "},
    {"ds", Shape::member, kMemberPointer, ".*"},
    {"dt", Shape::member, kPostfix, "."},
    {"dv", Shape::binary, kMultiply, "/"},
    {"eO", Shape::binary, kAssign, "^="},
    {"eo", Shape::binary, kXor, "^"},
    {"eq", Shape::binary, kEquality, "=="},
    {"ge", Shape::binary, kRelation, ">="},
    {"gt", Shape::binary, kRelation, ">"},
    {"ix", Shape::subscript, kPostfix, "[]"},
    {"lS", Shape::binary, kAssign, "<<="},
    {"le", Shape::binary, kRelation, "<="},
    {"ls", Shape::binary, kShift, "<<"},
    {"lt", Shape::binary, kRelation, "<"},
    {"mI", Shape::binary, kAssign, "-="},
    {"mL", Shape::binary, kAssign, "*="},
    {"mi", Shape::binary, kAdd, "-"},
    {"ml", Shape::binary, kMultiply, "*"},
    {"mm", Shape::postfix, kPostfix, "--"},
    {"na", Shape::create, kUnary, "new[]"},
    {"ne", Shape::binary, kEquality, "!="},
    {"ng", Shape::prefix, kUnary, "-"},
    {"nt", Shape::prefix, kUnary, "!"},
    {"nw", Shape::create, kUnary, "new"},
    {"nx", Shape::of_value, kUnary, "noexcept ("},
    {"oR", Shape::binary, kAssign, "|="},
    {"oo", Shape::binary, kOrIf, "||"},
    {"or", Shape::binary, kOr, "|"},
    {"pL", Shape::binary, kAssign, "+="},
    {"pl", Shape::binary, kAdd, "+"},
    {"pm", Shape::member, kMemberPointer, "->*"},
    {"pp", Shape::postfix, kPostfix, "++"},
    {"ps", Shape::prefix, kUnary, "+"},
    {"pt", Shape::member, kPostfix, "->"},
    {"qu", Shape::conditional, kConditional, "?"},
    {"rM", Shape::binary, kAssign, "%="},
    {"rS", Shape::binary, kAssign, ">>="},
    {"rc", Shape::named_cast, kPostfix, "reinterpret_cast"},
    {"rm", Shape::binary, kMultiply, "%"},
    {"rs", Shape::binary, kShift, ">>"},
    {"sc", Shape::named_cast, kPostfix, "static_cast"},
    {"ss", Shape::binary, kSpaceship, "<=>"},
    {"st", Shape::of_type, kUnary, "sizeof ("},
    {"sz", Shape::of_value, kUnary, "sizeof ("},
    {"te", Shape::of_value, kPostfix, "typeid ("},
    {"ti", Shape::of_type, kPostfix, "typeid ("},
};

} // namespace

const Operator *find_operator(char first, char second) {
    const char code[] = {first, second, 0};
    auto at = std::lower_bound(std::begin(kOperators), std::end(kOperators), code,
                               [](const Operator &o, const char *wanted) { return std::strcmp(o.code, wanted) < 0; });
    return at != std::end(kOperators) && std::strcmp(at->code, code) == 0 ? at : nullptr;
}

Node *Parser::wrap(Text before, Node *inner) {
    return inner ? make({.kind = NodeKind::enclosed, .text = before, .a = inner}) : nullptr;
}

Node *Parser::braced_list(Node *of) {
    std::vector<Node *> items;
    if (!until_end(items, [&] { return expression(); })) return nullptr;
    return make({.kind = NodeKind::braces, .a = of, .list = arena_.keep(std::move(items))});
}

Node *Parser::expression() {
    Level level(*this);
    if (!level) return nullptr;
    bool global = eat("gs");
    char first = peek(), second = peek(1);
    if (first == 'L') return primary_expression();
    if (first == 'T') return template_parameter();
    if (first == 'f') {
        bool parameter = second == 'p' || (second == 'L' && is_digit(peek(2)));
        return parameter ? function_parameter() : fold();
    }
    if (is_digit(first) || (first == 's' && second == 'r') || (first == 'o' && second == 'n') || (first == 'd' && second == 'n'))
        return unresolved_name(global);

    auto list_to_end = [&](std::vector<Node *> &items) { return until_end(items, [&] { return expression(); }); };
    std::vector<Node *> items;
    if (eat("il")) return braced_list(nullptr);
    if (eat("tl")) {
        Node *of = type();
        return of ? braced_list(of) : nullptr;
    }
    if (eat("tw")) {
        Node *thrown = expression();
        return thrown ? make({.kind = NodeKind::unary, .precedence = kAssign, .text = "throw ", .a = thrown}) : nullptr;
    }
    if (eat("tr")) return name("throw");
    if (eat("sp")) {
        Node *pack = expression();
        return pack ? make({.kind = NodeKind::expansion, .a = pack}) : nullptr;
    }
    if (eat("sZ")) {
        Node *pack = peek() == 'T' ? template_parameter() : function_parameter();
        Node *all = pack ? make({.kind = NodeKind::expansion, .a = pack}) : nullptr;
        return wrap("sizeof...(", all);
    }
    if (eat("sP")) {
        if (!until_end(items, [&] { return template_argument(); })) return nullptr;
        return make({.kind = NodeKind::list_in, .text = "sizeof...(", .list = arena_.keep(std::move(items))});
    }
    if (eat("mc")) { // a member pointer converted to a base's
        Node *to = type();
        Node *what = to ? expression() : nullptr;
        if (!what) return nullptr;
        (void)signed_number();
        if (!eat('E')) return nullptr;
        items.push_back(what);
        return make({.kind = NodeKind::c_cast, .precedence = kCast, .a = to, .list = arena_.keep(std::move(items))});
    }
    if (eat('u')) { // a compiler's own
        Node *own = source_name();
        if (!own || !until_end(items, [&] { return template_argument(); })) return nullptr;
        return make({.kind = NodeKind::call, .precedence = kPostfix, .a = own, .list = arena_.keep(std::move(items))});
    }

    const Operator *op = find_operator(first, second);
    if (!op) return nullptr;
    if (op->shape == Shape::create) return create(global);
    at_ += 2;
    switch (op->shape) {
    case Shape::binary:
    case Shape::member: {
        Node *a = expression();
        Node *b = a ? expression() : nullptr;
        return b ? make({.kind = NodeKind::binary, .precedence = op->precedence, .text = op->text, .a = a, .b = b}) : nullptr;
    }
    case Shape::prefix: {
        Node *a = expression();
        return a ? make({.kind = NodeKind::unary, .precedence = op->precedence, .text = op->text, .a = a}) : nullptr;
    }
    case Shape::postfix: { // "pp_" is the prefix form
        bool before = eat('_');
        Node *a = expression();
        if (!a) return nullptr;
        return make({.kind = before ? NodeKind::unary : NodeKind::postfix,
                     .precedence = before ? kUnary : kPostfix,
                     .text = op->text,
                     .a = a});
    }
    case Shape::subscript: {
        Node *a = expression();
        Node *b = a ? expression() : nullptr;
        return b ? make({.kind = NodeKind::subscript, .precedence = kPostfix, .a = a, .b = b}) : nullptr;
    }
    case Shape::call: {
        Node *callee = expression();
        if (!callee || !list_to_end(items)) return nullptr;
        return make({.kind = NodeKind::call, .precedence = kPostfix, .a = callee, .list = arena_.keep(std::move(items))});
    }
    case Shape::named_cast: {
        Node *to = type();
        Node *what = to ? expression() : nullptr;
        return what ? make({.kind = NodeKind::named_cast, .precedence = kPostfix, .text = op->text, .a = to, .b = what})
                    : nullptr;
    }
    case Shape::c_cast: { // one expression, or '_' and several up to 'E'
        Node *to = type();
        if (!to) return nullptr;
        if (eat('_')) {
            if (!list_to_end(items)) return nullptr;
        } else {
            Node *what = expression();
            if (!what) return nullptr;
            items.push_back(what);
        }
        return make({.kind = NodeKind::c_cast, .precedence = kCast, .a = to, .list = arena_.keep(std::move(items))});
    }
    case Shape::of_type: return wrap(op->text, type());
    case Shape::of_value: return wrap(op->text, expression());
    case Shape::conditional: {
        Node *a = expression();
        Node *b = a ? expression() : nullptr;
        Node *c = b ? expression() : nullptr;
        return c ? make({.kind = NodeKind::conditional, .precedence = kConditional, .a = a, .b = b, .c = c}) : nullptr;
    }
    case Shape::destroy: {
        Node *a = expression();
        if (!a) return nullptr;
        Text text = op->text;
        if (global) text = text.view() == "delete " ? Text("::delete ") : Text("::delete[] ");
        return make({.kind = NodeKind::unary, .precedence = kUnary, .text = text, .a = a});
    }
    default: return nullptr;
    }
}

// L type value E: numbers are written as C++ would, others with their type in front.
Node *Parser::primary_expression() {
    if (!eat('L')) return nullptr;
    if (eat("_Z")) {
        Node *inner = encoding();
        return inner && eat('E') ? inner : nullptr;
    }
    if (eat("b0E")) return name("false");
    if (eat("b1E")) return name("true");
    if (eat("Dn0E") || eat("DnE")) return name("nullptr");
    char letter = peek();
    Node *of = type();
    if (!of) return nullptr;
    if (eat('E')) return make({.kind = NodeKind::enclosed, .text = "(", .a = of}); // a string's or a lambda's type

    bool negative = eat('n');
    size_t from = at_;
    while (is_digit(peek()) || (peek() >= 'a' && peek() <= 'f') || peek() == '_')
        ++at_; // floating point in hex, complex with '_'
    std::string_view digits = text_.substr(from, at_ - from);
    if (digits.empty() || !eat('E')) return nullptr;
    Node *value = name(Text(digits));
    if (negative) value = make({.kind = NodeKind::prefixed, .text = "-", .a = value});
    if (!value) return nullptr;
    static constexpr Letter kSuffixes[] = {{'i', ""}, {'j', "u"}, {'l', "l"}, {'m', "ul"}, {'x', "ll"}, {'y', "ull"}};
    for (auto [code, suffix] : kSuffixes)
        if (letter == code) return make({.kind = NodeKind::suffixed, .text = suffix, .a = value});
    if (letter == 'f' || letter == 'd' || letter == 'e' || letter == 'g') { // the bits, as they stand
        value = make({.kind = NodeKind::prefixed, .text = "[", .a = value});
        value = make({.kind = NodeKind::suffixed, .text = "]", .a = value});
    }
    return value ? make({.kind = NodeKind::literal, .precedence = kCast, .a = of, .b = value}) : nullptr;
}

Node *Parser::function_parameter() {
    if (eat("fpT")) return name("this");
    uint64_t level = 0, index = 0;
    if (eat("fL")) {
        if (!number(level) || !eat('p')) return nullptr;
    } else if (!eat("fp")) {
        return nullptr;
    }
    (void)cv_qualifiers();
    bool counted = number(index);
    if (!eat('_')) return nullptr;
    return make({.kind = NodeKind::parameter, .number = counted ? index + 2 : 1}); // "_" is the first, "0_" the second
}

Node *Parser::fold() {
    if (!eat('f')) return nullptr;
    char form = peek();
    if (form != 'l' && form != 'r' && form != 'L' && form != 'R') return nullptr;
    ++at_;
    const Operator *op = find_operator(peek(), peek(1));
    if (!op || (op->shape != Shape::binary && op->shape != Shape::member)) return nullptr;
    at_ += 2;
    Node *a = expression();
    if (!a) return nullptr;
    Node *b = nullptr;
    if ((form == 'L' || form == 'R') && !(b = expression())) return nullptr;
    // fl: (... op pack)  fr: (pack op ...)  fL: (init op ... op pack)  fR: (pack op ... op init)
    Node whole{.kind = NodeKind::fold, .text = op->text, .a = a, .b = b};
    if (form == 'l') std::swap(whole.a, whole.b);
    return make(whole);
}

Node *Parser::create(bool global) {
    Node whole{.kind = NodeKind::create, .precedence = kUnary, .number = global ? 1u : 0u};
    if (eat("na"))
        whole.number |= 2;
    else if (!eat("nw"))
        return nullptr;
    std::vector<Node *> placement;
    while (!eat('_')) {
        Node *item = expression();
        if (!item) return nullptr;
        placement.push_back(item);
    }
    whole.list = arena_.keep(std::move(placement));
    if (!(whole.a = type())) return nullptr;
    if (eat("pi")) {
        whole.number |= 4;
        std::vector<Node *> initializer;
        if (!until_end(initializer, [&] { return expression(); })) return nullptr;
        whole.b = make({.kind = NodeKind::argument_pack, .list = arena_.keep(std::move(initializer))});
    } else if (!eat('E')) {
        return nullptr;
    }
    return make(whole);
}

// --- names that the compiler could not look up yet

Node *Parser::simple_id() {
    Node *node = source_name();
    if (!node || peek() != 'I') return node;
    Node *args = template_args();
    return args ? make({.kind = NodeKind::template_id, .a = node, .b = args}) : nullptr;
}

Node *Parser::base_unresolved_name() {
    if (is_digit(peek())) return simple_id();
    if (eat("dn")) {
        Node *of = is_digit(peek()) ? simple_id() : type();
        return of ? make({.kind = NodeKind::destructor, .a = of}) : nullptr;
    }
    eat("on");
    Node *node = operator_name(nullptr);
    if (!node || peek() != 'I') return node;
    Node *args = template_args();
    return args ? make({.kind = NodeKind::template_id, .a = node, .b = args}) : nullptr;
}

Node *Parser::unresolved_name(bool global) {
    auto join = [&](Node *scope, Node *inner) -> Node * {
        return scope && inner ? make({.kind = NodeKind::nested, .a = scope, .b = inner}) : nullptr;
    };
    auto anchored = [&](Node *node) -> Node * {
        return node && global ? make({.kind = NodeKind::prefixed, .text = "::", .a = node}) : node;
    };
    if (!eat("sr")) return anchored(base_unresolved_name());
    Node *scope = nullptr;
    if (eat('N')) { // srN type levels E name
        scope = type();
        if (scope && peek() == 'I') {
            Node *args = template_args();
            scope = args ? make({.kind = NodeKind::template_id, .a = scope, .b = args}) : nullptr;
        }
        while (scope && !eat('E')) scope = join(scope, simple_id());
        return join(scope, base_unresolved_name());
    }
    if (is_digit(peek())) { // sr levels E name
        scope = anchored(simple_id());
        while (scope && !eat('E')) scope = join(scope, simple_id());
        return join(scope, base_unresolved_name());
    }
    scope = type(); // sr type name
    if (scope && peek() == 'I') {
        Node *args = template_args();
        scope = args ? make({.kind = NodeKind::template_id, .a = scope, .b = args}) : nullptr;
    }
    return join(scope, base_unresolved_name());
}

} // namespace rawbpf::inline v0::symbols::cxx
