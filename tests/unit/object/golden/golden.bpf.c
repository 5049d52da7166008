// What compilers really emit. golden-clang14.o and golden-clang19.o are this file:
//
//      clang-N --target=bpf -mcpu=v3 -O2 -g -I programs/include -c golden.bpf.c -o - | llvm-strip -g -o golden-clangN.o -
//
// They are kept as files, so that the tests need no clang and so that a compiler's habits don't change under them.
#include <rawbpf/bpf.h>

struct mm_struct {
    struct {
        unsigned long total_vm;
    };
} __attribute__((preserve_access_index));
struct task_struct {
    int tgid, pid;
    struct mm_struct *mm;
    char comm[16];
    unsigned in_execve : 1;
    struct task_struct *group_leader;
    unsigned int __state;
} __attribute__((preserve_access_index));
struct task_struct___older {
    long state;
} __attribute__((preserve_access_index));
struct no_such_struct {
    int x;
} __attribute__((preserve_access_index));
enum pid_type { PIDTYPE_PID, PIDTYPE_TGID, PIDTYPE_NO_SUCH = 77 };

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 64);
    __type(key, __u32);
    __type(value, __u64);
} counts SEC(".maps");

const volatile int limit = 7;
int seed = 5;
static volatile long ticks;
__hidden int secret = 9;

__noinline int leaf(int x) { return x + seed + (int)bpf_get_prandom_u32(); }
static __noinline int walk(int x) {
    ticks++;
    return leaf(x) ^ secret;
}
static long each(__u32 i, void *sum) {
    *(int *)sum += walk(i);
    return 0;
}

SEC("raw_tp/sched_switch")
int fields(void *ctx) {
    struct task_struct *task = (void *)bpf_get_current_task();
    long sum = 0;
    if (bpf_core_field_exists(task->__state))
        sum += BPF_CORE_READ(task, __state);
    else
        sum += BPF_CORE_READ((struct task_struct___older *)task, state);
    sum += BPF_CORE_READ(task, group_leader, pid) + BPF_CORE_READ(task, mm, total_vm);
    sum += BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
    sum += bpf_core_field_size(task->comm) + bpf_core_type_size(struct task_struct);
    sum += bpf_core_type_exists(struct no_such_struct) + bpf_core_type_id_kernel(struct mm_struct);
    sum += bpf_core_enum_value_exists(enum pid_type, PIDTYPE_NO_SUCH) + bpf_core_enum_value(enum pid_type, PIDTYPE_TGID);
    if (bpf_core_type_exists(struct no_such_struct)) sum += BPF_CORE_READ((struct no_such_struct *)task, x);
    __u32 key = limit;
    bpf_map_update_elem(&counts, &key, &sum, BPF_ANY);
    return 0;
}

SEC("raw_tp/sched_switch")
int calls(void *ctx) {
    int sum = walk(1);
    bpf_loop(limit, each, &sum, 0);
    return leaf(sum);
}

SEC("?raw_tp/sys_enter")
int optional(void *ctx) { return leaf(3); }

LICENSE("GPL");
