/* What the profiler's benchmarks profile. Built with frame pointers.
 *
 *   workload split SECONDS    75 % of the time in three_quarters(), 25 % in one_quarter(): both call the same work, 3 : 1
 *   workload deep             burns a CPU for ever, 16 calls deep, every third round in the kernel
 *   workload exit             ends at once: an exec and an exit
 *   workload threads N SECONDS
 *                             N threads that sleep most of the time and burn a millisecond now and then, half a CPU together;
 *                             prints the seconds of CPU time spent
 *   workload children N       N children, one after the other, that burn two milliseconds each; prints the seconds
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
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

static double clock_now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
static double now(void) { return clock_now(CLOCK_MONOTONIC); }

KEEP void burn(double cpu_seconds) {
    const double end = clock_now(CLOCK_THREAD_CPUTIME_ID) + cpu_seconds;
    while (clock_now(CLOCK_THREAD_CPUTIME_ID) < end) work(1);
}

static double run_until;
static int thread_count;

static void *sleeper(void *number) {
    unsigned seed = (unsigned)(uintptr_t)number;
    while (now() < run_until) { /* 1 ms in every 2 ms of all the threads together */
        usleep((useconds_t)(rand_r(&seed) % 4000 * (unsigned)thread_count));
        if (now() < run_until) burn(0.001);
    }
    return NULL;
}

static void threads(int count, double seconds) {
    pthread_t *ids = calloc((size_t)count, sizeof *ids);
    if (!ids) exit(1);
    thread_count = count;
    run_until = now() + seconds;
    for (int i = 0; i < count; ++i)
        if (pthread_create(&ids[i], NULL, sleeper, (void *)(uintptr_t)(i + 1)) != 0) exit(1);
    for (int i = 0; i < count; ++i) pthread_join(ids[i], NULL);
    printf("%.3f\n", clock_now(CLOCK_PROCESS_CPUTIME_ID));
}

static void children(int count) {
    for (int i = 0; i < count; ++i) {
        const pid_t child = fork();
        if (child < 0) exit(1);
        if (child == 0) {
            burn(0.002);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    const double system = (double)used.ru_stime.tv_sec + (double)used.ru_stime.tv_usec / 1e6;
    printf("%.3f\n", (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec / 1e6 + system);
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
    } else if (strcmp(what, "threads") == 0 && argc > 3) {
        threads(atoi(argv[2]), atof(argv[3]));
    } else if (strcmp(what, "children") == 0 && argc > 2) {
        children(atoi(argv[2]));
    }
    return 0;
}
