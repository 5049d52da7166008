"""Objects beside libbpf's own tools: what bpftool links, `rawbpf link` links to the same instructions; what is a program is loaded."""
import json
import os
import re
import shutil
import subprocess

from harness import *

HEAD = """
#define SEC(name) __attribute__((section(name), used))
#define __uint(name, val) int (*name)[val]
#define __type(name, val) typeof(val) *name
static void *(*lookup)(void *map, const void *key) = (void *)1;
"""
LICENSE = 'char LICENSE[] SEC("license") = "GPL";\n'
MAP = "struct counts_t { __uint(type, 2); __uint(max_entries, 4); __type(key, int); __type(value, long); }"


def compile_bpf(name, source, *flags):
    if not shutil.which("clang"):
        raise Skip("needs clang")
    out = path(name)
    subprocess.run(["clang", "-O2", "-g", "-target", "bpf", "-Wno-everything", "-x", "c", "-", "-c", "-o", out, *flags],
                   input=(HEAD + source).encode(), check=True)
    return out


def programs_of(obj, *options):
    r = run("load", "--each", "--json", *options, obj)
    return {p["program"]: p for p in map(json.loads, r.out.splitlines()) if p["type"] == "program"}


# What one file declares and the other defines; each pair is linked by bpftool, too.
PAIRS = {
    "licenses of different names": (
        'SEC("socket") int a(void *c) { return 0; }\n' + LICENSE,
        'SEC("socket") int b(void *c) { return 1; }\nchar _license[] SEC("license") = "GPL";\n'),
    "a license that its program reads": (
        'SEC("socket") int a(void *c) { return 0; }\n' + LICENSE,
        'int _version SEC("version") = 1;\nconst volatile int x = 7;\nSEC("socket") int b(void *c) { return x; }\n'
        'char other[] SEC("license") = "GPL";\n'),
    "an array without its length": (
        'extern int list[];\nSEC("socket") int a(void *c) { return list[2]; }\n' + LICENSE,
        "int list[8] = {1, 2, 3};\n" + LICENSE.replace("LICENSE", "own")),
    "another sign": (
        'extern unsigned int seen;\nSEC("socket") int a(void *c) { return seen; }\n' + LICENSE, "int seen = 4;\n"),
    "parameters by other names": (
        'int twice(int x, int y);\nSEC("socket") int a(void *c) { return twice(3, 0); }\n' + LICENSE,
        "__attribute__((noinline)) int twice(int number, int unused) { return number * 2; }\n"),
    "a pointer to what is only declared": (
        'struct thing; int size(struct thing *t);\nSEC("socket") int a(void *c) { return size(0); }\n' + LICENSE,
        "struct thing { int a, b; };\n__attribute__((noinline)) int size(struct thing *t) { return t ? t->b : 2; }\n"),
    "a struct that grew behind a pointer": (
        'struct thing { int a; }; int size(struct thing *t);\nSEC("socket") int a(void *c) { return size(0); }\n' + LICENSE,
        "struct thing { int a, b; };\n__attribute__((noinline)) int size(struct thing *t) { return t ? t->b : 2; }\n"),
    "a map of two files": (
        MAP + ';\nextern ' + MAP.split(" {")[0] + ' counts SEC(".maps");\nSEC("socket") int a(void *c) { int k = 0; return !lookup(&counts, &k); }\n' + LICENSE,
        MAP + ' counts SEC(".maps");\nSEC("socket") int b(void *c) { int k = 1; return !lookup(&counts, &k); }\n'),
}


@test
def link_joins_whatever_bpftool_joins():
    if not shutil.which("bpftool") or os.geteuid() != 0:
        raise Skip("needs bpftool, and root to load what was linked")
    for name, (one, two) in PAIRS.items():
        inputs = [compile_bpf("one.o", one), compile_bpf("two.o", two)]
        theirs = subprocess.run(["bpftool", "gen", "object", path("theirs.o"), *inputs], capture_output=True, text=True)
        ours = run("link", "-o", path("ours.o"), *inputs)
        assert ours.code == 0, (name, ours.err)
        mine = programs_of(path("ours.o"))
        assert mine and all(p["loaded"] for p in mine.values()), (name, mine)
        # The kernel takes the types: a program whose BTF is refused loses its lines, or isn't loaded at all.
        notes = run("load", "-v", path("ours.o")).err
        assert "without" not in notes and "BTF" not in notes, (name, notes)
        if theirs.returncode != 0:
            continue  # this bpftool links less
        other = programs_of(path("theirs.o"))
        assert {n: p["insn_hash"] for n, p in mine.items()} == {n: p["insn_hash"] for n, p in other.items()}, (name, mine, other)


@test
def link_takes_a_map_that_is_only_declared():
    one = compile_bpf("one.o", 'extern struct counts_t counts;\nSEC("socket") int a(void *c) { int k = 0; return !lookup(&counts, &k); }\n' + LICENSE)
    two = compile_bpf("two.o", MAP + ' counts SEC(".maps");\n')
    for inputs in ([one, two], [two, one]):
        good("link", "-o", path("out.o"), *inputs)
        if os.geteuid() == 0:
            assert programs_of(path("out.o"))["a"]["loaded"]


@test
def link_still_refuses_what_disagrees():
    define = compile_bpf("define.o", "struct s { int a; long b; };\nstruct s v = {1};\nint list[4] = {1};\n" + MAP + ' counts SEC(".maps");\n')
    for source, what in (("extern long list[4];\nint f(void) { return list[1]; }", "list"),
                         ("struct s { long a; long b; };\nextern struct s v;\nint f(void) { return v.a; }", "v"),
                         ("struct s { int a; };\nextern struct s v;\nint f(void) { return v.a; }", "v"),
                         (MAP.replace("max_entries, 4", "max_entries, 8") + ';\nextern struct counts_t counts SEC(".maps");\n'
                          "int f(void) { int k = 0; return !lookup(&counts, &k); }", "counts")):
        bad(1, "disagree about " + what, "link", "-o", path("out.o"), compile_bpf("declare.o", source + "\n" + LICENSE), define)
    bad(1, "different licenses", "link", "-o", path("out.o"), compile_bpf("one.o", LICENSE), compile_bpf("two.o", 'char l[] SEC("license") = "MIT";\n'))


def callees_in_listing(text):
    """Of each function of `rawbpf disasm`'s text, by the first number in it: the functions called, by theirs."""
    parts = dict(re.findall(r"^\.(?:program|function) (\S+).*\n((?:.+\n)+)", text, re.M))
    first = {name: int(re.search(r"[rw]\d \*= (\d+)", body)[1]) for name, body in parts.items()}
    return {first[name]: [first[called] for called in re.findall(r"call (\w+)$", body, re.M)] for name, body in parts.items()}


def callees_by_llvm(obj):
    """The same from llvm-objdump: a call's target by its relocation, or, without one, by its distance."""
    out = subprocess.run(["llvm-objdump", "-dr", "--no-show-raw-insn", obj], capture_output=True, text=True, check=True).stdout
    first, calls, section, where = {}, [], None, {}
    for line in out.splitlines():
        if m := re.match(r"Disassembly of section (.*):", line):
            section = m[1]
        elif m := re.match(r"([0-9a-f]+) <(.*)>:", line):
            function = (section, int(m[1], 16) // 8)
            where[m[2]] = function
        elif m := re.match(r"\s+\d+:\s+[rw]\d \*= (\w+)", line):
            first[function] = int(m[1], 0)
        elif m := re.match(r"\s+(\d+):\s+call (-?\w+)", line):
            calls.append([function, (section, int(m[1]) + 1 + int(m[2], 0))])
            distance = int(m[2], 0)
        elif m := re.match(r"\s+[0-9a-f]+:\s+R_BPF_64_32\s+(\S+)", line):
            calls[-1][1] = (m[1], distance + 1) if m[1] == ".text" else where[m[1]] if m[1] in where else m[1]
    result = {number: [] for number in first.values()}
    for caller, target in calls:
        result[first[caller]].append(first[where.get(target, target)])
    return result


@test
def disasm_tells_static_functions_of_one_name_apart():
    if not shutil.which("llvm-objdump"):
        raise Skip("needs llvm-objdump")
    static = "static __attribute__((noinline)) long helper(long x) { return x * %d + (x >> 3); }\n"
    obj, again = path("linked.o"), path("again.o")
    good("link", "-o", obj,
         compile_bpf("one.o", "long add(long);\n" + static % 1001 + 'SEC("raw_tp/sys_enter") int prog(long *c) { return (helper(*c) + add(*c)) * 2001; }\n' + LICENSE),
         compile_bpf("two.o", static % 1002 + "__attribute__((noinline)) long add(long x) { return helper(x + 1) * 2002; }\n"
                     'SEC("raw_tp/sys_enter") int more(long *c) { return (helper(*c) - add(*c)) * 2003; }\n' + LICENSE),
         compile_bpf("three.o", static % 1003 + 'SEC("raw_tp/sys_enter") int last(long *c) { return helper(*c) * 2004; }\n' + LICENSE))
    text = good("disasm", obj).out
    names = re.findall(r"^\.(?:program|function) (\S+)", text, re.M)
    assert len(names) == len(set(names)) == 7, names
    assert callees_in_listing(text) == callees_by_llvm(obj), (callees_in_listing(text), callees_by_llvm(obj))
    with open(path("again.asm"), "w") as f:
        f.write(text)
    good("asm", path("again.asm"), "-o", again)
    for program in ("prog", "more", "last"):
        results = {good("exec", "--prog", program, file, "2a00000000000000").out for file in (obj, path("again.asm"), again)}
        assert len(results) == 1 and results != {"0\n"}, (program, results)
    if os.geteuid() == 0:
        hashes = [{n: p["insn_hash"] for n, p in programs_of(file).items() if p["loaded"]} for file in (obj, again)]
        assert len(hashes[0]) == 3 and hashes[0] == hashes[1], hashes


@test
def disasm_of_data_sections_of_any_name_is_loaded_again():
    obj = compile_bpf("sections.o", '''
int a SEC(".data.foo") = 5; const volatile int b SEC(".rodata.foo") = 6; int c SEC(".bss.foo"); int d = 7; int e; const volatile int f = 3;
SEC("socket") int prog(void *ctx) { a++; c += b; d += a; e += f; return a + c + d + e; }
''' + LICENSE)
    with open(path("sections.asm"), "w") as f:
        f.write(good("disasm", obj).out)
    good("asm", path("sections.asm"), "-o", path("again.o"))
    assert good("exec", obj).out == good("exec", path("again.o")).out
    if os.geteuid() == 0:
        assert programs_of(path("again.o"))["prog"]["insn_hash"] == programs_of(obj)["prog"]["insn_hash"]


@test
def static_programs_are_loaded_and_static_functions_are_not():
    if os.geteuid() != 0:
        raise Skip("needs root to load programs")
    obj = compile_bpf("static.o", '''
__attribute__((noinline)) SEC("socket") static int help(int x) { return x * 3; }
static SEC("socket") int alone(void *c) { return 4; }
SEC("socket") int calls(void *c) { return help(2); }
static SEC("xdp") int other(void *c) { return 2; }
''' + LICENSE)
    assert {n: p["loaded"] for n, p in programs_of(obj).items()} == {"alone": True, "calls": True, "other": True}


@test
def symbols_without_a_type_are_functions_where_nothing_else_is():
    if os.geteuid() != 0 or not shutil.which("llvm-mc"):
        raise Skip("needs root, and llvm-mc")
    source = '.section xdp,"ax",@progbits\n.globl first\nfirst:\nr0 = 2\nexit\n.globl second\nsecond:\nr0 = 1\nexit\n' \
             '.section license,"aw",@progbits\n.asciz "GPL"\n'
    subprocess.run(["llvm-mc", "-triple=bpfel", "-filetype=obj", "-o", path("untyped.o")], input=source.encode(), check=True)
    assert {n: p["insns"] for n, p in programs_of(path("untyped.o")).items()} == {"first": 2, "second": 2}
    # In a section that says no type it is an error, not a success with nothing loaded.
    with open(path("odd.s"), "w") as f:
        f.write(source.replace("xdp", "mine"))
    subprocess.run(["llvm-mc", "-triple=bpfel", "-filetype=obj", "-o", path("untyped.o"), path("odd.s")], check=True)
    bad(1, 'section name "mine"', "load", path("untyped.o"))


@test
def nothing_to_load_is_an_error():
    for how in ((), ("--each",)):
        bad(1, "only functions for programs to call", "load", *how, compile_bpf("lib.o", "int f(int x) { return x + 1; }\n" + LICENSE))
        bad(1, "no program and no map", "load", *how, compile_bpf("empty.o", LICENSE))


SETTABLE = '''
enum mode { LAX = 1, STRICT = 5 };
const volatile int wanted = 3;
struct config { int pid; struct { short lo; char name[8]; }; };
struct config config;
enum mode mode;
unsigned short ports[4];
struct { __uint(type, 1); __type(key, int); __type(value, int); } counts SEC(".maps");
struct { __uint(type, 27); } ring SEC(".maps");
static void *(*reserve)(void *ring, unsigned long size, unsigned long flags) = (void *)131;
static void (*discard)(void *record, unsigned long flags) = (void *)133;
SEC("tracepoint/syscalls/sys_enter_getpid") int a(void *c) {
    int k = 0;
    void *r = reserve(&ring, 8, 0);
    if (r) discard(r, 0);
    return lookup(&counts, &k) ? wanted : config.pid + config.lo + mode + ports[1] + ports[3];
}
''' + LICENSE


@test
def globals_and_map_sizes_are_the_users_to_set():
    obj = compile_bpf("settable.o", SETTABLE)
    bad(1, "did you mean `wanted`", "load", "--set", "wantd=1", obj)
    bad(1, "NAME=VALUE", "load", "--set", "wanted", obj)
    bad(1, "its members: pid, lo, name", "load", "--set", "config.pidd=1", obj)
    bad(1, "one of LAX, STRICT", "load", "--set", "mode=NONE", obj)
    bad(1, "there are 4 elements", "load", "--set", "ports[4]=1", obj)
    bad(1, "0 to 65535", "load", "--set", "ports=65536", obj)
    bad(1, "did you mean `counts`", "load", "--map", "count:entries=1", obj)
    bad(1, "only its entries", "load", "--map", "counts:size=1", obj)
    bad(1, "no number of entries", "load", "--map", "counts:entries=many", obj)
    if os.geteuid() != 0:
        raise Skip("the rest needs root")
    refused = run("load", obj)
    assert refused.code == 1 and "--map NAME:entries=N" in refused.err, refused.err
    said = good("load", "--map", "counts:entries=16", obj).out
    assert "map counts: BPF_MAP_TYPE_HASH, key 4 bytes, value 4 bytes, 16 entries\n" in said, said
    # A ring of no size is made with a page, and that is said.
    assert re.search(r"map ring: .* \d+ bytes \(defined with 0; --map ring:entries=N says another size\)", said), said
    said = good("load", "--json", "--map", "counts:entries=16", "--map", "ring:entries=65536", obj).out
    ring = next(m for m in map(json.loads, said.splitlines()) if m.get("map") == "ring")
    assert ring["max_entries"] == 65536 == ring["defined_entries"], ring
    settings = {"wanted": "7", "config.pid": "-2", "config.name": "abc", "mode": "STRICT", "ports": "80,443", "ports[3]": "9"}
    said = good("load", "--attach", "-d", "0.05", "--json", "--map", "counts:entries=16",
                *[w for k, v in settings.items() for w in ("--set", f"{k}={v}")], obj).out
    values = {v["name"]: v["value"] for v in map(json.loads, said.splitlines()) if v["type"] == "variable"}
    assert values["config"] == {"pid": -2, "lo": 0, "name": "abc"}, values
    assert values["mode"] == "STRICT" and values["ports"] == [80, 443, 0, 9], values
    # A constant is known to the verifier: other instructions are left of the program, the file's are the same.
    assert "wanted" not in values


@test
def programs_for_many_functions_are_loaded_as_their_section_says():
    if os.geteuid() != 0:
        raise Skip("needs root to load programs")
    obj = compile_bpf("multi.o", 'SEC("kprobe.multi/vfs_*") int a(void *c) { return 0; }\n' + LICENSE)
    said = run("load", "--syscalls", obj).err
    assert "expected_attach_type=BPF_TRACE_KPROBE_MULTI" in said.replace(" ", "").replace(":", "=") or "TRACE_KPROBE_MULTI" in said, said
