/* What the tracer's benchmarks trace.
 *
 *   traced calls N          N calls of leaf(), as fast as it goes; prints ns a call
 *   traced system-calls N   N times getppid(2); prints ns a call
 *   traced rate R SECONDS   R calls of leaf() a second; prints how many there were
 *   traced probes N         N times a USDT probe with three numbers and a text; prints ns each
 *   traced nops N           the same without the probe, but with a nop
 *   traced forever          a call of leaf() every 20 us
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <rawbpf/usdt.h>

/* A nop at its entry, as functions have that are made to be traced: the kernel emulates it. Many other instructions it steps
 * over, which takes twenty times as long and says nothing about a tracer. */
__attribute__((noinline, noclone, patchable_function_entry(1))) long leaf(long number, const char *text) {
    __asm__ volatile("" : : "r"(text) : "memory");
    return number + 1;
}

/* Alike but for the probe, which is a nop as long as nobody looks. */
#define EVENT(name, site)                                                                                                        \
    __attribute__((noinline, noclone)) long name(long number, int size, unsigned char low, const char *text) {                   \
        __asm__ volatile("" : : "r"(number), "r"(size), "r"(low), "r"(text) : "memory");                                         \
        site;                                                                                                                    \
        return number + size;                                                                                                    \
    }
EVENT(with_probe, RAWBPF_USDT(traced, event, number, size, low, text))
EVENT(with_nop, __asm__ volatile("nop"))

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    char text[] = "some text"; /* on a page that is there */
    const long n = argc > 2 ? atol(argv[2]) : 0;
    const double start = now();
    if (strcmp(what, "calls") == 0 && n > 0) {
        for (long i = 0; i < n; ++i) leaf(i, text);
        printf("%.2f\n", (now() - start) / (double)n);
    } else if ((strcmp(what, "probes") == 0 || strcmp(what, "nops") == 0) && n > 0) {
        long (*const event)(long, int, unsigned char, const char *) = what[0] == 'p' ? with_probe : with_nop;
        for (long i = 0; i < n; ++i) event(i, (int)(i % 1000) - 500, (unsigned char)i, text);
        printf("%.3f\n", (now() - start) / (double)n);
    } else if (strcmp(what, "system-calls") == 0 && n > 0) {
        for (long i = 0; i < n; ++i) syscall(SYS_getppid);
        printf("%.2f\n", (now() - start) / (double)n);
    } else if (strcmp(what, "rate") == 0 && argc > 3) {
        const double end = atof(argv[3]) * 1e9;
        long calls = 0;
        for (double t; (t = now() - start) < end;) {
            const long due = (long)(t * (double)n / 1e9);
            if (calls >= due) continue;
            while (calls < due) leaf(calls++, text);
        }
        printf("%ld\n", calls);
    } else if (strcmp(what, "forever") == 0) {
        for (long i = 0;; ++i) {
            leaf(i, text);
            usleep(20);
        }
    } else {
        fprintf(stderr, "traced: what?\n");
        return 2;
    }
    return 0;
}
