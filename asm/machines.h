// SPDX-License-Identifier: MIT
// The machines that programs can be for: where the saved registers have what a program asks for, and what tools call the machine.
//
// A kprobe's context is struct pt_regs. What of it user space may know is ABI and doesn't change: arch/x86/include/asm/ptrace.h,
// arch/arm64/include/uapi/asm/ptrace.h (struct user_pt_regs), arch/riscv/include/uapi/asm/ptrace.h (struct user_regs_struct),
// arch/arm/include/uapi/asm/ptrace.h. Calling conventions: the System V ABI, AAPCS64, the RISC-V psABI, AAPCS.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace rawbpf::inline v0 {

/// Machines whose calling convention the patterns (Code::argument and similar) know. With `other`, patterns that depend on it are
/// complaints.
enum class Arch : uint8_t { other, x86_64, arm64, riscv64, arm };

/// What differs between machines. Offsets are bytes in the registers that a kprobe's context is.
struct ArchInfo {
    Arch arch = Arch::other;     ///< which one
    std::string_view name;       ///< in messages: "arm64"
    std::string_view uname;      ///< as uname -m says it: "aarch64"
    std::string_view triplet;    ///< as Debian names its folders: "aarch64-linux-gnu"
    std::string_view target;     ///< as programs in C are told: __TARGET_ARCH_arm64
    std::string_view wrapper;    ///< in front of the name of a system call's function: "__arm64_"; empty: there are no wrappers
    uint16_t elf = 0;            ///< e_machine of its executables
    uint8_t word = 8;            ///< bytes of a register
    uint8_t arguments = 0;       ///< how many a function gets in registers
    int16_t function[8] = {};    ///< where those are
    int16_t syscall[6] = {};     ///< where a system call's are, in the caller's registers
    int16_t result = 0;          ///< what a function returned
    int16_t stack_pointer = 0;   ///< at the probe
    int16_t program_counter = 0; ///< of the probe
    int16_t return_address = -1; ///< in a register, at a function's first instruction; -1: on the stack
    int16_t syscall_number = 0;  ///< while a system call runs; -1: nowhere
    uint64_t kernel_from = 1ull << 63; ///< the kernel's addresses are these and those above
};

/// A row for each.
inline constexpr ArchInfo kArchs[] = {
    {.arch = Arch::x86_64,
     .name = "x86_64",
     .uname = "x86_64",
     .triplet = "x86_64-linux-gnu",
     .target = "x86",
     .wrapper = "__x64_",
     .elf = 62, // EM_X86_64
     .arguments = 6,
     .function = {112, 104, 96, 88, 72, 64}, // rdi rsi rdx rcx r8 r9
     .syscall = {112, 104, 96, 56, 72, 64},  // r10 in place of rcx
     .result = 80,
     .stack_pointer = 152,
     .program_counter = 128,
     .syscall_number = 120}, // orig_ax
    {.arch = Arch::arm64,
     .name = "arm64",
     .uname = "aarch64",
     .triplet = "aarch64-linux-gnu",
     .target = "arm64",
     .wrapper = "__arm64_",
     .elf = 183,     // EM_AARCH64
     .arguments = 8, // x0 to x7
     .function = {0, 8, 16, 24, 32, 40, 48, 56},
     .syscall = {0, 8, 16, 24, 32, 40},
     .result = 0,
     .stack_pointer = 248,
     .program_counter = 256,
     .return_address = 240,  // x30
     .syscall_number = 280}, // syscallno
    {.arch = Arch::riscv64,
     .name = "riscv64",
     .uname = "riscv64",
     .triplet = "riscv64-linux-gnu",
     .target = "riscv",
     .wrapper = "__riscv_",
     .elf = 243,     // EM_RISCV
     .arguments = 8, // a0 to a7
     .function = {80, 88, 96, 104, 112, 120, 128, 136},
     .syscall = {280, 88, 96, 104, 112, 120}, // orig_a0 of the kernel's struct pt_regs: a0 gets the result
     .result = 80,
     .stack_pointer = 16,
     .program_counter = 0,
     .return_address = 8,    // ra
     .syscall_number = 136}, // a7
    {.arch = Arch::arm,
     .name = "arm",
     .uname = "armv7l",
     .triplet = "arm-linux-gnueabihf",
     .target = "arm",
     .wrapper = "",
     .elf = 40, // EM_ARM
     .word = 4,
     .arguments = 4, // r0 to r3
     .function = {0, 4, 8, 12},
     .syscall = {68, 4, 8, 12, 16, 20}, // ORIG_r0, r1 to r5
     .result = 0,
     .stack_pointer = 52,
     .program_counter = 60,
     .return_address = 56,       // lr
     .syscall_number = 28,       // r7
     .kernel_from = 0xbf000000}, // modules, below PAGE_OFFSET (Documentation/arch/arm/memory.rst, split as 3 GiB and 1 GiB)
};

/// Its row; that of `other` has zeros and empty names.
[[nodiscard]] constexpr ArchInfo arch_info(Arch arch) {
    for (const ArchInfo &row : kArchs)
        if (row.arch == arch) return row;
    return {};
}

/// By what uname -m says.
[[nodiscard]] constexpr Arch arch_of_uname(std::string_view uname) {
    for (const ArchInfo &row : kArchs)
        if (row.uname == uname) return row.arch;
    return Arch::other;
}

/// The machine that this is compiled for.
///@{
#if defined(__x86_64__)
inline constexpr Arch kHostArch = Arch::x86_64;
#elif defined(__aarch64__)
inline constexpr Arch kHostArch = Arch::arm64;
#elif defined(__riscv) && __riscv_xlen == 64
inline constexpr Arch kHostArch = Arch::riscv64;
#elif defined(__arm__)
inline constexpr Arch kHostArch = Arch::arm;
#else
inline constexpr Arch kHostArch = Arch::other;
#endif
inline constexpr ArchInfo kHost = arch_info(kHostArch);
///@}
/// A register of it, as a context holds it: `f.load<HostWord>(r1, ...)`.
using HostWord = std::conditional_t<kHost.word == 4, uint32_t, uint64_t>;

} // namespace rawbpf::inline v0
