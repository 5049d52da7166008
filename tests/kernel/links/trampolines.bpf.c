// One program for each kind of trampoline, on what `chroot` does, and a TCP congestion control: for tests/vm/cli.sh.
#include <rawbpf/bpf.h>

LICENSE("GPL");

__u64 entered, left, asked, decided;
struct path;
SEC("fentry/security_path_chroot") int BPF_PROG(on_entry, const struct path *path __unused) {
    __sync_fetch_and_add(&entered, 1);
    return 0;
}
SEC("fexit/security_path_chroot") int BPF_PROG(on_exit, const struct path *path __unused, int result) {
    if (result == 0) __sync_fetch_and_add(&left, 1);
    return 0;
}
SEC("fmod_ret/security_path_chroot") int BPF_PROG(on_question, const struct path *path __unused, int result) {
    __sync_fetch_and_add(&asked, 1);
    return result;
}
SEC("lsm/path_chroot") int BPF_PROG(on_decision, const struct path *path __unused, int result) {
    __sync_fetch_and_add(&decided, 1);
    return result;
}

struct sock;
struct tcp_congestion_ops {
    char name[16];
    __u32 (*ssthresh)(struct sock *sk);
    void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
    __u32 (*undo_cwnd)(struct sock *sk);
} __attribute__((preserve_access_index));
SEC("struct_ops/ssthresh") __u32 BPF_PROG(ops_ssthresh, struct sock *sk __unused) { return 2; }
SEC("struct_ops/cong_avoid") void BPF_PROG(ops_cong_avoid, struct sock *sk __unused, __u32 ack __unused, __u32 acked __unused) {}
SEC("struct_ops/undo_cwnd") __u32 BPF_PROG(ops_undo_cwnd, struct sock *sk __unused) { return 2; }
SEC(".struct_ops.link")
struct tcp_congestion_ops rawbpf_cli = {
    .name = "rawbpf_cli",
    .ssthresh = (void *)ops_ssthresh,
    .cong_avoid = (void *)ops_cong_avoid,
    .undo_cwnd = (void *)ops_undo_cwnd,
};
