"""The program whose lines the tests know, with debug info, and a capture of it."""
import os
import subprocess

from harness import *


def needs_lines():
    """Skips where this build has no debug info's reader; the program whose lines the tests know, with debug info."""
    if lacks("lines (libdw)"):
        raise Skip("this build was made without libdw")
    if not os.path.exists(path("draw")):
        with open(path("draw.cpp"), "w") as f:
            f.write("""#include <cstdio>
static inline __attribute__((always_inline)) long square(long x) {
    long r = 1;
    for (long i = 1; i < 3000; ++i) r = r * x + i / (r | 1); // line 4
    return r;
}
__attribute__((noinline)) long area(long n) {
    long all = 0;
    for (long i = 0; i < n; ++i) all ^= square(i); // line 9
    return all;
}
int main() { for (int i = 0; i < 60; ++i) std::printf("%ld\\n", area(1000 + i)); }
""")
        subprocess.run([CXX, "-O2", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id", path("draw.cpp"), "-o", path("draw")], check=True)
        good("profile", "--freq", "499", "--record", path("draw.rec"), "-o", "/dev/null", "-f", "folded", "--", path("draw"))
    return path("draw")
