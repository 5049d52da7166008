// A C++ name as a tree: what the Itanium mangling spells out. Private to the demangler.
//
//     _ZN3foo3barIiEEvPKc        encoding
//                                |- returns void
//     void foo::bar<int>(char const*)   |- name: nested(foo, template_id(bar, <int>))
//                                |- parameters: pointer(qualified(char, const))
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/symbols/own_words.h"

namespace rawbpf::inline v0::symbols::cxx {

/// What a node is, and how its children a, b, c and its list are read.
enum class NodeKind : uint8_t {
    // names
    name,               ///< text
    std_name,           ///< text behind "std::" ("string"), one of the abbreviations Sa Sb Ss Si So Sd
    nested,             ///< a::b
    template_id,        ///< a, then b (template_args)
    template_args,      ///< <list>
    argument_pack,      ///< list, separated by commas: the J ... E of template arguments
    template_parameter, ///< argument `number` of the innermost function around; of a pack, the one that an expansion is at
    expansion,          ///< a once for each element of the packs in it
    special,            ///< text, then a: "vtable for X"
    construction,       ///< "construction vtable for " a "-in-" b
    constructor,        ///< the last name in a
    destructor,         ///< "~" and the last name in a
    conversion,         ///< "operator " a
    abi_tag,            ///< a[abi:text]
    lambda,             ///< {lambda(list)#number}
    unnamed,            ///< {unnamed type#number}
    structured_binding, ///< [list]
    default_argument,   ///< {default arg#number}: where a lambda stands
    // types
    encoding,  ///< a returned, b name, (list), cv and reference qualifiers; c: a requires clause
    function,  ///< a returned, (list), the same qualifiers; b: exception specification
    pointer,   ///< a*
    lvalue,    ///< a&
    rvalue,    ///< a&&
    qualified, ///< a with cv
    vendor,    ///< a text, b: template arguments of the qualifier
    array,     ///< a [b]
    member,    ///< b a::*
    suffixed,  ///< a text: "a complex"
    prefixed,  ///< text a: "struct a"
    vector,    ///< a vector[b]
    // expressions
    binary,      ///< a text b
    unary,       ///< text a
    postfix,     ///< a text
    call,        ///< a(list)
    braces,      ///< a{list}, or {list}
    named_cast,  ///< text<a>(b)
    c_cast,      ///< (a)(list)
    enclosed,    ///< text a ")": "sizeof (" "decltype("
    conditional, ///< a ? b : c
    subscript,   ///< a[b]
    literal,     ///< (a)b: a value b of type a
    parameter,   ///< {parm#number}: a function's parameter in its own declaration
    list_in,     ///< text, list, ")": "sizeof...(" and the like
    fold,        ///< (a op ... op b): text is op, number tells the form
    create,      ///< new (list) a (b): number has 1 for "::", 2 for "[]", 4 for an initializer
};

/// Qualifiers, or'ed.
enum : uint8_t { kConst = 1, kVolatile = 2, kRestrict = 4, kLvalueRef = 8, kRvalueRef = 16 };

/// How tightly an operator binds; smaller is tighter.
enum Precedence : uint8_t {
    kPrimary,
    kPostfix,
    kUnary,
    kCast,
    kMemberPointer,
    kMultiply,
    kAdd,
    kShift,
    kSpaceship,
    kRelation,
    kEquality,
    kAnd,
    kXor,
    kOr,
    kAndIf,
    kOrIf,
    kConditional,
    kAssign,
    kComma,
    kLoosest,
};

struct Node {
    NodeKind kind;
    uint8_t qualifiers = 0;
    uint8_t precedence = kPrimary;
    Text text = {};
    Node *a = nullptr, *b = nullptr, *c = nullptr;
    const Node *scope = nullptr; ///< of an encoding: its template_args, which template parameters in it stand for
    const std::vector<Node *> *list = nullptr;
    uint64_t number = 0;
};

/// Owns the nodes and lists of one name. Nodes may be shared (substitutions), so the tree is a graph without cycles.
class Arena {
  public:
    static constexpr size_t kMaxNodes = 64 << 10;
    /// nullptr when the name has too many.
    Node *make(Node node) {
        if (nodes_.size() >= kMaxNodes) return nullptr;
        nodes_.push_back(node);
        return &nodes_.back();
    }
    const std::vector<Node *> *keep(std::vector<Node *> list) {
        lists_.push_back(std::move(list));
        return &lists_.back();
    }

  private:
    std::deque<Node> nodes_;
    std::deque<std::vector<Node *>> lists_;
};

/// Writes the name out; false when the text would be longer than `limit`, or writing it take too long.
[[nodiscard]] bool print(const Node &node, std::string &out, size_t limit);

} // namespace rawbpf::inline v0::symbols::cxx
