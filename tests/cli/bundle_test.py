"""rawbpf bundle: an object as tables of C, compiled as a product compiles them, loaded by librawbpf-bundle's own source."""
import glob
import os
import shutil
import subprocess

from harness import *
from bpf_objects import compile_bpf, needs_kernel_btf
from kernel_objects import needs_root

ROOT = os.path.join(HERE, "..", "..")
INCLUDE = os.path.join(ROOT, "runtime", "core")
SOURCES = sorted(glob.glob(os.path.join(ROOT, "runtime", "bundle", "*.c")))
KERNEL = "/sys/kernel/btf/vmlinux"
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-D_GNU_SOURCE", "-O1")

# No kernel matters to it: variables of every kind, a map of maps, a program in a slot, a callback (which needs the types).
EVERYWHERE = """#include <rawbpf/bpf.h>
LICENSE("GPL");
struct pair { char name[6]; short small; };
enum mode { off, on };
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, __u64); } inner SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS); __uint(max_entries, 2); __type(key, __u32);
         __array(values, struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, __u64); });
       } outer SEC(".maps") = { .values = { [1] = &inner } };
int tail(struct __sk_buff *skb);
struct { __uint(type, BPF_MAP_TYPE_PROG_ARRAY); __uint(max_entries, 3); __uint(key_size, 4);
         __array(values, int (struct __sk_buff *)); } jumps SEC(".maps") = { .values = { [2] = (void *)&tail } };
const volatile unsigned char flag = 1;
const volatile short table[2][3] = {{1, 2, 3}, {4, 5, 6}};
const volatile enum mode mode = on;
const volatile char odd = 3; /* the section isn't a multiple of 8 */
__u64 class = 5;
struct pair pair = { "abc", -2 };
double unread = 0.5;
__u64 sum = 0;
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 8); __type(key, __u32); __type(value, __u64); } seen SEC(".maps");
struct locked { struct bpf_spin_lock lock; int value; };
struct inside { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, struct locked); };
struct inside locks SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS); __uint(max_entries, 1); __type(key, __u32); __array(values, struct inside);
       } of_locks SEC(".maps") = { .values = { [0] = &locks } };
static long each(void *map, __u32 *key, __u64 *value, void *context) { sum += *value; return 0; }
SEC("socket") int tail(struct __sk_buff *skb) { return sum + 1000; }
SEC("socket") int entry(struct __sk_buff *skb)
{
    __u32 key = 1, zero = 0;
    void *map = bpf_map_lookup_elem(&outer, &key), *other = bpf_map_lookup_elem(&of_locks, &zero);
    struct locked *place = other ? bpf_map_lookup_elem(other, &zero) : 0;
    if (place) { bpf_spin_lock(&place->lock); place->value++; bpf_spin_unlock(&place->lock); }
    __u64 *value = map ? bpf_map_lookup_elem(map, &zero) : 0;
    if (value) sum += *value + flag + table[1][2] + mode + pair.small + class + odd;
    bpf_for_each_map_elem(&seen, each, 0, 0);
    bpf_tail_call(skb, &jumps, 2);
    return 7;
}
SEC("?socket") int never(struct __sk_buff *skb) { return 0; }
"""

USER = """#include "everywhere.h"
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
    struct rawbpf_error error;
    uint32_t zero = 0, key = 4;
    uint64_t hundred = 100;
    char packet[64] = {0};
    union bpf_attr attr;
    everywhere_rodata.v.flag = 50;
    everywhere_rodata.v.table[1][2] = 7;
    everywhere_data.v.class_ = 6;
    if (rawbpf_bundle_load(&everywhere, &error) < 0) { printf("%d %s: %s\\n%s", error.code, error.text, error.hint, error.log); return 1; }
    if (rawbpf_bundle_load(&everywhere, &error) != RAWBPF_INVALID_ARGUMENT) return 2;
    if (rawbpf_bundle_update(&everywhere, everywhere_map_inner, &zero, &hundred, 0, &error) < 0) return 3;
    if (rawbpf_bundle_update(&everywhere, everywhere_map_seen, &key, &hundred, 0, &error) < 0) return 4;
    memset(&attr, 0, sizeof attr);
    attr.test.prog_fd = (uint32_t)rawbpf_bundle_program_fd(&everywhere, everywhere_program_entry);
    attr.test.data_in = (uint64_t)(uintptr_t)packet;
    attr.test.data_size_in = sizeof packet;
    if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attr, sizeof attr) != 0) return 5;
    if (rawbpf_bundle_next_key(&everywhere, everywhere_map_seen, NULL, &key, &error) < 0 || key != 4) return 6;
    if (rawbpf_bundle_delete(&everywhere, everywhere_map_seen, &key, &error) < 0) return 7;
    if (rawbpf_bundle_lookup(&everywhere, everywhere_map_seen, &key, &hundred, &error) != RAWBPF_NOT_FOUND) return 8;
    if (rawbpf_bundle_attach(&everywhere, &error) != 0) return 9;
    if (rawbpf_bundle_attach_program(&everywhere, everywhere_program_entry, NULL, &error) != RAWBPF_UNSUPPORTED) return 10;
    printf("%u; %s: %s\\n", attr.test.retval, error.text, error.hint);
    rawbpf_bundle_close(&everywhere);
    if (rawbpf_bundle_lookup(&everywhere, everywhere_map_seen, &key, &hundred, &error) != RAWBPF_INVALID_ARGUMENT) return 11;
    return rawbpf_bundle_load(&everywhere, NULL) == RAWBPF_OK ? 0 : 12;
}
"""

# It depends on the kernel in three ways: a field, a kernel function to be verified against, and a kernel function that it calls.
BOUND = """#include <rawbpf/bpf.h>
LICENSE("GPL");
struct task_struct { int tgid; } __attribute__((preserve_access_index));
SEC("raw_tp/sys_enter") int field(__u64 *ctx)
{
    struct task_struct *task = (void *)bpf_get_current_task();
    int tgid = 0;
    bpf_probe_read_kernel(&tgid, 4, &task->tgid);
    return tgid;
}
#ifdef MORE
extern void bpf_rcu_read_lock(void) __attribute__((section(".ksyms")));
extern void bpf_rcu_read_unlock(void) __attribute__((section(".ksyms")));
SEC("tp_btf/sys_exit") int calls(void *ctx) { bpf_rcu_read_lock(); bpf_rcu_read_unlock(); return 0; }
SEC("fentry/vfs_read") int entered(void *ctx) { return 0; }
#endif
"""

REFUSED = {
    "kconfig": ("asks for the kernel's configuration", "extern int CONFIG_HZ __attribute__((section(\".kconfig\")));"
                " SEC(\"socket\") int f(void *c) { return CONFIG_HZ; }"),
    "symbol": ("asks for the address of the kernel symbol bpf_prog_active", "extern const void bpf_prog_active __attribute__((section(\".ksyms\")));"
               " SEC(\"socket\") int f(void *c) { return (long)&bpf_prog_active; }"),
    "replacing": ("replaces a function of another program", "SEC(\"freplace/x\") int f(void *c) { return 0; }"),
    "typo": ("section name \"sockets\"", "SEC(\"sockets\") int f(void *c) { return 0; }"),
}


def compiled(name, source):
    return compile_bpf(name + ".bpf.o", source)


def built(name, source, *more):
    """A product in C99, and the same file once more as C++17, which only has to compile."""
    if not shutil.which("cc"):
        raise Skip("needs cc")
    with open(path(name + ".c"), "w", encoding="ascii") as f:
        f.write(source)
    subprocess.run(["cc", "-std=c99", *STRICT, "-I", INCLUDE, "-I", path("."), path(name + ".c"), *SOURCES, *more, "-o", path(name)], check=True)
    if shutil.which("c++"):
        subprocess.run(["c++", "-x", "c++", "-std=c++17", *STRICT, "-I", INCLUDE, "-I", path("."), "-c", path(name + ".c"), "-o", path(name + ".o")],
                       check=True)
    return path(name)


@test
def bundle_of_an_object_that_depends_on_no_kernel():
    needs_root()
    obj = compiled("everywhere", EVERYWHERE)
    r = good("bundle", obj, "-o", path("everywhere.h"))
    assert "never: left out: its section is ?socket" in r.err, r.err
    r = run(binary=built("everywhere", USER))
    # sum: 100 (inner) + 50 (flag) + 7 (table) + 1 (mode) - 2 (pair) + 6 (class) + 3 (odd) + 100 (the callback), and 1000 of the tail call.
    assert r.code == 0, (r.code, r.out, r.err)
    assert r.out.startswith("1265; attaching program entry: bundles don't attach programs of its section: "), r.out
    r = good("bundle", obj, "-b", KERNEL, "-o", path("everywhere.h"))
    assert "depends on no kernel" in r.err, r.err


@test
def bundle_is_for_the_kernels_that_it_was_given():
    needs_root()
    needs_kernel_btf()
    obj = compiled("bound", BOUND)
    bad(1, r"depend on the kernel, and no kernel is given\nhint: --btf", "bundle", obj)
    text = """#include "bound.h"
#include <stdio.h>
int main(void)
{
    struct rawbpf_error error;
    int result = rawbpf_bundle_load(&bound, &error);
    if (result == 0) result = rawbpf_bundle_attach(&bound, &error);
    printf("%d %s\\n", result, result < 0 ? error.text : "attached");
    return 0;
}
"""
    good("bundle", obj, "-b", "here=" + KERNEL, "-o", path("bound.h"))
    assert run(binary=built("bound", text)).out == "1 attached\n"
    # Types that differ in one byte are another kernel's.
    with open(KERNEL, "rb") as f:
        types = bytearray(f.read())
    types[-2] ^= 1
    with open(path("other.btf"), "wb") as f:
        f.write(types)
    good("bundle", obj, "-b", path("other.btf"), "-b", "board=" + path("other.btf"), "-o", path("bound.h"))
    said = run(binary=built("bound", text)).out
    assert said == "-2 bundle bound: it was made for other kernels than this one: other, board\n", said
    # A function that it is verified against and one that it calls have the numbers that the kernel has them under.
    good("bundle", compiled("more", "#define MORE\n" + BOUND), "-b", KERNEL, "-o", path("more.h"))
    header = read("more.h")
    ids = [int(n) for n in header.split("more_ids_0[] = {")[1].split("}")[0].split(",")]
    types = good("btf", "dump", "vmlinux", "-f", "raw").out
    for number, what in zip(sorted(i for i in ids if i), sorted((f"TYPEDEF 'btf_trace_sys_exit'", "FUNC 'vfs_read'"), key=lambda w: types.index(w))):
        assert f"[{number}] {what}" in types, (number, what)
    lock = types.split("FUNC 'bpf_rcu_read_lock'")[0].rsplit("[", 1)[1].split("]")[0]
    assert f"{int(lock):#x}00002085" in header, lock


@test
def bundle_types_tags_and_pins():
    """A kernel pointer needs a tag of types that 5.10 lacks; a load that fails takes its pins back; a perf event is detached."""
    needs_root()
    needs_kernel_btf()
    obj = compile_bpf("tags.bpf.o", """#include <rawbpf/bpf.h>
LICENSE("GPL");
struct cgroup { int x; } __attribute__((preserve_access_index));
struct value { struct cgroup __attribute__((btf_type_tag("kptr"))) *pointer; };
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, struct value); } held SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, __u64); __uint(pinning, 1); } tags_pinned SEC(".maps");
__u64 spare = 7;
const volatile int bad = 0;
static __u64 ticks;
SEC("perf_event") int tick(void *ctx) {
    __u32 zero = 0;
    struct value *value = bpf_map_lookup_elem(&held, &zero);
    __u64 *pinned = bpf_map_lookup_elem(&tags_pinned, &zero);
    if (value && value->pointer) __sync_fetch_and_add(&ticks, 1);
    if (pinned) __sync_fetch_and_add(pinned, 1);
    if (bad) return *(volatile char *)(long)bad;
    return 0;
}
""")
    good("bundle", obj, "-o", path("tags.h"))
    text = r"""#include "tags.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
static uint64_t now(struct rawbpf_error *error) { uint32_t zero = 0; uint64_t n = 0; rawbpf_bundle_lookup(&tags, tags_map_tags_pinned, &zero, &n, error); return n; }
static void spin(void) { clock_t end = clock() + CLOCKS_PER_SEC / 5; while (clock() < end) {} }
int main(void)
{
    struct rawbpf_error error;
    struct rawbpf_place place = RAWBPF_PLACE_INIT;
    struct perf_event_attr attr;
    uint64_t then;
    memset(&error, 0, sizeof error);
    tags_rodata.v.bad = 1;
    if (rawbpf_bundle_load(&tags, &error) != RAWBPF_REJECTED || !strstr(error.log, "invalid mem access")) return printf("%d %s %s\n", error.code, error.text, error.log), 1;
    if (access("/sys/fs/bpf/tags_pinned", F_OK) == 0) return 2;
    tags_rodata.v.bad = 0;
    if (rawbpf_bundle_load(&tags, &error) < 0) return printf("%s: %s\n%s", error.text, error.hint, error.log), 3;
    if (access("/sys/fs/bpf/tags_pinned", F_OK) != 0) return 4;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.freq = 1;
    attr.sample_freq = 999;
    attr.disabled = 1;
    place.fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    if (rawbpf_bundle_attach_program(&tags, tags_program_tick, &place, &error) < 0) return printf("%s\n", error.text), 5;
    spin();
    then = now(&error);
    if (then == 0) return 6;
    rawbpf_bundle_close(&tags);
    if (rawbpf_bundle_load(&tags, &error) < 0) return 7; /* by its pin */
    then = now(&error);
    spin();
    if (then == 0 || now(&error) != then) return 8; /* detached */
    place.cookie = 1;
    if (rawbpf_bundle_attach_program(&tags, tags_program_tick, &place, &error) < 0) return printf("%s\n", error.text), 9;
    spin();
    return now(&error) > then ? 0 : 10;
}
"""
    try:
        r = run(binary=built("tags", text))
        assert r.code == 0, (r.code, r.out, r.err)
    finally:
        if os.path.exists("/sys/fs/bpf/tags_pinned"):
            os.unlink("/sys/fs/bpf/tags_pinned")


@test
def bundle_says_what_it_cant_have():
    needs_kernel_btf()
    for name, (why, source) in REFUSED.items():
        bad(1, why, "bundle", compiled(name, '#include <rawbpf/bpf.h>\nLICENSE("GPL");\n' + source + "\n"))
    obj = compiled("bound", BOUND)
    with open(KERNEL, "rb") as f:
        types = f.read(100_000)
    with open(path("cut.btf"), "wb") as f:
        f.write(types)
    bad(1, r"cut\.btf", "bundle", obj, "-b", path("cut.btf"))
    bad(1, r"no-such", "bundle", obj, "-b", "/no-such")
    bad(1, r"BPF", "bundle", RB)
    bad(2, r"not a name in C", "bundle", obj, "--name", "a b")
