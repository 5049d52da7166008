// SPDX-License-Identifier: MIT
// Where a probe's arguments are, as the compiler wrote it down: the operands of an asm statement. PURE.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/elf/elf.h"
#include "runtime/usdt/registers.h"

namespace rawbpf::inline v0::usdt {

/// What kind of operand it is, and what its value is.
enum class OperandKind : uint8_t {
    unknown,     ///< not understood, or where no program gets at it: Argument::problem says why
    constant,    ///< `displacement`
    address,     ///< base + displacement, itself ($counter)
    in_register, ///< base
    in_memory,   ///< *(base + (index << scale) + displacement)
};

/// How much of a symbol's address counts.
enum class SymbolPart : uint8_t {
    whole,       ///< all of it
    low12,       ///< the lower 12 bits (arm64's :lo12:)
    low12_signed ///< the same as a signed number (riscv's %lo())
};

/// An operand. What isn't there has kind none (registers) or is empty (symbol).
struct Location {
    OperandKind kind = OperandKind::unknown; ///< says which of the others count
    /// Of `address`, `in_register` and `in_memory`.
    ///@{
    Register base, index;
    ///@}
    uint8_t scale = 0;                   ///< index is shifted left by this
    bool index_signed = false;           ///< an index of 32 bits is extended by its sign (sxtw)
    int64_t offset = 0;                  ///< the number as written
    std::string_view symbol;             ///< the name whose address is added to it
    SymbolPart part = SymbolPart::whole; ///< of the symbol's address
    bool has_displacement = true;        ///< false: `displacement` isn't known before resolve()
    int64_t displacement = 0;            ///< offset and symbol together, from base
};

/// One argument. Refers to the text that it was read from.
struct Argument {
    std::string_view spec;    ///< "-4@-20(%rbp)"
    uint8_t size = 0;         ///< bytes: 1, 2, 4, 8; 0: that couldn't be read either
    bool is_signed = false;   ///< its sign is extended
    bool is_float = false;    ///< the bits of a float or a double
    Location location;        ///< where a program finds it
    std::string_view problem; ///< why no program can fetch it; empty: one can
};

/// Takes the next argument off `rest`: up to a blank that isn't inside of brackets, or behind which another SIZE@ begins, so that
/// an unclosed bracket takes none of its neighbours along. Empty: there is none.
[[nodiscard]] std::string_view next_argument(std::string_view &rest);
/// Reads one. Never fails: what isn't understood has a problem. Symbols are left for resolve(), and a problem until then.
[[nodiscard]] Argument parse_argument(std::string_view spec, uint16_t machine);
/// All of a probe's, in their order.
[[nodiscard]] std::vector<Argument> parse_arguments(std::string_view text, uint16_t machine);

/// An argument of a probe that is attached at `site`.
struct AtSite {
    Argument *argument = nullptr; ///< never nullptr; resolve() changes it
    uint64_t site = 0;            ///< Site::address
};
/// Finds the arguments' symbols in the file (.symtab, .dynsym), in one pass. Their addresses are told from the program counter of
/// a probe that is attached at the site, so that they hold wherever the file gets loaded. Does nothing to those without symbol.
void resolve(const elf::Elf &elf, std::vector<AtSite> arguments);

/// "s32", "u64", "f64"; "?" where not even the size is known.
[[nodiscard]] std::string_view type_name(const Argument &argument);
/// As one would write it in C: "eax", "*(rbp - 20)", "*(rdi + rax * 8)", "*(counter + 4)", "71"; empty where it isn't known.
[[nodiscard]] std::string location_text(const Argument &argument);

} // namespace rawbpf::inline v0::usdt
