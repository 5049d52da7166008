"""The program that reports custom traces, and `rawbpf custom` beside it while it runs."""
import os
import signal
import subprocess

from harness import *

SOURCE_CUSTOM = r"""
#include <stdint.h>
extern "C" __attribute__((noinline)) void report_trace(uint64_t id, uint64_t size) { asm volatile("" :: "r"(id), "r"(size) : "memory"); }
int main(int argc, char **argv) {
#pragma GCC unroll 1
    for (int i = 0; i < 5; i++) report_trace(0x1000 + i, 100 * i);
    return argc > 1 ? 3 : 0;
}
"""


def custom(*args, **kw):
    if run("custom", "--help").code != 0:
        raise Skip("this build has no custom traces (-Dparts)")
    if not os.path.exists(path("reporter")):
        compile_program("reporter", SOURCE_CUSTOM, "-Wl,--build-id=sha1")
    r = run("custom", *args, **kw)
    if r.code == 3:
        raise Skip(r.err.strip().splitlines()[0])
    assert r.code == 0, r.err[-800:]
    return r


class CustomRun:
    """rawbpf custom without a command, from when it is ready until it is interrupted."""
    def __init__(self, *args):
        self.p, is_ready = until_ready("custom", *args, "--json", "-o", path("beside.json"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                       text=True)
        if not is_ready:
            raise AssertionError(self.p.communicate()[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.p.send_signal(signal.SIGCONT)
            self.p.send_signal(signal.SIGINT)
        self.err = self.p.communicate(timeout=60)[1]

    def ended(self):
        assert self.p.returncode == 0, self.err
        return rows("beside.json")
