"""A process with two probes that fires them while it is traced, and a trace of it."""
import os
import signal
import subprocess
import sys
import time

from harness import *
from probes import USDT_PROGRAM

# Calls its two probes N times, or, without N, every 2 ms as long as it is traced. Prints where its semaphore is.
TICKER = USDT_PROGRAM[:USDT_PROGRAM.index('extern "C" {')] + r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#define WORD "%k"
#define BYTE "%b"
#else
#define WORD "%w"
#define BYTE "%w"
#endif
extern "C" {
__attribute__((section(".probes"), used)) volatile unsigned short semaphore_tick = 0;
__attribute__((noinline)) void tick(int n, const char *text, long length, const short *memory, unsigned char low) {
    PROBE("nop", "ticker", "tick", "semaphore_tick", "-4@" WORD "[n] 8@" R "[text] 8@" R "[length] -2@%[memory] 1@" BYTE "[low] 8@%[five]",
          [n] "r"(n), [text] "r"(text), [length] "r"(length), [memory] "m"(*memory), [low] "r"(low), [five] "i"(5));
    if (n % 2) PROBE("nop", "ticker", "odd", "semaphore_tick", "-4@" WORD "[n]", [n] "r"(n));
    else PROBE("nop", "ticker", "odd", "semaphore_tick", "8@%[ten] -4@" WORD "[n]", [n] "r"(n), [ten] "i"(10));
}
}
int main(int argc, char **argv) {
    try { // so that libstdc++ is there, which has probes of its own
        throw 1;
    } catch (int) {
    }
    static char texts[] = "onetwothree";
    const short memory[] = {-1, -300};
    const int most = argc > 1 ? atoi(argv[1]) : 0;
    if (most == 0) printf("%d %p\n", getpid(), (void *)&semaphore_tick);
    fflush(stdout);
    for (int n = 0; most == 0 || n < most; ++n) {
        if (most == 0) usleep(2000);
        if (most == 0 && !semaphore_tick) continue;
        tick(n, texts + (n % 2 ? 3 : 0), 3, &memory[n % 2], (unsigned char)(n + 250));
    }
}
"""


TICKER_TYPES = """# names and types
ticker:tick(int n, const char *text, long text_len, s16 memory, u8 low, int five)
ticker:odd(int a, int b)
"""


def ticker():
    if not os.path.exists(path("ticker")):
        compile_program("ticker", TICKER)
        with open(path("ticker.types"), "w") as f:
            f.write(TICKER_TYPES)
    return path("ticker")


class Ticking:
    """A ticker that runs, its semaphore read in its own memory."""

    def __init__(self, *prefix, program=None):
        self.process = subprocess.Popen([*prefix, program or ticker()], stdout=subprocess.PIPE, text=True)
        self.own_pid, address = self.process.stdout.readline().split()
        self.address, self.pid = int(address, 16), self.process.pid
        if prefix:  # unshare and its like start it
            with open(f"/proc/{self.pid}/task/{self.pid}/children") as f:
                self.pid = int(f.read().split()[0])

    def semaphore(self):
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as f:
            f.seek(self.address)
            return int.from_bytes(f.read(2), sys.byteorder)

    def wait_for(self, value):
        for _ in range(200):
            if self.semaphore() == value:
                return
            time.sleep(0.02)
        raise AssertionError(f"the semaphore is {self.semaphore()}, not {value}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait(10)
        self.process.stdout.close()


class Tracing:
    """rawbpf usdt trace in the background, once it is attached."""

    def __init__(self, *args, prefix=()):
        self.process, is_ready = until_ready("usdt", "trace", *args, through=prefix, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if not is_ready:
            raise AssertionError(self.process.communicate(timeout=30)[1])

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.ended()

    def ended(self):
        out, err = self.process.communicate(timeout=30)
        return Run(self.process.returncode, out, err)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end(signal.SIGKILL)


def needs_usdt_tracing():
    if os.geteuid() != 0:
        raise Skip("needs root to trace")
    r = run("usdt", "trace", ticker(), "-c", "-q", "--", ticker(), "1")
    if r.code == 3:
        raise Skip("needs uprobes: " + r.err.strip().splitlines()[-1])
    assert r.code == 0, r.err
