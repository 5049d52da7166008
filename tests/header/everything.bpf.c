// Every macro of <rawbpf/bpf.h> at least once. The kernel test loads each program by itself: some need newer kernels than others.
#include <rawbpf/bpf.h>

LICENSE("Dual MIT/GPL");

struct inode {
    unsigned long i_ino;
} __attribute__((preserve_access_index));
struct file {
    struct inode *f_inode;
    unsigned f_flags;
} __attribute__((preserve_access_index));
struct mm_struct {
    struct file *exe_file;
} __attribute__((preserve_access_index));
struct task_struct {
    struct mm_struct *mm;
    struct task_struct *real_parent;
    int pid;
    char comm[16];
    unsigned sched_reset_on_fork : 1;
    unsigned in_execve : 1;
} __attribute__((preserve_access_index));
enum pid_type { PIDTYPE_PID, PIDTYPE_TGID };
struct size_t___odd {
    int x;
};
typedef unsigned long size_t;

struct inner_map {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} first SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, 2);
    __uint(pinning, LIBBPF_PIN_BY_NAME);
    __type(key, __u32);
    __array(values, struct inner_map);
} outer SEC(".maps") = {.values = {&first}};
struct {
    __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
    __uint(max_entries, 4);
    __uint(key_size, 4);
    __uint(value_size, 4);
} jumps SEC(".maps");
struct {
    __uint(type, 33); // BPF_MAP_TYPE_ARENA, which 6.9 brought
    __uint(map_flags, 1u << 10);
    __uint(max_entries, 100);
    __ulong(map_extra, 0x100000000000ull);
} arena SEC(".maps");

extern int LINUX_KERNEL_VERSION __kconfig;
extern enum libbpf_tristate CONFIG_BPF_LSM __kconfig __weak;
extern const void init_task __ksym __weak;

__u64 sink;
__hidden __noinline __u64 shared(__u64 x) { return x + sink; }
__weak int overridable(void) { return 1; }

SEC("kprobe/vfs_read") int BPF_KPROBE(on_read, struct file *file, char *buf, size_t count) {
    sink += BPF_CORE_READ(file, f_inode, i_ino) + count + (long)buf + PT_REGS_PARM4(ctx) + PT_REGS_IP(ctx);
    sink += PT_REGS_SP(ctx) + PT_REGS_FP(ctx) + PT_REGS_PARM5(ctx) + PT_REGS_PARM6(ctx) + PT_REGS_RET(ctx);
    __u64 ip = 0;
    BPF_KPROBE_READ_RET_IP(ip, ctx);
    sink += shared(ip) + overridable();
    return 0;
}
SEC("kretprobe/vfs_read") int BPF_KRETPROBE(on_read_done, long returned) { return returned < 0; }
SEC("kretprobe/vfs_write") int BPF_KRETPROBE(on_write_done) { return 0; }
SEC("uprobe//bin/bash:readline") int BPF_UPROBE(on_readline, const char *prompt) { return prompt != NULL; }
SEC("uretprobe//bin/bash:readline") int BPF_URETPROBE(on_readline_done, const char *line) {
    char text[32];
    return bpf_probe_read_user_str(text, sizeof(text), line) > 0;
}
SEC("kprobe/__x64_sys_openat")
int BPF_KSYSCALL(on_openat, int dfd, const char *path, int flags, int mode) {
    struct pt_regs *regs = PT_REGS_SYSCALL_REGS(ctx);
    return dfd + flags + mode + (path != NULL) + PT_REGS_SYSCALL_NR(regs) + PT_REGS_PARM5_CORE_SYSCALL(regs) +
           PT_REGS_PARM6_CORE_SYSCALL(regs) + PT_REGS_RC_CORE(regs) + PT_REGS_IP_CORE(regs);
}
SEC("fentry/vfs_read") int BPF_PROG(on_vfs, struct file *file, char *buf, size_t count) {
    sink += file->f_flags + count + (long)buf;
    return 0;
}
SEC("raw_tp/sched_switch") int BPF_PROG(on_switch, _Bool preempt, struct task_struct *from, struct task_struct *to) {
    char comm[16], name[16];
    struct file *exe = BPF_CORE_READ(from, mm, exe_file);
    struct inode *inode;
    BPF_CORE_READ_INTO(&comm, to, comm);
    BPF_CORE_READ_STR_INTO(&name, to, real_parent, real_parent, comm);
    BPF_CORE_READ_INTO(&inode, exe, f_inode);
    bpf_core_read(&inode, sizeof(inode), &exe->f_inode);
    bpf_core_read_str(comm, sizeof(comm), &to->comm);
    sink += BPF_CORE_READ_BITFIELD_PROBED(from, sched_reset_on_fork) + BPF_CORE_READ_BITFIELD_PROBED(from, in_execve);
    sink +=
        BPF_CORE_READ(from, real_parent, real_parent, real_parent, real_parent, real_parent, real_parent, mm, exe_file, f_flags);
    sink += bpf_core_field_exists(from->comm) + bpf_core_field_exists(struct task_struct, mm) + bpf_core_field_size(from->comm) +
            bpf_core_field_offset(struct task_struct, real_parent);
    sink += bpf_core_type_exists(struct task_struct) + bpf_core_type_size(struct file) + bpf_core_type_id_kernel(struct file) +
            bpf_core_type_id_local(struct file);
#if __clang_major__ >= 15
    sink += bpf_core_type_matches(struct file);
#endif
    sink += bpf_core_enum_value_exists(enum pid_type, PIDTYPE_PID) + bpf_core_enum_value(enum pid_type, PIDTYPE_TGID);
    sink += BPF_PROBE_READ(from, pid) + BPF_PROBE_READ_USER(from, pid) + BPF_CORE_READ_USER(from, pid) + preempt;
    sink += bpf_ksym_exists(&init_task);
    sink += comm[0] + name[1];
    return 0;
}
SEC("tp_btf/sched_switch") int BPF_PROG(direct_bits, _Bool preempt, struct task_struct *from) {
    return BPF_CORE_READ_BITFIELD(from, in_execve) + BPF_CORE_READ_BITFIELD(from, sched_reset_on_fork);
}
SEC("raw_tp") int configured(void *ctx __unused) {
    sink += LINUX_KERNEL_VERSION + CONFIG_BPF_LSM;
    return 0;
}
SEC("perf_event") int on_tick(struct bpf_perf_event_data *ctx) {
    return PT_REGS_IP(ctx) + PERF_EVENT_PERIOD(ctx) + PERF_EVENT_ADDR(ctx) > 5;
}
struct bpf_iter_meta {
    struct seq_file *seq;
} __attribute__((preserve_access_index));
struct bpf_iter__task {
    struct bpf_iter_meta *meta;
} __attribute__((preserve_access_index));
SEC("iter/task") int each_task(struct bpf_iter__task *ctx) {
    BPF_SEQ_PRINTF(ctx->meta->seq, "%d %d\n", 1, 2);
    return 0;
}
SEC("socket") int loops(struct __sk_buff *skb) {
    int i;
    __u64 sum = 0;
    bpf_for(i, 0, 100) {
        if (i == 7) continue;
        if (i == 70) break;
        sum += i;
    }
    bpf_repeat(10) { sum += 2; }
    WRITE_ONCE(sink, sum);
    barrier();
    barrier_var(sum);
    return sum;
}
SEC("socket") int enough(struct __sk_buff *skb) {
    __u64 sum = 0;
    while (can_loop) {
        if (sum++ > skb->len) break;
    }
    for (;;) {
        cond_break;
        sum += READ_ONCE(sink);
    }
    return sum;
}
SEC("xdp") int packets(struct xdp_md *xdp) {
    char text[40];
    bpf_printk("plain");
    bpf_printk("three %d %d %s", 1, 2, "c");
    bpf_printk("five %d %d %d %d %d", 1, 2, 3, 4, 5);
    bpf_printk("twelve %d %d %d %d %d %d %d %d %d %d %d %s", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, "l");
    BPF_SNPRINTF(text, sizeof(text), "%d", 4);
    BPF_SNPRINTF(text, sizeof(text), "nothing");
    bpf_tail_call_static(xdp, &jumps, 1);
    if (bpf_htons(xdp->ingress_ifindex) == 8 && bpf_ntohl(xdp->rx_queue_index) == 1 && bpf_be64_to_cpu(sink) == 3)
        return XDP_PASS;
    return container_of(&xdp->data_end, struct xdp_md, data_end) == xdp ? XDP_DROP : XDP_ABORTED;
}
