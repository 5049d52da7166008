// One program for each way of attaching; each counts its runs, and keeps its cookie, in a slot of its own.
#include <rawbpf/bpf.h>

LICENSE("GPL");

const volatile int wanted_pid; // 0: whoever it is
struct {
    __u64 count, cookie;
} runs[64];

#define NUMBER(n, section)                                                                                                       \
    SEC(section) int run_##n(void *ctx) {                                                                                        \
        if (wanted_pid == 0 || bpf_get_current_pid_tgid() >> 32 == (__u32)wanted_pid) {                                          \
            __sync_fetch_and_add(&runs[n].count, 1);                                                                             \
            runs[n].cookie = bpf_get_attach_cookie(ctx);                                                                         \
        }                                                                                                                        \
        return 0;                                                                                                                \
    }
#define PLAIN(n, section)                                                                                                        \
    SEC(section) int run_##n(void *ctx __unused) {                                                                               \
        if (wanted_pid == 0 || bpf_get_current_pid_tgid() >> 32 == (__u32)wanted_pid) __sync_fetch_and_add(&runs[n].count, 1);   \
        return 0;                                                                                                                \
    }
NUMBER(0, "tracepoint/syscalls/sys_enter_getpgid")
PLAIN(1, "tracepoint/syscalls/sys_enter_getpgid")
PLAIN(2, "raw_tp/sys_enter")
