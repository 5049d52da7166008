"""The engines' edges: what a program can make the emulator do is bounded, and what others' text means is what they mean."""
import resource
import shutil

from harness import *


def exec_asm(text, *args, memory=2_000_000_000, seconds=20, **kw):
    limits = lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    p = subprocess.run([RB, "exec", *args, "-"], input=text.encode(), capture_output=True, timeout=seconds, preexec_fn=limits)
    return Run(p.returncode, p.stdout.decode(), p.stderr.decode())


@test
def engines_asm_registers_and_semicolons():
    bad(1, r"no register `R0`.*\n(.*\n)*  hint: did you mean `r0`", "asm", "--hex", "-", input=b"R0 = 1\nexit\n")
    r = good("asm", "--hex", "-", input=b"r0 = 1; exit\n")
    assert r.out.replace(" ", "").strip() == "b7000000010000009500000000000000", r.out


@test
def engines_asm_warnings():
    r = good("asm", "--hex", "-", input=b'.program p "xpd"\ngoto +9\nr0 = *(u64 *)(r10 - 520)\n')
    for what in ("standard input:1:12: warning: no loader knows the section name `xpd`", "hint: did you mean `xdp`?",
                 "2:1: warning: the jump goes to instruction 10", "3:1: warning: 8 bytes at r10 - 520 are outside of the stack",
                 "3:1: warning: the function `p` ends here without an exit or a jump"):
        assert what in r.err, (what, r.err)


PERF = """.map e perf_event_array key 4 value 4 entries 1
.bss big u8[16000000]
l: r1 = r10
r2 = e ll
r3 = 0
r4 = big ll
r5 = 16000000
call bpf_perf_event_output
goto l
"""
PRINT = """.rodata f "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa%lld"
l: r1 = f ll
r2 = 84
r3 = 1
call bpf_trace_printk
goto l
"""


@test(long=True)
def engines_exec_work_is_bounded():
    for text in (PERF, PRINT):
        for limit in (("--limit", "3000"), ()):
            r = exec_asm(text, *limit)
            assert r.code == 1 and "counts as" in r.err, r.err[-300:]
    # What is printed is kept up to a size, and what isn't kept is said.
    r = exec_asm(PRINT.replace("l: r1", "r6 = 300000\nl: r1").replace("goto l", "r6 -= 1\nif r6 != 0 goto l\nr0 = 7\nexit"))
    assert r.code == 0 and r.out == "7\n" and len(r.err) < 18 << 20, (r.code, r.out, len(r.err))
    assert re.search(r"printed another \d+ bytes, which weren't kept: the emulator keeps 16 MiB", r.err[-300:]), r.err[-300:]


@test
def engines_exec_maps_are_bounded():
    r = exec_asm(".map m hash key 4 value 8 entries 200000000\nr0 = 0\nexit\n")
    assert r.code == 1 and re.search(r"map m: its 200000000 entries need \d+ MiB; the emulator has 1024 MiB for all maps", r.err), r.err
    # A map takes memory where it is used.
    r = exec_asm(".map m hash key 4 value 8 entries 20000000\nr0 = 0\nexit\n", memory=2_000_000_000)
    assert r.code == 0, r.err
    many = "".join(f".map m{n} array key 4 value 4000 entries 100000\n" for n in range(3)) + "r0 = 0\nexit\n"
    r = exec_asm(many)
    assert r.code == 1 and "its maps, up to m2, need" in r.err, r.err


@test
def engines_exec_many_timers():
    text = open(os.path.join(HERE, "engines_timers.asm")).read()
    r = exec_asm(text, seconds=10)
    assert r.code == 0 and r.out == "186a0\n", r.err


TAIL = r"""
#define SEC(n) __attribute__((section(n), used))
#define __uint(name, val) int (*name)[val]
#define __array(name, val) typeof(val) *name[]
static long (*bpf_tail_call)(void *ctx, void *map, unsigned index) = (void *)12;
static long (*bpf_loop)(unsigned n, void *cb, void *ctx, unsigned long flags) = (void *)181;
SEC("socket") int b(void *ctx) { return 0; }
struct { __uint(type, 3); __uint(max_entries, 1); __uint(key_size, 4); __array(values, int(void *)); } t SEC(".maps") = {
    .values = { [0] = (void *)&b } };
static long cb(unsigned i, void *ctx) {
    if (i == 0) { bpf_tail_call(ctx, &t, 0); return 0; }
    return FAULT; }
SEC("socket") int a(void *ctx) { bpf_loop(3, cb, ctx, 0); return 5; }
char L[] SEC("license") = "GPL";
"""


@test
def engines_tail_call_in_a_callback():
    for fault, code in (("0", 0), ("*(volatile int *)(long)4", 1)):
        with open(path("tail.c"), "w") as f:
            f.write(TAIL.replace("FAULT", fault))
        subprocess.run(["clang", "-O2", "-g", "-target", "bpf", "-c", path("tail.c"), "-o", path("tail.o")], check=True,
                       capture_output=True)
        r = run("exec", "--prog", "a", path("tail.o"))
        assert r.code == code and (r.out == "5\n" if code == 0 else "in function cb" in r.err or "cb: instruction" in r.err), r.err
        r = run("step", "--trace", "--prog", "a", path("tail.o"))
        assert r.code == code, (r.code, r.err[-300:])


@test
def engines_exec_kernel_wants_an_end():
    for where in ((), ("--in-kernel",)):
        r = run("exec", *where, "-", input=b"b7 00 00 00 05 00 00 00")
        assert r.code == 1 and "ends here without an exit or a jump" in r.err, (where, r.err)


@test
def engines_disasm_without_symbols():
    with open(path("bare.asm"), "w") as f:
        f.write('.program p "xdp"\nr0 = 2\nexit\n')
    good("asm", path("bare.asm"), "-o", path("bare.o"))
    strip = next((s for s in ("llvm-strip", "llvm-strip-19", "llvm-strip-16") if subprocess.run(["which", s], capture_output=True).returncode == 0), None)
    if strip is None:
        raise Skip("no llvm-strip")
    subprocess.run([strip, "--strip-all", path("bare.o")], check=True)
    r = good("disasm", path("bare.o"))
    assert '.program xdp "xdp"' in r.out and "r0 = 2" in r.out and "exit" in r.out, r.out


@test
def engines_golden_by_the_newest_llvm():
    folder = os.path.join(HERE, "..", "unit", "asm")
    p = subprocess.run([sys.executable, os.path.join(folder, "golden.py"), "--check", os.path.join(folder, "golden.inc")], capture_output=True,
                       text=True)
    if p.returncode == 77:
        raise Skip(p.stdout.strip())
    assert p.returncode == 0, p.stdout

FLAGS = r"""
#define SEC(n) __attribute__((section(n), used))
#define __uint(name, val) int (*name)[val]
#define __type(name, val) typeof(val) *name
typedef unsigned int u32; typedef unsigned long u64;
static long (*update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*push)(void *map, const void *value, u64 flags) = (void *)87;
static void *(*lookup)(void *map, const void *key) = (void *)1;
struct bpf_spin_lock { u32 val; };
struct plain { u64 a, b; };
struct first { struct bpf_spin_lock l; u32 x; u64 b; };
struct last { u64 a; u32 x; struct bpf_spin_lock l; };
struct nested { u64 a; struct { u32 x; struct bpf_spin_lock l; } in; };
struct pointer { struct bpf_spin_lock *l; u64 b; };
#define TABLE(n, kind, flags, keytype, valuetype) \
    struct { __uint(type, kind); __uint(max_entries, 3); __uint(map_flags, flags); __type(key, keytype); __type(value, valuetype); } n SEC(".maps");
#define LIST(n, kind) struct { __uint(type, kind); __uint(max_entries, 3); __uint(value_size, 16); } n SEC(".maps");
struct { __uint(type, 2); __uint(max_entries, 4096); __type(key, u32); __type(value, long); } results SEC(".maps");
static inline __attribute__((always_inline)) void keep(u32 at, long result) { update(&results, &at, &result, 0); }
MAPS
SEC("tc") int flags(void *ctx) { u64 key = 1, other = 9, trie = 0x0100000008, value[2] = {0x1111111122222222, 0x3333333344444444}, *old; BODY return 0; }
char L[] SEC("license") = "GPL";
"""


@test
def engines_map_flags_are_the_kernels():
    if os.geteuid() != 0 or not shutil.which("clang"):
        raise Skip("needs root, and clang")
    values = (0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 64, 1 << 32, 5 << 32)
    kinds = {"hash": (1, 0), "loose": (1, 1), "array": (2, 0), "cpuhash": (5, 0), "cpuarray": (6, 0), "lru": (9, 0), "lrucpu": (10, 0), "trie": (11, 1)}
    cases = [(kind, value) for kind in kinds for value in ("plain", "pointer", "first", "last", "nested")
             if value in ("plain", "pointer") or kind in ("hash", "loose", "array")]
    for kind, value in cases:
        number, flags = kinds[kind]
        key = "u32" if "array" in kind else "u64"
        maps = f"TABLE(m, {number}, {flags}, {key}, struct {value})"
        body, n = [], 0
        for name in ("&trie",) if kind == "trie" else ("&key", "&other"):
            for flag in (*values, *reversed(values)):
                # A pointer from before shows whether the value was replaced or written over.
                reads = f"old = lookup(&m, {name}); " if kind in ("hash", "array") and value == "last" else ""
                body.append(f"value[0]++; {reads}keep({n}, update(&m, {name}, value, {flag}ul));" + (f" if (old) keep({n + 1}, old[0]);" if reads else ""))
                n += 2
        compare_flags(f"{kind} of {value}", maps, body)
    for name, number in (("queue", 22), ("stack", 23), ("bloom", 30)):
        compare_flags(name, f"LIST(m, {number})", [f"keep({n}, push(&m, value, {flag}ul));" for n, flag in enumerate(values)])


def compare_flags(what, maps, body):
    with open(path("flags.c"), "w") as f:
        f.write(FLAGS.replace("MAPS", maps).replace("BODY", "\n".join(body)))
    subprocess.run(["clang", "-O2", "-g", "-Wno-everything", "-target", "bpf", "-c", path("flags.c"), "-o", path("flags.o")], check=True)
    r = run("exec", "--diff", path("flags.o"), "00" * 64)
    assert r.code == 0, (what, r.code, r.out, r.err)
