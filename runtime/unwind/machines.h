// What unwinding by tables has to know of a machine: a row for each whose stacks are walked so. All else that differs between
// them is code: call_forms() and its neighbours (programs/unwind/code_patterns.h), arm64's instructions (arm64_code.h).
//
//      a frame that keeps a frame pointer:   x86_64   fp -> | fp  |      arm64   fp -> | fp  |      riscv64         | fp  |
//                                                           | ra  |                    | ra  |                      | ra  |
//                                                    CFA -> |     |           anything |     |           fp = CFA -> |     |
//
// Registers are where struct pt_regs has them, and in a perf event's context, too, whose registers are the first of these:
// arch/x86/include/asm/ptrace.h, arch/arm64/include/uapi/asm/ptrace.h, arch/riscv/include/asm/ptrace.h. Where a signal's are:
// struct rt_sigframe of arch/x86/include/asm/sigframe.h, whose first word the handler's return has popped, of
// arch/arm64/kernel/signal.c and of arch/riscv/kernel/signal.c; with uapi's struct ucontext and struct sigcontext inside.
// DWARF's numbers: the System V ABI of x86_64 (figure 3.36), AADWARF64, the RISC-V ELF psABI.
#pragma once

#include <cstdint>
#include <string_view>

#include "asm/machines.h"

namespace rawbpf::inline v0::unwind {

inline constexpr uint8_t kNoRegister = 255;

/// A part of struct pt_regs, in bytes; `bytes` 0: there is none.
struct RegisterPiece {
    int16_t from = 0, bytes = 0;
};
inline constexpr int kRegisterPieces = 3;

/// Registers that a walk goes on with: where they are, in bytes; -1: it isn't asked for.
struct RegisterPlaces {
    int16_t pc, sp, fp, lr, di; ///< lr: x86_64's r10; di: x86_64's alone
    int16_t code = -1;          ///< where Java's interpreter keeps the address of its bytecode: in a program's context only
};

struct Machine {
    Arch arch = Arch::other;

    // --- DWARF's numbers of the registers that matter

    uint8_t fp, sp, ra;
    uint8_t r10 = kNoRegister, di = kNoRegister;

    // --- Frames

    bool link;          ///< a call leaves the return address in a register; else right below the CFA
    bool root_in_fp;    ///< where that is said to be in fp: glibc's __start_context, which nobody called
    int8_t record;      ///< what a frame pointer leads to, the caller's and the return address: words from it
    bool loose;         ///< such a record may lie anywhere in its frame: then the stack pointer isn't known above it
    bool expressions;   ///< the CFA is in r10, in memory or by the PLT's expression here and there (UNWIND_PLT and others)
    bool signs;         ///< a return address has a signature in its high bits
    int8_t gos_fp;      ///< where Go's functions keep the caller's fp: words from the return address; 0: nowhere, or by the CFA
    bool described_plt; ///< .eh_frame describes the PLT; else nothing changes in it, but for arm64's header

    // --- Code, as bytes

    std::string_view sigreturn; ///< the system call rt_sigreturn

    // --- Registers of a thread

    RegisterPlaces registers;              ///< in struct pt_regs
    int16_t mode;                          ///< tells whose they are: the word there >> shift & mask is `user`: user space's
    uint8_t mode_shift, mode_mask, user;   //
    int16_t call;                          ///< of struct pt_regs: the system call's number; negative: it isn't one
    int16_t cause;                         ///< and why the kernel was entered; -1: the number alone tells
    uint8_t cause_call;                    ///< what that is for a system call
    int16_t execve, execveat;              ///< their numbers
    RegisterPiece pieces[kRegisterPieces]; ///< of struct pt_regs, which have all of these
    RegisterPlaces signal;                 ///< in what the kernel builds for a signal handler, from sp on
    RegisterPiece signal_piece;            ///< which has all of these
};

inline constexpr Machine kMachines[] = {
    {.arch = Arch::x86_64,
     .fp = 6,
     .sp = 7,
     .ra = 16,
     .r10 = 10,
     .di = 5,
     .link = false,
     .root_in_fp = false,
     .record = 0,
     .loose = false,
     .expressions = true,
     .signs = false,
     .gos_fp = 0,
     .described_plt = true,
     .sigreturn = {"\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9}, // mov rax, 15; syscall
     .registers = {128, 152, 32, 56, 112, 16},
     .mode = 136, // cs
     .mode_shift = 0,
     .mode_mask = 3,
     .user = 3,
     .call = 120, // orig_ax
     .cause = -1,
     .cause_call = 0,
     .execve = 59,
     .execveat = 322,
     .pieces = {{32, 128}},
     .signal = {168, 160, 120, 56, 104},
     .signal_piece = {56, 120}},
    {.arch = Arch::arm64,
     .fp = 29,
     .sp = 31,
     .ra = 30,
     .link = true,
     .root_in_fp = false,
     .record = 0,
     .loose = true,
     .expressions = false,
     .signs = true,
     .gos_fp = -1,
     .described_plt = false,
     .sigreturn = {"\x68\x11\x80\xd2\x01\0\0\xd4", 8}, // mov x8, 139; svc 0
     .registers = {256, 248, 232, 240, -1},
     .mode = 264, // pstate
     .mode_shift = 0,
     .mode_mask = 15,
     .user = 0,
     .call = 280, // syscallno
     .cause = -1,
     .cause_call = 0,
     .execve = 221,
     .execveat = 281,
     .pieces = {{232, 56}},
     .signal = {568, 560, 544, 552, -1},
     .signal_piece = {544, 32}},
    {.arch = Arch::riscv64,
     .fp = 8, // s0
     .sp = 2,
     .ra = 1,
     .link = true,
     .root_in_fp = true,
     .record = -2,
     .loose = false, // but in functions with variable arguments, which keep these above their record
     .expressions = false,
     .signs = false,
     .gos_fp = 0,
     .described_plt = false,
     .sigreturn = {"\x93\x08\xb0\x08\x73\0\0\0", 8}, // li a7, 139; ecall
     .registers = {0, 16, 64, 8, -1},
     .mode = 0, // pc: a perf event's context has no status
     .mode_shift = 63,
     .mode_mask = 1,
     .user = 0,
     .call = 136,  // a7
     .cause = 272, // scause: an environment call from user mode
     .cause_call = 8,
     .execve = 221,
     .execveat = 281,
     .pieces = {{0, 72}, {136, 8}, {272, 8}},
     .signal = {304, 320, 368, 312, -1},
     .signal_piece = {304, 72}},
};

/// Its row; nullptr: its stacks aren't walked by tables.
[[nodiscard]] constexpr const Machine *find_machine(Arch arch) {
    for (const Machine &row : kMachines)
        if (row.arch == arch) return &row;
    return nullptr;
}
[[nodiscard]] constexpr bool has_machine(Arch arch) {
    for (const Machine &row : kMachines)
        if (row.arch == arch) return true;
    return false;
}
/// By e_machine.
[[nodiscard]] constexpr const Machine *machine_of_elf(uint16_t elf) {
    for (const Machine &row : kMachines)
        if (arch_info(row.arch).elf == elf) return &row;
    return nullptr;
}

} // namespace rawbpf::inline v0::unwind
