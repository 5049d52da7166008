/* What the profiler's benchmarks profile. Built with frame pointers.
 *
 *   workload split SECONDS    75 % of the time in three_quarters(), 25 % in one_quarter(): both call the same work, 3 : 1
 *   workload deep             burns a CPU for ever, 16 calls deep, every third round in the kernel
 *   workload exit             ends at once: an exec and an exit
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))

static volatile uint64_t sink;

static inline __attribute__((always_inline)) void work(int units) {
    uint64_t x = sink | 1;
    for (int i = 0; i < units * 20000; ++i) x = x * 6364136223846793005u + 1442695040888963407u;
    sink = x;
}

KEEP void three_quarters(void) { work(3); }
KEEP void one_quarter(void) { work(1); }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

KEEP int dig(int depth, int zero, char *page) {
    int got = 0;
    if (depth == 0) {
        work(1);
        if (zero >= 0) got = (int)read(zero, page, 65536);
    } else {
        got = dig(depth - 1, zero, page) + 1;
    }
    sink += (uint64_t)got;
    return got;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "split") == 0) {
        const double end = now() + (argc > 2 ? atof(argv[2]) : 3);
        while (now() < end) {
            three_quarters();
            one_quarter();
        }
    } else if (strcmp(what, "deep") == 0) {
        static char page[65536];
        const int zero = open("/dev/zero", O_RDONLY);
        for (unsigned i = 0;; ++i) dig(14, i % 3 == 0 ? zero : -1, page);
    }
    return 0;
}
