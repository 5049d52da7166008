// A tree of a C++ name, written as C++ declares things: around the name. "pointer to function of int returning char" is
//
//     char (*)(int)          left of the pointer: "char (*"     right of it: ")(int)"
//
// so every type prints in two halves, left() and right(), and what contains it puts its own text between them.
//
// Substitutions make the tree a graph: forty nodes can stand for 2^40 letters. The text and the number of nodes visited are
// bounded, and going over either ends it all.
#include "runtime/symbols/cxx_name.h"

#include <algorithm>
#include <utility>

#include "runtime/base/format.h"

namespace rawbpf::inline v0::symbols::cxx {
namespace {

constexpr size_t kMaxVisits = 200'000;
constexpr int kMaxDepth = 600;
constexpr size_t kNoPack = SIZE_MAX;

class Printer {
  public:
    Printer(std::string &out, size_t limit) : out_(out), limit_(limit) {}

    void print(const Node *node) {
        left(node);
        right(node);
    }
    [[nodiscard]] bool good() const { return good_; }

  private:
    struct Level {
        explicit Level(Printer &printer) : printer(printer) {
            if (++printer.depth_ > kMaxDepth || ++printer.visits_ > kMaxVisits) printer.good_ = false;
        }
        ~Level() { --printer.depth_; }
        Printer &printer;
    };

    void put(Text written) {
        if (!good_) return;
        const std::string_view text = written.view();
        if (out_.size() + text.size() > limit_)
            good_ = false;
        else
            out_ += text;
    }
    void put_number(uint64_t number) { put(Text(format("{}", number))); }
    [[nodiscard]] char last() const { return out_.empty() ? '\0' : out_.back(); }

    void list(const Node *node) {
        if (!node->list) return;
        bool first = true;
        for (const Node *item : *node->list) {
            size_t before = out_.size();
            if (!first) put(", ");
            size_t behind_comma = out_.size();
            print_as(item, kComma);
            if (!good_) return;
            if (out_.size() == behind_comma)
                out_.resize(before); // an empty pack
            else
                first = false;
        }
    }

    // What template parameters stand for: the arguments of the innermost function being printed. An argument is printed in the
    // scope around that function, so it can't mean itself.
    struct Scope {
        const Node *args = nullptr;
        const Scope *outer = nullptr;
        bool lambda = false; // where a parameter is an "auto"
    };
    // A node and the scope that it stands in.
    struct Scoped {
        const Node *node = nullptr;
        const Scope *scope = nullptr;
    };

    // Through template parameters to what decides how the text around it looks. No node: an empty pack, or an auto.
    Scoped core(const Node *node) { return core({node, scope_}); }
    Scoped core(Scoped place) {
        while (place.node && place.node->kind == NodeKind::template_parameter) {
            if (!place.scope || place.scope->lambda) return {};
            place = argument(place);
        }
        return place;
    }
    // The argument that a template parameter stands for; each one found leads one scope outwards, so this ends.
    Scoped argument(Scoped parameter) {
        const Scope *scope = parameter.scope;
        if (!scope || !scope->args || parameter.node->number >= scope->args->list->size()) {
            good_ = false;
            return {};
        }
        const Node *found = (*scope->args->list)[parameter.node->number];
        if (found->kind == NodeKind::argument_pack) found = element(found);
        return {found, scope->outer};
    }
    // The element of a pack that the expansion around it is at; outside of one, the first.
    const Node *element(const Node *pack) {
        if (pack_count_ == kNoPack) {
            pack_count_ = pack->list->size();
            pack_index_ = 0;
        }
        return pack_index_ < pack->list->size() ? (*pack->list)[pack_index_] : nullptr;
    }
    bool is_function(const Node *node) {
        node = core(node).node;
        return node && node->kind == NodeKind::function;
    }
    bool is_array(const Node *node) {
        Scoped place = core(node);
        for (int i = 0; place.node && place.node->kind == NodeKind::qualified && i < kMaxDepth; ++i)
            place = core({place.node->a, place.scope});
        return place.node && place.node->kind == NodeKind::array;
    }
    // Whether right() writes anything, which decides if a space belongs behind a return type.
    bool has_right(const Node *node) {
        Scoped place = core(node);
        for (int i = 0; place.node && i < kMaxDepth; ++i) {
            switch (place.node->kind) {
            case NodeKind::function:
            case NodeKind::array: return true;
            case NodeKind::pointer:
            case NodeKind::lvalue:
            case NodeKind::rvalue:
            case NodeKind::qualified: place = core({place.node->a, place.scope}); break;
            case NodeKind::member: place = core({place.node->b, place.scope}); break;
            default: return false;
            }
        }
        return false;
    }
    // Does something with what a template parameter stands for, in its scope.
    template <class Do> void with_argument(const Node *parameter, Do what) {
        if (scope_ && scope_->lambda) return;
        Scoped place = argument({parameter, scope_});
        const Scope *here = std::exchange(scope_, place.scope);
        if (place.node) what(place.node);
        scope_ = here;
    }

    void qualifiers(uint8_t set) {
        if (set & kConst) put(" const");
        if (set & kVolatile) put(" volatile");
        if (set & kRestrict) put(" restrict");
    }
    void function_qualifiers(const Node *node) {
        qualifiers(node->qualifiers);
        if (node->qualifiers & kLvalueRef) put(" &");
        if (node->qualifiers & kRvalueRef) put(" &&");
    }

    // What a reference refers to in the end, and whether it is an lvalue reference: & wins over &&.
    Scoped collapse(const Node *node, bool &lvalue) {
        lvalue = node->kind == NodeKind::lvalue;
        Scoped target{node->a, scope_};
        for (int i = 0; i < kMaxDepth; ++i) {
            Scoped next = core(target);
            if (!next.node || (next.node->kind != NodeKind::lvalue && next.node->kind != NodeKind::rvalue)) break;
            lvalue = lvalue || next.node->kind == NodeKind::lvalue;
            target = {next.node->a, next.scope};
        }
        return target;
    }
    // "int (" before the "*" of a pointer to an array or a function.
    void left_of_pointee(const Node *target) {
        left(target);
        bool array = is_array(target), function = is_function(target);
        if (array) put(" ");
        if (array || function) put("(");
    }
    void right_of_pointee(const Node *target) {
        if (is_array(target) || is_function(target)) put(")");
        right(target);
    }

    // In parentheses where it binds less tightly than what is around it.
    void print_as(const Node *node, uint8_t precedence, bool or_equal = false) {
        bool parentheses =
            node && node->precedence != kPrimary && (or_equal ? node->precedence >= precedence : node->precedence > precedence);
        if (parentheses) put("(");
        print(node);
        if (parentheses) put(")");
    }

    void expand(const Node *node) {
        size_t outer_index = pack_index_, outer_count = pack_count_;
        pack_count_ = kNoPack;
        pack_index_ = 0;
        size_t begin = out_.size();
        print(node->a);
        if (pack_count_ == kNoPack) {
            put("..."); // nothing to expand: an expression over a pack that isn't known here
        } else if (pack_count_ == 0) {
            if (good_) out_.resize(begin);
        } else {
            for (size_t count = pack_count_, i = 1; i < count && good_; ++i) {
                put(", ");
                pack_index_ = i;
                pack_count_ = count;
                print(node->a);
            }
        }
        pack_index_ = outer_index;
        pack_count_ = outer_count;
    }

    // A constructor is called like its class: the last part of the name, without template arguments.
    void last_name(const Node *node) {
        for (int i = 0; node && i < kMaxDepth; ++i) {
            switch (node->kind) {
            case NodeKind::nested: node = node->b; break;
            case NodeKind::template_id:
            case NodeKind::abi_tag: node = node->a; break;
            case NodeKind::std_name: {
                const std::string_view text = node->text.view();
                if (text == "string" || text == "istream" || text == "ostream" || text == "iostream") put("basic_");
                return put(node->text);
            }
            default: return print(node);
            }
        }
    }

    void left(const Node *node) {
        Level level(*this);
        if (!node || !good_) return; // nothing: an empty pack
        switch (node->kind) {
        case NodeKind::name: return put(node->text);
        case NodeKind::std_name: return put("std::"), put(node->text);
        case NodeKind::nested: return print(node->a), put("::"), print(node->b);
        case NodeKind::template_id: return print(node->a), print(node->b);
        case NodeKind::template_args: {
            unsigned outer = std::exchange(inside_angles_, 1);
            if (last() == '<') put(" "); // operator< <int>
            put("<");
            list(node);
            put(">");
            inside_angles_ = outer;
            return;
        }
        case NodeKind::argument_pack: return list(node);
        case NodeKind::template_parameter:
            if (scope_ && scope_->lambda) return put("auto:"), put_number(node->number + 1);
            return with_argument(node, [&](const Node *found) { left(found); });
        case NodeKind::expansion: return expand(node);
        case NodeKind::special: return put(node->text), print(node->a);
        case NodeKind::construction: return put("construction vtable for "), print(node->a), put("-in-"), print(node->b);
        case NodeKind::constructor: return last_name(node->a);
        case NodeKind::destructor: return put("~"), last_name(node->a);
        case NodeKind::conversion: return put("operator "), print(node->a);
        case NodeKind::abi_tag: return print(node->a), put("[abi:"), put(node->text), put("]");
        case NodeKind::lambda: {
            Scope scope{nullptr, scope_, true};
            const Scope *outer = std::exchange(scope_, &scope);
            put("{lambda("), list(node), put(")#"), put_number(node->number), put("}");
            scope_ = outer;
            return;
        }
        case NodeKind::default_argument: return put("{default arg#"), put_number(node->number), put("}");
        case NodeKind::unnamed: return put("{unnamed type#"), put_number(node->number), put("}");
        case NodeKind::structured_binding: return put("["), list(node), put("]");

        case NodeKind::encoding: {
            Scope scope{node->scope, scope_};
            const Scope *outer = std::exchange(scope_, &scope);
            if (node->a) {
                left(node->a);
                if (!has_right(node->a)) put(" ");
            }
            print(node->b);
            scope_ = outer;
            return;
        }
        case NodeKind::function: return left(node->a), put(" ");
        case NodeKind::pointer: return left_of_pointee(node->a), put("*");
        case NodeKind::lvalue:
        case NodeKind::rvalue: {
            bool lvalue = false;
            Scoped target = collapse(node, lvalue);
            const Scope *here = std::exchange(scope_, target.scope);
            left_of_pointee(target.node);
            scope_ = here;
            return put(lvalue ? Text("&") : Text("&&"));
        }
        case NodeKind::qualified: return left(node->a), qualifiers(node->qualifiers);
        case NodeKind::vendor:
            print(node->a);
            put(" ");
            put(node->text);
            if (node->b) print(node->b);
            return;
        case NodeKind::array: return left(node->a);
        case NodeKind::member:
            left(node->b);
            put(is_function(node->b) || is_array(node->b) ? Text("(") : Text(" "));
            print(node->a);
            return put("::*");
        case NodeKind::suffixed: return left(node->a), put(node->text);
        case NodeKind::prefixed: return put(node->text), print(node->a);
        case NodeKind::vector:
            print(node->a);
            put(" vector[");
            if (node->b) print(node->b);
            return put("]");
        default: return expression(node);
        }
    }

    void right(const Node *node) {
        Level level(*this);
        if (!node || !good_) return;
        switch (node->kind) {
        case NodeKind::template_parameter: return with_argument(node, [&](const Node *found) { right(found); });
        case NodeKind::encoding: {
            Scope scope{node->scope, scope_};
            const Scope *outer = std::exchange(scope_, &scope);
            parameters(node);
            if (node->a) right(node->a);
            function_qualifiers(node);
            if (node->c) put(" requires "), print(node->c);
            scope_ = outer;
            return;
        }
        case NodeKind::function:
            parameters(node);
            right(node->a);
            function_qualifiers(node);
            if (node->b) put(" "), print(node->b);
            return;
        case NodeKind::pointer: return right_of_pointee(node->a);
        case NodeKind::lvalue:
        case NodeKind::rvalue: {
            bool lvalue = false;
            Scoped target = collapse(node, lvalue);
            const Scope *here = std::exchange(scope_, target.scope);
            right_of_pointee(target.node);
            scope_ = here;
            return;
        }
        case NodeKind::qualified:
        case NodeKind::suffixed: return right(node->a);
        case NodeKind::array:
            if (last() != ']') put(" ");
            put("[");
            if (node->b) print(node->b);
            put("]");
            return right(node->a);
        case NodeKind::member:
            if (is_function(node->b) || is_array(node->b)) put(")");
            return right(node->b);
        default: return;
        }
    }
    void parameters(const Node *node) {
        unsigned outer = std::exchange(inside_angles_, 0);
        put("(");
        list(node);
        put(")");
        inside_angles_ = outer;
    }

    void expression(const Node *node) {
        switch (node->kind) {
        case NodeKind::binary: {
            const std::string_view op = node->text.view();
            bool greater = inside_angles_ && (op == ">" || op == ">>");
            if (greater) put("(");
            bool assignment = node->precedence == kAssign;
            print_as(node->a, node->precedence, assignment);
            if (op == "," || op == "." || op == "->" || op == ".*" || op == "->*")
                put(node->text), put(op == "," ? Text(" ") : Text(""));
            else
                put(" "), put(node->text), put(" ");
            print_as(node->b, node->precedence, !assignment);
            if (greater) put(")");
            return;
        }
        case NodeKind::unary: return put(node->text), print_as(node->a, node->precedence);
        case NodeKind::postfix: return print_as(node->a, node->precedence, true), put(node->text);
        case NodeKind::call: return print_as(node->a, kPostfix), parameters(node);
        case NodeKind::braces:
            if (node->a) print(node->a);
            return put("{"), list(node), put("}");
        case NodeKind::named_cast: return put(node->text), put("<"), print(node->a), put(">("), print(node->b), put(")");
        case NodeKind::c_cast: return put("("), print(node->a), put(")"), parameters(node);
        case NodeKind::enclosed: return put(node->text), print(node->a), put(")");
        case NodeKind::conditional:
            return print_as(node->a, kConditional, true), put(" ? "), print(node->b), put(" : "), print_as(node->c, kAssign);
        case NodeKind::subscript: return print_as(node->a, kPostfix), put("["), print(node->b), put("]");
        case NodeKind::literal: return put("("), print(node->a), put(")"), print(node->b);
        case NodeKind::parameter: return put("{parm#"), put_number(node->number), put("}");
        case NodeKind::list_in: return put(node->text), list(node), put(")");
        case NodeKind::fold:
            put("(");
            if (node->a) print_as(node->a, kCast), put(" "), put(node->text), put(" ");
            put("...");
            if (node->b) put(" "), put(node->text), put(" "), print_as(node->b, kCast);
            return put(")");
        case NodeKind::create:
            if (node->number & 1) put("::");
            put(node->number & 2 ? Text("new[]") : Text("new"));
            if (node->list && !node->list->empty()) put("("), list(node), put(")");
            put(" ");
            print(node->a);
            if (node->number & 4) {
                put("(");
                if (node->b) list(node->b);
                put(")");
            }
            return;
        default: good_ = false;
        }
    }

    std::string &out_;
    size_t limit_, visits_ = 0;
    int depth_ = 0;
    bool good_ = true;
    unsigned inside_angles_ = 0; // a bare ">" would end the template arguments
    size_t pack_index_ = 0, pack_count_ = kNoPack;
    const Scope *scope_ = nullptr;
};

} // namespace

bool print(const Node &node, std::string &out, size_t limit) {
    Printer printer(out, limit);
    printer.print(&node);
    return printer.good();
}

} // namespace rawbpf::inline v0::symbols::cxx
