"""Who is looked at from the first moment on: what runs already, and what it starts.

A profile of a whole machine is short here, and only the samples of the test's own processes are judged.
"""
import os
import shutil
import signal
import subprocess
import tempfile
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
