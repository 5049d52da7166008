// The language of --filter and --show: C's expressions over what a probe can see.
//
//      arg2 > 4096 && comm == "cat"          file->f_inode->i_size          ret < 0 || duration >= 10us
//
// Read here into a tree; what its names stand for is for values.h to say, and filter.h compiles it into BPF. PURE.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::trace {

/// What joins one value, or two, to a new one; as C has them.
enum class Operator : uint8_t {
    or_else,
    and_then,
    bit_or,
    bit_xor,
    bit_and,
    equal,
    not_equal,
    less,
    less_equal,
    greater,
    greater_equal,
    shift_left,
    shift_right,
    add,
    subtract,
    multiply,
    divide,
    remainder,
    negate,     ///< -x
    complement, ///< ~x
    not_,       ///< !x
};

/// How an operator is written, and how tightly it binds: the higher, the more.
struct OperatorRow {
    std::string_view text;
    Operator op;
    int level;
};
/// Those between two values. Longer spellings stand before those that they begin with.
inline constexpr OperatorRow kBinaryOperators[] = {
    {"||", Operator::or_else, 1},    {"&&", Operator::and_then, 2},
    {"==", Operator::equal, 6},      {"!=", Operator::not_equal, 6},
    {"<<", Operator::shift_left, 8}, {">>", Operator::shift_right, 8},
    {"<=", Operator::less_equal, 7}, {">=", Operator::greater_equal, 7},
    {"<", Operator::less, 7},        {">", Operator::greater, 7},
    {"|", Operator::bit_or, 3},      {"^", Operator::bit_xor, 4},
    {"&", Operator::bit_and, 5},     {"+", Operator::add, 9},
    {"-", Operator::subtract, 9},    {"*", Operator::multiply, 10},
    {"/", Operator::divide, 10},     {"%", Operator::remainder, 10},
};
/// "&&", "<=" ...
[[nodiscard]] std::string_view operator_text(Operator op);

/// A step from a value to a part of it: `->name`, `.name` or `[n]`.
struct Step {
    std::string member; ///< empty: an index
    uint64_t index = 0;
    uint32_t column = 0; ///< where it stands, from 0
};

struct Node {
    enum class Kind : uint8_t { number, text, name, unary, binary };
    Kind kind = Kind::number;
    Operator op = Operator::add;
    uint32_t left = 0, right = 0; ///< indexes into Expression::nodes; unary: left
    uint64_t number = 0;          ///< durations in nanoseconds
    std::string text = {};        ///< of a text without its quotes; a name
    std::vector<Step> steps = {}; ///< of a name
    uint32_t column = 0;          ///< where it stands in the source, from 0
};

struct Expression {
    std::string source;
    std::vector<Node> nodes; ///< parts before what they are parts of
    uint32_t root = 0;

    /// The message, the source, and a caret under the column.
    [[nodiscard]] Error complaint(uint32_t column, std::string_view message, std::string hint = {}) const;
};

/// Reads one expression. Numbers: 10, 0x10, 'a', 4096, 10us (ns, us, ms, s: in nanoseconds), 4k (k, m, g: times 1024). At most 64
/// levels deep and 256 parts long. Errors: invalid_argument, with a caret under the place.
[[nodiscard]] Result<Expression> parse_expression(std::string_view source);

/// The same for what is shown: a name with its steps, nothing else.
[[nodiscard]] Result<Expression> parse_path(std::string_view source);

} // namespace rawbpf::inline v0::trace
