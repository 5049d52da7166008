"""Programs with USDT probes: those of a header that others wrote and those of ours; as rawbpf and as readelf list them."""
import json
import os
import re
import shutil
import subprocess

from harness import *

USDT_PROGRAM = r"""
#include <unistd.h>
#if defined(__x86_64__)
#define R "%"
#define FLOAT "x"
#else
#define R "%x"
#define FLOAT "w"
#endif
#define PROBE(site, provider, name, semaphore, arguments, ...) \
    asm volatile("990: " site "\n.pushsection .note.stapsdt,\"?\",\"note\"\n.balign 4\n.4byte 992f-991f, 994f-993f, 3\n" \
                 "991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b, _.stapsdt.base, " semaphore "\n" \
                 ".asciz \"" provider "\"\n.asciz \"" name "\"\n.asciz \"" arguments "\"\n994: .balign 4\n.popsection\n" \
                 ".ifndef _.stapsdt.base\n.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
                 ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n" \
                 ".popsection\n.endif\n" ::__VA_ARGS__)
extern "C" {
__attribute__((section(".probes"), used)) volatile unsigned short semaphore_one = 0;
__attribute__((weak)) int counter = 5; // weak, or arm64 names an anchor in its place
__attribute__((noinline)) void work(int number, const short *memory, long wide, double real) {
    PROBE("nop", "app", "places", "semaphore_one", "-4@" R "[number] -2@%[memory] 8@" R "[wide] -4@%[seven] 4@%[counter]",
          [number] "r"(number), [memory] "m"(*memory), [wide] "r"(wide), [seven] "i"(-7), [counter] "m"(counter));
#ifdef UNSOUND
    PROBE("nop", "app", "real", "0", "8@" R "[wide] 8f@%[real] 8@" R "[wide]", [wide] "r"(wide), [real] FLOAT(real));
    PROBE("mov %[wide], %[wide]", "app", "moved", "0", "", [wide] "r"(wide));
    PROBE("nop", "a pp", "spaced", "0", "");
#endif
}
}
int main() {
    short memory = 3;
    work(1, &memory, 2, 2.5);
    try { // so that libstdc++ is there, which has probes of its own
        throw 1;
    } catch (int) {
    }
    write(1, "up\n", 3);
    pause();
}
"""


def usdt_program(name, *flags):
    return compile_program(name, USDT_PROGRAM, "-Wno-unused-result", *flags)


def readelf_probes(file, padded=False):
    """`padded`: notes whose size counts their padding; readelf shows them all, and exits with 1."""
    out = subprocess.run(["readelf", "-nW", file], capture_output=True, text=True, check=not padded).stdout
    found = re.findall(r"Provider: (.*)\n\s+Name: (.*)\n\s+Location: (\S+), Base: \S+, Semaphore: (\S+)\n\s+Arguments: ?(.*)", out)
    return [(p, n, int(l, 16), int(s, 16) or None, a.strip()) for p, n, l, s, a in found]


def usdt_rows(*args, code=0):
    r = run("usdt", *args, "--json")
    assert r.code == code, (args, r.code, r.err[-600:])
    lines = [json.loads(line) for line in r.out.splitlines()]
    assert lines[0]["type"] == "header" and lines[0]["command"][:2] == ["rawbpf", "usdt"], lines[0]
    return [l for l in lines if l["type"] == "usdt"]


def as_readelf(rows):
    number = lambda text: text and int(text, 16)  # noqa: E731
    return [(r["provider"], r["name"], number(r["address"]), number(r["semaphore"]), " ".join(a["spec"] for a in r["args"]))
            for r in rows]


INCLUDE = os.path.join(HERE, "../../programs/include")

USDT_TESTS = os.path.join(HERE, "../usdt")

USDT_COMPILERS = [("gcc", "-std=c99"), ("g++", "-std=c++11"), ("clang", "-std=c99"), ("clang++", "-std=c++11")]


def compile_probes(name, compiler, *flags, sources=("probes.c",)):
    """A program of tests/usdt that uses <rawbpf/usdt.h>; None where there is no such compiler."""
    if not shutil.which(compiler):
        return None
    language = ["-x", "c++"] if "++" in compiler else []
    files = [f if os.path.isabs(f) else os.path.join(USDT_TESTS, f) for f in sources]
    r = subprocess.run([compiler, *language, "-D_GNU_SOURCE", "-Wall", "-Wextra", "-pedantic", "-Werror", *flags, "-I", INCLUDE, *files,
                        "-o", path(name)], capture_output=True, text=True)
    if "-flto" in flags and re.search(r"LLVMgold|plugin|unable to find library|lld", r.stderr):
        return None  # this clang came without its linker
    assert r.returncode == 0, (compiler, flags, r.stderr[-1500:])
    return path(name)


# What tests/usdt/probes.c fires, in this order; None: an address.
USDT_FIRED = [
    ("none", []),
    ("constants", [5, -5, 0xffffffff, 0x123456789abcdef, 97, 1]),
    ("global", [41, 1]),
    ("unsigned_ones", [250, 65000, 4000000000, 0xfedcba9876543210, 1, 120]),
    ("signed_ones", [-5, -500, -70000, -5000000000, -3, 0x7fffffff]),
    ("real", [1.5, -2.25, 7, 2.5, 0.5]),
    ("pointers", [None, None, None, 3, 0, None]),
    ("twelve", [1, -2, 3, 4, 5, 6, 2, -1, 4, 5, 6, 7]),
    ("inlined", [1, None]), ("inlined", [2, None]), ("inlined", [3, None]),
    ("leaf", [10, 20, 30]),
    ("lazy", [42, 289]), ("lazy", [8, 289]),
    ("once", [0, 1]),
]


USDT_FIRED_CPP = USDT_FIRED + [
    ("generic", [1, 4]), ("generic", [2.5, 8]), ("generic", [None, 8]), ("generic", [200, 1]), ("generic", [-5000000000, 8]),
    ("lambda", [9, 0]),
]


def usdt_traced(*args):
    if run("usdt", "trace", "--help").code != 0:
        raise Skip("this build doesn't trace (-Dparts)")
    r = run("usdt", "trace", "--json", "-o", path("usdt-trace.json"), *args)
    if r.code == 3:
        raise Skip("needs uprobes and the rights to load programs")
    assert r.code == 0, (args, r.code, r.err[-800:])
    lines = [json.loads(line) for line in read("usdt-trace.json").splitlines()]
    return [l for l in lines if l["type"] == "call"], lines[-1], r
