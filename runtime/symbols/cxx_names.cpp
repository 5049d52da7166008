// Names, in the Itanium C++ ABI's mangling (https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling).
//
//     _Z  N 3foo 3bar I i E E  v            foo::bar<int>()       <encoding> = <name> <parameter types>
//         |                 |
//         nested ......... end of it        N..E, I..E, J..E, X..E, F..E nest
//
// Two kinds of reference keep names short. "S1_" is a substitution: the second of the components read so far, in the order in
// which they were completed, so every function that completes one must say substitutable(), and none other. "T_" is a template
// parameter of the function around it: the first of its arguments. It stays a reference until it is printed, since a
// substitution may carry it from one function's name into another's, where it means another type.
#include "runtime/symbols/cxx_parser.h"

namespace rawbpf::inline v0::symbols::cxx {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

} // namespace

// --- letters

bool Parser::eat(char c) {
    if (c == '\0' || peek() != c) return false;
    ++at_;
    return true;
}

bool Parser::eat(std::string_view text) {
    if (!rest().starts_with(text)) return false;
    at_ += text.size();
    return true;
}

bool Parser::number(uint64_t &value) {
    if (!is_digit(peek())) return false;
    value = 0;
    while (is_digit(peek())) {
        value = value * 10 + static_cast<uint64_t>(peek() - '0');
        if (value > UINT32_MAX) return false;
        ++at_;
    }
    return true;
}

bool Parser::number_text(Node *&out) {
    const size_t from = at_;
    uint64_t value = 0;
    if (!number(value)) return false;
    out = name(Text(text_.substr(from, at_ - from)));
    return true;
}

std::string_view Parser::signed_number() {
    size_t from = at_;
    eat('n');
    size_t digits = at_;
    while (is_digit(peek())) ++at_;
    if (at_ == digits) return {};
    return text_.substr(from, at_ - from);
}

bool Parser::sequence_id(size_t &value) {
    if (eat('_')) return value = 0, true;
    value = 0;
    while (!eat('_')) {
        char c = peek();
        size_t digit = is_digit(c) ? static_cast<size_t>(c - '0') : c >= 'A' && c <= 'Z' ? static_cast<size_t>(c - 'A' + 10) : 36;
        if (digit == 36 || value > UINT32_MAX) return false;
        value = value * 36 + digit;
        ++at_;
    }
    ++value; // "_" is the first, "0_" the second
    return true;
}

uint8_t Parser::cv_qualifiers() {
    uint8_t set = 0;
    if (eat('r')) set |= kRestrict;
    if (eat('V')) set |= kVolatile;
    if (eat('K')) set |= kConst;
    return set;
}

// --- the whole

Node *Parser::mangled_name() {
    if (!eat("_Z")) return nullptr;
    Node *node = encoding();
    return node && (at_ == text_.size() || peek() == '.') ? node : nullptr;
}

bool Parser::at_end_of_encoding() const {
    char c = peek();
    return c == '\0' || c == 'E' || c == '.' || c == '_';
}

Node *Parser::encoding() {
    Level level(*this);
    if (!level) return nullptr;
    Swap<bool> plain(plain_parameter_, false);
    if (peek() == 'G' || peek() == 'T') return special_name();
    NameState state;
    Node *named = any_name(&state);
    if (!named) return nullptr;
    if (at_end_of_encoding()) return named;

    Node whole{.kind = NodeKind::encoding, .qualifiers = state.qualifiers, .b = named, .scope = state.args};
    if (state.template_args && !state.no_return_type && !(whole.a = type())) return nullptr;
    std::vector<Node *> parameters;
    if (!eat('v')) {
        while (!at_end_of_encoding() && peek() != 'Q') {
            Node *parameter = type();
            if (!parameter) return nullptr;
            parameters.push_back(parameter);
        }
    }
    whole.list = arena_.keep(std::move(parameters));
    if (eat('Q') && !(whole.c = expression())) return nullptr;
    return make(whole);
}

Node *Parser::special_name() {
    struct Special {
        std::string_view code;
        Text text;
        bool of_type;
    };
    static constexpr Special kSpecials[] = {
        {"TV", "vtable for ", true},
        {"TT", "VTT for ", true},
        {"TI", "typeinfo for ", true},
        {"TS", "typeinfo name for ", true},
        {"TW", "TLS wrapper function for ", false},
        {"TH", "TLS init function for ", false},
        {"GV", "guard variable for ", false},
    };
    for (const Special &special : kSpecials) {
        if (!eat(special.code)) continue;
        Node *of = special.of_type ? type() : any_name(nullptr);
        return of ? make({.kind = NodeKind::special, .text = special.text, .a = of}) : nullptr;
    }
    auto of_encoding = [&](Text text) -> Node * {
        Node *of = encoding();
        return of ? make({.kind = NodeKind::special, .text = text, .a = of}) : nullptr;
    };
    if (eat("GTt")) return of_encoding("transaction clone for ");
    if (eat("GTn")) return of_encoding("non-transaction clone for ");
    if (eat("GR")) {
        Node *of = any_name(nullptr);
        size_t which = 0;
        if (!of || (peek() != '\0' && peek() != '.' && !sequence_id(which))) return nullptr;
        return make({.kind = NodeKind::special, .text = "reference temporary for ", .a = of});
    }
    if (eat("TA")) {
        Node *of = template_argument();
        return of ? make({.kind = NodeKind::special, .text = "template parameter object for ", .a = of}) : nullptr;
    }
    if (eat("TC")) {
        Node *whole = type();
        uint64_t offset = 0;
        if (!whole || !number(offset) || !eat('_')) return nullptr;
        Node *base = type();
        return base ? make({.kind = NodeKind::construction, .a = base, .b = whole}) : nullptr;
    }
    if (eat("Tc")) return call_offset() && call_offset() ? of_encoding("covariant return thunk to ") : nullptr;
    if (peek() == 'T' && (peek(1) == 'h' || peek(1) == 'v')) {
        const Text text = peek(1) == 'h' ? Text("non-virtual thunk to ") : Text("virtual thunk to ");
        ++at_;
        return call_offset() ? of_encoding(text) : nullptr;
    }
    return nullptr;
}

bool Parser::call_offset() {
    if (eat('h')) return !signed_number().empty() && eat('_');
    return eat('v') && !signed_number().empty() && eat('_') && !signed_number().empty() && eat('_');
}

// --- names

Node *Parser::any_name(NameState *state) {
    Level level(*this);
    if (!level) return nullptr;
    if (peek() == 'N') return nested_name(state);
    if (peek() == 'Z') return local_name(state);
    bool is_substitution = false;
    Node *node = unscoped_name(state, is_substitution);
    if (!node) return nullptr;
    if (peek() != 'I') return is_substitution ? nullptr : node; // a substitution alone names nothing
    if (!is_substitution) substitutable(node);
    Node *args = template_args();
    if (!args) return nullptr;
    if (state) {
        state->template_args = true;
        state->args = args;
    }
    return make({.kind = NodeKind::template_id, .a = node, .b = args});
}

Node *Parser::unscoped_name(NameState *state, bool &is_substitution) {
    if (peek() == 'S' && peek(1) != 't') {
        is_substitution = true;
        return substitution();
    }
    if (!eat("St")) return unqualified_name(state, nullptr);
    Node *scope = name("std");
    Node *inner = unqualified_name(state, scope);
    return inner ? make({.kind = NodeKind::nested, .a = scope, .b = inner}) : nullptr;
}

Node *Parser::nested_name(NameState *state) {
    if (!eat('N')) return nullptr;
    eat('H'); // C++23's explicit object parameter
    uint8_t qualifiers = cv_qualifiers();
    if (eat('R'))
        qualifiers |= kLvalueRef;
    else if (eat('O'))
        qualifiers |= kRvalueRef;
    if (state) state->qualifiers = qualifiers;

    Node *so_far = nullptr;
    bool candidate = false; // so_far has become one: not when it is only "St" or a substitution
    while (!eat('E')) {
        if (state) state->template_args = false;
        if (peek() == 'T') {
            if (so_far || !(so_far = template_parameter())) return nullptr;
        } else if (peek() == 'I') {
            if (!so_far) return nullptr;
            Node *args = template_args();
            if (!args) return nullptr;
            so_far = make({.kind = NodeKind::template_id, .a = so_far, .b = args});
            if (state) {
                state->template_args = true;
                state->args = args;
            }
        } else if (peek() == 'D' && (peek(1) == 't' || peek(1) == 'T')) {
            if (so_far || !(so_far = decltype_type())) return nullptr;
        } else if (peek() == 'S') {
            if (so_far) return nullptr;
            so_far = eat("St") ? name("std") : substitution();
            if (!so_far) return nullptr;
            candidate = false;
            continue;
        } else if (so_far && eat('M')) { // the variable whose initializer this lambda stands in
            continue;
        } else {
            if (state) state->no_return_type = false;
            Node *inner = unqualified_name(state, so_far);
            if (!inner) return nullptr;
            so_far = so_far ? make({.kind = NodeKind::nested, .a = so_far, .b = inner}) : inner;
        }
        if (!substitutable(so_far)) return nullptr;
        candidate = true;
    }
    if (!candidate) return nullptr;
    substitutions_.pop_back(); // the whole is a candidate only as a type, which says so itself
    return so_far;
}

Node *Parser::local_name(NameState *state) {
    if (!eat('Z')) return nullptr;
    Node *function = encoding();
    if (!function || !eat('E')) return nullptr;
    if (function->kind == NodeKind::encoding) function->a = nullptr; // in the middle of a name, a return type only confuses
    Node *inner = nullptr;
    if (eat('s')) {
        discriminator();
        inner = name("string literal");
    } else if (eat('d')) { // in a default argument
        uint64_t which = 0;
        bool counted = number(which);
        if (!eat('_')) return nullptr;
        Node *argument = make({.kind = NodeKind::default_argument, .number = counted ? which + 2 : 1});
        inner = any_name(state);
        if (argument && inner) inner = make({.kind = NodeKind::nested, .a = argument, .b = inner});
    } else {
        inner = any_name(state);
        discriminator();
    }
    return inner ? make({.kind = NodeKind::nested, .a = function, .b = inner}) : nullptr;
}

// "_3", "__12_": which of several local things of a name; not shown.
void Parser::discriminator() {
    if (peek() != '_') return;
    size_t before = at_;
    uint64_t which = 0;
    if (eat("__")) {
        if (number(which) && eat('_')) return;
    } else {
        ++at_;
        if (is_digit(peek())) {
            ++at_;
            return;
        }
    }
    at_ = before;
}

Node *Parser::unqualified_name(NameState *state, Node *scope) {
    if (scope) eat('F'); // a friend, declared there
    eat('L');            // internal linkage
    Node *node = nullptr;
    if (is_digit(peek())) {
        node = source_name();
    } else if (peek() == 'U') {
        node = unnamed_type();
    } else if (eat("DC")) {
        std::vector<Node *> bindings;
        if (!until_end(bindings, [&] { return source_name(); })) return nullptr;
        node = make({.kind = NodeKind::structured_binding, .list = arena_.keep(std::move(bindings))});
    } else if (peek() == 'C' || peek() == 'D') {
        node = constructor_or_destructor(state, scope);
    } else {
        node = operator_name(state);
    }
    return node ? abi_tags(node) : nullptr;
}

Node *Parser::source_name() {
    uint64_t length = 0;
    if (!number(length) || length == 0 || length > text_.size() - at_) return nullptr;
    std::string_view text = text_.substr(at_, length);
    at_ += length;
    return name(text.starts_with("_GLOBAL__N") ? Text("(anonymous namespace)") : Text(text));
}

Node *Parser::abi_tags(Node *node) {
    while (node && eat('B')) {
        Node *tag = source_name();
        if (!tag) return nullptr;
        node = make({.kind = NodeKind::abi_tag, .text = tag->text, .a = node});
    }
    return node;
}

Node *Parser::unnamed_type() {
    auto which = [&](uint64_t &value) {
        value = 0;
        bool counted = number(value);
        value += counted ? 2 : 1; // "_" is the first, "0_" the second
        return eat('_');
    };
    Node node{.kind = NodeKind::unnamed};
    if (eat("Ut")) return which(node.number) ? make(node) : nullptr;
    if (!eat("Ul")) return nullptr;
    node.kind = NodeKind::lambda;
    std::vector<Node *> parameters;
    while (at_parameter_declaration())
        if (!parameter_declaration()) return nullptr;
    if (eat("vE")) {
        // no parameters
    } else if (!until_end(parameters, [&] { return type(); })) {
        return nullptr;
    }
    node.list = arena_.keep(std::move(parameters));
    return which(node.number) ? make(node) : nullptr;
}

Node *Parser::constructor_or_destructor(NameState *state, Node *scope) {
    if (!scope) return nullptr;
    if (state) state->no_return_type = true;
    if (eat('C')) {
        bool inherited = eat('I');
        if (peek() < '1' || peek() > '5') return nullptr;
        ++at_;
        if (inherited && !any_name(nullptr)) return nullptr;
        return make({.kind = NodeKind::constructor, .a = scope});
    }
    if (!eat('D') || peek() < '0' || peek() > '5') return nullptr;
    ++at_;
    return make({.kind = NodeKind::destructor, .a = scope});
}

Node *Parser::operator_name(NameState *state) {
    if (eat("cv")) {
        Swap<bool> plain(plain_parameter_, true);
        Node *to = type();
        if (!to) return nullptr;
        if (state) state->no_return_type = true;
        return make({.kind = NodeKind::conversion, .a = to});
    }
    if (eat("li")) {
        Node *suffix = source_name();
        return suffix ? make({.kind = NodeKind::prefixed, .text = "operator\"\" ", .a = suffix}) : nullptr;
    }
    if (peek() == 'v' && is_digit(peek(1))) { // a vendor's own
        at_ += 2;
        Node *own = source_name();
        return own ? make({.kind = NodeKind::conversion, .a = own}) : nullptr;
    }
    const Operator *found = find_operator(peek(), peek(1));
    if (!found || found->shape == Shape::of_type || found->shape == Shape::of_value || found->shape == Shape::named_cast ||
        found->shape == Shape::c_cast)
        return nullptr;
    at_ += 2;
    std::string_view text = found->text.view();
    bool word = text[0] >= 'a' && text[0] <= 'z';
    while (text.ends_with(' ')) text.remove_suffix(1);
    return make({.kind = NodeKind::special, .text = word ? Text("operator ") : Text("operator"), .a = name(Text(text))});
}

Node *Parser::substitution() {
    if (!eat('S')) return nullptr;
    static constexpr Letter kAbbreviations[] = {{'a', "allocator"}, {'b', "basic_string"}, {'s', "string"},
                                                {'i', "istream"},   {'o', "ostream"},      {'d', "iostream"}};
    for (auto [code, text] : kAbbreviations) {
        if (!eat(code)) continue;
        Node *node = make({.kind = NodeKind::std_name, .text = text});
        if (peek() != 'B') return node;
        return substitutable(abi_tags(node));
    }
    size_t index = 0;
    if (!sequence_id(index) || index >= substitutions_.size()) return nullptr;
    return substitutions_[index];
}

} // namespace rawbpf::inline v0::symbols::cxx
