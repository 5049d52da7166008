// One program for each way of attaching; each counts its runs, and keeps its cookie, in a slot of its own.
#include <rawbpf/bpf.h>

LICENSE("GPL");

const volatile int wanted_pid; // 0: whoever it is
struct {
    __u64 count, cookie;
} runs[64];

static int mine(void) { return wanted_pid == 0 || bpf_get_current_pid_tgid() >> 32 == (__u32)wanted_pid; }
static void count(int n) { __sync_fetch_and_add(&runs[n].count, 1); }

extern _Bool LINUX_HAS_BPF_COOKIE __kconfig; // known when loading: without it the call is cut away

// What our own process does, with a cookie; the same without one; whatever comes by.
#define COOKIE(n, section)                                                                                                       \
    SEC(section) int run_##n(void *ctx) {                                                                                        \
        if (mine()) {                                                                                                            \
            count(n);                                                                                                            \
            if (LINUX_HAS_BPF_COOKIE) runs[n].cookie = bpf_get_attach_cookie(ctx);                                               \
        }                                                                                                                        \
        return 0;                                                                                                                \
    }
#define PLAIN(n, section)                                                                                                        \
    SEC(section) int run_##n(void *ctx __unused) {                                                                               \
        if (mine()) count(n);                                                                                                    \
        return 0;                                                                                                                \
    }
#define ANY(n, section, result)                                                                                                  \
    SEC(section) int run_##n(void *ctx __unused) {                                                                               \
        count(n);                                                                                                                \
        return result;                                                                                                           \
    }

COOKIE(0, "tracepoint/syscalls/sys_enter_getpgid")
PLAIN(1, "tracepoint/syscalls/sys_enter_getpgid")
PLAIN(2, "raw_tp/sys_enter")
COOKIE(3, "kprobe/vfs_read") // the tests name another one
PLAIN(4, "kretprobe/vfs_read")
COOKIE(5, "kprobe.multi/vfs_*")
PLAIN(6, "kretprobe.multi/vfs_read*")
SEC("kprobe.session/vfs_write*") int run_7(void *ctx __unused) {
    if (mine()) count(7);
    return 0;
}
COOKIE(8, "ksyscall/getpgid")
PLAIN(9, "kretsyscall/getpgid")
COOKIE(10, "uprobe//proc/self/exe:linktest_one")
PLAIN(11, "uretprobe//proc/self/exe:linktest_one")
COOKIE(12, "uprobe.multi//proc/self/exe:linktest_*")
PLAIN(13, "uretprobe.multi//proc/self/exe:linktest_*")
PLAIN(14, "uprobe.session//proc/self/exe:linktest_one")
PLAIN(15, "tp_btf/sys_enter")
COOKIE(16, "fentry/bpf_fentry_test1")
PLAIN(17, "fexit/bpf_fentry_test1")
PLAIN(18, "fmod_ret/bpf_modify_return_test")
PLAIN(19, "lsm/path_chroot")
PLAIN(20, "fentry/vfs_read")
PLAIN(21, "lsm.s/bprm_committed_creds")
COOKIE(22, "perf_event")
PLAIN(23, "uprobe.s//proc/self/exe:linktest_one")
PLAIN(24, "raw_tp.w/sys_enter")
PLAIN(25, "kprobe")
PLAIN(26, "usdt//proc/self/exe:rawbpf:linktest")

ANY(30, "xdp", 2)             // XDP_PASS
ANY(31, "tc", 0)              // TC_ACT_OK
ANY(32, "tcx/ingress", -1)    // TCX_NEXT
ANY(33, "netkit/primary", -1) // NETKIT_NEXT
ANY(34, "cgroup_skb/egress", 1)
ANY(35, "cgroup/connect4", 1)
ANY(36, "sk_lookup", 1) // SK_PASS
ANY(37, "sockops", 1)
ANY(38, "sk_skb/stream_verdict", 1)
ANY(39, "sk_msg", 1)
ANY(40, "flow_dissector", 129) // BPF_FLOW_DISSECTOR_CONTINUE
ANY(41, "netfilter", 1)        // NF_ACCEPT
ANY(42, "socket", -1)
ANY(43, "lwt_in", 0)
ANY(44, "xdp/devmap", 2)
ANY(45, "syscall", 0)
ANY(46, "cgroup/sysctl", 1)
ANY(47, "xdp.frags", 2)
ANY(48, "tcx/egress", -1)
ANY(49, "xdp", 2)
ANY(50, "action", 0)
ANY(51, "lirc_mode2", 0)
ANY(52, "sk_reuseport", 1)
ANY(53, "lsm_cgroup/socket_post_create", 1)
ANY(54, "netkit/peer", -1)
PLAIN(55, "fsession/bpf_fentry_test1")
PLAIN(56, "fentry.multi/bpf_fentry_test*")
PLAIN(57, "kprobe.multi/dummy:dummy_*")
PLAIN(58, "fentry.multi/dummy:dummy_*")

// An iterator over maps that prints a line for each.
struct bpf_map {
    unsigned id;
} __attribute__((preserve_access_index));
struct seq_file;
struct bpf_iter_meta {
    struct seq_file *seq;
} __attribute__((preserve_access_index));
struct bpf_iter__bpf_map {
    struct bpf_iter_meta *meta;
    struct bpf_map *map;
} __attribute__((preserve_access_index));
SEC("iter/bpf_map") int list_maps(struct bpf_iter__bpf_map *ctx) {
    struct bpf_map *map = ctx->map;
    if (!map) return 0; // the end
    BPF_SEQ_PRINTF(ctx->meta->seq, "map %u\n", map->id);
    return 0;
}
