// A congestion control for TCP: it counts how often the kernel asks it something
#include <rawbpf/bpf.h>
LICENSE("GPL");

__u64 asked;
struct sock;
struct tcp_congestion_ops { // the members that are used; the rest the loader takes from the kernel's types
    char name[16];
    __u32 (*ssthresh)(struct sock *sk);
    void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
    __u32 (*undo_cwnd)(struct sock *sk);
} __attribute__((preserve_access_index));

SEC("struct_ops/lesson_ssthresh") __u32 BPF_PROG(lesson_ssthresh, struct sock *sk) {
    return 2; // after a loss: begin again with two packets
}
SEC("struct_ops/lesson_avoid") void BPF_PROG(lesson_avoid, struct sock *sk, __u32 ack, __u32 acked) {
    __sync_fetch_and_add(&asked, 1); // packets have arrived: the window could grow
}
SEC("struct_ops/lesson_undo") __u32 BPF_PROG(lesson_undo, struct sock *sk) { return 2; }
SEC(".struct_ops.link")
struct tcp_congestion_ops lesson = {
    .name = "lesson",
    .ssthresh = (void *)lesson_ssthresh,
    .cong_avoid = (void *)lesson_avoid,
    .undo_cwnd = (void *)lesson_undo,
};
