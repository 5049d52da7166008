"""Whoever is traced can't hurt rawbpf: what others write has a bound in time, memory and bytes of output."""
import os
import subprocess
import sys

from harness import *

# A program that writes a name of any length for the code that it makes, and runs it in a stack of a hundred frames.
JIT_NAME = r'''
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv) {
    long n = atol(argv[1]);
    unsigned char *p = (unsigned char *)mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* push rbp; mov rbp,rsp; dec rdi; je 1f; call itself; pop rbp; ret; 1: mov ecx,200000000; 2: dec ecx; jne 2b; pop rbp; ret */
    const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x74, 0x07, 0xe8, 0xf2, 0xff, 0xff, 0xff, 0x5d, 0xc3,
                                  0xb9, 0x00, 0xc2, 0xeb, 0x0b, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
    memcpy(p, code, sizeof code);
    char path[64];
    sprintf(path, "/tmp/perf-%d.map", getpid());
    FILE *f = fopen(path, "w");
    fprintf(f, "%lx 100 ", (long)p);
    for (long i = 0; i < n; ++i) fputc("A\x1b[2J\xff"[i % 6], f);
    fputc('\n', f);
    fclose(f);
    ((void (*)(long))p)(100);
    unlink(path);
}
'''


def measured(*args):
    """Runs rawbpf; its exit status and the most memory that it held, in bytes. By a process between, since Linux counts what the one
    that forked held, too."""
    between = "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; " \
              "print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    r = subprocess.run([sys.executable, "-c", between, RB, *args], capture_output=True, text=True)
    code, kilobytes = r.stdout.split()[-2:]
    return int(code), int(kilobytes) << 10


def check_output(form, status, memory):
    assert status == 0 and memory < 64 << 20, (form, status, memory)
    size = os.path.getsize(path("out"))
    assert 0 < size < 10 << 20, (form, size)
    with open(path("out"), "rb") as f:
        raw = f.read()
    raw.decode("utf-8")
    assert b"\x1b" not in raw, form


TEXT_FORMATS = ("json", "folded", "svg", "top", "perf-script", "speedscope")


@test
def a_jits_name_of_any_length():
    if os.uname().machine != "x86_64" or os.geteuid() != 0:
        raise Skip("the program's code is x86_64's; profiling needs root")
    subprocess.run(["cc", "-O1", "-w", "-x", "c", "-", "-o", path("jit_name")], input=JIT_NAME.encode(), check=True)
    for form in TEXT_FORMATS[:2]:
        check_output(form, *measured("profile", "-q", "-F", "99", "-f", form, "-o", path("out"), "--", path("jit_name"), "20000000"))


def number(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def text_of(value):
    return number(len(value)) + value


def record(kind, payload):
    return bytes([kind]) + number(len(payload)) + payload


def capture(name, depth, samples):
    """A capture in which one place with that name is in every frame (programs/profile/capture.cpp has the form)."""
    head = text_of(b"0.1.0") + text_of(b"6.1") + text_of(b"x86_64") + number(2) + number(1) + number(1) + number(99000) + number(1) + text_of(b"x")
    out = b"RAWBPFC\1" + record(1, head) + record(3, number(0) + number(0) + number(4096) + number(4096) + number(7))
    for caller in range(depth):
        out += record(4, number(caller) + number(0))
    out += record(5, name[:64])
    for _ in range(samples):
        out += record(6, number(2) + number(7) + number(7) + number(0) + number(0) + number(16 * depth) + number(0) + number(depth) + number(0) + number(0))
    out += record(7, number(0) + text_of(name) + number(0) + text_of(name))
    return out + record(9, number(samples) * 2 + number(0) * 12 + number(0))


@test
def a_captures_names_of_any_length():
    with open(path("bomb.rec"), "wb") as f:
        f.write(capture(b"A\x1b[2J\xff\n;" * 500000, 200, 3))
    for form in TEXT_FORMATS:
        check_output(form, *measured("report", "-q", "-f", form, "-o", path("out"), path("bomb.rec")))
