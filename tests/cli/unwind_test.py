"""Stacks of programs without frame pointers."""
import os
import re
import subprocess
import sys
import time

from harness import *

UNWIND_SOURCE = r"""
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile unsigned sink;
static int compare(const void *a, const void *b) {
    for (int i = 0; i < 40; i++) sink = sink * 3 + 1;
    return *(const int *)a - *(const int *)b;
}
static void sort(int rounds) {
    enum { N = 20000 };
    static int v[N];
    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < N; i++) v[i] = (i * 2654435761u) >> 8;
        qsort(v, N, sizeof *v, compare);
    }
}
int main(int argc, char **argv) {
    if (argc > 2) {  // a library that comes later, with a function that calls back
        void *library = dlopen(argv[2], RTLD_NOW);
        void (*call)(void (*)(int), int) = (void (*)(void (*)(int), int))dlsym(library, "call_late");
        call(sort, atoi(argv[1]));
    } else if (atoi(argv[1]) < 0) {  // a storm
        for (int i = 0; i < -atoi(argv[1]); i++) {
            if (fork() == 0) {
                if (i % 2) execl(argv[0], argv[0], "2", (char *)0);
                sort(1);
                _exit(0);
            }
            wait(0);
        }
    } else {
        sort(atoi(argv[1]));
    }
    return sink == 1;
}
"""


LATE_SOURCE = """void call_late(void (*what)(int), int n) { volatile char room[200]; room[n % 200] = 1; what(n); room[0] = 2; }"""


def compile_frameless(name, source, *flags):
    """As distributions compile: no frame pointers, with unwind tables."""
    subprocess.run(["gcc", "-w", "-O2", "-fomit-frame-pointer", "-x", "c", "-", "-o", path(name), *flags], input=source.encode(), check=True)
    return path(name)


def reached(name, leaf, *wanted):
    """How many stacks with that leaf go through all the functions, and how many there are."""
    stacks = [stack_names(s) for s in rows(name) if s["type"] == "sample"]
    stacks = [s for s in stacks if s and s[0] == leaf]
    return sum(all(w in s for w in wanted) for s in stacks), len(stacks)


def profiled(out, *command, **kw):
    r = good("profile", "--freq", "999", "--user-stacks", "--json", "-o", path(out), *command, **kw)
    led = ledger_of(rows(out))
    if "stack_ends" not in led:
        raise Skip("needs a kernel that takes the program that unwinds: " + r.err.splitlines()[0])
    assert sum(led["stack_ends"].values()) <= led["shown"], led
    return r, led


@test
def stacks_without_frame_pointers_reach_main():
    prog = compile_frameless("sorter", UNWIND_SOURCE)
    r, led = profiled("uw.json", "--", prog, "200")
    ok, all_of = reached("uw.json", "compare", "main")
    assert all_of > 50 and ok >= 0.95 * all_of, (ok, all_of, led)
    assert led["stack_ends"]["root"] >= 0.9 * led["shown"], led
    assert_ends_are_the_ledgers([o.get("user_end") for o in rows("uw.json") if o["type"] == "sample"], led)
    assert re.search(r"stack ends +root [\d,]+", r.err), r.err
    # By frame pointers the same program's stacks don't get there, and nothing is said of tables.
    r = good("profile", "--unwind", "fp", "--freq", "999", "--user-stacks", "--json", "-o", path("fp.json"), "--", prog, "100")
    ok, all_of = reached("fp.json", "compare", "main")
    assert all_of > 20 and ok < 0.5 * all_of and "stack_ends" not in ledger_of(rows("fp.json")), (ok, all_of)
    assert not any("user_end" in o for o in rows("fp.json"))
    # A capture is named like the live profile, and keeps the reasons.
    good("profile", "--freq", "999", "--user-stacks", "--record", path("uw.rbpf"), "--", prog, "100")
    good("report", path("uw.rbpf"), "--json", "-o", path("uwr.json"))
    ok, all_of = reached("uwr.json", "compare", "main")
    assert all_of > 20 and ok >= 0.95 * all_of, (ok, all_of)
    assert rows("uwr.json")[-1]["stack_ends"]["root"] >= ok
    assert_ends_are_the_ledgers([o.get("user_end") for o in rows("uwr.json") if o["type"] == "sample"], rows("uwr.json")[-1])
    # A limit of frames is an end, too.
    _, led = profiled("deep.json", "--depth", "3", "--", prog, "50")
    assert led["stack_ends"]["depth"] >= 0.8 * led["shown"] and max(len(s["user"]) for s in rows("deep.json") if s["type"] == "sample") == 3, led


@test
def unwinding_follows_processes():
    prog = compile_frameless("sorter2", UNWIND_SOURCE)
    late = compile_frameless("liblate.so", LATE_SOURCE, "-shared", "-fPIC")
    # dlopen
    _, led = profiled("late.json", "--", prog, "100", late)
    ok, all_of = reached("late.json", "compare", "call_late", "main")
    assert all_of > 20 and ok >= 0.9 * all_of, (ok, all_of, led)
    # fork, and fork with exec: children of a few milliseconds
    _, led = profiled("storm.json", "--", prog, "-150")
    ok, all_of = reached("storm.json", "compare", "main")
    assert all_of > 50 and ok >= 0.6 * all_of, (ok, all_of, led)
    # It runs before us, its file is replaced and a library deleted meanwhile.
    p = subprocess.Popen([prog, "1000000", late])
    try:
        until(lambda: late in read(f"/proc/{p.pid}/maps"), lambda: f"process {p.pid} doesn't map {late}")
        os.remove(late)
        os.rename(compile_frameless("other-sorter", UNWIND_SOURCE.replace("N = 20000", "N = 30000"), "-O1"), prog)
        _, led = profiled("gone.json", "-p", str(p.pid), "-d", "0.8")
    finally:
        p.kill()
        p.wait()
    stacks = [s for s in rows("gone.json") if s["type"] == "sample"]
    assert len(stacks) > 20 and led["stack_ends"]["root"] >= 0.8 * len(stacks), (len(stacks), led)


@test
def stacks_of_little_memory_are_counted():
    prog = compile_frameless("sorter3", UNWIND_SOURCE)
    r, led = profiled("little.json", "--unwind-memory", "1M", "--", sys.executable, "-c", "import ctypes,sqlite3,ssl;sum(i*i for i in range(10**6))")
    assert led["shown"] > 0 and "unwind tables" in r.err, r.err


@test
def what_a_lost_walk_finds_is_one_frame():
    if os.uname().machine != "x86_64":
        raise Skip("needs a machine whose walk may turn in a circle (x86_64)")
    # A frame pointer that points at itself, and one that leads through a list: to the kernel, frames without an end.
    compile_program("astray", r"""
static unsigned long circle[2] = {(unsigned long)circle, 0x1234560}, list[400];
[[gnu::noinline]] void turning(unsigned long *pointer) {
    unsigned long n = 700000000;
    asm volatile("push %%rbp\n mov %1, %%rbp\n 1: dec %0\n jnz 1b\n pop %%rbp" : "+r"(n) : "r"(pointer) : "memory", "cc");
}
int main() {
    for (int i = 0; i + 3 < 400; i += 2) { list[i] = (unsigned long)&list[i + 2]; list[i + 1] = 0x1234560 + i; }
    turning(circle);
    turning(list);
}
""")
    good("profile", "--freq", "499", "--unwind", "fp", "--json", "-o", path("astray.json"), "--", path("astray"))
    samples = [o for o in rows("astray.json") if o["type"] == "sample" and stack_names(o)[:1] == ["turning(unsigned long*)"]]
    assert len(samples) > 20 and all([f["addr"] for f in o["user"][1:]] == ["0x1234560"] for o in samples), samples[-1:]
    degraded = rows("astray.json")[-1]["degraded"]
    assert degraded["stack_truncated"] == 0 and degraded["user_stack_ended_early"] >= len(samples), degraded
