// Where a packed rawbpf begins: it makes the program that it holds, and becomes it.
//
// The kernel has mapped this file as it maps each static program, and has put arguments, environment and a table of facts (the
// auxiliary vector) on the stack. What is packed is another static program, of which all bytes that the kernel would map are told
// by LZMA (lzma.h, calls.h). So what the kernel does at an exec is done once more here, in user space:
//
//      the file      ELF header | start.cpp | packed bytes                                 the kernel maps this
//      memory        ... 0x400000 [ the program: headers, code, data | zeros ] ...         mmap, unpack, mprotect
//      the stack     argc | arguments | environment | auxiliary vector                     AT_PHDR, AT_ENTRY ... are the program's now
//      then          the stack pointer as the kernel left it, and a jump to the program's first instruction
//
// It lies above the program that it makes, as the kernel puts the heap (brk) behind it. It calls no C library, as the only one is
// in what is packed. Source: System V ABI, the chapters on process initialization of each machine; fs/binfmt_elf.c.
#include <cstddef>
#include <cstdint>

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "cli/packed/calls.h"
#include "cli/packed/lzma.h"

// The packer's (pack): how the bytes behind it were made. Numbers as the machine has them.
struct Packed {
    uint64_t start;        // address of the program's first byte
    uint64_t file_bytes;   // that are unpacked
    uint64_t memory_bytes; // with the zeros behind them
    uint64_t packed_bytes; // behind this
    uint32_t sum;          // Adler-32 of the unpacked bytes (RFC 1950)
    uint32_t context_bits, literal_bits, position_bits;
};
static_assert(sizeof(Packed) == 48);
extern "C" const Packed rawbpf_packed;
extern "C" const uint8_t rawbpf_packed_bytes[];
asm(".section .packed, \"a\"\n"
    ".balign 8\n"
    ".globl rawbpf_packed\n"
    "rawbpf_packed: .incbin \"" RAWBPF_PACKED "\", 0, 48\n"
    ".globl rawbpf_packed_bytes\n"
    "rawbpf_packed_bytes: .incbin \"" RAWBPF_PACKED "\", 48\n"
    ".text\n");

// The first instruction: begin() gets the stack as the kernel left it, and gives the address where to go on. The register that
// the program takes for a function to call at its end is 0: there is none.
asm(".globl _start\n"
    "_start:\n"
#if defined(__x86_64__)
    "    mov %rsp, %rdi\n"
    "    mov %rsp, %rbx\n"
    "    and $-16, %rsp\n"
    "    call begin\n"
    "    mov %rbx, %rsp\n"
    "    xor %edx, %edx\n"
    "    xor %ebp, %ebp\n"
    "    jmp *%rax\n"
#elif defined(__aarch64__)
    "    mov x0, sp\n"
    "    mov x19, x0\n"
    "    bl begin\n"
    "    mov sp, x19\n"
    "    mov x16, x0\n"
    "    mov x0, #0\n"
    "    mov x29, #0\n"
    "    mov x30, #0\n"
    "    br x16\n"
#elif defined(__riscv)
    "    mv a0, sp\n"
    "    mv s0, sp\n"
    "    andi sp, sp, -16\n"
    "    call begin\n"
    "    mv sp, s0\n"
    "    mv t1, a0\n"
    "    li a0, 0\n"
    "    li s0, 0\n"
    "    jr t1\n"
#elif defined(__arm__)
    ".arm\n"
    ".type _start, %function\n"
    "    mov r0, sp\n"
    "    mov r4, sp\n"
    "    bic sp, sp, #7\n"
    "    bl begin\n"
    "    mov sp, r4\n"
    "    mov r1, r0\n"
    "    mov r0, #0\n"
    "    mov r11, #0\n"
    "    mov lr, #0\n"
    "    bx r1\n"
#else
#error "a packed rawbpf has no first instructions for this machine: configure with -Dpacked=disabled"
#endif
);

namespace {

using rawbpf::packed::Decoder;
using rawbpf::packed::Model;

// What a system call returns: negative numbers down to -4095 are errors.
long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
#if defined(__x86_64__)
    long result = number;
    register long r10 asm("r10") = d, r8 asm("r8") = e, r9 asm("r9") = f;
    asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 asm("x8") = number, x0 asm("x0") = a, x1 asm("x1") = b, x2 asm("x2") = c, x3 asm("x3") = d, x4 asm("x4") = e,
                     x5 asm("x5") = f;
    asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#elif defined(__riscv)
    register long a7 asm("a7") = number, a0 asm("a0") = a, a1 asm("a1") = b, a2 asm("a2") = c, a3 asm("a3") = d, a4 asm("a4") = e,
                     a5 asm("a5") = f;
    asm volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5) : "memory");
    return a0;
#elif defined(__arm__)
    register long r0 asm("r0") = a, r1 asm("r1") = b, r2 asm("r2") = c, r3 asm("r3") = d, r4 asm("r4") = e, r5 asm("r5") = f;
    // r7 has the number, and is Thumb's frame pointer, which the compiler doesn't give away.
    asm volatile("push {r7}\n\tmov r7, %[number]\n\tsvc 0\n\tpop {r7}"
                 : "+r"(r0)
                 : "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5), [number] "r"(number)
                 : "memory");
    return r0;
#endif
}

size_t length(const char *text) {
    size_t bytes = 0;
    while (text[bytes] != 0) ++bytes;
    return bytes;
}

[[noreturn]] void give_up(const char *why) {
    const char *said[] = {"rawbpf: ", why, "\n"};
    for (const char *text : said) system_call(__NR_write, 2, reinterpret_cast<long>(text), static_cast<long>(length(text)));
    for (;;) system_call(__NR_exit_group, 1);
}

// Modulo 65521, which is 2^16 - 15: 32-bit ARM has no division, and the library's would bring a C library along.
uint32_t reduced(uint32_t sum) {
    sum = (sum >> 16) * 15 + (sum & 0xffff);
    sum = (sum >> 16) * 15 + (sum & 0xffff);
    return sum < 65521 ? sum : sum - 65521;
}
uint32_t adler32(const uint8_t *bytes, size_t count) {
    uint32_t low = 1, high = 0;
    while (count > 0) {
        size_t some = count < 5552 ? count : 5552; // so many fit before the sums have to be reduced (RFC 1950)
        for (count -= some; some > 0; --some) {
            low += *bytes++;
            high += low;
        }
        low = reduced(low);
        high = reduced(high);
    }
    return high << 16 | low;
}

#if defined(__x86_64__)
using Calls = rawbpf::packed::CallsOfX86;
#elif defined(__aarch64__)
using Calls = rawbpf::packed::CallsOfArm64;
#elif defined(__riscv)
using Calls = rawbpf::packed::CallsOfRiscv;
#elif defined(__arm__)
using Calls = rawbpf::packed::CallsOfThumb;
#endif

// What was written as data is fetched as instructions now. x86 sees to that by itself.
void make_code_visible([[maybe_unused]] uint8_t *start, [[maybe_unused]] size_t bytes) {
#if defined(__aarch64__)
    __builtin___clear_cache(reinterpret_cast<char *>(start), reinterpret_cast<char *>(start + bytes));
#elif defined(__riscv)
    system_call(__NR_riscv_flush_icache, reinterpret_cast<long>(start), reinterpret_cast<long>(start + bytes), 0);
#elif defined(__arm__)
    system_call(__ARM_NR_cacheflush, reinterpret_cast<long>(start), reinterpret_cast<long>(start + bytes), 0);
#endif
}

uint8_t *memory_for_the_program() {
    const auto start = static_cast<long>(rawbpf_packed.start);
#if defined(__arm__)
    constexpr long kMap = __NR_mmap2;
#else
    constexpr long kMap = __NR_mmap;
#endif
    // Not MAP_FIXED: nothing lies there in a process that has just begun, and if something does it isn't taken away.
    const long got = system_call(kMap, start, static_cast<long>(rawbpf_packed.memory_bytes), PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got < 0 && got >= -4095)
        give_up("there is no memory for the program that this file unpacks (3 MB; ulimit -v, or the group's limit)");
    if (got != start)
        give_up("the addresses where the program that this file unpacks belongs are taken; build it with -Dpacked=disabled");
    return reinterpret_cast<uint8_t *>(start);
}

Model model;

} // namespace

extern "C" uintptr_t begin(uintptr_t *stack) {
    uintptr_t *fact = stack + 1 + *stack + 1; // behind argc and the arguments
    while (*fact != 0) ++fact;                // behind the environment
    ElfW(auxv_t) *const facts = reinterpret_cast<ElfW(auxv_t) *>(fact + 1);
    uintptr_t page = 4096;
    for (auto *one = facts; one->a_type != AT_NULL; ++one)
        if (one->a_type == AT_PAGESZ) page = one->a_un.a_val;

    uint8_t *program = memory_for_the_program();
    const auto bytes = static_cast<size_t>(rawbpf_packed.file_bytes);
    Decoder decoder(rawbpf_packed_bytes, static_cast<size_t>(rawbpf_packed.packed_bytes), program, bytes,
                    {rawbpf_packed.context_bits, rawbpf_packed.literal_bits, rawbpf_packed.position_bits}, model);
    const bool whole = decoder.decode();
    rawbpf::packed::distances_from_places<Calls>(program, bytes);
    if (!whole || adler32(program, bytes) != rawbpf_packed.sum)
        give_up("this file is damaged: copy it here again, and compare its checksum");
    make_code_visible(program, bytes);

    const auto *elf = reinterpret_cast<const ElfW(Ehdr) *>(program);
    const auto *segments = reinterpret_cast<const ElfW(Phdr) *>(program + elf->e_phoff);
    for (int i = 0; i < elf->e_phnum; ++i) {
        const ElfW(Phdr) &segment = segments[i];
        if (segment.p_type != PT_LOAD || segment.p_flags & PF_W) continue;
        const uintptr_t from = segment.p_vaddr & -page, to = (segment.p_vaddr + segment.p_memsz + page - 1) & -page;
        const long may = (segment.p_flags & PF_R ? PROT_READ : 0) | (segment.p_flags & PF_X ? PROT_EXEC : 0);
        if (system_call(__NR_mprotect, static_cast<long>(from), static_cast<long>(to - from), may) != 0)
            give_up("the system doesn't let memory that was written to be executed; build it with -Dpacked=disabled");
    }
    for (auto *one = facts; one->a_type != AT_NULL; ++one) switch (one->a_type) {
        case AT_PHDR: one->a_un.a_val = reinterpret_cast<uintptr_t>(segments); break;
        case AT_PHNUM: one->a_un.a_val = elf->e_phnum; break;
        case AT_ENTRY: one->a_un.a_val = elf->e_entry; break;
        default: break;
        }
    return elf->e_entry;
}

// The compiler writes calls of these by itself.
extern "C" void *memset(void *to, int byte, size_t count) {
    for (auto *at = static_cast<volatile uint8_t *>(to); count > 0; --count) *at++ = static_cast<uint8_t>(byte);
    return to;
}
extern "C" void *memcpy(void *to, const void *from, size_t count) {
    const auto *source = static_cast<const uint8_t *>(from);
    for (auto *at = static_cast<volatile uint8_t *>(to); count > 0; --count) *at++ = *source++;
    return to;
}
