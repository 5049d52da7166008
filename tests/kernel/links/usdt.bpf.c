// Arguments of USDT probes, by our header and, compiled with -DTHEIRS, by libbpf's where it is installed.
#if defined(THEIRS) && __has_include(<bpf/usdt.bpf.h>)
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/usdt.bpf.h>
char _license[] SEC("license") = "GPL";
typedef struct pt_regs Registers;
const volatile int whose_header = 2;
#else
#include <rawbpf/bpf.h>
#include <rawbpf/usdt.h>
LICENSE("GPL");
typedef void Registers;
const volatile int whose_header = 1;
#endif

const volatile int wanted_pid;
struct {
    long count, arguments, cookie;
    long values[12];
    long errors[12];
} seen;

static __always_inline void look(Registers *ctx) {
    if (bpf_get_current_pid_tgid() >> 32 != (__u32)wanted_pid) return;
    seen.count++;
    seen.arguments = bpf_usdt_arg_cnt(ctx);
    seen.cookie = bpf_usdt_cookie(ctx);
#pragma unroll
    for (int i = 0; i < 12; ++i) {
        long value;
        seen.errors[i] = bpf_usdt_arg(ctx, i, &value);
        seen.values[i] = value;
    }
}

SEC("usdt//proc/self/exe:rawbpf:places") int on_places(Registers *ctx) {
    look(ctx);
    return 0;
}
SEC("usdt") int on_any(Registers *ctx) {
    look(ctx);
    return 0;
}
