// The parts of the assembler. Private to this folder. assemble.cpp has the loop over lines, names and labels; statements*.cpp
// read LLVM's pseudo-C and what the kernel prints; mnemonics.cpp reads the conformance dialect; directives.cpp reads lines
// that begin with a dot.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "asm/assemble.h"
#include "asm/encode.h"
#include "asm/int128.h"

namespace rawbpf::inline v0::assembling {

/// Numbers between: sums and products of 64-bit values, signed or not, that are checked when they are used.
using Number = Int128;

struct Register {
    uint8_t number = 0;
    uint8_t bits = 0; ///< 64: rN, 32: wN
};

/// A number, or the place of a kernel struct's member, which the loader fills in.
struct Value {
    Number number = 0;
    std::string_view field; ///< "task_struct.mm"
    bool is_hex = false;    ///< one hexadecimal literal and nothing else
};

/// Where the operands of an instruction stand, for complaints.
struct Places {
    const char *dst = nullptr, *src = nullptr, *off = nullptr, *imm = nullptr;
};

/// What a C-like type says: "u32", "u8[16]", a struct.
struct TypeRef {
    std::string name;
    uint32_t size = 0, alignment = 1, count = 0; ///< size of all elements together
};

/// What a byte may be: of text that nobody can foresee, a load is decided sooner than comparisons are.
struct Characters {
    enum : uint8_t { kStart = 1, kDigit = 2, kName = 4, kOperator = 8 };
    uint8_t kind[256];
    uint8_t hex[256]; ///< the value of a hexadecimal digit; 16: none
};
inline constexpr Characters kCharacters = [] {
    Characters out{};
    for (int c = 0; c < 256; ++c) {
        const bool start = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$', digit = c >= '0' && c <= '9';
        const bool is_operator = std::string_view("=<>!&+-*/%|^").find(static_cast<char>(c)) != std::string_view::npos;
        out.kind[c] = static_cast<uint8_t>((start ? Characters::kStart : 0) | (digit ? Characters::kDigit : 0) |
                                           (start || digit || c == '.' ? Characters::kName : 0) |
                                           (is_operator ? Characters::kOperator : 0));
        out.hex[c] = static_cast<uint8_t>(digit                  ? c - '0'
                                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                                 : 16);
    }
    return out;
}();
[[nodiscard]] constexpr bool is_kind(char c, uint8_t kind) { return kCharacters.kind[static_cast<unsigned char>(c)] & kind; }
[[nodiscard]] constexpr bool is_name_start(char c) { return is_kind(c, Characters::kStart); }
[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_name(char c) { return is_kind(c, Characters::kName); }
[[nodiscard]] constexpr unsigned hex_value(char c) { return kCharacters.hex[static_cast<unsigned char>(c)]; }

/// An operator, up to four characters of these: its length.
[[nodiscard]] constexpr size_t operator_length(const char *p) {
    size_t n = *p == 's' ? 1 : 0;
    while (n < 4 && is_kind(p[n], Characters::kOperator)) {
        ++n;
        if (p[n - 1] == '=') break;
    }
    return n;
}

/// u8 to s64, char and ptr: what has a size without being defined.
[[nodiscard]] bool is_basic_type(std::string_view word);

/// More than any kernel takes in one program.
inline constexpr uint32_t kMostInsns = 1'000'000;

/// A register that an instruction reads before any has written it; the first such read of each.
struct UnsetRead {
    size_t insn;
    int reg; ///< 0 to 9
};
/// PURE. Those of a function, ascending by instruction; none where a jump's target isn't known (gotox). `program`: it has a
/// context in r1 (and, for those who run it on memory, a length in r2); else it has arguments in r1 to r5.
[[nodiscard]] std::vector<UnsetRead> unset_reads(std::span<const Insn> insns, bool program);

class Assembler {
  public:
    Assembler(const AssembleOptions &options) : options_(options) {}
    [[gnu::cold]] Assembled run(std::string_view text);

  private:
    /// One file: the text ends with a newline and a zero, so that no look-ahead leaves it.
    struct Source {
        std::string name, text;
        Source *includer = nullptr;
    };
    /// A place in a function; not bound yet while `insn` is negative.
    struct Label {
        std::string_view name;
        int64_t insn = -1;
        const char *first_use = nullptr;
        Source *source = nullptr;
        bool called = false;
    };
    struct Jump {
        uint32_t insn, label;
        const char *at;
        Source *source;
        int64_t away; ///< `label + 2`
    };
    /// A name that may be defined later: a map, variable, function, helper.
    struct Symbol {
        uint32_t function, insn;
        bool call;
        std::string_view name;
        int64_t addend;
        const char *at;
        Source *source;
    };
    struct DefinitionPlace {
        const char *at;
        Source *source;
    };

    // assemble.cpp: the loop, complaints, words
    void read(Source &source);
    bool line();
    bool statement();
    [[gnu::cold]] bool named(std::string_view word, const char *at);
    [[gnu::cold]] bool fail(const char *at, std::string message, std::string hint = {});
    [[gnu::cold]] void warn(const char *at, std::string message, std::string hint = {});
    [[gnu::cold]] Complaint complaint(const char *at, std::string message, std::string hint) const;
    [[gnu::cold]] bool expected(std::string_view what,
                                std::string hint = {}); ///< fail() at the cursor: "expected WHAT, found `xyz`"
    void skip_space() {                                 // most blanks are one
        if (*p_ == ' ') ++p_;
        if (static_cast<unsigned char>(*p_) <= ' ' || *p_ == '/') skip_more();
    }
    void skip_more();            ///< tabs, carriage returns, comments inside the line
    [[nodiscard]] bool at_end(); ///< of the statement
    void skip_line();
    bool eat(char c) { ///< blanks and c
        skip_space();
        if (*p_ != c) return false;
        ++p_;
        return true;
    }
    bool eat_word(std::string_view word);
    bool need(char c) { return eat(c) || expected_char(c); }
    bool expected_char(char c);
    [[nodiscard]] std::string_view name(); ///< the name at the cursor, which moves; empty: there is none
    [[gnu::cold]] bool string(std::string &out);
    bool literal(Number &out, bool &is_hex);
    bool number(Number &out); ///< an expression
    /// From a sign on: a literal, as a rule.
    bool distance(Number &out) {
        const char *sign = p_++;
        skip_space();
        bool is_hex;
        if (is_digit(*p_)) {
            if (!literal(out, is_hex)) return false;
            if (*sign == '-') out = -out;
            skip_space();
            if (!is_kind(*p_, Characters::kOperator)) return true;
        }
        p_ = sign;
        return binary(out, 4, 0);
    }
    bool number(int64_t &out, int64_t least, int64_t most, std::string_view what);
    bool term(Number &out, int depth);
    bool binary(Number &out, int level, int depth);
    bool value(Value &out);                             ///< an expression or @field
    [[nodiscard, gnu::cold]] std::string found() const; ///< "`xyz`", or "the end of the line"
    [[gnu::cold]] bool take_prefix();

    // assemble.cpp: functions and labels
    void begin_function(std::string_view name, std::string section);
    void end_function();
    void end_functions();
    Function &function();
    void split_called();
    [[nodiscard]] std::string part_name(uint32_t function, size_t insn, const std::set<std::string, std::less<>> &taken) const;
    uint32_t label(std::string_view name);
    bool bind(std::string_view name, const char *at);
    bool target(Value &out, std::string_view &label_name, bool &kernel_print);
    void resolve();
    void resolve_wide(const Symbol &symbol);
    void resolve_call(const Symbol &symbol);
    void check_jumps();
    void check_function();
    void check_insn(size_t n, const Form &form);

    // statements.cpp, statements_memory.cpp, statements_jumps.cpp
    bool reg(Register &out) {
        skip_space();
        const char *at = p_;
        if (!at_register()) return no_register();
        out.bits = *at == 'w' ? 32 : 64;
        out.number = static_cast<uint8_t>(at[1] - '0');
        p_ = at + 2;
        return !is_digit(*p_) || reg_10(out, at);
    }
    [[gnu::cold]] bool no_register();
    bool reg_10(Register &out, const char *at); ///< r10, or a register that there isn't
    [[nodiscard]] bool at_register() const {
        if ((*p_ != 'r' && *p_ != 'w') || !is_digit(p_[1])) return false;
        return !is_name(p_[2]) || (is_digit(p_[2]) && !is_name(p_[3]));
    }
    bool assignment();
    bool assigned(Register dst, const char *dst_at, bool &done);
    bool memory_type(unsigned &bits, bool &is_signed);
    bool address(Operands &operands, bool destination, Places &places, std::string_view &field);
    bool load(Register dst, const char *dst_at);
    bool store();
    bool lock();
    bool fetch(Register dst, const char *dst_at, std::string_view word, const char *at);
    [[gnu::cold]] bool cast(Register dst, const char *dst_at);
    bool wide(Register dst, const char *dst_at, Number number, const char *at, Wide kind);
    [[gnu::cold]] bool wide_name(Register dst, const char *dst_at, std::string_view symbol, const char *at);
    bool branch();
    bool jump(const Form &form);
    bool call();
    bool call_kfunc(std::string_view symbol, const Places &places);
    bool emit(const Form &form, const Operands &operands, const Places &places, std::string_view field = {});
    [[gnu::cold]] bool refused(Problem problem, const Form &form, const Operands &operands, const Places &places);
    void note_line(Function &to);
    void push(const Insn &insn) {
        insns_->push_back(insn);
        places_.push_back(statement_at_);
        if (++insn_count_ > kMostInsns) [[unlikely]]
            too_many();
    }
    [[gnu::cold]] void too_many();
    bool emit_jump(const Form &form, Operands operands, Places places, bool kernel_print);
    bool register_bits(const Form &form, Register reg, const char *at) {
        return form.register_bits == reg.bits || wrong_width(form, reg, at);
    }
    [[gnu::cold]] bool wrong_width(const Form &form, Register reg, const char *at);
    [[gnu::cold]] bool no_form(const char *at, std::string_view what);

    // mnemonics.cpp
    bool mnemonic(std::string_view word, const char *at);
    bool bracket(Operands &operands, bool destination, Places &places);
    bool plain_register(int &out, const char *&at);
    bool pattern(const Form &form, Value &value, int64_t &out, const char *at);

    // directives.cpp
    bool directive(const char *at);
    bool map_directive();
    bool struct_directive();
    bool struct_line();
    bool variable(std::string_view section);
    bool type(TypeRef &out);
    bool initial(const TypeRef &type, std::vector<uint8_t> &out);
    bool eight_bytes();
    [[gnu::cold]] bool include(const char *at);
    bool new_name(std::string_view name, const char *at, std::string_view what);
    [[gnu::cold]] bool constant(std::string_view name, const char *at);

    const AssembleOptions &options_;
    Assembled out_;
    std::vector<std::unique_ptr<Source>> sources_;
    Source *source_ = nullptr;
    const char *p_ = nullptr;
    const char *line_start_ = nullptr; ///< of the statement's line, for line information
    uint32_t line_number_ = 1;
    int wide_hint_ = -1; ///< the opcode that a print's "(18)" announced; -1: none
    const char *statement_at_ = nullptr;
    std::vector<const char *> places_;                        ///< the statements that this function's instructions are from
    std::map<std::string, const char *, std::less<>> unused_; ///< constants by `NAME = n` that no number has asked for yet
    bool stop_ = false;
    bool conformance_ = false;        ///< this statement is in the conformance suite's dialect
    bool semicolon_comments_ = false; ///< of this line: a verifier's print
    bool after_semicolon_ = false;    ///< of this statement, and it isn't the first of its line

    bool in_function_ = false, implicit_ = false;
    std::vector<Insn> *insns_ = nullptr;
    std::vector<Ref> refs_;
    std::vector<Label> labels_;
    std::vector<uint32_t> label_slots_; ///< open addressing: index into labels_ plus 1
    std::vector<Jump> jumps_;
    std::vector<Symbol> symbols_;
    std::map<std::pair<uint32_t, int64_t>, std::string_view> called_; ///< labels, by function and instruction
    std::map<std::string, Number, std::less<>> constants_;
    std::map<std::string, DefinitionPlace, std::less<>> names_; ///< of maps, variables, functions, structs, constants
    std::map<std::string, uint32_t, std::less<>> functions_, maps_, variables_, types_;
    std::vector<std::string> kernel_functions_;
    StructDef *open_struct_ = nullptr;
    const char *open_at_ = nullptr;
    size_t insn_count_ = 0;
    bool license_given_ = false;
};

} // namespace rawbpf::inline v0::assembling
