// The second one: a hash map that counts, and a ring buffer that reports.
#include <rawbpf/bpf.h>

struct event {
    __u64 time;
    __u32 pid;
    __u32 count;
    char comm[16];
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __type(key, __u32);
    __type(value, __u64);
} counts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} events SEC(".maps");

const volatile __u32 only_pid = 0;

SEC("perf_event")
int on_tick(void *ctx) {
    __u32 pid = bpf_get_current_pid_tgid() >> 32;
    if (only_pid && pid != only_pid) return 0;
    __u64 one = 1, *count = bpf_map_lookup_elem(&counts, &pid);
    if (count) {
        __sync_fetch_and_add(count, 1); // using its result would need kernel 5.12
        one = *count;
    } else
        bpf_map_update_elem(&counts, &pid, &one, BPF_ANY);
    struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
    if (!event) return 0;
    event->time = bpf_ktime_get_ns();
    event->pid = pid;
    event->count = one;
    bpf_get_current_comm(event->comm, sizeof(event->comm));
    bpf_ringbuf_submit(event, 0);
    return 0;
}

LICENSE("GPL");
