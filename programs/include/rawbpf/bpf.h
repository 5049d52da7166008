// SPDX-License-Identifier: MIT
// What a BPF program written in C includes: the kernel's UAPI headers, every helper, and the names that BPF C is written with.
//
//     #include <rawbpf/bpf.h>
//
//     LICENSE("GPL");
//
//     SEC("tracepoint/syscalls/sys_enter_execve")
//     int hello(void *ctx) {
//         bpf_printk("hello from pid %d", (int)(bpf_get_current_pid_tgid() >> 32));
//         return 0;
//     }
//
//     clang --target=bpf -O2 -g -c hello.bpf.c -o hello.bpf.o        (clang 14 or newer; -g makes the BTF)
//
// It needs clang and the kernel's UAPI headers, nothing else: no vmlinux.h, no headers of another loader. The names are those
// that tutorials use, so their programs compile with this header in place of bpf_helpers.h, bpf_core_read.h, bpf_tracing.h,
// bpf_endian.h.
//
// Other headers of the kernel may stand before it or behind it. A 64-bit Debian keeps <asm/types.h> and its like in a folder that
// clang doesn't search for the BPF target; stand-ins for them lie beside this header (asm/), on the include path that finds it
// (pkg-config --cflags rawbpf). Where only this header is found, it brings the types itself. A program with a vmlinux.h of its
// own includes that first.
#pragma once

// --- Types ------------------------------------------------------------------------------------------------------------------

#ifndef __VMLINUX_H__
#if !__has_include(<asm/types.h>) && !defined(_LINUX_TYPES_H)
// The content of linux/types.h as a BPF program sees it, 64-bit, so that linux/bpf.h finds it done.
#define _LINUX_TYPES_H
typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __le16, __be16;
typedef __u32 __le32, __be32;
typedef __u64 __le64, __be64;
typedef __u16 __sum16;
typedef __u32 __wsum;
typedef unsigned __poll_t;
#define __bitwise
#define __bitwise__
#define __aligned_u64 __u64 __attribute__((aligned(8)))
#define __aligned_be64 __be64 __attribute__((aligned(8)))
#define __aligned_le64 __le64 __attribute__((aligned(8)))
#endif
#include <linux/bpf.h>
#include <linux/version.h>
#endif

#ifndef NULL
#define NULL ((void *)0)
#endif
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
#ifndef container_of
/// The structure that `pointer` is the `member` of.
#define container_of(pointer, type, member)                                                                                      \
    ({                                                                                                                           \
        void *rawbpf_member_ = (void *)(pointer);                                                                                \
        (type *)(rawbpf_member_ - offsetof(type, member));                                                                       \
    })
#endif

// --- Where things go --------------------------------------------------------------------------------------------------------

/// Puts a program, map or variable into the ELF section that tells the loader what it is.
#define SEC(name)                                                                                                                \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wignored-attributes\"")                                    \
        __attribute__((section(name), used)) _Pragma("GCC diagnostic pop")

/// The license the kernel judges GPL-only helpers by. Once per program file.
#define LICENSE(text) char _license[] SEC("license") = text

#undef __always_inline // the system's headers may have one without `inline`
#define __always_inline inline __attribute__((always_inline))
#ifndef __noinline
#define __noinline __attribute__((noinline))
#endif
#ifndef __weak
#define __weak __attribute__((weak))
#endif
#ifndef __hidden
#define __hidden __attribute__((visibility("hidden"))) ///< global to the linker, static to the verifier
#endif
#ifndef __unused
#define __unused __attribute__((unused))
#endif
#ifndef __packed
#define __packed __attribute__((packed))
#endif
#ifndef __aligned
#define __aligned(n) __attribute__((aligned(n)))
#endif

/// Externs that the loader resolves: kernel variables and functions, and values from the kernel's configuration.
#define __ksym __attribute__((section(".ksyms")))
#define __kconfig __attribute__((section(".kconfig")))
/// What a CONFIG_ value that is y, m or n has for a type; the loader knows the enum by this name.
enum libbpf_tristate { TRI_NO = 0, TRI_YES = 1, TRI_MODULE = 2 };
/// True when the kernel has the __weak __ksym.
#define bpf_ksym_exists(symbol) (!!(symbol))

/// Marks on pointers that the verifier reads from BTF (clang 15 and newer write them).
#if __has_attribute(btf_type_tag)
#define __kptr __attribute__((btf_type_tag("kptr")))
#define __kptr_untrusted __attribute__((btf_type_tag("kptr_untrusted")))
#define __percpu_kptr __attribute__((btf_type_tag("percpu_kptr")))
#define __uptr __attribute__((btf_type_tag("uptr")))
#endif
/// Marks on the parameters of global functions.
#if __has_attribute(btf_decl_tag)
#define __arg_ctx __attribute__((btf_decl_tag("arg:ctx")))
#define __arg_nonnull __attribute__((btf_decl_tag("arg:nonnull")))
#define __arg_nullable __attribute__((btf_decl_tag("arg:nullable")))
#define __arg_trusted __attribute__((btf_decl_tag("arg:trusted")))
#define __arg_untrusted __attribute__((btf_decl_tag("arg:untrusted")))
#define __arg_arena __attribute__((btf_decl_tag("arg:arena")))
#endif

// --- Maps: a struct in .maps whose members are the properties, which BTF carries to the loader
// ----------------------------------

#define __uint(property, value) int(*property)[value]
#define __type(property, value) typeof(value) *property
#define __array(property, value) typeof(value) *property[]
/// For values beyond 32 bits (map_extra).
#define __ulong(property, value) enum { RAWBPF_JOIN(rawbpf_value_, __COUNTER__) = value } property

#define RAWBPF_JOIN(a, b) RAWBPF_JOIN_(a, b)
#define RAWBPF_JOIN_(a, b) a##b

/// For __uint(pinning, ...).
enum libbpf_pin_type { LIBBPF_PIN_NONE = 0, LIBBPF_PIN_BY_NAME = 1 };

// --- Helpers ----------------------------------------------------------------------------------------------------------------

struct __sk_buff;
struct bpf_dynptr;
struct bpf_fib_lookup;
struct bpf_perf_event_data;
struct bpf_perf_event_value;
struct bpf_pidns_info;
struct bpf_redir_neigh;
struct bpf_sk_lookup;
struct bpf_sock;
struct bpf_sock_addr;
struct bpf_sock_ops;
struct bpf_sock_tuple;
struct bpf_spin_lock;
struct bpf_sysctl;
struct bpf_tcp_sock;
struct bpf_timer;
struct bpf_tunnel_key;
struct bpf_xfrm_state;
struct btf_ptr;
struct cgroup;
struct file;
struct inode;
struct iphdr;
struct ipv6hdr;
struct linux_binprm;
struct mptcp_sock;
struct path;
struct pt_regs;
struct seq_file;
struct sk_msg_md;
struct sk_reuseport_md;
struct sockaddr;
struct socket;
struct task_struct;
struct tcp6_sock;
struct tcp_request_sock;
struct tcp_sock;
struct tcp_timewait_sock;
struct tcphdr;
struct udp6_sock;
struct unix_sock;
struct xdp_md;

// A helper is a constant function pointer whose value is its number: clang turns the call into `call N`.
#define RAWBPF_HELPER(id, name, major, minor, license, returns, arguments)                                                       \
    static returns(*const bpf_##name) arguments __unused = (void *)id;
#if __has_include("asm/helpers.def")
#include "asm/helpers.def" // installed: include/rawbpf/asm
#else
#include "../../../asm/helpers.def" // in the source tree
#endif

/// A tail call whose slot is a constant, which the JIT turns into a direct jump (5.5): map and slot must stay in their registers.
static __always_inline void bpf_tail_call_static(void *ctx, const void *map, const __u32 slot) {
    __asm__ volatile("r1 = %[ctx]\n\t"
                     "r2 = %[map]\n\t"
                     "r3 = %[slot]\n\t"
                     "call 12" ::[ctx] "r"(ctx),
                     [map] "r"(map), [slot] "i"(slot)
                     : "r0", "r1", "r2", "r3", "r4", "r5");
}

// --- Keeping the compiler from being clever -----------------------------------------------------------------------------------

/// No load or store moves across it.
#define barrier() __asm__ volatile("" ::: "memory")
/// The compiler forgets what it knows about `variable`, so that a bounds check stays where the verifier needs it.
#define barrier_var(variable) __asm__ volatile("" : "+r"(variable))
#define READ_ONCE(place) (*(const volatile typeof(place) *)&(place))
#define WRITE_ONCE(place, value) (*(volatile typeof(place) *)&(place) = (value))

// --- Printing ---------------------------------------------------------------------------------------------------------------

#define RAWBPF_NTH_13(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) n
/// How many arguments, 0 to 12.
#define RAWBPF_COUNT(...) RAWBPF_COUNT_(0, ##__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define RAWBPF_COUNT_(first, ...) RAWBPF_NTH_13(__VA_ARGS__)

/// A line for /sys/kernel/debug/tracing/trace_pipe. Up to three arguments go to bpf_trace_printk, more (at most 12) to
/// bpf_trace_vprintk (5.16). The value is what the helper returns.
#define bpf_printk(format, ...) RAWBPF_JOIN(RAWBPF_PRINTK_, RAWBPF_COUNT(__VA_ARGS__))(format, ##__VA_ARGS__)
#define RAWBPF_PRINTK_0 RAWBPF_PRINTK_FEW
#define RAWBPF_PRINTK_1 RAWBPF_PRINTK_FEW
#define RAWBPF_PRINTK_2 RAWBPF_PRINTK_FEW
#define RAWBPF_PRINTK_3 RAWBPF_PRINTK_FEW
#define RAWBPF_PRINTK_4 RAWBPF_PRINTK_MANY
#define RAWBPF_PRINTK_5 RAWBPF_PRINTK_MANY
#define RAWBPF_PRINTK_6 RAWBPF_PRINTK_MANY
#define RAWBPF_PRINTK_7 RAWBPF_PRINTK_MANY
#define RAWBPF_PRINTK_8 RAWBPF_PRINTK_MANY
#define RAWBPF_PRINTK_9 RAWBPF_PRINTK_MANY
#define RAWBPF_PRINTK_10 RAWBPF_PRINTK_MANY
#define RAWBPF_PRINTK_11 RAWBPF_PRINTK_MANY
#define RAWBPF_PRINTK_12 RAWBPF_PRINTK_MANY
#define RAWBPF_PRINTK_FEW(format, ...)                                                                                           \
    ({                                                                                                                           \
        static const char rawbpf_format_[] = format;                                                                             \
        bpf_trace_printk(rawbpf_format_, sizeof(rawbpf_format_), ##__VA_ARGS__);                                                 \
    })
#define RAWBPF_PRINTK_MANY(format, ...)                                                                                          \
    ({                                                                                                                           \
        static const char rawbpf_format_[] = format;                                                                             \
        RAWBPF_VALUES(__VA_ARGS__)                                                                                               \
        bpf_trace_vprintk(rawbpf_format_, sizeof(rawbpf_format_), RAWBPF_VALUES_AND_SIZE(__VA_ARGS__));                          \
    })

// The helpers that print more take their values as an array of u64. It is filled one by one: an initialiser with the address of
// a string in it would go to .rodata with a relocation there, which no loader can do before the map exists.
#define RAWBPF_VALUES(...)                                                                                                       \
    unsigned long long rawbpf_values_[RAWBPF_COUNT(__VA_ARGS__) + 1];                                                            \
    RAWBPF_JOIN(RAWBPF_FILL_, RAWBPF_COUNT(__VA_ARGS__))(0, ##__VA_ARGS__)
#define RAWBPF_VALUES_AND_SIZE(...) rawbpf_values_, RAWBPF_COUNT(__VA_ARGS__) * 8
#define RAWBPF_FILL_0(i)
#define RAWBPF_FILL_1(i, a) rawbpf_values_[i] = (unsigned long long)(a);
#define RAWBPF_FILL_2(i, a, ...) RAWBPF_FILL_1(i, a) RAWBPF_FILL_1(i + 1, __VA_ARGS__)
#define RAWBPF_FILL_3(i, a, ...) RAWBPF_FILL_1(i, a) RAWBPF_FILL_2(i + 1, __VA_ARGS__)
#define RAWBPF_FILL_4(i, a, ...) RAWBPF_FILL_1(i, a) RAWBPF_FILL_3(i + 1, __VA_ARGS__)
#define RAWBPF_FILL_5(i, a, ...) RAWBPF_FILL_1(i, a) RAWBPF_FILL_4(i + 1, __VA_ARGS__)
#define RAWBPF_FILL_6(i, a, ...) RAWBPF_FILL_1(i, a) RAWBPF_FILL_5(i + 1, __VA_ARGS__)
#define RAWBPF_FILL_7(i, a, ...) RAWBPF_FILL_1(i, a) RAWBPF_FILL_6(i + 1, __VA_ARGS__)
#define RAWBPF_FILL_8(i, a, ...) RAWBPF_FILL_1(i, a) RAWBPF_FILL_7(i + 1, __VA_ARGS__)
#define RAWBPF_FILL_9(i, a, ...) RAWBPF_FILL_1(i, a) RAWBPF_FILL_8(i + 1, __VA_ARGS__)
#define RAWBPF_FILL_10(i, a, ...) RAWBPF_FILL_1(i, a) RAWBPF_FILL_9(i + 1, __VA_ARGS__)
#define RAWBPF_FILL_11(i, a, ...) RAWBPF_FILL_1(i, a) RAWBPF_FILL_10(i + 1, __VA_ARGS__)
#define RAWBPF_FILL_12(i, a, ...) RAWBPF_FILL_1(i, a) RAWBPF_FILL_11(i + 1, __VA_ARGS__)
/// A formatted line into an iterator's seq_file (5.8), with up to twelve values.
#define BPF_SEQ_PRINTF(seq, format, ...)                                                                                         \
    ({                                                                                                                           \
        static const char rawbpf_format_[] = format;                                                                             \
        RAWBPF_VALUES(__VA_ARGS__)                                                                                               \
        bpf_seq_printf(seq, rawbpf_format_, sizeof(rawbpf_format_), RAWBPF_VALUES_AND_SIZE(__VA_ARGS__));                        \
    })
/// snprintf into a buffer (5.13), with up to twelve values.
#define BPF_SNPRINTF(buffer, size, format, ...)                                                                                  \
    ({                                                                                                                           \
        static const char rawbpf_format_[] = format;                                                                             \
        RAWBPF_VALUES(__VA_ARGS__)                                                                                               \
        bpf_snprintf(buffer, size, rawbpf_format_, RAWBPF_VALUES_AND_SIZE(__VA_ARGS__));                                         \
    })

// --- Byte order: network packets are big-endian
// ---------------------------------------------------------------------------------

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define bpf_htons(x) ((__be16)__builtin_bswap16((__u16)(x)))
#define bpf_htonl(x) ((__be32)__builtin_bswap32((__u32)(x)))
#define bpf_cpu_to_be64(x) ((__be64)__builtin_bswap64((__u64)(x)))
#else
#define bpf_htons(x) ((__be16)(x))
#define bpf_htonl(x) ((__be32)(x))
#define bpf_cpu_to_be64(x) ((__be64)(x))
#endif
#define bpf_ntohs(x) ((__u16)bpf_htons(x))
#define bpf_ntohl(x) ((__u32)bpf_htonl(x))
#define bpf_be64_to_cpu(x) ((__u64)bpf_cpu_to_be64(x))

#include "c/core_read.h"
#include "c/loops.h"
#include "c/tracing.h"
