"""Who is looked at from the first moment on: what runs already, and what it starts.

A profile of a whole machine is short here, and only the samples of the test's own processes are judged.
"""
import os
import shutil
import signal
import subprocess
import time

from harness import *

# Enough of a compiler's work for some seconds, without headers.
TEMPLATES = """
template <int N> struct Fib { enum : unsigned long long { value = Fib<N - 1>::value + Fib<N - 2>::value }; };
template <> struct Fib<0> { enum : unsigned long long { value = 0 }; };
template <> struct Fib<1> { enum : unsigned long long { value = 1 }; };
#define F(n) int f##n(int a) { for (int i = 0; i < a; ++i) a ^= (a * n) >> (i & 7); return a + int(Fib<40 + n>::value); }
#define T(n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7) F(n##8) F(n##9)
T(1) T(2) T(3) T(4) T(5) T(6) T(7) T(8) T(9) T(10) T(11) T(12) T(13) T(14) T(15) T(16) T(17) T(18) T(19) T(20)
"""


class Loops:
    """Shells that run a command again and again, in a session of their own; ended with it."""

    def __init__(self, count, command):
        self.shells = [subprocess.Popen(["sh", "-c", f"while :; do {command}; done"], start_new_session=True,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for shell in self.shells:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()

    def session_of(self, pid):
        try:
            return os.getsid(pid) in [shell.pid for shell in self.shells]
        except OSError:
            return None


@test
def profile_beside_compilers_has_roots():
    """Three seconds of a busy machine, the first command that people try: what runs already has its tables before the clocks."""
    if not shutil.which(CXX):
        raise Skip("no compiler")
    with open(path("templates.cpp"), "w") as f:
        f.write(TEMPLATES)
    with Loops(2, f"{CXX} -O2 -c {path('templates.cpp')} -o /dev/null"):
        time.sleep(0.5)
        good("profile", "-d", "3", "-f", "json", "-o", path("busy.json"))
    ends = {}
    for sample in rows("busy.json"):
        if sample["type"] == "sample" and sample["comm"] == "cc1plus" and sample.get("user_end"):
            ends[sample["user_end"]] = ends.get(sample["user_end"], 0) + 1
    total = sum(ends.values())
    assert total >= 50, ends
    assert ends.get("root", 0) + ends.get("depth", 0) >= 0.95 * total, ends
    assert ends.get("no_process", 0) <= 0.02 * total, ends


FAMILY = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/wait.h>
#include <sys/prctl.h>
extern "C" __attribute__((noinline)) long handle(long n) { volatile long sum = 0; while (n-- > 0) sum = sum + n; return sum; }
static void work(double seconds, const char *name) {
    prctl(PR_SET_NAME, name);
    prctl(PR_SET_PDEATHSIG, 9);
    timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do { handle(1000000); usleep(2000); clock_gettime(CLOCK_MONOTONIC, &now); }
    while (now.tv_sec - begin.tv_sec + (now.tv_nsec - begin.tv_nsec) / 1e9 < seconds);
    _exit(0);
}
int main() { // like a server's first process: all it does is to start others, some before and some later
    if (fork() == 0) work(60, "early");
    getchar();
    for (int i = 0; i < 10; ++i) { if (fork() == 0) work(0.2, "late"); usleep(100000); }
    while (wait(nullptr) > 0) {}
}
"""


def family():
    program = compile_program("forking", FAMILY)
    return program, subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def look_at_family(*args):
    """A tool looks at the first process, which starts more when the tool is ready. Returns what went to stderr."""
    program, parent = family()
    try:
        tool, _ = until_ready(*[a.format(program=program, pid=parent.pid) for a in args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        parent.stdin.write(b"go\n")
        parent.stdin.flush()
        err = tool.communicate(timeout=30)[1]
        assert tool.returncode == 0, err
        return err
    finally:
        parent.kill()
        parent.wait()


def names(name, kind):
    return {line["comm"] for line in rows(name) if line["type"] == kind}


@test
def profile_takes_the_children_along():
    look_at_family("profile", "-F", "499", "-d", "1.5", "-p", "{pid}", "-f", "json", "-o", path("forking.json"))
    assert names("forking.json", "sample") >= {"early", "late"}, names("forking.json", "sample")
    look_at_family("profile", "-F", "499", "-d", "1.5", "-p", "{pid}", "--no-children", "-f", "json", "-o", path("alone.json"))
    assert not names("alone.json", "sample") & {"early", "late"}, names("alone.json", "sample")
    look_at_family("profile", "-F", "499", "-d", "1.5", "-p", "{pid}", "--comm", "late", "-f", "json", "-o", path("late.json"))
    assert names("late.json", "sample") == {"late"}, names("late.json", "sample")


@test
def trace_takes_the_children_along():
    look_at_family("trace", "uprobe:{program}:handle", "-d", "1.5", "-p", "{pid}", "-f", "json", "-o", path("calls.json"))
    events = [line for line in rows("calls.json") if line.get("comm")]
    assert {e["comm"] for e in events} == {"early", "late"}, {e["comm"] for e in events}
    look_at_family("trace", "uprobe:{program}:handle", "-d", "1", "-p", "{pid}", "--no-children", "-f", "json", "-o", path("no.json"))
    assert not [line for line in rows("no.json") if line.get("comm")]


@test
def one_option_for_the_ring():
    for command in (["profile", "-d", "1"], ["trace", "uprobe:libc:malloc"], ["usdt", "trace", "/bin/true"], ["custom", "/bin/true:main"]):
        for size, words in (("512K", r"--ring: 512K isn't between 1M and 4096M"), ("8G", r"--ring: 8G isn't between 1M and 4096M"),
                            ("much", r"--ring: 'much' is no size(.|\n)*64M"), ("-1", r"--ring"), ("", r"--ring")):
            bad(2, words, *command, "--ring", size)
        bad(2, r"--no-children needs a process", *command, "--no-children")
    r = good("profile", "-d", "0.2", "--ring", "3M", "-o", "/dev/null", "--", "sleep", "0.1")
    assert re.search(r"4\.[0-9] MB of ring", r.err), r.err


@test
def who_else_is_slowed_is_said():
    r = good("trace", "uprobe:libc:getppid", "-o", "/dev/null", "--", "true")
    assert re.search(r"every process that calls these functions of libc\.so\.6 is slowed(.|\n)*--no-children", r.err), r.err
    r = good("trace", "uprobe:libc:getppid", "--no-children", "-o", "/dev/null", "--", "true")
    assert "is slowed" not in r.err, r.err


THREADS = """
#include <pthread.h>
#include <unistd.h>
static void *wait(void *) { for (int i = 0; i < 3; ++i) usleep(300000); return nullptr; }
int main() {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    static pthread_t threads[5000];
    int count = 0;
    while (count < 5000 && pthread_create(&threads[count], &small, wait, nullptr) == 0) ++count;
    while (count > 0) pthread_join(threads[--count], nullptr);
}
"""


@test
def off_cpu_takes_the_children_along():
    look_at_family("profile", "--off-cpu", "-d", "1.5", "-p", "{pid}", "-f", "json", "-o", path("waits.json"))
    assert names("waits.json", "sample") >= {"early", "late"}, names("waits.json", "sample")
    look_at_family("profile", "--off-cpu", "-d", "1", "-p", "{pid}", "--no-children", "-f", "json", "-o", path("parent.json"))
    assert not names("parent.json", "sample") & {"early", "late"}, names("parent.json", "sample")
