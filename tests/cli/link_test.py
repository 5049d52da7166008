"""rawbpf link and gen: objects joined as bpftool joins them, and headers made of them."""
import json
import os
import shutil

from harness import *
from bpf_objects import clangs

LINK_MAIN = """#include <rawbpf/bpf.h>
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 64); __type(key, __u32); __type(value, __u64); } seen SEC(".maps");
extern int twice(int x);
extern int level;
int base = 3;
static int hidden_state = 4;
const volatile char tag[] = "a";
__attribute__((weak)) int either(int x) { return x + 1; }
static __attribute__((noinline)) int local_help(int x) { hidden_state += x; return hidden_state; }
SEC("raw_tp/sched_switch") int first(void *ctx)
{
    __u32 key = twice(base) + local_help(level) + either(2) + tag[0];
    __u64 *v = bpf_map_lookup_elem(&seen, &key);
    if (v) *v += 1;
    return 0;
}
char LICENSE[] SEC("license") = "GPL";
"""


LINK_LIBRARY = """#include <rawbpf/bpf.h>
#ifdef OWN_MAP
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 4); __type(key, __u32); __type(value, __u64); } counts SEC(".maps");
#endif
extern struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 64); __type(key, __u32); __type(value, __u64); } seen SEC(".maps");
int level = 9;
extern int base;
static int hidden_state = 5;
static __u64 counter;
const volatile long long_tag = 77;
static __attribute__((noinline)) int local_help(int x) { hidden_state -= x; counter++; return hidden_state; }
__attribute__((visibility("hidden"))) int twice(int x) { return local_help(x) * 2 + base; }
int either(int x) { return x + 2; }
SEC("raw_tp/sched_switch") int second(void *ctx)
{
    __u32 key = twice(level) + either(1) + long_tag;
    __u64 *v = bpf_map_lookup_elem(&seen, &key);
    if (v) *v += 2;
    return counter;
}
char LICENSE[] SEC("license") = LICENSE_TEXT;
"""


def link_objects():
    clang = clangs()[0]
    include = os.path.join(HERE, "..", "..", "programs", "include")
    for name, source, *flags in (("main.o", LINK_MAIN), ("library.o", LINK_LIBRARY, '-DLICENSE_TEXT="GPL"'),
                                 ("unfree.o", LINK_LIBRARY, '-DLICENSE_TEXT="Proprietary"')):
        with open(path("source.bpf.c"), "w") as f:
            f.write(source)
        r = run("--target=bpf", "-g", "-O2", "-mcpu=v3", "-I", include, *flags, "-c", path("source.bpf.c"), "-o", path(name), binary=clang)
        assert r.code == 0, r.err[:800]


def programs_of(name):
    """What an object comes to: its tables without the file's name and its sections."""
    shutil.copy(path(name), path("x.o"))
    return good("inspect", path("x.o")).out.split("\nprograms\n")[1]


@test
def link_joins_objects_as_bpftool_does():
    link_objects()
    good("link", "-o", path("linked.o"), path("main.o"), path("library.o"))
    text = programs_of("linked.o")
    for wanted in ("first ", "second ", "global level : int = 9", "static hidden_state : int = 5"):
        assert wanted in text, text
    if os.geteuid() == 0:
        rows = [r for r in map(json.loads, good("load", path("linked.o"), "--each", "--json").out.splitlines()) if r["type"] == "program"]
        assert {r["program"] for r in rows} == {"first", "second"} and all(r["loaded"] for r in rows), rows
    if not shutil.which("bpftool"):
        raise Skip("all but the comparison: needs bpftool")
    assert run("gen", "object", path("theirs.o"), path("main.o"), path("library.o"), binary="bpftool").code == 0
    assert programs_of("theirs.o") == text, "bpftool's object differs"
    if os.geteuid() == 0:
        hashes = []
        for name in ("linked.o", "theirs.o"):
            shutil.copy(path(name), path("x.o"))
            rows = [json.loads(line) for line in good("load", path("x.o"), "--each", "--json").out.splitlines()]
            hashes.append([(r["program"], r["insn_hash"]) for r in rows if r["type"] == "program"])
        assert hashes[0] == hashes[1], hashes
        pins = f"/sys/fs/bpf/rawbpf-cli-{os.getpid()}"
        r = run("prog", "loadall", path("linked.o"), pins, binary="bpftool")
        shutil.rmtree(pins, ignore_errors=True)
        assert r.code == 0, f"libbpf doesn't load it: {r.err[-500:]}"


@test
def link_names_both_files_in_a_conflict():
    link_objects()
    out = path("never.o")
    bad(1, r"main.o and .*unfree.o have different licenses: \"GPL\" and \"Proprietary\"", "link", "-o", out, path("main.o"), path("unfree.o"))
    bad(1, r"first is defined in .*main.o and in .*main.o", "link", "-o", out, path("main.o"), path("main.o"))
    bad(1, r"no-such", "link", "-o", out, path("main.o"), "/no-such.o")
    bad(1, r"isn.t a BPF object", "link", "-o", out, path("main.o"), RB)
    bad(2, r"-o FILE", "link", path("main.o"))
    assert not os.path.exists(out)


@test
def gen_skeleton_writes_a_header():
    link_objects()
    good("link", "-o", path("linked.o"), path("main.o"), path("library.o"))
    good("gen", "skeleton", path("linked.o"), "--name", "library", "-o", path("library.skel.h"))
    header = read("library.skel.h")
    for wanted in ("namespace library {", "class Skeleton", "&bss()", "second_program()"):
        assert wanted in header, header[-3000:]
    bad(2, r"not a name", "gen", "skeleton", path("linked.o"), "--name", "a b")
    bad(1, r"no-such", "gen", "skeleton", "/no-such.o")
    bad(2, r"gen skeleton", "gen")
    bad(1, r"BPF", "gen", "skeleton", RB)
