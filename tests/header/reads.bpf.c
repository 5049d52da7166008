// What the CO-RE macros read, left in globals for the test to compare with what user space knows.
#include <rawbpf/bpf.h>

LICENSE("GPL");

struct task_struct {
    int pid, tgid;
    struct task_struct *real_parent, *group_leader;
    char comm[16];
    unsigned sched_reset_on_fork : 1;
} __attribute__((preserve_access_index));
struct task_struct___newer { // a flavour: the same structure, as some other kernel has it
    int no_kernel_has_this;
} __attribute__((preserve_access_index));
enum pid_type { PIDTYPE_PID, PIDTYPE_TGID };

struct {
    int pid, tgid, parent, leader_of_parent;
    char comm[16], comm_str[16];
    int comm_str_length;
    unsigned reset_on_fork;
    unsigned comm_size, has_comm, has_nothing, type_exists, type_missing, enumerator_exists;
    unsigned printed_length;
    char printed[32];
} seen;

SEC("raw_tp")
int reads(void *ctx __unused) {
    struct task_struct *task = (void *)bpf_get_current_task();
    seen.pid = BPF_CORE_READ(task, pid);
    seen.tgid = BPF_CORE_READ(task, tgid);
    seen.parent = BPF_CORE_READ(task, real_parent, tgid);
    seen.leader_of_parent = BPF_CORE_READ(task, real_parent, group_leader, group_leader, group_leader, group_leader, group_leader,
                                          group_leader, group_leader, pid);
    BPF_CORE_READ_INTO(&seen.comm, task, comm);
    seen.comm_str_length = BPF_CORE_READ_STR_INTO(&seen.comm_str, task, comm);
    seen.reset_on_fork = BPF_CORE_READ_BITFIELD_PROBED(task, sched_reset_on_fork);
    seen.comm_size = bpf_core_field_size(task->comm);
    seen.has_comm = bpf_core_field_exists(struct task_struct, comm);
    seen.has_nothing = bpf_core_field_exists(struct task_struct___newer, no_kernel_has_this);
    if (seen.has_nothing) // never runs, and its relocation can't be resolved: dead code may be anything
        seen.has_nothing += BPF_CORE_READ((struct task_struct___newer *)task, no_kernel_has_this);
    seen.type_exists = bpf_core_type_exists(struct task_struct);
    seen.type_missing = bpf_core_type_exists(struct task_struct___newer) && !bpf_core_type_exists(struct task_struct);
    seen.enumerator_exists = bpf_core_enum_value_exists(enum pid_type, PIDTYPE_TGID);
    seen.printed_length = BPF_SNPRINTF(seen.printed, sizeof(seen.printed), "%d and %s", 42, "more");
    return 0;
}
