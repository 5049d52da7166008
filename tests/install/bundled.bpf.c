// What a bundle has: variables, a hash, a ring buffer, a field of the kernel's (CO-RE), programs that say where and one that
// doesn't.
#include <rawbpf/bpf.h>

LICENSE("GPL");

struct task_struct {
    int tgid;
} __attribute__((preserve_access_index));

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 64);
    __type(key, __u32);
    __type(value, __u64);
} calls SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} events SEC(".maps");

const volatile __u64 step = 1;
__u64 wrong = 0, packets = 0;

SEC("raw_tp/sys_enter")
int on_call(__u64 *ctx) {
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    __u32 tgid = 0, mine = bpf_get_current_pid_tgid() >> 32;
    __u64 one = step, *count;
    bpf_probe_read_kernel(&tgid, sizeof tgid, &task->tgid);
    if (tgid != mine) __sync_fetch_and_add(&wrong, 1);
    if ((count = bpf_map_lookup_elem(&calls, &mine))) {
        __sync_fetch_and_add(count, one);
        if (*count <= 3) bpf_ringbuf_output(&events, &mine, sizeof mine, 0);
    }
    return 0;
}

SEC("cgroup_skb/egress")
int on_packet(struct __sk_buff *skb) {
    __sync_fetch_and_add(&packets, 1);
    return 1;
}
