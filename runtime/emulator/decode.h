// SPDX-License-Identifier: MIT
// Instructions as the emulator runs them: checked once, with everything looked up beforehand.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "asm/insn.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::emulator {

/// One instruction, or the second half of a wide one, which is never reached.
struct Op {
    const void *handler = nullptr; ///< where interpret() has its code
    uint8_t dst = 0,               ///< a register, 0 to 10
        src = 0;                   ///< the same; of a call: the kind of call
    int16_t off = 0;               ///< of the instruction, as it stands there
    int32_t jump = 0;              ///< in Ops, from this one; of a wide instruction: to the next
    uint64_t imm = 0;              ///< sign-extended; calls of helpers: their number
};
static_assert(sizeof(Op) == 24);

/// What interpret() can do: the forms of asm/opcodes.h by their names, but for those that are no instructions of a user space
/// program, and three of its own.
// A table, of which the formatter would make a staircase.
// clang-format off
#define RAWBPF_EMULATED_ALU(X, name) X(name) X(name##_reg) X(name##32) X(name##32_reg)
#define RAWBPF_EMULATED(X)                                                                                                   \
    RAWBPF_EMULATED_ALU(X, add) RAWBPF_EMULATED_ALU(X, sub) RAWBPF_EMULATED_ALU(X, mul) RAWBPF_EMULATED_ALU(X, div)          \
    RAWBPF_EMULATED_ALU(X, or) RAWBPF_EMULATED_ALU(X, and) RAWBPF_EMULATED_ALU(X, lsh) RAWBPF_EMULATED_ALU(X, rsh)           \
    RAWBPF_EMULATED_ALU(X, mod) RAWBPF_EMULATED_ALU(X, xor) RAWBPF_EMULATED_ALU(X, mov) RAWBPF_EMULATED_ALU(X, arsh)         \
    RAWBPF_EMULATED_ALU(X, sdiv) RAWBPF_EMULATED_ALU(X, smod)                                                                \
    X(neg) X(neg32) X(movsx8) X(movsx16) X(movsx32) X(movsx8_32) X(movsx16_32)                                               \
    X(le16) X(le32) X(le64) X(be16) X(be32) X(be64) X(bswap16) X(bswap32) X(bswap64)                                         \
    X(ldxb) X(ldxh) X(ldxw) X(ldxdw) X(ldxsb) X(ldxsh) X(ldxsw) X(stb) X(sth) X(stw) X(stdw) X(stxb) X(stxh) X(stxw)         \
    X(stxdw)                                                                                                                 \
    X(ldabsb) X(ldabsh) X(ldabsw) X(ldindb) X(ldindh) X(ldindw) X(lddw)                                                      \
    X(atomic_add32) X(atomic_add) X(atomic_or32) X(atomic_or) X(atomic_and32) X(atomic_and) X(atomic_xor32) X(atomic_xor)    \
    X(atomic_fetch_add32) X(atomic_fetch_add) X(atomic_fetch_or32) X(atomic_fetch_or)                                        \
    X(atomic_fetch_and32) X(atomic_fetch_and) X(atomic_fetch_xor32) X(atomic_fetch_xor)                                      \
    X(xchg32) X(xchg) X(cmpxchg32) X(cmpxchg)                                                                                \
    X(load_acquire8) X(load_acquire16) X(load_acquire32) X(load_acquire64)                                                   \
    X(store_release8) X(store_release16) X(store_release32) X(store_release64)                                               \
    RAWBPF_EMULATED_ALU(X, jeq) RAWBPF_EMULATED_ALU(X, jgt) RAWBPF_EMULATED_ALU(X, jge) RAWBPF_EMULATED_ALU(X, jset)         \
    RAWBPF_EMULATED_ALU(X, jne) RAWBPF_EMULATED_ALU(X, jsgt) RAWBPF_EMULATED_ALU(X, jsge) RAWBPF_EMULATED_ALU(X, jlt)        \
    RAWBPF_EMULATED_ALU(X, jle) RAWBPF_EMULATED_ALU(X, jslt) RAWBPF_EMULATED_ALU(X, jsle)                                    \
    X(ja) X(may_goto) X(gotox) X(addr_space_cast) X(call) X(call_local) X(callx) X(exit)                                     \
    X(kfunc)  /* a kernel function that is emulated */                                                                       \
    X(refuse) /* one that isn't, which is said when it is reached */                                                         \
    X(stop)   /* between the instructions of a program that is run step by step */
// clang-format on

/// The entries of RAWBPF_EMULATED, by number: kDo_add ... kDo_stop.
enum Do : uint8_t {
#define RAWBPF_EMULATED_ENUM(name) kDo_##name,
    RAWBPF_EMULATED(RAWBPF_EMULATED_ENUM)
#undef RAWBPF_EMULATED_ENUM
        kDoCount
};

/// The code for each Do, in interpret().
[[nodiscard]] const void *const *handlers();

/// Where instruction n stands among the Ops, and back. When a program is run step by step, a stop stands before each.
///@{
[[nodiscard]] constexpr size_t op_index(size_t insn, bool stepping) { return stepping ? 2 * insn + 1 : insn; }
[[nodiscard]] constexpr size_t insn_index(size_t op, bool stepping) { return stepping ? op / 2 : op; }
///@}

/// Checks a program and prepares it. Maps and values must have been replaced by their addresses. Refused with the instruction's
/// number: opcodes that don't exist, fields that must be zero and aren't, registers above 10, writes to r10, jumps that leave the
/// program or land inside an instruction, an end that isn't one, and casts between address spaces that a kernel doesn't have.
/// Errors: bad_input; unsupported.
[[nodiscard]] Result<std::vector<Op>> decode(std::span<const Insn> insns, bool stepping);

} // namespace rawbpf::inline v0::emulator
