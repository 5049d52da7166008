"""The program whose functions `rawbpf trace` traces, and what a trace says of it."""
import json
import os

from harness import *

TRACED_PROGRAM = r"""
#include <csetjmp>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>
#define FUNCTION extern "C" __attribute__((noinline))
static jmp_buf far_away;
FUNCTION long leaf(long a, const char *s) { asm volatile("" : : "r"(s) : "memory"); return a + 1; }
FUNCTION long mid(long a) { asm volatile(""); return leaf(a, "hello") + leaf(a + 1, "world"); }
FUNCTION long again(long a) { asm volatile(""); return a ? again(a - 1) + 1 : 0; }
FUNCTION void gone() { asm volatile(""); longjmp(far_away, 1); }
FUNCTION void leaves() { asm volatile(""); if (!setjmp(far_away)) gone(); asm volatile(""); }
FUNCTION long calls(long (*f)(long), long a) { asm volatile(""); return f(a); }
FUNCTION int work(int n) {
    long sum = 0;
    for (long i = 0; i < n; ++i) sum += mid(i);
    sum += again(3) + calls(again, 1);
    leaves();
    return (int)sum;
}
int main(int argc, char **) {
    if (argc > 1) for (;;) { leaf(1, "hello"); usleep(1000); }
    return work(3) == 19 ? 5 : 1;
}
"""


TRACED_SIG = "long,const char*"


def traced():
    """A program whose calls are known."""
    program = path("traced")
    if not os.path.exists(program):
        compile_program("traced", TRACED_PROGRAM)
    if run("trace", f"uprobe:{program}:leaf", "--count", "-q", "-d", "0.01").code == 3:
        raise Skip("needs uprobes and the rights to load programs")
    return program


def trace_events(*args, code=0):
    """The objects of a run of --json, its ledger last."""
    r = run("trace", "--json", *args)
    assert r.code == code, f"{args}: exit {r.code}: {r.err[-800:]}"
    rows = [json.loads(line) for line in r.out.splitlines()]
    assert rows[0]["type"] == "header" and rows[-1]["type"] == "ledger", r.out[:400]
    ledger = rows[-1]
    assert ledger["fired"] == ledger["shown"] + ledger["filtered"] + ledger["sampled_out"] + sum(ledger["lost"].values()), ledger
    for what in ("fired", "shown", "filtered", "sampled_out"):
        assert sum(f[what] for f in ledger["functions"].values()) == ledger[what], (what, ledger)
    return rows[1:-1], ledger
