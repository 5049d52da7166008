// A TCP congestion control that counts how often it is asked, and does nothing clever.
#include <rawbpf/bpf.h>

LICENSE("GPL");

__u64 asked;
struct sock;
struct tcp_congestion_ops {
    char name[16];
    __u32 (*ssthresh)(struct sock *sk);
    void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
    __u32 (*undo_cwnd)(struct sock *sk);
} __attribute__((preserve_access_index));
SEC("struct_ops/ssthresh") __u32 BPF_PROG(ops_ssthresh, struct sock *sk __unused) {
    __sync_fetch_and_add(&asked, 1);
    return 2;
}
SEC("struct_ops/cong_avoid") void BPF_PROG(ops_cong_avoid, struct sock *sk __unused, __u32 ack __unused, __u32 acked __unused) {
    __sync_fetch_and_add(&asked, 1);
}
SEC("struct_ops/undo_cwnd") __u32 BPF_PROG(ops_undo_cwnd, struct sock *sk __unused) { return 2; }
SEC(".struct_ops.link")
struct tcp_congestion_ops rawbpf_linked = {
    .name = "rawbpf_linked",
    .ssthresh = (void *)ops_ssthresh,
    .cong_avoid = (void *)ops_cong_avoid,
    .undo_cwnd = (void *)ops_undo_cwnd,
};
