// The parser of Itanium-mangled names: one class, its grammar spread over three files by subject. Private to the demangler.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/symbols/cxx_name.h"

namespace rawbpf::inline v0::symbols::cxx {

/// Recursive descent over one name. Every function returns a node, or nullptr when the bytes are not what it reads; nullptr goes
/// all the way up.
class Parser {
  public:
    explicit Parser(std::string_view text) : text_(text) {}
    /// The whole of "_Z...", up to a suffix that begins with '.'.
    Node *mangled_name();
    /// What is left behind the name.
    [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }

  private:
    static constexpr int kMaxDepth = 250;

    // What reading a name tells about the function that has it.
    struct NameState {
        bool no_return_type = false; // constructors, destructors, conversions
        bool template_args = false;  // ends with them, so that a return type follows
        uint8_t qualifiers = 0;
        Node *args = nullptr; // the last of them
    };
    // One level of recursion; false when it is too deep.
    struct Level {
        explicit Level(Parser &parser) : parser(parser) { ++parser.depth_; }
        ~Level() { --parser.depth_; }
        explicit operator bool() const { return parser.depth_ <= kMaxDepth; }
        Parser &parser;
    };
    // Sets a member for a while.
    template <class T> struct Swap {
        Swap(T &place, T value) : place(place), before(std::exchange(place, std::move(value))) {}
        ~Swap() { place = std::move(before); }
        T &place;
        T before;
    };

    // --- letters (cxx_names.cpp)
    [[nodiscard]] char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
    bool eat(char c);
    bool eat(std::string_view text);
    bool number(uint64_t &value);
    bool number_text(Node *&out);     // a number as a name, its digits
    std::string_view signed_number(); // with its 'n'; empty when there is none
    bool sequence_id(size_t &value);  // base 36, up to '_'
    uint8_t cv_qualifiers();
    Node *make(Node node) { return arena_.make(node); }
    Node *name(Text text) { return make({.kind = NodeKind::name, .text = text}); }
    Node *substitutable(Node *node) {
        if (node) substitutions_.push_back(node);
        return node;
    }
    // Reads items until 'E'; false when one of them is wrong.
    template <class Item> bool until_end(std::vector<Node *> &list, Item item) {
        while (!eat('E')) {
            Node *node = item();
            if (!node) return false;
            list.push_back(node);
        }
        return true;
    }

    // --- names (cxx_names.cpp)
    Node *encoding();
    [[nodiscard]] bool at_end_of_encoding() const;
    Node *special_name();
    bool call_offset();
    Node *any_name(NameState *state);
    Node *nested_name(NameState *state);
    Node *local_name(NameState *state);
    Node *unscoped_name(NameState *state, bool &substitution);
    Node *unqualified_name(NameState *state, Node *scope);
    Node *source_name();
    Node *unnamed_type();
    Node *constructor_or_destructor(NameState *state, Node *scope);
    Node *operator_name(NameState *state);
    Node *abi_tags(Node *node);
    Node *substitution();
    void discriminator();

    // --- types (cxx_types.cpp)
    Node *type();
    Node *plain_type();
    Node *builtin_type();
    Node *qualified_type();
    Node *function_type();
    Node *array_type();
    Node *decltype_type();
    Node *vector_type();
    Node *template_parameter();
    Node *template_args();
    Node *template_argument();
    [[nodiscard]] bool at_parameter_declaration() const;
    bool parameter_declaration();

    // --- expressions (cxx_expressions.cpp)
    Node *expression();
    Node *primary_expression();
    Node *unresolved_name(bool global);
    Node *base_unresolved_name();
    Node *simple_id();
    Node *function_parameter();
    Node *fold();
    Node *create(bool global);
    Node *wrap(Text before, Node *inner); // NodeKind::enclosed
    Node *braced_list(Node *of);

    std::string_view text_;
    size_t at_ = 0;
    int depth_ = 0;
    Arena arena_;
    std::vector<Node *> substitutions_;
    bool plain_parameter_ = false; // in the type of a conversion operator, template arguments behind T_ belong to the operator
};

/// What one letter stands for.
struct Letter {
    char code;
    Text text;
};

/// An operator by its two letters.
enum class Shape : uint8_t {
    binary,
    prefix,
    postfix,
    subscript,
    member,
    call,
    named_cast,
    c_cast,
    of_type,
    of_value,
    conditional,
    create,
    destroy
};
struct Operator {
    char code[3];
    Shape shape;
    Precedence precedence;
    Text text; ///< behind "operator", and in expressions
};
/// nullptr when these letters are no operator.
[[nodiscard]] const Operator *find_operator(char first, char second);

} // namespace rawbpf::inline v0::symbols::cxx
