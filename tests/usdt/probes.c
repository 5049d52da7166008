// Every kind of argument through <rawbpf/usdt.h>; the same text is C99 and C++11. Run it, and it waits for a line, then fires
// each probe once and ends; "-" as argument: at once.
#include <rawbpf/usdt.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum color { red = 1, green = 0x7fffffff };
enum sign { minus = -3, plus = 3 };
struct point {
    int x, y;
};

#ifdef __cplusplus
enum class Wide : uint8_t { all = 200 };
enum class Far : int64_t { out = -5000000000LL };
template <class T> __attribute__((noinline)) T generic(T value) {
    RAWBPF_USDT(app, generic, value, sizeof(T));
    return value;
}
#endif

static inline __attribute__((always_inline)) int inlined(int a, const char *text) {
    (void)*(const volatile char *)text; // for kernels whose programs can't wait for a page
    RAWBPF_USDT(app, inlined, a, text);
    return a + 1;
}

// Calls nothing: what it keeps may lie below the stack pointer.
__attribute__((noinline)) static long leaf(long a, long b) {
    volatile long kept[8];
    for (int i = 0; i < 8; ++i) kept[i] = a * i;
    RAWBPF_USDT(app, leaf, a, b, kept[3]);
    long sum = 0;
    for (int i = 0; i < 8; ++i) sum += kept[i];
    return sum;
}

__attribute__((noinline)) static void unsignedly(uint8_t a, uint16_t b, uint32_t c, uint64_t d, bool e, char f) {
    RAWBPF_USDT(app, unsigned_ones, a, b, c, d, e, f);
}
__attribute__((noinline)) static void signedly(int8_t a, int16_t b, int32_t c, int64_t d, enum sign e, enum color f) {
    RAWBPF_USDT(app, signed_ones, a, b, c, d, e, f);
}
__attribute__((noinline)) static void really(float a, double b, int c) { RAWBPF_USDT(app, real, a, b, c, 2.5, 0.5f); }

static int global_number = 41;
static int costly_calls;
__attribute__((noinline)) static int costly(int a) {
    ++costly_calls;
    return a * 2;
}

__attribute__((noinline)) static void pointers(const char *text, const struct point *p) {
    char built[16]; // never read by the program itself
    strcpy(built, text);
    strcat(built, "!");
    RAWBPF_USDT(app, pointers, text, built, p, p->x, (void *)0, "literal");
}

__attribute__((noinline)) static void twelve(int a, long b, short c, char d, unsigned e, unsigned long f) {
    RAWBPF_USDT(app, twelve, a, b, c, d, e, f, a + 1, b + 1, c + 1, d + 1, e + 1, f + 1);
}

int main(int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "-") != 0) {
        puts("up");
        fflush(stdout);
        if (getchar() == EOF) return 1;
    }
    RAWBPF_USDT(app, none);
    RAWBPF_USDT(app, constants, 5, -5, 0xffffffffU, 0x123456789abcdefLL, 'a', true);
    RAWBPF_USDT(app, global, global_number, global_number > 40);
    unsignedly(250, 65000, 4000000000U, 0xfedcba9876543210U, true, 'x');
    signedly(-5, -500, -70000, -5000000000LL, minus, green);
    really(1.5f, -2.25, 7);
    struct point p = {3, 4};
    pointers("hello", &p);
    twelve(1, -2, 3, 4, 5, 6);
    int sum = inlined(1, "one") + inlined(2, "two") + inlined(3, "three");
    sum += (int)leaf(10, 20);
    RAWBPF_USDT_LAZY(app, lazy, costly(21), sum);
    if (RAWBPF_USDT_ENABLED(app, lazy)) RAWBPF_USDT_WITH_SEMAPHORE(app, lazy, costly(4), sum);
    int i = 0;
    RAWBPF_USDT(app, once, i++, i++);
#ifdef __cplusplus
    generic(1);
    generic(2.5);
    generic("text");
    generic(Wide::all);
    generic(Far::out);
    auto lambda = [&](int a) { RAWBPF_USDT(app, lambda, a, nullptr); };
    lambda(9);
#endif
    printf("sum %d, calls %d, i %d\n", sum, costly_calls, i);
    return 0;
}
