"""What is taken away, and what rawbpf says then: the table of tests/vm/found. The next case is one line."""
import dataclasses


@dataclasses.dataclass
class Case:
    what: str             # a name of TAKE or WITH, or anything: nothing is taken away then
    command: str          # rawbpf's words; "$ ..." is the shell's. No single quotes.
    status: int
    words: tuple = ()     # patterns, each of which it says, on stdout or stderr
    no_hint: bool = False # it is refused, and there is nothing that would help


@dataclasses.dataclass
class Machine:
    name: str
    kernel: str
    cases: list
    memory: int = 512     # MB, of which the kernel's image takes some 39
    types: bool = True    # whether the kernel has BTF


# In mounts of the case's own. What isn't a mount has a line in RESTORE.
FULL = "mkdir -p /full; mount -t tmpfs -o size=16k none /full; cp count.asm exec.exp count.o capture /full 2>/dev/null; cd /full; cat /dev/zero >fill 2>/dev/null"
TAKE = {
    "no tracefs, no debugfs": "umount /sys/kernel/tracing; umount /sys/kernel/debug",
    "kptr_restrict 2": "echo 2 >/proc/sys/kernel/kptr_restrict",
    "no kallsyms": "mount --bind /dev/null /proc/kallsyms",
    "no JIT": "echo 0 >/proc/sys/net/core/bpf_jit_enable",
    "no config": "mount --bind /empty /boot",
    "no /proc": "umount /proc",
    "no /sys": "umount -l /sys",
    "neither /proc nor /sys": "umount /proc; umount -l /sys",
    "a read-only root, no /tmp": "umount /tmp; umount /run; rmdir /tmp; mount -o remount,bind,ro /",
    "an empty environment": "unset HOME PATH TERM USER LANG",
    "an empty /dev": "mount -t tmpfs none /dev",
    "a full disk": FULL,
    "1970": "date -s @200 >/dev/null",
}
RESTORE = {"kptr_restrict 2": "echo 0 >/proc/sys/kernel/kptr_restrict", "no JIT": "echo 1 >/proc/sys/net/core/bpf_jit_enable",
           "a read-only root, no /tmp": "mkdir -p /tmp", "a user, perf_event_paranoid 3": "echo 2 >/proc/sys/kernel/perf_event_paranoid"}
TAKE["a user, perf_event_paranoid 3"] = "echo 3 >/proc/sys/kernel/perf_event_paranoid"
# What rawbpf is started by.
WITH = {"no perf_event_open(2)": "/usr/bin/lacking perf_event_open ", "no bpf(2)": "/usr/bin/lacking bpf ", "4.19": "/usr/bin/lacking 4.19 ",
        "a user, perf_event_paranoid 3": "/usr/bin/lacking privileges "}

COUNT = """.license "GPL"
.map counts array key u32 value u64 entries 1
.program on_exec "%s"
    *(u32 *)(r10 - 4) = 0
    r1 = counts ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r1 = 1
    lock *(u64 *)(r0 + 0) += r1
out:
    r0 = 0
    exit
"""
FILES = {
    "count.asm": COUNT % "raw_tp/sched_process_exec",
    "tracepoint.asm": COUNT % "tracepoint/sched/sched_process_exec",
    "kprobe.asm": COUNT % "kprobe/vfs_open",
    "uprobe.asm": COUNT % "uprobe//usr/bin/demo-workload:main",
    "fentry.asm": COUNT % "fentry/vfs_open",
    "exec.exp": "on tracepoint:sched:sched_process_exec {\n    @execs += 1\n}\nworkload true\nexpect execs >= 1\n",
    # What it loads runs: something is executed meanwhile.
    "attached": "$* --attach -d 1.5 field.bpf.o &\nsleep 0.7\n/bin/true\nwait $!\n",
    # BYTES COMMAND: in a memory cgroup, which counts rings and tables, too. (Files of the root are memory of the guest's own.)
    "within": "group=/sys/fs/cgroup/small\necho +memory >/sys/fs/cgroup/cgroup.subtree_control\nmkdir $group\necho $1 >$group/memory.max\nshift\n"
              "(echo 0 >$group/cgroup.procs; exec $*)\nstatus=$?\necho peak $(cat $group/memory.peak)\nrmdir $group\nexit $status\n",
}
PROGRAMS = {
    # 1: the field that CO-RE found is the right one.
    "field.bpf.o": """#include <rawbpf/bpf.h>
LICENSE("GPL");
struct task_struct { int tgid; } __attribute__((preserve_access_index));
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, __u64); } right SEC(".maps");
SEC("tracepoint/sched/sched_process_exec") int field(void *ctx)
{
    struct task_struct *task = (void *)bpf_get_current_task();
    int tgid = 0;
    __u32 zero = 0;
    bpf_probe_read(&tgid, 4, &task->tgid);
    __u64 value = tgid == (int)(bpf_get_current_pid_tgid() >> 32) ? 1 : 2;
    bpf_map_update_elem(&right, &zero, &value, 0);
    return 0;
}
""",
    "config.bpf.o": """#include <rawbpf/bpf.h>
LICENSE("GPL");
extern int CONFIG_HZ __attribute__((section(".kconfig")));
SEC("tracepoint/sched/sched_process_exec") int hertz(void *ctx) { return CONFIG_HZ; }
""",
    "globals.bpf.o": """#include <rawbpf/bpf.h>
LICENSE("GPL");
__u64 sum = 0;
SEC("tracepoint/sched/sched_process_exec") int counted(void *ctx) { sum += 1; return 0; }
""",
}
# A product that has the first as a bundle for 5.10.
PRODUCT = """#include "field.h"
#include <stdio.h>
int main(void)
{
    struct rawbpf_error error;
    int result = rawbpf_bundle_load(&field, &error);
    if (result < 0) printf("%s\\nhint: %s\\n", error.text, error.hint);
    else printf("loaded\\n");
    return result < 0;
}
"""
MADE = {*PROGRAMS, "min.btf", "theirs.btf", "product"}
LOAD, PROFILE = "load --attach -d 0.1 count.asm", "profile -F 499 -f folded -- demo-workload 0.1"
POINT, FUNCTION, EXPERIMENT = "trace -n 1 tracepoint:sched:sched_process_exec -- true", "trace -n 1 vfs_open -- true", "run exec.exp"
LOADED, PROFILED = ("attached: raw_tp",), (r"(?m)^demo-workload;.* \d+$", "fired", "lost +0")
POINTED, TRACED, HELD = ("sched_process_exec\\(.*filename",), ("vfs_open\\(path=",), ("expectation holds",)


def works(what, doctor, *but):
    """Everything works but the cases of `but`; doctor says `doctor`."""
    usual = [Case(what, "doctor", 0, doctor), Case(what, LOAD, 0, LOADED), Case(what, PROFILE, 0, PROFILED), Case(what, POINT, 0, POINTED),
             Case(what, EXPERIMENT, 0, HELD)]
    replaced = {case.command: case for case in but}
    return [replaced.get(case.command, case) for case in usual] + [case for case in but if case.command not in {c.command for c in usual}]


NO_PERF = ("perf_event_open: Function not implemented", "CONFIG_PERF_EVENTS")
NO_BPF = ("BPF_MAP_CREATE: Function not implemented", "CONFIG_BPF_SYSCALL")
NO_PROC = r"no procfs at /proc"
MOUNT_PROC = "hint: mount -t proc proc /proc"
ROOM = "hint: that file system is full"
USUAL = (
    works("nothing", ("yes  CPU clock", "yes  ring buffers"))
    + [Case("nothing", FUNCTION, 0, TRACED), Case("nothing", "load config.bpf.o", 0, ("hertz",)),
       Case("a bundle for another kernel", "$ ./product", 1, ("bundle field: it was made for other kernels than this one: old", "hint: .*RAWBPF_BUNDLE_LIVE"))]
    + works("no tracefs, no debugfs", ("no   tracefs .*mount -t tracefs tracefs /sys/kernel/tracing",))
    + works("kptr_restrict 2", (r"no   kptr_restrict .*sysctl kernel\.kptr_restrict=1",),
            Case("kptr_restrict 2", PROFILE, 0, PROFILED + ("kernel functions have no names: .*hides its addresses",)),
            Case("kptr_restrict 2", FUNCTION, 0, TRACED + (r"(?s)^(?!.*skipped)",)))
    + works("no kallsyms", ("yes  CPU clock",),
            Case("no kallsyms", PROFILE, 0, PROFILED + ("kernel functions have no names: /proc/kallsyms is empty",)),
            Case("no kallsyms", FUNCTION, 3, ("/proc/kallsyms is empty", "hint: tracepoints, system calls and user functions")))
    + works("no JIT", (r"no   bpf_jit_enable .*sysctl net\.core\.bpf_jit_enable=1",), Case("no JIT", FUNCTION, 0, TRACED))
    + works("no config", ("yes  CPU clock",),
            Case("no config", "load config.bpf.o", 1, ("neither /boot/config-.* nor /proc/config.gz", "hint: CONFIG_IKCONFIG_PROC")))
    + works("no /proc", (r"no   /proc .*mount -t proc proc /proc", r"\?    kptr_restrict .*no procfs at /proc"),
            Case("no /proc", PROFILE, 0, PROFILED + ("kernel functions have no names: .*" + NO_PROC,)),
            Case("no /proc", FUNCTION, 3, (r"opening /proc/kallsyms \(" + NO_PROC, MOUNT_PROC)))
    + works("no /sys", (r"no   /sys .*mount -t sysfs sysfs /sys", r"\?    kernel BTF .*no sysfs at /sys"),
            Case("no /sys", FUNCTION, 0, ("vfs_open\\(arg0=",)))
    + works("neither /proc nor /sys", ("no   /proc .*mount -t proc proc /proc", "no   /sys .*mount -t sysfs sysfs /sys"),
            Case("neither /proc nor /sys", POINT, 3, (NO_PROC, MOUNT_PROC)),
            Case("neither /proc nor /sys", FUNCTION, 3, (NO_PROC, MOUNT_PROC)),
            Case("neither /proc nor /sys", EXPERIMENT, 3, (NO_PROC, MOUNT_PROC)))
    + works("no perf_event_open(2)", ("no   CPU clock .*CONFIG_PERF_EVENTS", "no   kprobes .*CONFIG_PERF_EVENTS", "no   tracepoints .*CONFIG_PERF_EVENTS"),
            *(Case("no perf_event_open(2)", command, 3, NO_PERF) for command in (PROFILE, POINT, FUNCTION, EXPERIMENT)))
    + works("no bpf(2)", ("no   ring buffers .*CONFIG_BPF_SYSCALL", "no   loading BTF .*CONFIG_BPF_SYSCALL"),
            *(Case("no bpf(2)", command, 3, NO_BPF) for command in (LOAD, PROFILE, POINT, FUNCTION, EXPERIMENT)))
    + works("a user, perf_event_paranoid 3", ("no   CAP_BPF .*run as root", r"no   perf_event_paranoid +3: nothing without CAP_PERFMON"),
            *(Case("a user, perf_event_paranoid 3", command, 3, ("lacks CAP_BPF, CAP_PERFMON", "run as root")) for command in (LOAD, PROFILE)),
            *(Case("a user, perf_event_paranoid 3", command, 3, ("tracefs can.t be read", "run as root")) for command in (POINT, FUNCTION, EXPERIMENT)))
    + works("a read-only root, no /tmp", ("yes  CPU clock",),
            Case("a read-only root, no /tmp", "profile --record a.rbpf -- true", 1, ("opening a.rbpf: Read-only file system", "hint: name a file on")),
            Case("a read-only root, no /tmp", "profile -f svg -o a.svg -- true", 1, ("a.svg: Read-only file system", "hint: name a file on")),
            Case("a read-only root, no /tmp", "asm count.asm -o count.o", 1, ("count.o: Read-only file system", "hint: name a file on")),
            Case("a read-only root, no /tmp", "profile -q --record - -- demo-workload 0.1", 0))
    + works("an empty environment", ("yes  CPU clock",))
    + works("an empty /dev", ("yes  CPU clock",),
            Case("an empty /dev", "profile --command-output null -f folded -- demo-workload 0.1", 2, ("opening /dev/null: No such file", "hint: mknod")))
    + [Case("a full disk", "asm count.asm -o new.o", 1, ("new.o: write: No space left on device", ROOM)),
       Case("a full disk", "profile -F 499 --record a.rbpf -- demo-workload 0.1", 1, ("writing the recording: write: No space left on device", ROOM)),
       Case("a full disk", "profile -F 499 -f svg -o a.svg -- demo-workload 0.1", 1, ("a.svg: write: No space left on device", ROOM)),
       Case("a full disk", "profile -F 499 --json -o a.json -- demo-workload 0.1", 1, ("a.json: write: No space left on device", ROOM)),
       Case("a full disk", "trace -o t tracepoint:sched:sched_process_exec -- true", 1, ("t: write: No space left on device", ROOM)),
       Case("a full disk", "run -f json -o x.json exec.exp", 1, ("x.json: write: No space left on device", ROOM)),
       Case("a full disk", "btf dump vmlinux -o v.h", 1, ("v.h: write: No space left on device", ROOM)),
       Case("a full disk", "new hello project", 1, ("No space left on device", ROOM)),
       Case("a full disk", "$ rawbpf doctor >/dev/full", 1, ("standard output: write: No space left on device", "hint: ")),
       Case("a full disk", "$ rawbpf profile -F 499 -f top -- demo-workload 0.1 >/dev/full", 1, ("standard output: write: No space left on device", "hint: "))]
    # Last: the clock stays as it is. (The kernel refuses a time before its own start.)
    + works("1970", ("yes  CPU clock",), Case("1970", POINT, 0, (r"\[1970-01-01T00:0",)),
            Case("1970", "$ rawbpf profile -F 499 --record a.rbpf -- demo-workload 0.1 && rawbpf report a.rbpf -f top", 0, ("SELF",)),
            Case("1970", "profile -F 499 --json -- true", 0, ("\"start\":\"1970-01-01T00:0",)),
            Case("1970", "prog list", 0))
)
NO_TYPES = "no BTF"
OLD = (
    works(NO_TYPES, ("no   kernel BTF .*no /sys/kernel/btf/vmlinux.*CONFIG_DEBUG_INFO_BTF", "[?n]o*  +fentry and fexit .*no BTF .CONFIG_DEBUG_INFO_BTF"),
          Case(NO_TYPES, FUNCTION, 0, ("vfs_open\\(arg0=",)),
          Case(NO_TYPES, "load fentry.asm", 3, ("this kernel has no BTF",)),
          Case(NO_TYPES, "load field.bpf.o", 3, ("this kernel has no BTF", "or give the kernel.s BTF as a file")),
          Case(NO_TYPES, "$ ./product", 1, ("this kernel doesn.t show its types in /sys/kernel/btf/vmlinux",)),
          Case(NO_TYPES, "$ sh attached rawbpf load --btf min.btf", 0, ("  0 = 1\\b",)),
          Case(NO_TYPES, "$ sh attached rawbpf load --btf theirs.btf", 0, ("  0 = 1\\b",)))
    + works("4.19", ("no   ring buffers .*Linux 5.8 or newer", "no   global data .*Linux 5.2 or newer", "no   loading BTF|yes  loading BTF"),
            *(Case("4.19", command, 3, ("BPF_MAP_TYPE_RINGBUF.*EINVAL", "needs ring buffers, 5.8")) for command in (PROFILE, POINT, FUNCTION)),
            *(Case("4.19", f"load --attach -d 0.1 {kind}.asm", 0, (f"attached: {kind}",)) for kind in ("tracepoint", "kprobe", "uprobe")),
            Case("4.19", "$ sh attached lacking 4.19 rawbpf load --btf min.btf", 0, ("  0 = 1\\b",)),
            Case("4.19", "load globals.bpf.o", 3, ("needs global data, 5.2",)),
            Case("4.19", "$ r=/usr/bin/lacking\\ 4.19\\ rawbpf; $r load --pin /sys/fs/bpf/pinned count.asm && $r prog list && $r map dump counts", 0,
                 ("raw_tracepoint +on_exec", r"map \d+ counts \(array\)")),
            Case("4.19", "link list", 3, ("links need 5.8",)))
)
# The cases of a board by its memory: what a run takes is a share of it.
def board(what, ring, tables, most):
    return [Case(what, "$ grep MemTotal /proc/meminfo", 0),
            Case(what, "doctor", 0, (f"yes  ring of trace, custom +{ring} MiB;", f"yes  unwind tables +up to {tables} MiB;", f"yes  --ring, --unwind-memory +at most {most} MiB each")),
            Case(what, LOAD, 0, LOADED), Case(what, PROFILE, 0, PROFILED), Case(what, POINT, 0, POINTED), Case(what, EXPERIMENT, 0, HELD),
            Case(what, "trace -v -n 1 tracepoint:sched:sched_process_exec -- true", 0, (rf"of \d+\.\d MB of memory: a ring of {ring}\.0 MB",)),
            Case(what, "profile --ring 64M -- true", 3, ("--ring: 64M is more than a quarter of the .* of memory here", f"hint: at most {most}M")),
            Case(what, "profile --unwind-memory 64M -- true", 3, ("--unwind-memory: 64M is more than a quarter", f"hint: at most {most}M")),
            Case(what, "$ sh within 12M rawbpf profile -F 99 -d 1 --idle -f top", 0, ("SELF", "lost +0", "peak")),
            Case(what, "$ sh within 6M rawbpf profile -F 99 -d 1 --idle --record a.rbpf", 0, ("lost +0", "peak"))]


OLD_KERNEL = "5.10"
MACHINES = [Machine("64 MB", "6.12", board("a board", 1, 3, 15), memory=103), Machine("96 MB", "6.12", board("a board", 1, 5, 23), memory=135),
            Machine("6.12", "6.12", USUAL), Machine("5.10 without BTF", OLD_KERNEL, OLD, types=False)]
