// SPDX-License-Identifier: MIT
// USDT probes, from both sides.
//
// Programs that want to be looked at, in C (C99) and C++ (C++11), gcc and clang, x86_64, arm64, riscv64 and 32-bit ARM (ARMv7;
// its kernel probes ARM code only, -marm); nothing is linked, no header is generated:
//
//     RAWBPF_USDT(shop, order, id, amount, customer);          // one nop; 0 to 12 arguments
//
//     RAWBPF_USDT_LAZY(shop, order, id, total(order));         // arguments are worked out only while somebody looks
//     if (RAWBPF_USDT_ENABLED(shop, order)) {                  // the same by hand
//         ...
//         RAWBPF_USDT_WITH_SEMAPHORE(shop, order, id, sum);
//     }
//
// Arguments are integers, enumerators, bools, pointers and arrays (their address), float and double. What is written into the
// file is <sys/sdt.h>'s: rawbpf usdt, bpftrace, perf and systemtap read it. One name may stand in many places, with other
// arguments too; all of them with a semaphore, or none. A program without probes: -DRAWBPF_USDT_NONE; another machine's
// has none either, which a warning says.
//
// BPF programs in SEC("usdt/FILE:PROVIDER:NAME") that read those arguments. Beside <rawbpf/bpf.h>, which is included first.
//
//     SEC("usdt//usr/bin/python3:python:function__entry")
//     int on_entry(void *ctx) {
//         long file;
//         if (bpf_usdt_arg(ctx, 0, &file) == 0) ...
//
// The loader reads from the binary where the arguments are, registers or memory, and writes it into the map below; the probe's
// cookie (before 5.15 its address) says which entry is meant. Maps and layout are those of libbpf's usdt.bpf.h, so either loader
// fills them for programs made with either header. Registers need -D__TARGET_ARCH_x86 or _arm64 where both machines' headers are
// installed.
#pragma once

#if defined(__bpf__) || defined(__BPF__) // a BPF program

#ifndef BPF_USDT_MAX_SPEC_CNT
#define BPF_USDT_MAX_SPEC_CNT 256 ///< probes with different arguments, of all attachments together
#endif
#ifndef BPF_USDT_MAX_IP_CNT
#define BPF_USDT_MAX_IP_CNT (4 * BPF_USDT_MAX_SPEC_CNT) ///< places, on kernels without cookies (before 5.15)
#endif
#define BPF_USDT_MAX_ARG_CNT 12

enum rawbpf_usdt_kind { RAWBPF_USDT_CONSTANT, RAWBPF_USDT_REGISTER, RAWBPF_USDT_MEMORY, RAWBPF_USDT_INDEXED };
struct __bpf_usdt_arg_spec {
    __u64 value;
    __u32 where;           // kind, index register << 8, scale << 20
    short register_offset; // in the saved registers
    _Bool is_signed;
    char shift; // 64 - bits
};
struct __bpf_usdt_spec {
    struct __bpf_usdt_arg_spec args[BPF_USDT_MAX_ARG_CNT];
    __u64 usdt_cookie;
    short arg_cnt;
};
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, BPF_USDT_MAX_SPEC_CNT);
    __type(key, int);
    __type(value, struct __bpf_usdt_spec);
} __bpf_usdt_specs SEC(".maps") __weak;
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, BPF_USDT_MAX_IP_CNT);
    __type(key, long);
    __type(value, __u32);
} __bpf_usdt_ip_to_spec_id SEC(".maps") __weak;

extern const _Bool LINUX_HAS_BPF_COOKIE __kconfig;

static __always_inline struct __bpf_usdt_spec *rawbpf_usdt_spec(void *ctx) {
    int entry;
    if (LINUX_HAS_BPF_COOKIE) {
        entry = bpf_get_attach_cookie(ctx);
    } else {
        long ip = PT_REGS_IP(ctx);
        int *found = bpf_map_lookup_elem(&__bpf_usdt_ip_to_spec_id, &ip);
        if (!found) return NULL;
        entry = *found;
    }
    return bpf_map_lookup_elem(&__bpf_usdt_specs, &entry);
}

/// How many arguments the probe has; -3 (ESRCH) when it isn't one that the loader attached.
static __always_inline int bpf_usdt_arg_cnt(void *ctx) {
    struct __bpf_usdt_spec *spec = rawbpf_usdt_spec(ctx);
    return spec ? spec->arg_cnt : -3;
}

/// The cookie that was given when attaching; 0: none. (The probe's own cookie is the loader's.)
static __always_inline long bpf_usdt_cookie(void *ctx) {
    struct __bpf_usdt_spec *spec = rawbpf_usdt_spec(ctx);
    return spec ? spec->usdt_cookie : 0;
}

/// Argument `n`, counted from 0, as a signed or unsigned number of its size. 0, or -2 (ENOENT: no such argument), -3 (ESRCH),
/// -14 (EFAULT: its memory isn't there), -22 (EINVAL: its place can't be read, or the machine isn't known); then *result is 0.
__weak __hidden int bpf_usdt_arg(void *ctx, __u64 n, long *result) {
    *result = 0;
    struct __bpf_usdt_spec *spec = rawbpf_usdt_spec(ctx);
    if (!spec) return -3;
    if (n >= BPF_USDT_MAX_ARG_CNT) return -2;
    barrier_var(n);
    if (n >= (__u64)spec->arg_cnt) return -2;
    struct __bpf_usdt_arg_spec *arg = &spec->args[n];
    const __u32 kind = arg->where & 0xff;
    unsigned long value = arg->value;
    if (kind > RAWBPF_USDT_INDEXED) return -22;
    if (kind != RAWBPF_USDT_CONSTANT) {
        unsigned long base = 0, by = 0;
        long error = bpf_probe_read_kernel(&base, sizeof(base), (char *)ctx + arg->register_offset);
        if (error) return error;
        if (kind == RAWBPF_USDT_INDEXED) {
            error = bpf_probe_read_kernel(&by, sizeof(by), (char *)ctx + (arg->where >> 8 & 0xfff));
            if (error) return error;
            base += by << (arg->where >> 20 & 0xf);
        }
        if (kind == RAWBPF_USDT_REGISTER) {
            value = base;
        } else {
            error = bpf_probe_read_user(&value, sizeof(value), (void *)(base + value));
            if (error) return error;
        }
    }
    value <<= arg->shift;
    *result = arg->is_signed ? (long)value >> arg->shift : (long)(value >> arg->shift);
    return 0;
}

#else // a program that is looked at

#if (defined(__x86_64__) || defined(__aarch64__) || defined(__riscv)) && defined(__LP64__)
#define RAWBPF_USDT_ADDRESS_ ".8byte "
#elif defined(__ARM_ARCH) && __ARM_ARCH >= 7 && defined(__ARM_EABI__) && !defined(__ARM_BIG_ENDIAN)
#define RAWBPF_USDT_ADDRESS_ ".4byte "
#elif !defined(RAWBPF_USDT_NONE)
#warning "<rawbpf/usdt.h> writes no probes for this machine: -DRAWBPF_USDT_NONE says that none are wanted"
#define RAWBPF_USDT_NONE
#endif

#pragma GCC system_header // -Wpedantic would have its say about each use: of statement expressions, of asm in C99

// f(1, a1) f(2, a2) ... for what stands behind the name.
#define RAWBPF_USDT_EACH_0_(f, name)
#define RAWBPF_USDT_EACH_1_(f, name, a1) f(1, a1)
#define RAWBPF_USDT_EACH_2_(f, name, a1, a2) f(1, a1) f(2, a2)
#define RAWBPF_USDT_EACH_3_(f, name, a1, a2, a3) f(1, a1) f(2, a2) f(3, a3)
#define RAWBPF_USDT_EACH_4_(f, name, a1, a2, a3, a4) f(1, a1) f(2, a2) f(3, a3) f(4, a4)
#define RAWBPF_USDT_EACH_5_(f, name, a1, a2, a3, a4, a5) f(1, a1) f(2, a2) f(3, a3) f(4, a4) f(5, a5)
#define RAWBPF_USDT_EACH_6_(f, name, a1, a2, a3, a4, a5, a6) f(1, a1) f(2, a2) f(3, a3) f(4, a4) f(5, a5) f(6, a6)
#define RAWBPF_USDT_EACH_7_(f, name, a1, a2, a3, a4, a5, a6, a7) f(1, a1) f(2, a2) f(3, a3) f(4, a4) f(5, a5) f(6, a6) f(7, a7)
#define RAWBPF_USDT_EACH_8_(f, name, a1, a2, a3, a4, a5, a6, a7, a8)                                                             \
    f(1, a1) f(2, a2) f(3, a3) f(4, a4) f(5, a5) f(6, a6) f(7, a7) f(8, a8)
#define RAWBPF_USDT_EACH_9_(f, name, a1, a2, a3, a4, a5, a6, a7, a8, a9)                                                         \
    f(1, a1) f(2, a2) f(3, a3) f(4, a4) f(5, a5) f(6, a6) f(7, a7) f(8, a8) f(9, a9)
#define RAWBPF_USDT_EACH_10_(f, name, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10)                                                   \
    f(1, a1) f(2, a2) f(3, a3) f(4, a4) f(5, a5) f(6, a6) f(7, a7) f(8, a8) f(9, a9) f(10, a10)
#define RAWBPF_USDT_EACH_11_(f, name, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11)                                              \
    f(1, a1) f(2, a2) f(3, a3) f(4, a4) f(5, a5) f(6, a6) f(7, a7) f(8, a8) f(9, a9) f(10, a10) f(11, a11)
#define RAWBPF_USDT_EACH_12_(f, name, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12)                                         \
    f(1, a1) f(2, a2) f(3, a3) f(4, a4) f(5, a5) f(6, a6) f(7, a7) f(8, a8) f(9, a9) f(10, a10) f(11, a11) f(12, a12)
#define RAWBPF_USDT_PICK_(name, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, n, ...) n
#define RAWBPF_USDT_COUNT_(...) RAWBPF_USDT_PICK_(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0)
#define RAWBPF_USDT_JOIN_(a, b) a##b
#define RAWBPF_USDT_JOIN(a, b) RAWBPF_USDT_JOIN_(a, b)
#define RAWBPF_USDT_EACH_(f, ...)                                                                                                \
    RAWBPF_USDT_JOIN(RAWBPF_USDT_JOIN(RAWBPF_USDT_EACH_, RAWBPF_USDT_COUNT_(__VA_ARGS__)), _)(f, __VA_ARGS__)

#ifndef RAWBPF_USDT_NONE

// What stands at a probe. One byte on x86_64: a kernel replaces it by a breakpoint, whatever is around it. The five bytes that
// Linux 6.18 makes a call of are no good here: that call pushes its way back below the stack pointer, where a function that calls
// nothing keeps its variables. RAWBPF_USDT_NOP10 adds what Linux 7.2 makes a call of, which steps over them: eleven bytes, two
// instructions.
#if defined(__x86_64__) && defined(RAWBPF_USDT_NOP10)
#define RAWBPF_USDT_NOP_ "990: nop\n.byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\n"
#else
#define RAWBPF_USDT_NOP_ "990: nop\n"
#endif

// To the inliner a statement of thirty lines would be thirty instructions.
#if defined(__clang__) ? __clang_major__ >= 11 : __GNUC__ >= 9
#define RAWBPF_USDT_ASM_ __asm__ __inline__ __volatile__
#else
#define RAWBPF_USDT_ASM_ __asm__ __volatile__
#endif

// Values or registers: no memory, since that may be a symbol's that no reader finds (arm64's :lo12:.LANCHOR0). x86_64 could run
// out of registers after eight; clang takes memory wherever it may, storing each value there first.
#if defined(__x86_64__) && !defined(__clang__)
#define RAWBPF_USDT_MANY_ "nor"
#else
#define RAWBPF_USDT_MANY_ "nr"
#endif

// What an argument is, as a number that the assembler takes apart: its size, and these.
enum { RAWBPF_USDT_FLOAT_ = 16, RAWBPF_USDT_SIGNED_ = 32, RAWBPF_USDT_POINTER_ = 64 };
#ifdef __cplusplus
extern "C++" {
namespace rawbpf_usdt {
template <class T, bool = __is_enum(T)> struct Number { static constexpr int kind = T(-1) < T(1) ? RAWBPF_USDT_SIGNED_ : 0; };
template <class T> struct Number<T, true> : Number<__underlying_type(T)> {};
template <> struct Number<float, false> { static constexpr int kind = RAWBPF_USDT_FLOAT_; };
template <> struct Number<double, false> { static constexpr int kind = RAWBPF_USDT_FLOAT_; };
template <> struct Number<decltype(nullptr), false> { static constexpr int kind = RAWBPF_USDT_POINTER_; };
template <class T> struct Number<T *, false> { static constexpr int kind = RAWBPF_USDT_POINTER_; };
template <class T> struct ArgumentKind {
    static_assert(sizeof(T) <= 8, "an argument of a USDT probe has 8 bytes at most: a number, an enumerator or a pointer");
    static constexpr int value = int(sizeof(T)) | Number<T>::kind;
};
} // namespace rawbpf_usdt
}
#define RAWBPF_USDT_AUTO_ auto
#define RAWBPF_USDT_KIND_(x) (::rawbpf_usdt::ArgumentKind<decltype(x)>::value)
#define RAWBPF_USDT_FITS_(i, x)
#else
#define RAWBPF_USDT_AUTO_ __extension__ __auto_type
#define RAWBPF_USDT_KIND_(x)                                                                                                     \
    ((int)sizeof(x) | __extension__ _Generic(((void)0, (x)), float                                                               \
                                             : RAWBPF_USDT_FLOAT_, double                                                        \
                                             : RAWBPF_USDT_FLOAT_, char                                                          \
                                             : (char)-1 < 1 ? RAWBPF_USDT_SIGNED_ : 0, signed char                               \
                                             : RAWBPF_USDT_SIGNED_, short                                                        \
                                             : RAWBPF_USDT_SIGNED_, int                                                          \
                                             : RAWBPF_USDT_SIGNED_, long                                                         \
                                             : RAWBPF_USDT_SIGNED_, long long                                                    \
                                             : RAWBPF_USDT_SIGNED_, default                                                      \
                                             : __builtin_classify_type(x) == 5 ? RAWBPF_USDT_POINTER_ : 0))
#define RAWBPF_USDT_FITS_(i, x)                                                                                                  \
    __extension__ _Static_assert(sizeof(rawbpf_usdt_##i) <= 8,                                                                   \
                                 "an argument of a USDT probe has 8 bytes at most: a number, an enumerator or a pointer");
#endif

#define RAWBPF_USDT_FIRST_(name, ...) name
#define RAWBPF_USDT_TEXT_(x) #x
#define RAWBPF_USDT_TEXT(x) RAWBPF_USDT_TEXT_(x)

// Once and for all, before the statement: each argument is worked out once, and has lost its array, its reference, its const.
#define RAWBPF_USDT_COPY_(i, x)                                                                                                  \
    RAWBPF_USDT_AUTO_ rawbpf_usdt_##i = (x);                                                                                     \
    RAWBPF_USDT_FITS_(i, x)
#define RAWBPF_USDT_IS_POINTER_(i, x) | (RAWBPF_USDT_KIND_(rawbpf_usdt_##i) & RAWBPF_USDT_POINTER_)
// -4@ and 8f@, and the place. A digit a size; blanks between arguments.
#define RAWBPF_USDT_SPEC_(i, x)                                                                                                  \
    ".if " #i " > 1\n.byte 32\n.endif\n"                                                                                         \
    ".if %c[k" #i "] & 32\n.byte 45\n.endif\n"                                                                                   \
    ".byte 48 + (%c[k" #i "] & 15)\n"                                                                                            \
    ".if %c[k" #i "] & 16\n.byte 102\n.endif\n"                                                                                  \
    ".ascii \"@%[a" #i "]\"\n"
#define RAWBPF_USDT_OPERANDS_(i, x)                                                                                              \
    , [k##i] "n"(RAWBPF_USDT_KIND_(rawbpf_usdt_##i)), [a##i] RAWBPF_USDT_IN_##i##_(rawbpf_usdt_##i)
#define RAWBPF_USDT_OPERANDS_IN_MEMORY_(i, x) , [k##i] "n"(RAWBPF_USDT_KIND_(rawbpf_usdt_##i)), [a##i] "no"(rawbpf_usdt_##i)
#define RAWBPF_USDT_IN_1_ "nr"
#define RAWBPF_USDT_IN_2_ "nr"
#define RAWBPF_USDT_IN_3_ "nr"
#define RAWBPF_USDT_IN_4_ "nr"
#define RAWBPF_USDT_IN_5_ "nr"
#define RAWBPF_USDT_IN_6_ "nr"
#define RAWBPF_USDT_IN_7_ "nr"
#define RAWBPF_USDT_IN_8_ "nr"
#define RAWBPF_USDT_IN_9_ RAWBPF_USDT_MANY_
#define RAWBPF_USDT_IN_10_ RAWBPF_USDT_MANY_
#define RAWBPF_USDT_IN_11_ RAWBPF_USDT_MANY_
#define RAWBPF_USDT_IN_12_ RAWBPF_USDT_MANY_

// Two bytes that whoever looks counts itself in; all that name them in a program or library share them. Weak and in a group, so
// that they need no definition; nothing of it is known to the compiler, so that -flto can't lose it.
#define RAWBPF_USDT_SEMAPHORE_(symbol)                                                                                           \
    ".ifndef " symbol "\n.pushsection .probes,\"awG\",\"progbits\"," symbol ",comdat\n.balign 2\n"                               \
    ".weak " symbol "\n.hidden " symbol "\n.type " symbol ",%%object\n.size " symbol ",2\n" symbol ": .zero 2\n"                 \
    ".popsection\n.endif\n"

// The note, in the group of the function that it tells of ("?"), so that they come and go together; and the section by which
// readers see how far prelink has moved a file.
#define RAWBPF_USDT_NOTE_(provider, name, define, semaphore, ...)                                                                \
    RAWBPF_USDT_NOP_                                                                                                             \
    define ".Lrawbpf_usdt_%=:\n.pushsection .note.stapsdt,\"?o\",\"note\",.Lrawbpf_usdt_%=\n.balign 4\n.4byte 992f-991f, "       \
           "994f-993f, 3\n"                                                                                                      \
           "991: .asciz \"stapsdt\"\n992: .balign 4\n993: " RAWBPF_USDT_ADDRESS_ "990b, _.stapsdt.base, " semaphore "\n"         \
           ".asciz \"" provider "\"\n.asciz \"" name "\"\n" RAWBPF_USDT_EACH_(                                                   \
               RAWBPF_USDT_SPEC_,                                                                                                \
               __VA_ARGS__) ".byte 0\n994: .balign 4\n.popsection\n"                                                             \
                            ".ifndef _.stapsdt.base\n.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"      \
                            ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.size "                     \
                            "_.stapsdt.base,1\n.popsection\n.endif\n"

// What a pointer points to has to be in memory when the probe is reached; only then is it said that memory is read, which costs.
#define RAWBPF_USDT_STATEMENT_(operands, provider, name, define, semaphore, ...)                                                 \
    if (0 RAWBPF_USDT_EACH_(RAWBPF_USDT_IS_POINTER_, __VA_ARGS__))                                                               \
        RAWBPF_USDT_ASM_(RAWBPF_USDT_NOTE_(provider, name, define, semaphore,                                                    \
                                           __VA_ARGS__)::[none] "n"(0)RAWBPF_USDT_EACH_(operands, __VA_ARGS__)                   \
                         : "memory");                                                                                            \
    else                                                                                                                         \
        RAWBPF_USDT_ASM_(RAWBPF_USDT_NOTE_(provider, name, define, semaphore,                                                    \
                                           __VA_ARGS__)::[none] "n"(0)RAWBPF_USDT_EACH_(operands, __VA_ARGS__));

// A value of eight bytes is in two registers of 32-bit ARM, which no reader puts together, and there may be no twelve registers
// (Thumb with a frame pointer): such a probe's arguments are in memory.
#ifdef __arm__
#define RAWBPF_USDT_IS_WIDE_(i, x) | (sizeof(rawbpf_usdt_##i) > 4)
#define RAWBPF_USDT_CHOOSE_(...)                                                                                                 \
    if (RAWBPF_USDT_WIDE_(__VA_ARGS__)) {                                                                                        \
        RAWBPF_USDT_STATEMENT_(RAWBPF_USDT_OPERANDS_IN_MEMORY_, __VA_ARGS__)                                                     \
    } else {                                                                                                                     \
        RAWBPF_USDT_STATEMENT_(RAWBPF_USDT_OPERANDS_, __VA_ARGS__)                                                               \
    }
#define RAWBPF_USDT_WIDE_(provider, name, define, semaphore, ...)                                                                \
    ((RAWBPF_USDT_COUNT_(__VA_ARGS__) > 8) RAWBPF_USDT_EACH_(RAWBPF_USDT_IS_WIDE_, __VA_ARGS__))
#else
#define RAWBPF_USDT_CHOOSE_(...) RAWBPF_USDT_STATEMENT_(RAWBPF_USDT_OPERANDS_, __VA_ARGS__)
#endif
#define RAWBPF_USDT_PROBE_(provider, name, define, semaphore, ...)                                                               \
    do {                                                                                                                         \
        RAWBPF_USDT_EACH_(RAWBPF_USDT_COPY_, __VA_ARGS__)                                                                        \
        RAWBPF_USDT_CHOOSE_(provider, name, define, semaphore, __VA_ARGS__)                                                      \
    } while (0)
#define RAWBPF_USDT_COUNTED_(provider, name, symbol, ...)                                                                        \
    RAWBPF_USDT_PROBE_(provider, name, RAWBPF_USDT_SEMAPHORE_(symbol), symbol, __VA_ARGS__)
#ifdef __x86_64__
#define RAWBPF_USDT_READ_(symbol, into) "movzwl " symbol "(%%rip), %k[" into "]\n"
#elif defined(__riscv)
#define RAWBPF_USDT_READ_(symbol, into) "lhu %[" into "], " symbol "\n"
#elif defined(__arm__)
#ifdef __thumb__
#define RAWBPF_USDT_AHEAD_ "4" // how far pc is ahead of the instruction that reads it
#else
#define RAWBPF_USDT_AHEAD_ "8"
#endif
#define RAWBPF_USDT_READ_(symbol, into)                                                                                          \
    "movw %[" into "], #:lower16:(" symbol " - (995f + " RAWBPF_USDT_AHEAD_ "))\nmovt %[" into "], #:upper16:(" symbol           \
    " - (995f + " RAWBPF_USDT_AHEAD_ "))\n995: add %[" into "], pc\nldrh %[" into "], [%[" into "]]\n"
#else
#define RAWBPF_USDT_READ_(symbol, into) "adrp %[" into "], " symbol "\nldrh %w[" into "], [%[" into "], #:lo12:" symbol "]\n"
#endif
#define RAWBPF_USDT_ENABLED_(symbol)                                                                                             \
    (__extension__({                                                                                                             \
        unsigned long rawbpf_usdt_count;                                                                                         \
        RAWBPF_USDT_ASM_(RAWBPF_USDT_SEMAPHORE_(symbol) RAWBPF_USDT_READ_(symbol, "count") : [count] "=r"(rawbpf_usdt_count));   \
        __builtin_expect(rawbpf_usdt_count != 0, 0);                                                                             \
    }))

/// A probe: RAWBPF_USDT(provider, name, up to 12 arguments). A statement. Costs a nop, and that its arguments are in registers
/// there.
#define RAWBPF_USDT(provider, ...)                                                                                               \
    RAWBPF_USDT_PROBE_(RAWBPF_USDT_TEXT(provider), RAWBPF_USDT_TEXT(RAWBPF_USDT_FIRST_(__VA_ARGS__, )), "", "0", __VA_ARGS__)
/// The same, and who looks at it is counted, for RAWBPF_USDT_ENABLED.
#define RAWBPF_USDT_WITH_SEMAPHORE(provider, ...)                                                                                \
    RAWBPF_USDT_COUNTED_(RAWBPF_USDT_TEXT(provider), RAWBPF_USDT_TEXT(RAWBPF_USDT_FIRST_(__VA_ARGS__, )),                        \
                         RAWBPF_USDT_TEXT(provider) "_" RAWBPF_USDT_TEXT(RAWBPF_USDT_FIRST_(__VA_ARGS__, )) "_semaphore",        \
                         __VA_ARGS__)
/// Whether somebody looks at that probe of this program or library just now: a load and a branch. An expression; nothing has to
/// be defined for it. Always 0 where the probe is made by RAWBPF_USDT.
#define RAWBPF_USDT_ENABLED(provider, name)                                                                                      \
    RAWBPF_USDT_ENABLED_(RAWBPF_USDT_TEXT(provider) "_" RAWBPF_USDT_TEXT(name) "_semaphore")
/// A probe whose arguments are worked out, with all that they do, only while somebody looks.
#define RAWBPF_USDT_LAZY(provider, ...)                                                                                          \
    do {                                                                                                                         \
        if (RAWBPF_USDT_ENABLED(provider, RAWBPF_USDT_FIRST_(__VA_ARGS__, ))) RAWBPF_USDT_WITH_SEMAPHORE(provider, __VA_ARGS__); \
    } while (0)

#else // no probes; what would have been an argument isn't worked out, and isn't unused either
#define RAWBPF_USDT_IGNORE_(i, x) (void)(x);
#define RAWBPF_USDT(provider, ...)                                                                                               \
    do {                                                                                                                         \
        if (0) {                                                                                                                 \
            RAWBPF_USDT_EACH_(RAWBPF_USDT_IGNORE_, __VA_ARGS__)                                                                  \
        }                                                                                                                        \
    } while (0)
#define RAWBPF_USDT_WITH_SEMAPHORE(provider, ...) RAWBPF_USDT(provider, __VA_ARGS__)
#define RAWBPF_USDT_LAZY(provider, ...) RAWBPF_USDT(provider, __VA_ARGS__)
#define RAWBPF_USDT_ENABLED(provider, name) 0
#endif

#endif
