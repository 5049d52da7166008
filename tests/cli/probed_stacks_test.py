"""Stacks through what probes change in a program: an instruction that the kernel runs elsewhere, a return address that it replaced."""
import os
import subprocess

from harness import *
from user_stacks import endings

PROBED = r"""
#include <cstdio>
#include <cstdlib>
#include <ctime>
extern "C" long stepped(long);
#if defined(__x86_64__)
asm(R"(.text
.globl stepped
.type stepped, @function
stepped: .cfi_startproc
 mov %rdi, %rax
 add $1, %rax
 ret
 .cfi_endproc
.size stepped, .-stepped
)");
#else
asm(R"(.text
.globl stepped
.type stepped, %function
stepped: .cfi_startproc
 add x0, x0, #1
 ret
 .cfi_endproc
.size stepped, .-stepped
)");
#endif
extern "C" __attribute__((noinline)) long outer(long n) { for (long i = 0; i < n; ++i) n += stepped(i) & 1; return n; }
int main() {
    std::puts("runs");
    std::fflush(stdout);
    for (const std::time_t end = std::time(nullptr) + 60; std::time(nullptr) < end;) outer(1000);
}
"""


@test
def stacks_that_begin_in_a_probed_instruction():
    """The kernel runs it elsewhere, in a page without tables, and most of the time goes there."""
    program = compile_program("stepped", PROBED, "-fomit-frame-pointer")
    spins = subprocess.Popen([program], stdout=subprocess.PIPE)
    tracer = None
    try:
        spins.stdout.readline()
        tracer, is_ready = until_ready("trace", f"uprobe:{program}:stepped", "--count", "-q", "-p", str(spins.pid), "-o", "/dev/null",
                                       stderr=subprocess.PIPE)
        if not is_ready:
            raise Skip(tracer.stderr.read().decode())
        while "[uprobes]" not in open(f"/proc/{spins.pid}/maps").read():
            assert tracer.poll() is None, tracer.stderr.read()
            if spins.poll() is not None:
                raise Skip("this kernel does itself what the instruction does")
        good("profile", "-F", "499", "--json", "-q", "-o", path("stepped.json"), "-p", str(spins.pid), "-d", "1")
    finally:
        for p in (tracer, spins):
            if p:
                p.terminate()
                p.wait()
    found = [(stack_names(r), r["user_end"]) for r in rows("stepped.json") if r["type"] == "sample" and r.get("user_end")]
    whole = [names for names, end in found if end == "root" and names[0] in ("stepped", "outer") and "main" in names]
    assert len(found) >= 20 and len(whole) >= 0.95 * len(found), (endings(found), found[:3])


HELD = r"""
#include <cstdlib>
#include <ctime>
#include <cstdio>
#include <unistd.h>
static volatile long sum;
static double used() { timespec now; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); return now.tv_sec + now.tv_nsec * 1e-9; }
extern "C" __attribute__((noinline)) void busy() { for (const double end = used() + 0.004; used() < end;) for (int i = 0; i < 10000; ++i) sum += i; }
extern "C" __attribute__((noinline)) void nap() { usleep(2000); sum += 1; }
extern "C" __attribute__((noinline)) void held() { busy(); nap(); sum += 1; }
extern "C" __attribute__((noinline)) void around() { held(); sum += 1; }
int main() {
    std::puts("runs");
    std::fflush(stdout);
    for (const std::time_t end = std::time(nullptr) + 120; std::time(nullptr) < end;) around();
}
"""


@test(long=True)
def stacks_through_functions_whose_returns_somebody_else_probes():
    """The kernel has put its own address in the place of the return address: whoever profiles walks on from the one it kept."""
    program = compile_program("held", HELD, "-fomit-frame-pointer", "-fno-optimize-sibling-calls")
    runs = subprocess.Popen([program], stdout=subprocess.PIPE)
    tracer = None
    try:
        runs.stdout.readline()
        tracer, is_ready = until_ready("trace", f"uretprobe:{program}:held", f"uretprobe:{program}:around", "--count", "-q", "-p",
                                       str(runs.pid), "-o", "/dev/null", stderr=subprocess.PIPE)
        if not is_ready:
            raise Skip(tracer.stderr.read().decode())
        while "[uprobes]" not in open(f"/proc/{runs.pid}/maps").read():
            assert tracer.poll() is None, tracer.stderr.read()
            assert runs.poll() is None, runs.returncode
        ways = [([], "busy"), (["-p", str(runs.pid)], "busy")]
        if os.path.exists("/sys/kernel/btf/vmlinux"):
            ways += [(["--off-cpu"], "nap"), (["--off-cpu", "-p", str(runs.pid)], "nap")]
        for how, leaf in ways:
            rate = [] if "--off-cpu" in how else ["-F", "499"]
            good("profile", *rate, "--json", "-q", "-o", path("held.json"), *how, "-d", "3", timeout=60)
            found = [(stack_names(r), r["user_end"]) for r in rows("held.json")
                     if r["type"] in ("sample", "wait") and r["pid"] == runs.pid and r.get("user_end")]
            found = [(names, end) for names, end in found if leaf in names]
            whole = [end == "root" and names[names.index(leaf):][:3] == [leaf, "held", "around"] and "main" in names
                     for names, end in found]
            # A process's first stacks may be copies, in which nobody finds what stood there.
            whole = whole[whole.index(True):] if True in whole else []
            assert len(whole) >= 20 and sum(whole) >= 0.95 * len(whole), (how, endings(found), len(whole), len(found), found[:3])
    finally:
        for p in (tracer, runs):
            if p:
                p.terminate()
                p.wait()
