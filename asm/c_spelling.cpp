// People who come from C write what C has: three operands, parentheses round conditions, calls with arguments. Each row of the
// table is such a line and the way to write it. The assembler asks only about lines that it refuses, and only if it has no better
// hint.
#include "asm/c_spelling.h"

#include <array>
#include <cstddef>

#include "asm/assembling.h"
#include "asm/nearest.h"

namespace rawbpf::inline v0 {
namespace {

using assembling::is_digit;
using assembling::is_kind;
using assembling::is_name;

struct Spelling {
    /// Words with blanks between. R: a register, N: a number, A: one of both, V: a name, H: a helper's, O: an operator between
    /// two values, P: the same with `=` behind it, $0: what the first
    /// letter stands for, once more, `...`: whatever follows. Any other word is itself.
    std::string_view line;
    /// $0, $1 ...: what the letters stand for, in order.
    std::string_view hint;
};

constexpr std::string_view kNoVariables =
    "there are no such variables: a value lives in a register (r0 to r9) or on the stack, at an address below r10";
#define RAWBPF_THREE_STEPS                                                                                                       \
    "memory is changed in three instructions: read it into a register, change that, write it back; or in one that no other CPU " \
    "can interrupt: "

// The first that fits counts.
constexpr Spelling kSpellings[] = {
    {"R = $0 O A", "an instruction has two operands: `$0 $1= $2`"},
    {"R = R O A", "an instruction has two operands: `$0 = $1` first, then `$0 $2= $3`"},
    {"R = N O R", "an instruction has two operands: `$0 = $1` first, then `$0 $2= $3`"},
    {"R = R O N O ...", "an instruction has two operands: `$0 = $1` first, then `$0 $2= $3`, then the rest"},
    {"R P * ( V * ) ( R ...",
     "memory is read by an instruction of its own: `r1 = *($2 *)($3 + 0)` first, with its offset, then `$0 $1 r1`"},
    {"R = ( V * ) ( R ...", "the star in front is missing: `$0 = *($1 *)($2 + 0)`"},
    {"R = & ...", "the address of a place on the stack takes two instructions: `$0 = r10`, then `$0 += -8`"},
    {"R = * ( V * ) ( R + R ...",
     "an address has one register and a number: `r7 = $2`, `r7 += $3` first, then `$0 = *($1 *)(r7 + 0)`"},
    {"R = * ( V * ) ( R - N + R )",
     "an address has one register and a number: `r7 = $2`, `r7 += -$3`, `r7 += $4` first, then `$0 = *($1 *)(r7 + 0)`"},
    {"R = * ( V * ) ( R + N + R )",
     "an address has one register and a number: `r7 = $2`, `r7 += $3`, `r7 += $4` first, then `$0 = *($1 *)(r7 + 0)`"},
    {"R ++ ...", "`$0 += 1`"},
    {"R -- ...", "`$0 -= 1`"},
    {"++ R ...", "`$0 += 1`"},
    {"-- R ...", "`$0 -= 1`"},
    {"* ( V * ) ( R + N ) P ...", RAWBPF_THREE_STEPS "`lock *($0 *)($1 + $2) $3 r1`"},
    {"* ( V * ) ( R - N ) P ...", RAWBPF_THREE_STEPS "`lock *($0 *)($1 - $2) $3 r1`"},
    {"lock * ( V * ) ( R + N ) P N", "what is added is a register: `r1 = $4` first, then `lock *($0 *)($1 + $2) $3 r1`"},
    {"lock * ( V * ) ( R - N ) P N", "what is added is a register: `r1 = $4` first, then `lock *($0 *)($1 - $2) $3 r1`"},
    {"lock R ...",
     "`lock` is for memory, which other CPUs can see: `lock *(u64 *)(r0 + 0) += r1`; a register is the program's own"},
    {"if ( ...", "a condition has no parentheses: `if r0 == 0 goto out`"},
    {"if ! R ...", "`if $0 == 0 goto out`"},
    {"if R = ...", "`==` compares: `if $0 == 0 goto out`"},
    {"if R O A O ...", "a condition has one register on its left: `r4 = $0`, `r4 $1= $2` first, then `if r4 $3 r3 goto out`"},
    {"if R goto V", "`if $0 != 0 goto $1`"},
    {"if R O A then ...", "there is no `then`: `if r0 == 0 goto out`"},
    {"if R O A { ...", "there are no blocks: `if r0 == 0 goto out`, and further down a line `out:`"},
    {"if R O A V ...", "behind the condition stands `goto LABEL`: `if $0 $1 $2 goto out`"},
    {"else ...", "there is no `else`: jump over what the other case does, by `goto LABEL`"},
    {"while ...", "a loop is a label and a jump back to it: `again:`, and further down `if r1 != 0 goto again`"},
    {"for ...", "a loop is a label and a jump back to it: `again:`, and further down `if r1 != 0 goto again`"},
    {"do ...", "a loop is a label and a jump back to it: `again:`, and further down `if r1 != 0 goto again`"},
    {"{ ...", "there are no blocks: labels and `goto` lead from one instruction to another"},
    {"} ...", "there are no blocks: labels and `goto` lead from one instruction to another"},
    {"return r0", "`exit`: r0 is what a program returns"},
    {"return A", "r0 is what a program returns: `r0 = $0`, then `exit`"},
    {"return ...", "r0 is what a program returns: write it to r0, then `exit`"},
    {"exit A", "r0 is what a program returns: `r0 = $0`, then `exit`"},
    {"jmp V", "`goto $0`"},
    {"R + A", "an instruction writes to a register: `$0 += $1`"},
    {"R == ...", "`==` compares, behind `if`; `=` writes: `$0 = 1`"},
    {"R := ...", "`=` writes: `$0 = 1`"},
    {"R = ( R )", "an operand has no parentheses: `$0 = $1`"},
    {"R = * R", "memory is read with its type and offset: `$0 = *(u64 *)($1 + 0)`"},
    {"R = [ R ...", "memory is read with its type and offset: `$0 = *(u64 *)($1 + 0)`"},
    {"R = R [ N ]", "memory is read with its type and offset: `$0 = *(u64 *)($1 + $2)`"},
    {"R = * ( V * ) R", "the address stands in parentheses, with an offset: `$0 = *($1 *)($2 + 0)`"},
    {"R = * ( V * ) ( R [ N ] )", "the address is a register and an offset in bytes: `$0 = *($1 *)($2 + $3)`"},
    {"* R P ...", RAWBPF_THREE_STEPS "`lock *(u64 *)($0 + 0) $1 r1`"},
    {"* R = ...", "memory is written with its type and offset: `*(u64 *)($0 + 0) = r1`"},
    {"R [ N ] = ...", "memory is written with its type and offset: `*(u64 *)($0 + $1) = r1`"},
    {"[ R ...", "memory is written with its type and offset: `*(u64 *)($0 + 0) = r1`"},
    {"R = ~ R", "all bits are inverted by an exclusive or with -1: `$0 = $1` first, then `$0 ^= -1`"},
    {"R = ! R", "there is no `!`: jump by `if $1 == 0 goto LABEL`"},
    {"call H ( ...", "a call takes its arguments from r1 to r5, which are written before it: `call $0`"},
    {"R = H ( ...", "a call takes its arguments from r1 to r5, which are written before it, and returns in r0: `call $1`"},
    {"H ( ...", "a call takes its arguments from r1 to r5, which are written before it: `call $0`"},
    {"R = V [ ...", "an element of a map is asked for by `call bpf_map_lookup_elem`, which returns its address"},
    {"V [ ...", "an element of a map is asked for by `call bpf_map_lookup_elem`, which returns its address"},
    {"R = * ( int ...", "`int` is s32 here: `*(s32 *)`"},
    {"R = * ( char ...", "`char` is s8 here, or u8: `*(s8 *)`"},
    {"R = * ( short ...", "`short` is s16 here: `*(s16 *)`"},
    {"R = * ( long ...", "`long` is u64 here: `*(u64 *)`"},
    {"R = * ( unsigned ...", "the types here are u8, u16, u32 and u64: `*(u32 *)` for `unsigned int`"},
    {"int V ...", kNoVariables},
    {"long V ...", kNoVariables},
    {"u32 V ...", kNoVariables},
    {"u64 V ...", kNoVariables},
    {"u64 * V ...", kNoVariables},
};

constexpr size_t kMostWords = 24;

struct Words {
    std::array<std::string_view, kMostWords> word;
    size_t count = 0;
};

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_operator(char c) { return is_kind(c, assembling::Characters::kOperator) || c == '~' || c == ':'; }

// Names and numbers, operators, and other characters one by one; `*` is alone, as it is C's star.
Words words_of(std::string_view line) {
    Words out;
    while (!line.empty() && out.count < kMostWords) {
        if (is_blank(line[0])) {
            line.remove_prefix(1);
            continue;
        }
        if (line[0] == '#' || line[0] == ';' || line.starts_with("//")) break;
        size_t n = 1;
        if (is_name(line[0]))
            while (n < line.size() && is_name(line[n])) ++n;
        else if (is_operator(line[0]) && line[0] != '*')
            while (n < line.size() && n < 3 && is_operator(line[n]) && line[n] != '*' && line[n] != '~' && line[n - 1] != '=')
                ++n;
        else if (line[0] == '*' && line.size() > 1 && line[1] == '=')
            n = 2;
        if (line[0] == '=' && n == 1 && line.size() > 1 && line[1] == '=') n = 2;
        out.word[out.count++] = line.substr(0, n);
        line.remove_prefix(n);
    }
    return out;
}

bool is_register(std::string_view word) { return near_register(word) == word; }
bool is_number(std::string_view word) { return is_digit(word[0]); }
bool is_word(std::string_view word) { return is_name(word[0]) && !is_number(word) && !is_register(word); }
bool is_between(std::string_view word) {
    constexpr std::string_view kOperators[] = {"+",  "-",  "*",  "/",  "%", "&", "|",  "^",
                                               "<<", ">>", "==", "!=", "<", ">", "<=", ">="};
    for (std::string_view one : kOperators)
        if (one == word) return true;
    return false;
}

bool stands_for(char letter, std::string_view word) {
    switch (letter) {
    case 'R': return is_register(word);
    case 'N': return is_number(word);
    case 'A': return is_register(word) || is_number(word);
    case 'V': return is_word(word);
    case 'H': return word.starts_with("bpf_");
    case 'O': return is_between(word);
    case 'P': return word.size() > 1 && word.back() == '=' && is_between(word.substr(0, word.size() - 1));
    }
    return false;
}

constexpr std::string_view kLetters = "RNAVHOP";

bool fits(std::string_view pattern, const Words &line, Words &bound) {
    bound.count = 0;
    size_t at = 0;
    while (!pattern.empty()) {
        const size_t end = pattern.find(' ');
        const std::string_view want = pattern.substr(0, end);
        pattern.remove_prefix(end == std::string_view::npos ? pattern.size() : end + 1);
        if (want == "...") return true;
        if (at == line.count) return false;
        const std::string_view word = line.word[at++];
        if (want.size() == 1 && kLetters.find(want[0]) != std::string_view::npos) {
            if (!stands_for(want[0], word)) return false;
            bound.word[bound.count++] = word;
        } else if (want == "$0" ? bound.word[0] != word : want != word) {
            return false;
        }
    }
    return at == line.count;
}

std::string filled(std::string_view hint, const Words &bound) {
    std::string out;
    for (size_t i = 0; i < hint.size(); ++i) {
        if (hint[i] == '$' && i + 1 < hint.size() && is_digit(hint[i + 1]) &&
            static_cast<size_t>(hint[i + 1] - '0') < bound.count)
            out += bound.word[static_cast<size_t>(hint[++i] - '0')];
        else
            out += hint[i];
    }
    return out;
}

} // namespace

std::string hint_for_c_spelling(std::string_view statement) {
    const Words line = words_of(statement);
    Words bound;
    for (const Spelling &one : kSpellings)
        if (fits(one.line, line, bound)) return filled(one.hint, bound);
    return {};
}

} // namespace rawbpf::inline v0
