// Arguments of USDT probes, for programs in SEC("usdt/FILE:PROVIDER:NAME"). Beside <rawbpf/bpf.h>, which is included first.
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
