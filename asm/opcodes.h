// SPDX-License-Identifier: MIT
// The instruction set, as one table.
//
// All code that deals with opcodes uses this table: the builder's encoder, the printer, the assembler, the disassembler, the
// emulator and `rawbpf isa`. One row is one *form*: an opcode together with the other fields that decide what the instruction
// does. The opcode byte alone isn't enough: `r1 /= r2` and `r1 s/= r2` share 0x3f and differ in `off`, all atomics of one
// width share an opcode and differ in `imm`, the kinds of call differ in the source register.
//
//      byte     0          1            2..3     4..7
//            [ code | src : dst |     off    |   imm   ]      a field is an operand of the form, or has a fixed value (mostly 0)
//              |
//              +-- class in the low three bits: 0 ld, 1 ldx, 2 st, 3 stx, 4 alu (32 bits), 5 jmp, 6 jmp32, 7 alu64
//                  alu and jmp: bit 3 = operand is a register, bits 4..7 = operation
//                  memory:      bits 3..4 = size (0x00 w, 0x08 h, 0x10 b, 0x18 dw), bits 5..7 = mode
//
// Sources: RFC 9669 (the standard, "v1" to "v4" in LLVM's counting). For later instructions the kernel's uapi/linux/bpf.h and
// Documentation/bpf/standardization/instruction-set.rst: may_goto and addr_space_cast (6.9), load_acquire and store_release
// (6.15), gotox (6.19). A kernel version is the first whose verifier accepts the form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "asm/insn.h"

namespace rawbpf::inline v0 {

/// How a form is written and which of its fields are operands. D, S: registers; off, imm: numbers; sym: the row's symbol; T: its
/// memory type (u8 .. u64).
enum class Shape : uint8_t {
    alu_imm,       ///< D sym imm             "r1 += 5", "r1 = 5"
    alu_reg,       ///< D sym S
    negate,        ///< D = -D
    sign_extend,   ///< D = (sN)S
    byte_swap,     ///< D = le16 D
    cast,          ///< D = addr_space_cast(S, imm >> 16, imm & 0xffff)
    load,          ///< D = *(T *)(S + off)
    store_imm,     ///< *(T *)(D + off) = imm
    store_reg,     ///< *(T *)(D + off) = S
    load_wide,     ///< D = imm64 ll          two slots; the source register says what the number stands for
    packet_abs,    ///< r0 = *(T *)skb[imm]
    packet_ind,    ///< r0 = *(T *)skb[S]     (and imm, added; LLVM doesn't write it)
    atomic,        ///< lock *(T *)(D + off) sym S
    atomic_fetch,  ///< S = sym((T *)(D + off), S)
    exchange,      ///< S = sym(D + off, S)
    compare_swap,  ///< r0 = sym(D + off, r0, S)
    load_acquire,  ///< D = load_acquire((T *)(S + off))
    store_release, ///< store_release((T *)(D + off), S)
    jump,          ///< goto off
    jump_long,     ///< gotol imm
    jump_reg,      ///< gotox D
    may_jump,      ///< may_goto off
    branch_imm,    ///< if D sym imm goto off
    branch_reg,    ///< if D sym S goto off
    call_helper,   ///< call imm              a helper by number
    call_local,    ///< call imm              a function of the program; imm counts instructions from the next one
    call_kfunc,    ///< call imm              a kernel function by BTF id; off picks the module
    call_reg,      ///< callx D
    exit,          ///< exit
};

/// The fields of an instruction, as bits of a set of operands.
enum Field : uint8_t { kDst = 1, kSrc = 2, kOff = 4, kImm = 8 };

/// Which fields are operands in a form of this shape: a set of Field. The others have fixed values (Form).
[[nodiscard]] constexpr uint8_t operand_fields(Shape shape) {
    switch (shape) {
    case Shape::alu_imm: return kDst | kImm;
    case Shape::alu_reg: return kDst | kSrc;
    case Shape::negate:
    case Shape::byte_swap: return kDst;
    case Shape::sign_extend: return kDst | kSrc;
    case Shape::cast: return kDst | kSrc | kImm;
    case Shape::load:
    case Shape::store_reg:
    case Shape::atomic:
    case Shape::atomic_fetch:
    case Shape::exchange:
    case Shape::compare_swap:
    case Shape::load_acquire:
    case Shape::store_release: return kDst | kSrc | kOff;
    case Shape::store_imm: return kDst | kOff | kImm;
    case Shape::load_wide: return kDst | kImm;
    case Shape::packet_abs: return kImm;
    case Shape::packet_ind: return kSrc | kImm;
    case Shape::jump:
    case Shape::may_jump: return kOff;
    case Shape::jump_long:
    case Shape::call_helper:
    case Shape::call_local: return kImm;
    case Shape::call_kfunc: return kOff | kImm;
    case Shape::jump_reg:
    case Shape::call_reg: return kDst;
    case Shape::branch_imm: return kDst | kOff | kImm;
    case Shape::branch_reg: return kDst | kSrc | kOff;
    case Shape::exit: return 0;
    }
    return 0;
}

/// A kernel version, or 0.0: none yet.
struct KernelVersion {
    uint8_t major = 0, ///< 5 of 5.8
        minor = 0;     ///< 8 of 5.8
    /// Equal in both numbers.
    friend constexpr bool operator==(KernelVersion, KernelVersion) = default;
};

/// One row of the instruction set.
struct Form {
    uint8_t code; ///< opcode
    Shape shape;  ///< how it is written, and its operands
    uint8_t bits; ///< of the operation: 32 or 64; of a memory access: 8, 16, 32, 64; of a sign extension or swap: its width
    uint8_t register_bits;   ///< 32: the registers are written wN
    bool is_signed;          ///< loads that extend the sign
    uint8_t src;             ///< where src is not an operand, the value that it must have
    int16_t off;             ///< likewise
    int32_t imm;             ///< likewise
    uint8_t cpu;             ///< LLVM's -mcpu=vN that has it; 5: newer than v4
    KernelVersion since;     ///< the first kernel whose verifier takes it
    std::string_view name;   ///< short and unique: "add", "jslt32", "ldxb"
    std::string_view symbol; ///< how it is written: "+=", "s<", "atomic_fetch_add"

    /// Which fields are operands: a set of Field.
    [[nodiscard]] constexpr uint8_t fields() const { return operand_fields(shape); }
};

/// What the number in ld_imm64 stands for; its source register (BPF_PSEUDO_* of the kernel; RFC 9669, 5.4).
enum class Wide : uint8_t {
    number,         ///< itself, 64 bits
    map_fd,         ///< a map by file descriptor
    map_value,      ///< an address in the value of such a map: descriptor and offset (5.2)
    btf_id,         ///< a kernel variable by BTF id (5.10)
    function,       ///< a function of the program; counts instructions from the next one (5.13)
    map_index,      ///< a map by index in the program's fd_array (5.14)
    map_index_value ///< an address in the value of such a map (5.14)
};

namespace isa {

/// The versions in the table, k_none for no release yet.
///@{
inline constexpr KernelVersion k3_18{3, 18}, k4_14{4, 14}, k4_16{4, 16}, k5_1{5, 1}, k5_2{5, 2}, k5_10{5, 10}, k5_12{5, 12},
    k5_13{5, 13}, k5_14{5, 14}, k6_6{6, 6}, k6_9{6, 9}, k6_15{6, 15}, k6_19{6, 19}, k_none{};
///@}

// clang-format off
#define RAWBPF_ALU(op, name, symbol)                                                         \
    {0x07 | op, Shape::alu_imm, 64, 64, false, 0, 0, 0, 1, k3_18, name, symbol},             \
    {0x0f | op, Shape::alu_reg, 64, 64, false, 0, 0, 0, 1, k3_18, name "_reg", symbol},      \
    {0x04 | op, Shape::alu_imm, 32, 32, false, 0, 0, 0, 3, k3_18, name "32", symbol},        \
    {0x0c | op, Shape::alu_reg, 32, 32, false, 0, 0, 0, 3, k3_18, name "32_reg", symbol}
#define RAWBPF_SIGNED_ALU(op, name, symbol)                                                  \
    {0x07 | op, Shape::alu_imm, 64, 64, false, 0, 1, 0, 4, k6_6, name, symbol},              \
    {0x0f | op, Shape::alu_reg, 64, 64, false, 0, 1, 0, 4, k6_6, name "_reg", symbol},       \
    {0x04 | op, Shape::alu_imm, 32, 32, false, 0, 1, 0, 4, k6_6, name "32", symbol},         \
    {0x0c | op, Shape::alu_reg, 32, 32, false, 0, 1, 0, 4, k6_6, name "32_reg", symbol}
#define RAWBPF_SWAP(code, name, cpu, since)                                                  \
    {code, Shape::byte_swap, 16, 64, false, 0, 0, 16, cpu, since, name "16", name "16"},     \
    {code, Shape::byte_swap, 32, 64, false, 0, 0, 32, cpu, since, name "32", name "32"},     \
    {code, Shape::byte_swap, 64, 64, false, 0, 0, 64, cpu, since, name "64", name "64"}
#define RAWBPF_BRANCH(op, name, symbol, cpu, since)                                          \
    {0x05 | op, Shape::branch_imm, 64, 64, false, 0, 0, 0, cpu, since, name, symbol},        \
    {0x0d | op, Shape::branch_reg, 64, 64, false, 0, 0, 0, cpu, since, name "_reg", symbol}, \
    {0x06 | op, Shape::branch_imm, 32, 32, false, 0, 0, 0, 3, k5_1, name "32", symbol},      \
    {0x0e | op, Shape::branch_reg, 32, 32, false, 0, 0, 0, 3, k5_1, name "32_reg", symbol}
#define RAWBPF_MEMORY(mode, shape, name)                                                     \
    {mode | 0x10, Shape::shape, 8, 64, false, 0, 0, 0, 1, k3_18, name "b", "u8"},            \
    {mode | 0x08, Shape::shape, 16, 64, false, 0, 0, 0, 1, k3_18, name "h", "u16"},          \
    {mode | 0x00, Shape::shape, 32, 64, false, 0, 0, 0, 1, k3_18, name "w", "u32"},          \
    {mode | 0x18, Shape::shape, 64, 64, false, 0, 0, 0, 1, k3_18, name "dw", "u64"}
#define RAWBPF_ORDERED(op, shape, name)                                                      \
    {0xd3, Shape::shape, 8, 64, false, 0, 0, op, 5, k6_15, name "8", name},                  \
    {0xcb, Shape::shape, 16, 64, false, 0, 0, op, 5, k6_15, name "16", name},                \
    {0xc3, Shape::shape, 32, 64, false, 0, 0, op, 5, k6_15, name "32", name},                \
    {0xdb, Shape::shape, 64, 64, false, 0, 0, op, 5, k6_15, name "64", name}

/// The instruction set, one row for each form.
inline constexpr Form kForms[] = {
    // Arithmetic, class 7 (64 bits) and class 4 (32 bits; the upper half of the result is zero).
    RAWBPF_ALU(0x00, "add", "+="),
    RAWBPF_ALU(0x10, "sub", "-="),
    RAWBPF_ALU(0x20, "mul", "*="),
    RAWBPF_ALU(0x30, "div", "/="),
    RAWBPF_ALU(0x40, "or", "|="),
    RAWBPF_ALU(0x50, "and", "&="),
    RAWBPF_ALU(0x60, "lsh", "<<="),
    RAWBPF_ALU(0x70, "rsh", ">>="),
    RAWBPF_ALU(0x90, "mod", "%="),
    RAWBPF_ALU(0xa0, "xor", "^="),
    RAWBPF_ALU(0xb0, "mov", "="),
    RAWBPF_ALU(0xc0, "arsh", "s>>="),
    RAWBPF_SIGNED_ALU(0x30, "sdiv", "s/="),
    RAWBPF_SIGNED_ALU(0x90, "smod", "s%="),
    {0x87, Shape::negate, 64, 64, false, 0, 0, 0, 1, k3_18, "neg", "-"},
    {0x84, Shape::negate, 32, 32, false, 0, 0, 0, 3, k3_18, "neg32", "-"},
    {0xbf, Shape::sign_extend, 8, 64, true, 0, 8, 0, 4, k6_6, "movsx8", "s8"},
    {0xbf, Shape::sign_extend, 16, 64, true, 0, 16, 0, 4, k6_6, "movsx16", "s16"},
    {0xbf, Shape::sign_extend, 32, 64, true, 0, 32, 0, 4, k6_6, "movsx32", "s32"},
    {0xbc, Shape::sign_extend, 8, 32, true, 0, 8, 0, 4, k6_6, "movsx8_32", "s8"},
    {0xbc, Shape::sign_extend, 16, 32, true, 0, 16, 0, 4, k6_6, "movsx16_32", "s16"},
    {0xbf, Shape::cast, 64, 64, false, 0, 1, 0, 5, k6_9, "addr_space_cast", "addr_space_cast"},
    RAWBPF_SWAP(0xd4, "le", 1, k3_18),
    RAWBPF_SWAP(0xdc, "be", 1, k3_18),
    RAWBPF_SWAP(0xd7, "bswap", 4, k6_6),

    // Memory.
    RAWBPF_MEMORY(0x61, load, "ldx"),
    {0x91, Shape::load, 8, 64, true, 0, 0, 0, 4, k6_6, "ldxsb", "s8"},
    {0x89, Shape::load, 16, 64, true, 0, 0, 0, 4, k6_6, "ldxsh", "s16"},
    {0x81, Shape::load, 32, 64, true, 0, 0, 0, 4, k6_6, "ldxsw", "s32"},
    RAWBPF_MEMORY(0x62, store_imm, "st"),
    RAWBPF_MEMORY(0x63, store_reg, "stx"),
    {0x30, Shape::packet_abs, 8, 64, false, 0, 0, 0, 1, k3_18, "ldabsb", "u8"},
    {0x28, Shape::packet_abs, 16, 64, false, 0, 0, 0, 1, k3_18, "ldabsh", "u16"},
    {0x20, Shape::packet_abs, 32, 64, false, 0, 0, 0, 1, k3_18, "ldabsw", "u32"},
    {0x50, Shape::packet_ind, 8, 64, false, 0, 0, 0, 1, k3_18, "ldindb", "u8"},
    {0x48, Shape::packet_ind, 16, 64, false, 0, 0, 0, 1, k3_18, "ldindh", "u16"},
    {0x40, Shape::packet_ind, 32, 64, false, 0, 0, 0, 1, k3_18, "ldindw", "u32"},
    {0x18, Shape::load_wide, 64, 64, false, 0, 0, 0, 1, k3_18, "lddw", ""},
    {0x18, Shape::load_wide, 64, 64, false, 1, 0, 0, 1, k3_18, "lddw_map", "map"},
    {0x18, Shape::load_wide, 64, 64, false, 2, 0, 0, 1, k5_2, "lddw_value", "map_value"},
    {0x18, Shape::load_wide, 64, 64, false, 3, 0, 0, 1, k5_10, "lddw_btf", "btf_id"},
    {0x18, Shape::load_wide, 64, 64, false, 4, 0, 0, 1, k5_13, "lddw_function", "function"},
    {0x18, Shape::load_wide, 64, 64, false, 5, 0, 0, 1, k5_14, "lddw_map_index", "map_index"},
    {0x18, Shape::load_wide, 64, 64, false, 6, 0, 0, 1, k5_14, "lddw_value_index", "map_value_index"},

    // Atomics: imm says which; 0xc3 is 32 bits, 0xdb 64. A plain add is as old as BPF, the rest came together.
    {0xc3, Shape::atomic, 32, 32, false, 0, 0, 0x00, 1, k3_18, "atomic_add32", "+="},
    {0xdb, Shape::atomic, 64, 64, false, 0, 0, 0x00, 1, k3_18, "atomic_add", "+="},
    {0xc3, Shape::atomic, 32, 32, false, 0, 0, 0x40, 3, k5_12, "atomic_or32", "|="},
    {0xdb, Shape::atomic, 64, 64, false, 0, 0, 0x40, 3, k5_12, "atomic_or", "|="},
    {0xc3, Shape::atomic, 32, 32, false, 0, 0, 0x50, 3, k5_12, "atomic_and32", "&="},
    {0xdb, Shape::atomic, 64, 64, false, 0, 0, 0x50, 3, k5_12, "atomic_and", "&="},
    {0xc3, Shape::atomic, 32, 32, false, 0, 0, 0xa0, 3, k5_12, "atomic_xor32", "^="},
    {0xdb, Shape::atomic, 64, 64, false, 0, 0, 0xa0, 3, k5_12, "atomic_xor", "^="},
    {0xc3, Shape::atomic_fetch, 32, 32, false, 0, 0, 0x01, 3, k5_12, "atomic_fetch_add32", "atomic_fetch_add"},
    {0xdb, Shape::atomic_fetch, 64, 64, false, 0, 0, 0x01, 3, k5_12, "atomic_fetch_add", "atomic_fetch_add"},
    {0xc3, Shape::atomic_fetch, 32, 32, false, 0, 0, 0x41, 3, k5_12, "atomic_fetch_or32", "atomic_fetch_or"},
    {0xdb, Shape::atomic_fetch, 64, 64, false, 0, 0, 0x41, 3, k5_12, "atomic_fetch_or", "atomic_fetch_or"},
    {0xc3, Shape::atomic_fetch, 32, 32, false, 0, 0, 0x51, 3, k5_12, "atomic_fetch_and32", "atomic_fetch_and"},
    {0xdb, Shape::atomic_fetch, 64, 64, false, 0, 0, 0x51, 3, k5_12, "atomic_fetch_and", "atomic_fetch_and"},
    {0xc3, Shape::atomic_fetch, 32, 32, false, 0, 0, 0xa1, 3, k5_12, "atomic_fetch_xor32", "atomic_fetch_xor"},
    {0xdb, Shape::atomic_fetch, 64, 64, false, 0, 0, 0xa1, 3, k5_12, "atomic_fetch_xor", "atomic_fetch_xor"},
    {0xc3, Shape::exchange, 32, 32, false, 0, 0, 0xe1, 3, k5_12, "xchg32", "xchg32_32"},
    {0xdb, Shape::exchange, 64, 64, false, 0, 0, 0xe1, 3, k5_12, "xchg", "xchg_64"},
    {0xc3, Shape::compare_swap, 32, 32, false, 0, 0, 0xf1, 3, k5_12, "cmpxchg32", "cmpxchg32_32"},
    {0xdb, Shape::compare_swap, 64, 64, false, 0, 0, 0xf1, 3, k5_12, "cmpxchg", "cmpxchg_64"},
    RAWBPF_ORDERED(0x100, load_acquire, "load_acquire"),
    RAWBPF_ORDERED(0x110, store_release, "store_release"),

    // Control.
    RAWBPF_BRANCH(0x10, "jeq", "==", 1, k3_18),
    RAWBPF_BRANCH(0x20, "jgt", ">", 1, k3_18),
    RAWBPF_BRANCH(0x30, "jge", ">=", 1, k3_18),
    RAWBPF_BRANCH(0x40, "jset", "&", 1, k3_18),
    RAWBPF_BRANCH(0x50, "jne", "!=", 1, k3_18),
    RAWBPF_BRANCH(0x60, "jsgt", "s>", 1, k3_18),
    RAWBPF_BRANCH(0x70, "jsge", "s>=", 1, k3_18),
    RAWBPF_BRANCH(0xa0, "jlt", "<", 2, k4_14),
    RAWBPF_BRANCH(0xb0, "jle", "<=", 2, k4_14),
    RAWBPF_BRANCH(0xc0, "jslt", "s<", 2, k4_14),
    RAWBPF_BRANCH(0xd0, "jsle", "s<=", 2, k4_14),
    {0x05, Shape::jump, 64, 64, false, 0, 0, 0, 1, k3_18, "ja", "goto"},
    {0x06, Shape::jump_long, 64, 64, false, 0, 0, 0, 4, k6_6, "ja32", "gotol"},
    {0x0d, Shape::jump_reg, 64, 64, false, 0, 0, 0, 5, k6_19, "gotox", "gotox"},
    {0xe5, Shape::may_jump, 64, 64, false, 0, 0, 0, 5, k6_9, "may_goto", "may_goto"},
    {0x85, Shape::call_helper, 64, 64, false, 0, 0, 0, 1, k3_18, "call", "call"},
    {0x85, Shape::call_local, 64, 64, false, 1, 0, 0, 1, k4_16, "call_local", "call"},
    {0x85, Shape::call_kfunc, 64, 64, false, 2, 0, 0, 1, k5_13, "call_kfunc", "call"},
    {0x8d, Shape::call_reg, 64, 64, false, 0, 0, 0, 1, k_none, "callx", "callx"},
    {0x95, Shape::exit, 64, 64, false, 0, 0, 0, 1, k3_18, "exit", "exit"},
};
// clang-format on
#undef RAWBPF_ALU
#undef RAWBPF_SIGNED_ALU
#undef RAWBPF_SWAP
#undef RAWBPF_BRANCH
#undef RAWBPF_MEMORY
#undef RAWBPF_ORDERED

/// Rows of kForms.
inline constexpr size_t kFormCount = sizeof(kForms) / sizeof(kForms[0]);

/// The forms of each opcode as lists: positions in kForms, -1 ends.
struct Index {
    int16_t first[256];       ///< of an opcode, its first form
    int16_t next[kFormCount]; ///< of a form, the next one with the same opcode
};
/// The lists of kForms.
inline constexpr Index kIndex = [] {
    Index index{};
    for (auto &i : index.first) i = -1;
    for (size_t n = kFormCount; n-- > 0;) {
        index.next[n] = index.first[kForms[n].code];
        index.first[kForms[n].code] = static_cast<int16_t>(n);
    }
    return index;
}();

} // namespace isa

/// The type that loads and stores of so many bits (8, 16, 32, 64) are written with: "u8" to "u64".
[[nodiscard]] constexpr std::string_view unsigned_type(unsigned bits) {
    return bits == 8 ? "u8" : bits == 16 ? "u16" : bits == 32 ? "u32" : "u64";
}

/// The form of an instruction; nullptr when there is none (an unknown opcode, or a reserved field that isn't zero). For the first
/// slot of ld_imm64; the second slot is no instruction by itself.
[[nodiscard]] constexpr const Form *find_form(const Insn &insn) {
    for (int i = isa::kIndex.first[insn.code]; i >= 0; i = isa::kIndex.next[i]) {
        const Form &form = isa::kForms[i];
        uint8_t fields = form.fields();
        if (!(fields & kDst) && insn.dst != 0) continue;
        if (!(fields & kSrc) && insn.src != form.src) continue;
        if (!(fields & kOff) && insn.off != form.off) continue;
        if (!(fields & kImm) && insn.imm != form.imm) continue;
        return &form;
    }
    return nullptr;
}

/// The form with this name ("add32_reg"); nullptr when there is none.
[[nodiscard]] constexpr const Form *find_form(std::string_view name) {
    for (const Form &form : isa::kForms)
        if (form.name == name) return &form;
    return nullptr;
}

/// The form of a shape with this symbol and width; nullptr when there is none. `bits` is the form's own (see Form::bits).
[[nodiscard]] constexpr const Form *find_form(Shape shape, std::string_view symbol, int bits) {
    for (const Form &form : isa::kForms)
        if (form.shape == shape && form.symbol == symbol && form.bits == bits) return &form;
    return nullptr;
}

} // namespace rawbpf::inline v0
