"""Stacks that used to end early: code without unwind tables in files that have some, code in anonymous memory, runtimes that have
ways of their own; and what the doctor promises of files, held against a profile of them."""
import glob
import math
import shlex
import shutil

from harness import *
from user_stacks import endings, share, since_learnt, stacks

# A function of assembly that nothing describes calls what spins; `frame` keeps frame pointers, `data` has a number in rbp (x29), and
# `astray` has there what leads to a number that is no return address, though it lies in code.
HOLES = r"""
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <unistd.h>
#if defined(__x86_64__)
asm(R"(.text
.globl through_frame, through_data, through_astray
.balign 64
through_frame: push %rbp
 mov %rsp, %rbp
 sub $64, %rsp
 call spin
 leave
 ret
.balign 64
through_data: push %rbp
 sub $64, %rsp
 mov $5, %ebp
 call spin
 add $64, %rsp
 nop
 pop %rbp
 ret
.balign 64
through_astray: push %rbp
 sub $64, %rsp
 mov %rsp, %rbp
 movq $0, (%rsp)
 lea through_frame(%rip), %rax
 mov %rax, 8(%rsp)
 call spin
 add $64, %rsp
 nop
 pop %rbp
 ret
)");
#else
asm(R"(.text
.globl through_frame, through_data, through_astray
.balign 64
through_frame: stp x29, x30, [sp, #-16]!
 mov x29, sp
 bl spin
 ldp x29, x30, [sp], #16
 ret
through_data: b through_frame
through_astray: b through_frame
)");
#endif
extern "C" void through_frame(), through_data(), through_astray();
static bool rests;
extern "C" __attribute__((noinline)) void tick(long) { asm volatile("" ::: "memory"); }
extern "C" __attribute__((noinline)) void spin() {
    if (rests) { // in place of work
        for (int i = 0; i < 60; ++i) tick(i), usleep(1000);
        asm volatile("" ::: "memory");
        return;
    }
    for (clock_t end = clock() + CLOCKS_PER_SEC * 4 / 10; clock() < end;)
        for (volatile int i = 0; i < 10000; i = i + 1) {
        }
}
int main(int, char **argv) {
    rests = argv[2] && !strcmp(argv[2], "rests");
    if (!strcmp(argv[1], "frame")) through_frame();
    if (!strcmp(argv[1], "data")) through_data();
    if (!strcmp(argv[1], "astray")) through_astray();
}
"""


def without_frame_pointers(name, source, level="-O2"):
    out = path(name)
    subprocess.run([CXX, level, "-fomit-frame-pointer", "-x", "c++", "-", "-o", out], input=source.encode(), check=True)
    return out


@test
def holes_in_a_table_are_left_by_frame_pointers_that_lead_on():
    program = without_frame_pointers("holes", HOLES, "-O1")
    found = stacks([program, "frame"], "holes")
    assert share(found) >= 0.95, endings(found)
    inside = [names for names, _ in found if "spin" in names]
    assert inside and all("through_frame" in names and "main" in names for names in inside), inside[:3]
    if os.uname().machine != "x86_64":
        return
    for how in ("data", "astray"):
        found = stacks([program, how], "holes", "--record", path("holes.rec"))
        # What was sampled before the process was known went by the kernel's walk.
        inside = [(names, end) for names, end in found if "spin" in names and end != "no_process"]
        astray = [one for one in inside if one[0][-1] != "through_" + how or one[1] != "no_rule"]
        assert inside and not astray, astray[:3]
    # What would help is in the ledger, a report's too, and in words beside it.
    r = good("report", "--json", path("holes.rec"))
    for ledger in (rows("stacks")[-1], json.loads(r.out.splitlines()[-1])):
        advice = [a for a in ledger["advice"] if a["where"] == "holes"]
        assert len(advice) == 1 and advice[0]["stacks"] >= advice[0]["early"] > 20 and "--unwind fp" in advice[0]["advice"], ledger
    assert f"of the stacks in holes end early: {advice[0]['advice']}" in r.err, r.err


MOMENT = """
#include <time.h>
extern "C" __attribute__((noinline)) double spin(int n) {
    volatile double x = 1;
    for (int i = 0; i < n * 1000; ++i) x = x * 1.0001 + i;
    return x;
}
extern "C" __attribute__((noinline)) double calls(int n) { return spin(n) + 1; }
int main(void) {
    const clock_t end = clock() + 5 * CLOCKS_PER_SEC / 1000;
    double sum = 0;
    while (clock() < end) sum += calls(1);
    return sum < 0;
}
"""


@test
def holes_of_processes_that_live_for_a_moment_are_walked():
    """Each is gone before its copied stacks are walked, and some samples come while it still maps its libraries."""
    program = compile_program("moment", MOMENT, "-O2", "-fno-optimize-sibling-calls",
                              "-fno-exceptions", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
    again = f"i=0; while [ $i -lt 60 ]; do {shlex.quote(str(program))}; i=$((i+1)); done"
    found = [(names, end) for names, end in stacks(["sh", "-c", again], "moment", rate="999") if "spin" in names]
    assert share(found) > 0.97, endings(found)
    assert sum("main" in names for names, _ in found) > 0.97 * len(found)


def advice_of(ledger, where):
    found = [a for a in ledger.get("advice", []) if a["where"] == where]
    return found[0] if len(found) == 1 else None


@test
def every_ledger_has_the_advice():
    program = without_frame_pointers("holes", HOLES, "-O1")
    tools = {"trace": ["trace", f"uprobe:{program}:tick", "--stack"], "custom": ["custom", f"{program}:tick"],
             "off-cpu": ["profile", "--off-cpu"]}
    for name, tool in tools.items():
        for how, poor in (("data", os.uname().machine == "x86_64"), ("frame", False)):
            r = good(*tool, "--json", "--", program, how, "rests")
            advice = advice_of(json.loads(r.out.splitlines()[-1]), "holes")
            assert bool(advice) == poor, (name, how, advice, r.err)
            assert ("of the stacks in holes end early" in r.err) == poor, (name, how, r.err)
            if poor:
                assert advice["stacks"] >= advice["early"] >= 50 and "--unwind fp" in advice["advice"], (name, advice)
                assert f"holes end early: {advice['advice']}" in r.err, (name, r.err)
        if os.uname().machine != "x86_64":
            continue
        # Counted in the kernel, or only here, the same are early.
        for shape in ("folded", "top"):
            r = good(*tool, "-f", shape, "--", program, "data", "rests")
            assert "of the stacks in holes end early" in r.err, (name, shape, r.err)


@test
def stacks_by_frame_pointers_have_advice_too():
    """Each tool that takes stacks, walked by frame pointers through code that keeps none: what walks them is said."""
    if os.uname().machine != "x86_64":
        raise Skip("arm64's compilers keep frame pointers where a function calls")
    program = without_frame_pointers("holes", HOLES, "-O1")
    tools = {"profile": ["profile", "-F", "499"], "trace": ["trace", f"uprobe:{program}:tick", "--stack"],
             "custom": ["custom", f"{program}:tick"], "off-cpu": ["profile", "--off-cpu"]}
    for name, tool in tools.items():
        rests = ["rests"] if name != "profile" else []
        r = good(*tool, "--json", "--unwind", "fp", "--", program, "data", *rests)
        advice = json.loads(r.out.splitlines()[-1]).get("advice", [])
        assert any("--unwind auto walks it" in a["advice"] and a["stacks"] >= a["early"] >= 20 for a in advice), (name, r.err)
        assert "end early: --unwind auto walks it by its unwind tables" in r.err, (name, r.err)
    good("profile", "-F", "499", "--unwind", "fp", "--record", path("fp.rec"), "-q", "--", program, "data")
    r = good("report", "--json", path("fp.rec"))
    assert "end early: --unwind auto walks it by its unwind tables" in r.err, r.err


SPIN = """
#include <time.h>
static long rounds = 0;
__attribute__((noinline)) static void spin(void) {
    for (volatile long i = 0; i < ROUNDS; i = i + 1) ++rounds;
}
__attribute__((noinline)) static void calls(void) { spin(), ++rounds; }
"""


@test
def a_program_without_a_c_library_ends_at_its_entry_point():
    """Its _start is a C compiler's, whose entry claims a caller. The doctor says whole stacks, and whole they are."""
    leave = {"x86_64": 'asm volatile("mov $60, %eax; xor %edi, %edi; syscall");',
             "aarch64": 'asm volatile("mov x8, #93; mov x0, #0; svc #0");'}[os.uname().machine]
    source = SPIN.replace("#include <time.h>", "").replace("ROUNDS", "300000000") + "void _start(void) { calls(); %s }" % leave
    for how in (["-static"], ["-static-pie"]):
        program = compile_program("no_libc", 'extern "C" {' + source + "}", "-O1", "-nostdlib", "-fno-stack-protector",
                                  "-fno-optimize-sibling-calls", *how)
        found = stacks([program], "no_libc")
        assert share(found) >= 0.99 and all(names[-1] == "_start" for names, _ in found if "spin" in str(names)), endings(found)
        assert "A profile will show whole stacks through it" in good("doctor", program).out


@test
def stacks_at_the_end_of_execve_are_those_of_the_entry_point():
    """In execve the call's number stays with the entry point's address: what comes before that is none of this program's calls."""
    leave = {"x86_64": 'asm volatile("mov $60, %eax; xor %edi, %edi; syscall");',
             "aarch64": 'asm volatile("mov x8, #93; mov x0, #0; svc #0");'}[os.uname().machine]
    source = SPIN.replace("#include <time.h>", "").replace("ROUNDS", "300000") + "void _start(void) { calls(); %s }" % leave
    program = compile_program("brief_exec", 'extern "C" {' + source + "}", "-O1", "-nostdlib", "-fno-stack-protector",
                              "-fno-optimize-sibling-calls", "-static")
    # Some are sampled there. (Of a process as brief as these rawbpf may never hear what it had mapped.)
    found = stacks(["sh", "-c", f"i=0; while [ $i -lt 400 ]; do {program}; i=$((i + 1)); done"], "brief_exec", rate="3999")
    entered = [end for names, end in found if names[0] == "_start"]
    assert "root" in entered and "no_mapping" not in entered, endings(found)


CONTEXTS = SPIN.replace("ROUNDS", "30000000") + """
#include <ucontext.h>
static ucontext_t top, inner;
static char stack[65536];
static void run(void) { calls(); }
int main(void) {
    for (int i = 0; i < 10; ++i) {
        getcontext(&inner);
        inner.uc_stack.ss_sp = stack, inner.uc_stack.ss_size = sizeof stack, inner.uc_link = &top;
        makecontext(&inner, run, 0);
        swapcontext(&top, &inner);
    }
}
"""


@test
def contexts_of_makecontext_have_whole_stacks():
    found = stacks([compile_program("contexts", CONTEXTS, "-O1", "-fno-optimize-sibling-calls")], "contexts")
    inside = [(names, end) for names, end in found if any("spin" in name for name in names)]
    assert len(inside) >= 20 and share(inside) >= 0.99, endings(inside)
    # The frame pointer that getcontext() kept is main's: the context doesn't go on there.
    assert all(any("run" in name for name in names) and "main" not in names for names, _ in inside), inside[:3]


# CPython's trampoline for `-X perf`, in memory that no file is behind.
TRAMPOLINE = r"""
#include <cstring>
#include <ctime>
#include <sys/mman.h>
__attribute__((noinline)) static long spin(long, long, long, void *) {
    for (clock_t end = clock() + CLOCKS_PER_SEC * 4 / 10; clock() < end;)
        for (volatile int i = 0; i < 10000; i = i + 1) {
        }
    return 7;
}
int main() {
#if defined(__x86_64__)
    const unsigned char code[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3};
#else
    const unsigned code[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0060, 0xa8c17bfd, 0xd65f03c0};
#endif
    char *at = static_cast<char *>(mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    memcpy(at, code, sizeof code);
    mprotect(at, 65536, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(at, at + sizeof code);
    using F = long (*)(long, long, long, long (*)(long, long, long, void *));
    return reinterpret_cast<F>(at)(1, 2, 3, reinterpret_cast<long (*)(long, long, long, void *)>(spin)) == 7 ? 0 : 1;
}
"""


@test
def cpythons_trampolines_in_anonymous_memory_are_walked():
    program = without_frame_pointers("trampoline", TRAMPOLINE)
    found = stacks([program], "trampoline")
    assert share(found) >= 0.95, endings(found)


# As Java's interpreter calls (code_patterns.h): what it called returns to an address that no call stands in front of.
INTERPRETER = r"""
#include <cstring>
#include <ctime>
#include <sys/mman.h>
#if defined(__x86_64__)
asm(R"(.text
.globl interpreter, interpreter_end
interpreter: push %rbp
 mov %rsp, %rbp
 sub $32, %rsp
 mov %rsp, -16(%rbp)
 lea 2f(%rip), %rax
 push %rax
 jmp 1f
 .balign 32
1: push %rbp
 mov %rsp, %rbp
 call *%rcx
 xor %edx, %edx
 pop %rbp
 ret
 .balign 32
2: mov -16(%rbp), %rsp
 movq $0, -16(%rbp)
 leave
 ret
interpreter_end:
)");
#else
asm(R"(.text
.globl interpreter, interpreter_end
interpreter: sub sp, sp, #48
 stp x29, x30, [sp, #32]
 str x20, [sp]
 add x29, sp, #32
 mov x9, sp
 str x9, [sp, #16]
 adr x30, 2f
 b 1f
1: stp x29, x30, [sp, #-16]!
 mov x29, sp
 blr x3
 mov x1, #0
 ldp x29, x30, [sp], #16
 ret
2: ldur x20, [x29, #-16]
 stur xzr, [x29, #-16]
 ldr x20, [sp]
 ldp x29, x30, [sp, #32]
 add sp, sp, #48
 ret
interpreter_end:
)");
#endif
extern "C" const char interpreter[], interpreter_end[];
__attribute__((noinline)) static long spin(long, long, long, void *) {
    for (clock_t end = clock() + CLOCKS_PER_SEC * 4 / 10; clock() < end;)
        for (volatile int i = 0; i < 10000; i = i + 1) {
        }
    return 7;
}
int main() {
    const auto size = static_cast<unsigned long>(interpreter_end - interpreter);
    char *at = static_cast<char *>(mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    memcpy(at + 64, interpreter, size);
    mprotect(at, 65536, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(at, at + 64 + size);
    using F = long (*)(long, long, long, long (*)(long, long, long, void *));
    return reinterpret_cast<F>(at + 64)(1, 2, 3, spin) == 7 ? 0 : 1;
}
"""


@test
def interpreters_that_jump_to_what_they_call_are_walked():
    program = without_frame_pointers("interpreter", INTERPRETER)
    found = stacks([program], "interpreter")
    assert share(found) >= 0.95, endings(found)
    whole = [names for names, _ in found if "spin(long, long, long, void*)" in names]
    assert whole and all("main" in names for names in whole), whole[:2]


def java_that_runs(found):
    """Without the start of the virtual machine: JLI_Launch's paths and create_vm()'s callers have more than the 16 KiB that are copied of a
    stack whose process has no tables yet. How long that takes depends on whether the archive of classes has to be moved, by the machine."""
    start = ("JLI_Launch", "LoadJavaVM", "Threads::create_vm")
    return [(names, end) for names, end in found if not any(name.startswith(start) for name in names)]


@test(long=True)
def javas_frames_are_walked_with_the_flag_and_without():
    if not shutil.which("java") or not shutil.which("javac"):
        raise Skip("needs a JDK")
    with open(path("Hot.java"), "w") as f:
        f.write("public class Hot { static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n"
                "static int map(int n) { var m = new java.util.HashMap<Integer, String>(); for (int i = 0; i < n; i++) m.put(i, \"k\" + i); "
                "return m.hashCode(); }\n"
                "public static void main(String[] a) { int s = 0; for (int n = Integer.parseInt(a[0]); n > 0; n--) s += fib(22) + map(999); "
                "System.out.println(s); } }\n")
    subprocess.run(["javac", "-d", WORK, path("Hot.java")], check=True)
    java = ["java", "-XX:-UsePerfData", "-cp", WORK]
    # A second or so each, by work and not by the clock: what the virtual machine has compiled in a process's last moments is gone with it, and
    # on a busy machine it would compile until the end.
    def found_of(work, *flags):
        found = stacks([*java, *flags, "Hot", work], "java")
        return java_that_runs(since_learnt(found, lambda names: any(name.startswith(("Hot.", "Interpreter")) for name in names)))

    for work, *flags in (["4000"], ["300", "-Xint"], ["4000", "-XX:TieredStopAtLevel=1"]):
        found = found_of(work, "-XX:+PreserveFramePointer", *flags)
        assert share(found) >= 0.95, (flags, endings(found))
    for work, *flags in (["4000"], ["300", "-Xint"]): # by what the virtual machine says of its code, from stacks that were copied
        found = found_of(work, *flags)
        assert share(found) >= 0.9, (flags, endings(found))


@test
def nodes_built_in_functions_are_walked():
    node = shutil.which("node")
    if not node:
        raise Skip("needs node")
    with open(path("hot.js"), "w") as f:
        f.write("function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }\n"
                "for (const start = process.cpuUsage(); process.cpuUsage(start).user < 1.5e6;) { fib(20); JSON.parse(JSON.stringify([...Array(99).keys()])) }")
    for options in ([], ["--perf-basic-prof", "--interpreted-frames-native-stack"]):
        found = stacks([node, *options, path("hot.js")], "node MainThread")
        assert share(found) >= 0.95, endings(found)


@test
def pythons_perf_trampolines_are_walked():
    pythons = [p for p in glob.glob("/usr/bin/python3.1[2-9]") + glob.glob("/root/.pyenv/versions/3.1[2-9]*/bin/python3")
               if subprocess.run([p, "-X", "perf", "-c", ""], capture_output=True).returncode == 0]
    if not pythons:
        raise Skip("needs Python 3.12 or newer")
    code = "import time\ndef f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nend = time.process_time() + 1.5\nwhile time.process_time() < end: f(16)\n"
    comm = os.path.basename(pythons[0])
    found = stacks([pythons[0], "-X", "perf", "-c", code], comm)
    assert share(found) >= 0.95, endings(found)
    assert any(name.startswith("py::") for names, _ in found for name in names), found[:2]


@test
def gos_assembly_is_walked_by_gos_own_table():
    go = shutil.which("go")
    if not go:
        raise Skip("needs Go")
    with open(path("hash.go"), "w") as f:
        # Little data: Go has it in main's frame, and of stacks before the process has tables 16 KiB are copied.
        f.write("package main\nimport (\"crypto/sha256\"; \"time\")\n"
                "func main() { b := make([]byte, 4096)\nfor e := time.Now().Add(1500 * time.Millisecond); time.Now().Before(e); "
                "{ s := sha256.Sum256(b); b[0] = s[0] } }\n")
    subprocess.run([go, "build", "-o", path("gohash"), path("hash.go")], check=True, cwd=WORK, capture_output=True,
                   env={**os.environ, "GOFLAGS": "-ldflags=-s", "CGO_ENABLED": "0"})
    found = stacks([path("gohash")], "gohash")
    assert share(found) >= 0.95, endings(found)
    # crypto/sha256.block; since Go 1.24 crypto/internal/fips140/sha256.blockSHANI and its like.
    hashing = [names for names, _ in found if names and "/sha256.block" in names[0]]
    assert hashing and all("main.main" in names for names in hashing), found[:2]


# Each for half a second at most; {data} is a file of text, which is also their input.
PROGRAMS = r"""
python3 -c "sum(i * i % 7 for i in range(9000000))"
perl -e "for (1..9000000) { $x += $_ % 7 }"
bash -c "for ((i = 0; i < 900000; i++)); do ((x += i % 7)); done"
mawk "BEGIN { for (i = 0; i < 9000000; i++) x += i % 7 }"
ruby -e "9000000.times { |i| i % 7 }"
php -r "for ($i = 0; $i < 90000000; $i++) $x = $i % 7;"
node -e "for (let i = 0, x = 0; i < 1e9; i++) x += i % 7"
sort {data}
shuf {data}
xz -kc {data}
gzip -9c {data}
bzip2 -kc {data}
zstd -15 -qc {data}
sha256sum {data}
md5sum {data}
b2sum {data}
sha512sum {data}
openssl dgst -sha3-512 {data}
openssl speed -seconds 1 aes-256-gcm
base64 -w 3 {data}
od {data}
wc -mwL {data}
sed -E "s/([0-9])[a-f]*7/x/g" {data}
grep -E "([0-9a-f])\1\1" {data}
fold -w 5 {data}
fmt {data}
pr {data}
expand {data}
rev {data}
seq 1 90000000
git hash-object --stdin
sqlite3 :memory: "with recursive c(x) as (values(1) union all select x + 1 from c where x < 9000000) select sum(x % 7) from c"
jq -n "[range(900000)] | add"
bc
strings -n 2 {data}
objdump -d {libc}
readelf -a -W {libc}
find / -xdev -name "*q7"
uniq -c {data}
cut -c 2-5 {data}
"""


def programs():
    data = path("doctor-data")
    if not os.path.exists(data):
        with open(data, "w") as f:
            state = 1
            lines = []
            for _ in range(100000):
                state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
                lines.append(f"{state >> 20:x}\n")
            f.writelines(lines * 30)
    libc = next(iter(glob.glob("/lib/*/libc.so.6")), data)
    for line in PROGRAMS.strip().splitlines():
        name, *args = shlex.split(line)
        if shutil.which(name):
            yield name, [shutil.which(name), *(a.replace("{data}", data).replace("{libc}", libc) for a in args)], data


@test(long=True)
def doctor_promises_what_a_profile_shows():
    if not has_json():
        raise Skip("this build writes no JSON")
    looked, broken = 0, []
    script = path("doctor-programs")
    commands = list(programs())
    with open(script, "w") as f:
        for _, args, data in commands:
            f.write(f"timeout 0.5 {shlex.join(args)} <{data} >/dev/null 2>&1\n")
        f.write(f"{RB} doctor >/dev/null 2>&1\n" * 2)
    good("profile", "-F", "999", "--json", "-q", "-o", path("doctor-profile"), "--", "sh", script, timeout=120, cwd=WORK)
    by_comm = {}
    # What was never walked, as the process was too new or at its end, or had just mapped the code, says nothing of the file.
    of_the_process = (None, "no_process", "no_mapping", "unreadable")
    for row in rows("doctor-profile"):
        if row["type"] == "sample" and row.get("user_end") not in of_the_process:
            by_comm.setdefault(row["comm"], []).append(row["user_end"])
    for name, binary in [(n, a[0]) for n, a, _ in commands] + [("rawbpf", RB)]:
        file = os.path.realpath(binary)
        found = by_comm.get(os.path.basename(file)[:15]) or by_comm.get(name[:15]) or []
        if len(found) < 20:
            continue
        module = [json.loads(line) for line in good("doctor", file, "--json").out.splitlines()][1]
        whole = "show whole stacks" in module["outlook"]
        roots = found.count("root") / len(found)
        looked += 1
        # So few samples, half of them of a start where the machine is busy, tell the share to two standard deviations: 4 % of a hundred stacks.
        unsure = 2 * math.sqrt(0.95 * 0.05 / len(found))
        if roots < 0.95 - unsure if whole else roots > 0.95 + unsure:
            broken.append(f"{name}: {module['outlook']} But of {len(found)} stacks {roots:.0%} are whole.")
    assert not broken, "\n".join(broken)
    assert looked >= min(30, len(commands) - 4), f"only {looked} of {len(commands)} programs ran long enough"


SPINNING = r"""
#include <cstdlib>
#include <ctime>
#include <sys/prctl.h>
#include <unistd.h>
extern "C" __attribute__((noinline)) int spin(int n) { volatile int x = 0; for (int i = 0; i < n; ++i) x = x + i; return x; }
extern "C" __attribute__((noinline)) int middle(int n) { return spin(n) + 1; }
extern "C" __attribute__((noinline)) int outer(int n) { return middle(n) + 1; }
int main(int count, char **words) {
    if (count > 2) unlink(words[0]);
    prctl(PR_SET_NAME, "pathless"); // of a file in memory kernels make different ones
    timespec now, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    do {
        outer(2000000); // some milliseconds: a busy virtual machine spends a tenth of them in a call that comes each 0.2 ms
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while (now.tv_sec + now.tv_nsec * 1e-9 < end.tv_sec + end.tv_nsec * 1e-9 + std::atof(words[1]));
}
"""


@test
def programs_that_no_path_leads_to():
    """A file that is deleted while it runs, and one that was in memory only: both have tables and names."""
    program = compile_program("pathless", SPINNING, "-fomit-frame-pointer", "-fno-optimize-sibling-calls")
    in_memory = ("import os, sys; f = os.memfd_create('pathless'); os.write(f, open(sys.argv[1], 'rb').read()); "
                 "os.execve(f, sys.argv[1:], os.environ)")
    shutil.copy(program, path("unlinked"))
    for args in ([path("unlinked"), "1", "unlink"], ["python3", "-c", in_memory, program, "1"]):
        found = stacks(args, "pathless")
        whole = [names for names, end in found if end == "root" and names[:3] == ["spin", "middle", "outer"] and "main" in names]
        assert len(whole) >= 0.9 * len(found), (args, endings(found), found[:3])


@test
def captures_of_programs_that_no_path_leads_to():
    """A report finds neither file: the capture brings their names along. Cut off before them, the report says why it has none."""
    program = compile_program("pathless", SPINNING, "-fomit-frame-pointer", "-fno-optimize-sibling-calls")
    in_memory = ("import os, sys; f = os.memfd_create('pathless'); os.write(f, open(sys.argv[1], 'rb').read()); "
                 "os.execve(f, sys.argv[1:], os.environ)")
    shutil.copy(program, path("unlinked-captured"))
    for args in ([path("unlinked-captured"), "1", "unlink"], ["python3", "-c", in_memory, program, "1"]):
        capture = path("pathless.rbpf")
        good("profile", "-F", "499", "-q", "--record", capture, "--", *args, timeout=60)
        r = run("report", capture, "-f", "folded")
        assert r.code == 0 and "isn't here" not in r.err and "in memory" not in r.err, r.err
        counts = [(line.rpartition(" ")[0], int(line.rpartition(" ")[2])) for line in r.out.splitlines()]
        whole = sum(n for stack, n in counts if re.search(r";main;(.*;)?outer;middle;spin(;|$)", stack))
        others = sum(n for stack, n in counts if stack.startswith("python3;"))
        assert whole >= 20 and whole >= 0.9 * (sum(n for _, n in counts) - others), (whole, others, r.out[:2000])
    data = open(capture, "rb").read()
    with open(capture, "wb") as f:
        f.write(data[:len(data) * 2 // 3])  # the names stand at the end
    r = run("report", capture, "-f", "folded")
    assert "/memfd:pathless (deleted) was a file in memory, and the capture ends before the names" in r.err, r.err
