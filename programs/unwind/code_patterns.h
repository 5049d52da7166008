// What eight bytes of code say where no table does: of holes in a file's table, of files without one, of anonymous memory.
// Tables for both walks, unwinder.cpp's and walk.cpp's.
//
//      call *%rcx                  ff d1
//  --> add  $8, %rsp               48 83 c4 08     the frame is 8 bytes: CFA = sp + 16
//      ret                         c3
//
// Such code mostly keeps frame pointers, but not everywhere: not before a function has set its own up, nor behind the place where
// it has taken it back, nor in the trampolines that CPython 3.12 and newer calls Python functions through (Python/
// asm_trampoline.S, -X perf), one in anonymous memory for each function. There the instructions that follow say where the frame
// begins. And a frame pointer may be any number, where code uses the register for something else. Then what lies above it mostly
// leads nowhere; where it leads into code, that code must stand behind a call, or it isn't a return address. Java's interpreter
// calls otherwise: it puts a return address there by itself and jumps. That address is one of a few, which all begin alike.
//
// Sources: Intel's manual, volume 2 (CALL: E8, FF /2); Arm's, section C6 (BL, BLR and its variants with pointer authentication);
// RISC-V's, chapters RV32I (JAL, JALR) and "C" (C.JALR, C.ADDI16SP);
// HotSpot's generate_return_entry_for() (templateInterpreterGenerator_x86.cpp, _aarch64.cpp).
#pragma once

#include <cstdint>
#include <span>

#include "asm/machines.h"
#include "runtime/unwind/layout.h"

namespace rawbpf::inline v0::unwind {

/// Of code as two numbers, little-endian: the eight bytes in front of an address, and the eight from there on.
struct CodePattern {
    uint64_t before_mask, before;
    uint64_t mask, here;
    bool exact; ///< only where the thread stands there: not at a return address, before which another function may end
    bool adds;  ///< the byte `here >> 24` is a number of bytes more, of the frame and of the rule's CFA
    UnwindRule rule;
};

inline constexpr UnwindRule kNoFrame{UNWIND_SP, 0, 1, 0, -1};           ///< CFA = sp + 8, fp is the caller's
inline constexpr UnwindRule kPushedFp{UNWIND_SP, 0, 2, -2, -1};         ///< CFA = sp + 16, the caller's fp at sp
inline constexpr UnwindRule kOneWord{UNWIND_SP, 0, 2, 0, -1};           ///< CFA = sp + 16, fp is the caller's
inline constexpr UnwindRule kInLr{UNWIND_SP, UNWIND_RA_IN_LR, 0, 0, 0}; ///< arm64, riscv64: nothing has changed since the call

inline constexpr CodePattern kX86Patterns[] = {
    {0, 0, 0xff, 0xc3, false, false, kNoFrame},                                   // ret
    {0, 0, 0xffff, 0xc35d, false, false, kPushedFp},                              // pop rbp; ret
    {0, 0, 0xff'87ff'ffff, 0xc3'00c4'8348, false, true, kNoFrame},                // add rsp, n; ret
    {0, 0, 0xffff'87ff'ffff, 0xc35d'00c4'8348, false, true, kPushedFp},           // add rsp, n; pop rbp; ret
    {0, 0, 0xffff'ffff, 0xe589'4855, true, false, kNoFrame},                      // push rbp; mov rbp, rsp
    {0, 0, 0xffff'ffff, 0xec8b'4855, true, false, kNoFrame},                      // the same, otherwise encoded
    {0xffull << 56, 0x55ull << 56, 0xff'ffff, 0xe5'8948, true, false, kPushedFp}, // push rbp; here: mov rbp, rsp
    {0xffull << 56, 0x55ull << 56, 0xff'ffff, 0xec'8b48, true, false, kPushedFp},
    {0, 0, 0xffff'ffff, 0xfa1e'0ff3, true, false, kNoFrame},           // endbr64
    {0, 0, 0xffff'ffff'ffff, 0xd1ff'08ec'8348, true, false, kNoFrame}, // sub rsp, 8; call rcx: CPython's
    {0, 0, 0xffff'ffff'ffff, 0x08c4'8348'd1ff, true, false, kOneWord}, // call rcx; add rsp, 8
};
inline constexpr CodePattern kArm64Patterns[] = {
    {0, 0, 0xffff'ffff, 0xa9bf'7bfd, true, false, kInLr},                                           // stp x29, x30, [sp, #-16]!
    {0xffff'ffffull << 32, 0xa9bf'7bfdull << 32, 0xffff'ffff, 0x9100'03fd, true, false, kPushedFp}, // here: mov x29, sp
    {0, 0, 0xffff'ffff, 0xa8c1'7bfd, false, false, kPushedFp},                                      // ldp x29, x30, [sp], #16
    {0, 0, 0xffff'ffff, 0xd65f'03c0, true, false, kInLr},                                           // ret
    {0, 0, 0xffff'ffff, 0xd503'233f, true, false, kInLr},                                           // paciasp
    {0, 0, 0xffff'ffff, 0xd503'245f, true, false, kInLr},                                           // bti c
};
// Each frame is made by one instruction and taken away by one, and everything is saved in between.
inline constexpr CodePattern kRiscv64Patterns[] = {
    {0, 0, 0xff83, 0x1101, true, false, kInLr},                                           // addi sp, sp, -n (two bytes)
    {0, 0, 0xff83, 0x7101, true, false, kInLr},                                           // the same, of 16 bytes each
    {0, 0, 0x800f'ffff, 0x8001'0113, true, false, kInLr},                                 // the same, of four bytes
    {0xffff'ffffull << 32, 0xe022'e406ull << 32, 0xffff, 0x0800, true, false, kPushedFp}, // sd ra; sd s0; here: addi s0, sp, 16
    {0, 0, 0xffff'ffff'ffff'ffff, 0x8082'0141'6402'60a2, false, false, kPushedFp},        // ld ra; ld s0; addi sp, sp, 16; ret
    {0, 0, 0xffff'ffff'ffff, 0x8082'0141'60a2, false, false, kOneWord},                   // ld ra, 8(sp); addi sp, sp, 16; ret
    {0, 0, 0xffff, 0x8082, true, false, kInLr},                                           // ret
    {0, 0, 0xffff'ffff, 0x0000'8067, true, false, kInLr},                                 // ret, of four bytes
};

/// How a call may look: (the eight bytes before the return address >> shift & mask) == bits.
struct CallForm {
    uint8_t shift;
    uint32_t mask, bits;
};
inline constexpr CallForm kX86Calls[] = {{24, 0xff, 0xe8},     {48, 0x38ff, 0x10ff}, {40, 0x38ff, 0x10ff},
                                         {32, 0x38ff, 0x10ff}, {16, 0x38ff, 0x10ff}, {8, 0x38ff, 0x10ff}};
inline constexpr CallForm kArm64Calls[] = {{32, 0xfc00'0000, 0x9400'0000}, {32, 0xfeff'f000, 0xd63f'0000}};

/// jal ra; jalr ra; c.jalr.
inline constexpr CallForm kRiscv64Calls[] = {{32, 0xfff, 0x0ef}, {32, 0x7fff, 0x00e7}, {48, 0xf07f, 0x9002}};

/// Where what Java's interpreter called returns to: it takes its stack pointer from its frame again. Java 17; 25.
inline constexpr uint64_t kX86ReturnEntries[] = {0xf045'c748'f065'8b48,    // mov rsp, [rbp - 16]; mov qword [rbp - 16], 0
                                                 0xcd64'8d48'f04d'8b48};   // mov rcx, [rbp - 16]; lea rsp, [rbp + rcx * 8]
inline constexpr uint64_t kArm64ReturnEntries[] = {0xf81f'03bf'f85f'03b4,  // ldur x20, [x29, #-16]; stur xzr, [x29, #-16]
                                                   0x8b08'0fb4'f85f'03a8}; // ldur x8, [x29, #-16]; add x20, x29, x8, lsl #3

/// Of a machine. Java's interpreter for riscv64 isn't known here.
///@{
inline constexpr std::span<const CodePattern> code_patterns(Arch arch) {
    if (arch == Arch::riscv64) return kRiscv64Patterns;
    return arch == Arch::arm64 ? std::span<const CodePattern>(kArm64Patterns) : kX86Patterns;
}
inline constexpr std::span<const CallForm> call_forms(Arch arch) {
    if (arch == Arch::riscv64) return kRiscv64Calls;
    return arch == Arch::arm64 ? std::span<const CallForm>(kArm64Calls) : kX86Calls;
}
inline constexpr std::span<const uint64_t> return_entries(Arch arch) {
    if (arch == Arch::riscv64) return {};
    return arch == Arch::arm64 ? std::span<const uint64_t>(kArm64ReturnEntries) : kX86ReturnEntries;
}
///@}

/// A frame pointer further up the stack than that isn't taken for one where nothing lies there: 8 MiB, the size of most stacks.
inline constexpr uint64_t kFarUp = 8 << 20;
/// The eight bytes in front of an address are read with those behind, but not where they lie in another page than it: then it
/// isn't asked whether they are a call.
inline constexpr uint64_t kCodePage = 4096;

} // namespace rawbpf::inline v0::unwind
