"""Programs with the mistakes that people make first: what the message says of each, where it points, what it advises.

One row a mistake. `//!` stands on the line that must be named as the place, `//n` on one that a note must name; the class and the
words are looked for in the JSON and in the text.
"""
from harness import *

HEAD = """#include <rawbpf/bpf.h>
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 16); __type(key, __u32); __type(value, __u64); } counts SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, char[48]); } buf SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096); } events SEC(".maps");
struct locked { struct bpf_spin_lock lock; __u64 n; };
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, struct locked); } locks SEC(".maps");
"""
TRACE = 'SEC("tracepoint/syscalls/sys_enter_openat")'

# name, section, body, class, words of the text
IN_C = [
    ("null", TRACE, """
    __u32 key = 1;
    __u64 *n = bpf_map_lookup_elem(&counts, &key); //n
    __u64 *m = bpf_map_lookup_elem(&counts, &key);
    if (!m) return 0;
    *m += bpf_get_smp_processor_id();
    *n += 2; //!
    return 0;""", "null", ["bpf_map_lookup_elem\\(\\) returned here", "compare its result with NULL"]),
    ("loop", TRACE, """
    volatile __u64 steps = 0;
    __u64 n = bpf_get_prandom_u32();
    while (n != 1) { //!
        n = n & 1 ? 3 * n + 1 : n / 2;
        steps++;
    }
    return steps;""", "loop", ["followed it [0-9]+ times", "bpf_loop",
                                       r"the verifier refused the loop of instructions [0-9]+ to [0-9]+ \(loop\.bpf\.c:[0-9]+ to [0-9]+\)\n"]),
    ("counter", TRACE, """
    volatile __u64 total = 0;
    while (1) {
        total++; //!
        if (total == 7) bpf_get_prandom_u32(); //n
    }
    return total;""", "loop", ["followed it at least [0-9]+ times", r"the loop of instructions [0-9]+ to [0-9]+ \(counter\.bpf\.c:[0-9]+ to [0-9]+\)\n"]),
    ("unset", TRACE, """
    int result;
    asm volatile("%0 = r7" : "=r"(result)); //!
    return result;""", "uninitialized", ["nothing on the path to here sets r7"]),
    ("packet", 'SEC("xdp")', """
    struct { char to[6], from[6]; __u16 type; } *eth = (void *)(long)((struct xdp_md *)ctx)->data;
    if ((void *)eth + 12 > (void *)(long)((struct xdp_md *)ctx)->data_end) //n
        return 2;
    return eth->type == 8 ? 1 : 2; //!
""", "packet", ["2 bytes are missing", r"data \+ 14 > data_end"]),
    ("no-comparison", 'SEC("xdp")', """
    char *data = (void *)(long)((struct xdp_md *)ctx)->data;
    return data[3]; //!
""", "packet", ["no comparison with data_end", r"if \(data \+ 4 > data_end"]),
    ("stack", TRACE, """
    volatile __u64 a[4] = {};
    a[bpf_get_prandom_u32() & 7] = 1; //!
    return a[0];""", "stack", ["32 bytes past the end", "room for 4 values"]),
    ("argument", TRACE, """
    __u32 pid = bpf_get_current_pid_tgid();
    __u64 *n = bpf_map_lookup_elem(&counts, (void *)(long)pid); //!
    return n ? *n : 0;""", "argument", [r"void \*bpf_map_lookup_elem\(void \*map, const void \*key\)", "argument 2, `const void \\*key`", "pass an address"]),
    ("leak", TRACE, """
    __u64 *e = bpf_ringbuf_reserve(&events, 8, 0); //n
    if (!e) return 0;
    *e = bpf_get_current_pid_tgid();
    if ((*e >> 32) == 1) //n
        return 0;
    bpf_ringbuf_submit(e, 0);
    return 0;""", "leak", ["bpf_ringbuf_reserve\\(\\) acquires it here", "bpf_ringbuf_discard"]),
    ("sleep", TRACE, """
    char b[16];
    return bpf_copy_from_user(b, sizeof b, (void *)0x1000); //!
""", "sleep", ["bpf_probe_read_user\\(\\)", r"fentry\.s"]),
    ("misaligned", TRACE, """
    char a[24] = {};
    volatile __u64 *p = (void *)(a + 3);
    asm volatile("" : "+r"(p));
    *p = 1; //!
    return a[4];""", "alignment", ["3 bytes past a multiple of 8"]),
    ("kfunc", TRACE, """
    return bpf_task_from_pidd(1); //!
""", "kfunc", ["did you mean `bpf_task_from_pid`"]),
    ("core", TRACE, """
    struct task_struct *t = (void *)bpf_get_current_task();
    int pid = 0;
    bpf_probe_read_kernel(&pid, sizeof pid, &t->pidd); //!
    return pid;""", "core", ["struct task_struct has no field pidd", "did you mean `pid`"]),
    ("kernel-pointer", TRACE, """
    struct task_struct *t = (void *)bpf_get_current_task(); //n
    return t->pid; //!
""", "memory", ["number that bpf_get_current_task\\(\\) returned", "BPF_CORE_READ"]),
    ("returned", 'SEC("cgroup_skb/egress")', """
    return ((struct __sk_buff *)ctx)->len; //!
""", "return", [r"\[0, 3\]"]),
    ("map-value", TRACE, """
    __u32 key = 0;
    char *v = bpf_map_lookup_elem(&buf, &key);
    if (!v) return 0;
    __u32 i = bpf_get_prandom_u32();
    if (i > 48) return 0;
    v[i] = 1; //!
    return 0;""", "bounds", ["1 byte too far", "the largest that fits is 47"]),
    ("lock", 'SEC("tc")', """
    __u32 key = 0;
    struct locked *v = bpf_map_lookup_elem(&locks, &key);
    if (!v) return 0;
    bpf_spin_lock(&v->lock); //n
    v->n++;
    if (v->n > 10) //n
        return 0;
    bpf_spin_unlock(&v->lock);
    return 0;""", "lock", ["bpf_spin_lock\\(\\) here", "bpf_spin_unlock\\(\\) on every path"]),
    ("context", 'SEC("socket")', """
    return *(__u64 *)(ctx + 4); //!
""", "context", ["8 bytes at offset 4 of struct __sk_buff"]),
]

# name, text, class, words
IN_ASSEMBLY = [
    ("cleared", """.program p "socket"
    call bpf_ktime_get_ns #n
    r2 = *(u32 *)(r1 + 0) #!
    r0 = 0
    exit
""", "uninitialized", ["bpf_ktime_get_ns\\(\\) cleared r1 to r5", "r6 = r1"]),
    ("loop", """.program p "socket"
    call bpf_get_prandom_u32
again:
    r0 += 1 #!
    if r0 != 7 goto again #n
    exit
""", "loop", ["the loop jumps back from here"]),
    ("spill", """.map counts hash key u32 value u64 entries 1
.program p "socket"
    *(u32 *)(r10 - 4) = 0
    r1 = counts ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem #n
    *(u64 *)(r10 - 16) = r0
    call bpf_ktime_get_ns
    r3 = *(u64 *)(r10 - 16)
    *(u64 *)(r3 + 0) = r0 #!
    r0 = 0
    exit
""", "null", ["bpf_map_lookup_elem\\(\\) returned here"]),
    ("below-the-stack", """.program p "socket"
    r1 = r10
    r1 += -520
    *(u64 *)(r1 + 0) = 1 #!
    r0 = 0
    exit
""", "stack", ["8 bytes below"]),
    ("used-after-submit", """.map events ringbuf entries 4096
.program p "socket"
    r1 = events ll
    r2 = 8
    r3 = 0
    call bpf_ringbuf_reserve #n
    if r0 == 0 goto out
    r6 = r0
    r1 = r6
    r2 = 0
    call bpf_ringbuf_submit #n
    r0 = *(u32 *)(r6 + 0) #!
out:
    r0 = 0
    exit
""", "released", ["bpf_ringbuf_submit\\(\\) released it", "use it before"]),
    ("released-twice", """.program p "tc"
    *(u64 *)(r10 - 8) = 0
    *(u64 *)(r10 - 16) = 0
    r2 = r10
    r2 += -16
    r3 = 12
    r4 = 0
    r5 = 0
    call bpf_sk_lookup_tcp #n
    if r0 == 0 goto out
    r6 = r0
    r1 = r6
    call bpf_sk_release #n
    r1 = r6
    call bpf_sk_release #!
out:
    r0 = 0
    exit
""", "released", ["bpf_sk_release\\(\\) released it", "once on each path"]),
    ("moved-packet", """.program p "tc"
    r6 = r1
    r7 = *(u32 *)(r6 + 76)
    r8 = *(u32 *)(r6 + 80)
    r2 = r7
    r2 += 14
    if r2 > r8 goto out
    r2 = 14
    call bpf_skb_pull_data #n
    r0 = *(u8 *)(r7 + 12) #!
out:
    r0 = 0
    exit
""", "packet", ["bpf_skb_pull_data\\(\\) may move", "load data and data_end"]),
    ("variable-offset", """.program p "xdp"
    r2 = *(u32 *)(r1 + 4)
    r1 = *(u32 *)(r1 + 0)
    r3 = r1
    r3 += 34
    if r3 > r2 goto out
    r3 = *(u8 *)(r1 + 14)
    r1 += 14
    r3 &= 60
    r1 += r3 #n
    r0 = *(u8 *)(r1 + 0) #!
out:
    r0 = 1
    exit
""", "packet", [r"needs 1 byte ", r"`r4 \+= 1`, `if r4 > r2 goto out`"]),
    ("wrong-way-round", """.program p "xdp"
    r2 = *(u32 *)(r1 + 4)
    r1 = *(u32 *)(r1 + 0)
    r3 = r1
    r3 += 14
    if r3 < r2 goto out #n
    r0 = *(u8 *)(r1 + 12) #!
out:
    r0 = 1
    exit
""", "packet", ["wrong way round", r"`r4 \+= 13`, `if r4 > r2 goto out`"]),
    ("map-type", """.map events ringbuf entries 4096
.program p "xdp"
    *(u64 *)(r10 - 8) = 0
    r2 = events ll
    r3 = 0
    r4 = r10
    r4 += -8
    r5 = 8
    call bpf_perf_event_output #!
    exit
""", "argument", ["that of map events, is BPF_MAP_TYPE_RINGBUF", "pass a map of type BPF_MAP_TYPE_PERF_EVENT_ARRAY", r"bpf_ringbuf_output\(\)"]),
    ("no-constant", """.map events ringbuf entries 4096
.program p "xdp"
    r2 = *(u32 *)(r1 + 12)
    r1 = events ll
    r3 = 0
    call bpf_ringbuf_reserve #!
    r0 = 0
    exit
""", "argument", ["must be a constant", r"bpf_ringbuf_output\(\)"]),
    ("unbounded", """.program p "tracepoint/syscalls/sys_enter_openat"
    call bpf_get_prandom_u32
    r2 = r0
    r1 = r10
    r1 += -16
    r3 = 0x1000
    call bpf_probe_read_user #!
    r0 = 0
    exit
""", "bounds", ["nothing bounds the size", "an unsigned number needs an upper bound"]),
    ("atomic", """.program p "xdp"
    r2 = *(u32 *)(r1 + 4)
    r1 = *(u32 *)(r1 + 0)
    r3 = r1
    r3 += 8
    if r3 > r2 goto out
    r2 = 1
    lock *(u64 *)(r1 + 0) += r2 #!
out:
    r0 = 1
    exit
""", "memory", ["a pointer into the packet: there are no atomic operations"]),
    ("license", """.license "Proprietary"
.program p "tracepoint/syscalls/sys_enter_openat"
    r1 = r10
    r1 += -16
    r2 = 16
    r3 = 0x1000
    call bpf_probe_read_user_str #!
    r0 = 0
    exit
""", "license", ['license is "Proprietary"', "only for programs under the GPL"]),
    ("same", """.program p "socket"
    call bpf_get_prandom_u32
again:
    r0 += 1 #!
    if r0 != 7 goto again #n
    exit
""", "loop", ["infinite loop", r"the verifier refused the loop of instructions 1 to 2 \(same\.asm:4 to 5\)\n"]),
    ("unreachable", """.program p "socket"
    r0 = 0
    exit #n
    r0 = 1 #!
    exit
""", "control-flow", ["ends the program, and nothing jumps to here"]),
    ("arithmetic", """.program p "socket"
    r1 *= 8 #!
    r0 = 0
    exit
""", "arithmetic", ["the context", "may only add a number to a pointer"]),
]


def marked(text, mark):
    return [n for n, line in enumerate(text.splitlines(), 1) if line.endswith(mark)]


def judged(name, file, source, kind, words, marks, options=()):
    whole = run("load", *options, file)
    assert whole.code in (1, 3), f"{name}: loaded, or status {whole.code}: {whole.err}"
    row = [r for r in map(json.loads, run("load", "--json", *options, file).out.splitlines()) if r["type"] == "program"][-1]
    assert row["loaded"] is False and row["class"] == kind, (name, row.get("class"), row.get("reason"))
    assert row["reason"] and "\n" not in row["reason"], row["reason"]
    assert row["hint"], f"{name}: no hint"
    here = marked(source, marks[0])
    if here:
        assert row["line"] == here[0], f"{name}: line {row['line']} instead of {here[0]}: {whole.err}"
    noted = {n["line"] for n in row["notes"]}
    assert set(marked(source, marks[1])) <= noted, f"{name}: notes at {noted}: {whole.err}"
    for word in words:
        assert re.search(word, whole.err), f"{name}: lacks /{word}/: {whole.err}"
    # Laid out: the place at the start of a line, its source below it, and a caret where the column is known.
    if row["line"] and not row["insn"] is None:
        assert re.search(rf"^\S*{re.escape(os.path.basename(row['file']))}:{row['line']}(:\d+)?: ", whole.err, re.M), whole.err
        assert f"\n  {row['line']} | " in whole.err, whole.err
    assert all(len(line) < 400 for line in whole.err.splitlines()), whole.err
    verified(name, file, row, options)


def verified(name, file, loaded, options):
    """What the kernel said, without it and as nobody: the same class at the same instruction."""
    r = as_nobody("verify", "--json", *options, file)
    row = [r for r in map(json.loads, r.out.splitlines()) if r["type"] == "verdict"][-1]
    assert r.code == 1 and row["verdict"] == "refused", (name, row)
    assert row["class"] == loaded["class"], (name, row, loaded["class"], loaded["reason"])
    if row["class"] not in ("loop", "complexity"):  # where it gave up says nothing
        assert row["insn"] == loaded["insn"], (name, row, loaded["insn"], loaded["reason"])
    assert row["message"] and row["hint"], row


@test
def refused_with_a_long_log():
    """The verifier takes seconds for a long loop: it is asked for the verdict, and once more for the reason, which is megabytes long."""
    written("long.asm", """.program p "tracepoint/syscalls/sys_enter_openat"
    call bpf_get_prandom_u32
    r6 = 0
again:
    r6 += 1
    r1 = r0
    r1 &= 1
    if r1 == 0 goto even
    r0 *= 3
    goto next
even:
    r0 >>= 1
next:
    if r0 != 1 goto again
    exit
""")
    r = run("load", "--syscalls", path("long.asm"))
    if "(EPERM)" in r.err:
        raise Skip("programs can't be loaded here")
    assert r.code in (1, 3) and "long.asm:14:5: the loop jumps back from here" in r.err, r.err[-800:]
    loads = [line for line in r.err.splitlines() if "bpf(BPF_PROG_LOAD" in line]
    assert len(loads) == 2 and "log_level" not in loads[0] and "log_level=BPF_LOG_LEVEL1" in loads[1], r.err


@test(long=True)
def refused_programs_in_c():
    if run("load", "--json", "-", input=b"r0 = 0\nexit\n").code == 3:
        raise Skip("programs can't be loaded here")
    include = os.path.join(HERE, "..", "..", "programs", "include")
    def compiled(row):
        name, section, body, _, _ = row
        declared = {"kfunc": "extern int bpf_task_from_pidd(int pid) __ksym;\n",
                    "core": "struct task_struct { int pidd; } __attribute__((preserve_access_index));\n",
                    "kernel-pointer": "struct task_struct { int pid; } __attribute__((preserve_access_index));\n"}.get(name, "")
        if "__ksym" in declared:
            declared = declared.replace("__ksym", '__attribute__((section(".ksyms")))')
        source = f'{HEAD}{declared}{section}\nint {name.replace("-", "_")}_program(void *ctx)\n{{{body}\n}}\nchar LICENSE[] SEC("license") = "GPL";\n'
        written(f"{name}.bpf.c", source)
        subprocess.run(["clang", "-O2", "-g", "-target", "bpf", "-I", include, f"-I/usr/include/{os.uname().machine}-linux-gnu", "-c",
                        path(f"{name}.bpf.c"), "-o", path(f"{name}.bpf.o")], check=True, capture_output=True)
        return source
    for (name, _, _, kind, words), source in zip(IN_C, on_all_cores(compiled, IN_C)):
        judged(name, path(f"{name}.bpf.o"), source, kind, words, ("//!", "//n"))


@test
def refused_programs_in_assembly():
    if run("load", "--json", "-", input=b"r0 = 0\nexit\n").code == 3:
        raise Skip("programs can't be loaded here")
    for name, source, kind, words in IN_ASSEMBLY:
        written(f"{name}.asm", source)
        judged(name, path(f"{name}.asm"), source, kind, words, ("#!", "#n"))


@test
def undefined_functions_have_a_line():
    include = os.path.join(HERE, "..", "..", "programs", "include")
    for name, call, words in (("elsewhere", "elsewhere(1)", ["rawbpf link", "static"]), ("strlen", 'strlen(ctx)', ["no C library"])):
        written(f"{name}.bpf.c", f'{HEAD}int elsewhere(int); unsigned long strlen(const char *);\n{TRACE} int p(void *ctx)\n{{\n    return {call};\n}}\n')
        subprocess.run(["clang", "-O2", "-g", "-target", "bpf", "-fno-builtin", "-I", include, f"-I/usr/include/{os.uname().machine}-linux-gnu",
                        "-c", path(f"{name}.bpf.c"), "-o", path(f"{name}.bpf.o")], check=True, capture_output=True)
        whole = run("load", path(f"{name}.bpf.o"))
        line = next(n for n, text in enumerate(open(path(f"{name}.bpf.c")), 1) if text.startswith("    return"))
        assert whole.code == 1 and f"{name}.bpf.c:{line}:" in whole.err and f"{name} is defined nowhere" in whole.err, whole.err
        assert all(word in whole.err for word in words), whole.err


# section, body, options, words: what isn't the verifier's
ELSEWHERE = [
    ("fentry/vfs_red", "", [], ["did you mean `vfs_read`"]),
    ("iter/tsk", "", [], ["did you mean `task`"]),
    ("tp_btf/sched_swich", "", [], ["did you mean `sched_switch`"]),
    ("uprobe", "", ["--attach"], ["SEC\\(\"uprobe/FILE:FUNCTION\"\\)"]),
    ("xdp", "", ["--attach"], ["xdp: --interface says where it goes"]),
    ("tracepoint/syscalls/sys_enter_openat", "r0 = *(u64 *)(r1 + 4096)", ["--attach"], ["past the end of the tracepoint's record, which has [0-9]+ bytes"]),
    ("socket", "r1 = mm ll", ["--map", "mm:entries=0"], ["a map of this type needs at least 1"]),
]


@test
def refused_elsewhere():
    if run("load", "--json", "-", input=b"r0 = 0\nexit\n").code == 3:
        raise Skip("programs can't be loaded here")
    for n, (section, body, options, words) in enumerate(ELSEWHERE):
        written(f"else{n}.asm", f'.map mm hash key u32 value u64 entries 4\n.program p "{section}"\n{body}\nr0 = 0\nexit\n')
        whole = run("load", "-d", "0.1", *options, path(f"else{n}.asm")) if "--attach" in options else run("load", *options, path(f"else{n}.asm"))
        assert whole.code != 0, (section, whole.out, whole.err)
        for word in words:
            assert re.search(word, whole.err), (section, whole.err)
