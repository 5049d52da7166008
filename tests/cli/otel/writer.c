/* Publishes a process context (OTEP 4719) and threads' contexts (OTEP 4947), as their specifications say.
 *
 *   writer shares SECONDS   two threads, which spend 3 parts of their CPU time with http_route /a, 1 part with /b, 1 without a
 *                           context; each of the three in a function of its own
 *   writer torn SECONDS     two threads, which change their ids all the time: the trace id is the span id twice, and the attribute
 *                           `number` is its hex. One marks its record as invalid meanwhile, the other swaps pointers
 *   writer waits SECONDS    one thread, which sleeps 30 ms with http_route /a, then 10 ms with /b
 *   writer late SECONDS     a key more, and another service.name, after half of the time
 *   writer execs SECONDS    http_route /a, and then another program, a shell that counts
 *   writer calls SECONDS    two threads, which work on a request after the other (1,500 each at least, however slow the machine is),
 *                           with ids as torn has them: handle(id), in it the system call getpriority(0, id's last 22 bits), and
 *                           compiled with -DPROBES the USDT probe otel:handle
 *   writer leaves SECONDS   the same, and then it executes another program, which sleeps
 *
 * Environment: OTEL_LIBRARY: opens the variable's library by dlopen; OTEL_ANONYMOUS: no memfd. Prints "ready". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef PROBES
#include <rawbpf/usdt.h>
#endif

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

struct header {
    char signature[8];
    uint32_t version, payload_size;
    _Atomic uint64_t published_ns;
    uint64_t payload;
};
struct record {
    uint8_t trace[16], span[8];
    volatile uint8_t valid;
    uint8_t flags;
    uint16_t size;
    uint8_t attributes[128];
} __attribute__((aligned(8)));

static struct header *header;
#ifdef OPENED
static void **(*otel_slot)(void);
#else
void **otel_slot(void);
#endif

static uint64_t now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* protobuf: a field of bytes */
static size_t put(uint8_t *to, int number, const void *bytes, size_t size) {
    size_t at = 0;
    to[at++] = (uint8_t)(number << 3 | 2);
    for (size_t left = size;; left >>= 7) {
        to[at++] = (uint8_t)((left & 127) | (left > 127 ? 128 : 0));
        if (left <= 127) break;
    }
    memcpy(to + at, bytes, size);
    return at + size;
}
static size_t put_pair(uint8_t *to, int number, const char *key, const uint8_t *value, size_t size) {
    uint8_t pair[1024];
    size_t n = put(pair, 1, key, strlen(key));
    n += put(pair + n, 2, value, size);
    return put(to, number, pair, n);
}
static size_t put_text(uint8_t *to, int number, const char *key, const char *text) {
    uint8_t value[256];
    return put_pair(to, number, key, value, put(value, 1, text, strlen(text)));
}

static void publish(const char *service, const char *const *keys) {
    uint8_t *payload = malloc(4096), part[1024], value[1024];
    size_t n = put(payload, 1, part, put_text(part, 1, "service.name", service)), list = 0;
    n += put_text(payload + n, 2, "threadlocal.schema_version", "tls_v1");
    for (; *keys; ++keys) list += put(value + list, 1, part, put(part, 1, *keys, strlen(*keys)));
    n += put_pair(payload + n, 2, "threadlocal.attribute_key_map", part, put(part, 5, value, list));
    if (header) {
        atomic_store(&header->published_ns, 0);
    } else {
        int file = getenv("OTEL_ANONYMOUS") ? -1 : memfd_create("OTEL_CTX", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (file >= 0 && ftruncate(file, sizeof *header)) abort();
        header =
            mmap(NULL, sizeof *header, PROT_READ | PROT_WRITE, file >= 0 ? MAP_PRIVATE : MAP_PRIVATE | MAP_ANONYMOUS, file, 0);
        if (header == MAP_FAILED || madvise(header, sizeof *header, MADV_DONTFORK)) abort();
        if (file >= 0) close(file);
        memcpy(header->signature, "OTEL_CTX", 8);
        header->version = 2;
    }
    atomic_thread_fence(memory_order_seq_cst);
    header->payload = (uintptr_t)payload;
    header->payload_size = (uint32_t)n;
    atomic_thread_fence(memory_order_seq_cst);
    atomic_store(&header->published_ns, now_ns(CLOCK_BOOTTIME));
    prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, header, sizeof *header, "OTEL_CTX"); /* not all kernels can */
}

static void add(struct record *record, uint8_t key, const char *text) {
    uint8_t *to = record->attributes + record->size;
    to[0] = key, to[1] = (uint8_t)strlen(text);
    memcpy(to + 2, text, to[1]);
    record->size = (uint16_t)(record->size + 2 + to[1]);
}
static void attach(struct record *record) {
    atomic_signal_fence(memory_order_seq_cst);
    *(struct record *volatile *)otel_slot() = record;
    atomic_signal_fence(memory_order_seq_cst);
}

static uint64_t until_ns;
#define SPIN(ms)                                                                                                                 \
    for (uint64_t end = now_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)(ms)*1000000u; now_ns(CLOCK_THREAD_CPUTIME_ID) < end;)       \
        for (volatile int i = 0; i < 2000; ++i) {                                                                                \
        }
__attribute__((noinline)) void work_a(void) { SPIN(6) }
__attribute__((noinline)) void work_b(void) { SPIN(2) }
__attribute__((noinline)) void work_none(void) { SPIN(2) }

static void *shares(void *number) {
    struct record a = {.size = 0}, b = {.size = 0};
    memset(a.trace, 0xa0 + (int)(intptr_t)number, 16), memset(a.span, 0xa1, 8);
    memset(b.trace, 0xb0 + (int)(intptr_t)number, 16), memset(b.span, 0xb1, 8);
    add(&a, 0, "/wrong"), add(&a, 1, "alice"), add(&a, 0, "/a"), add(&a, 9, "no such key");
    add(&b, 1, "bob"), add(&b, 0, "/b");
    a.valid = b.valid = 1;
    while (now_ns(CLOCK_MONOTONIC) < until_ns) {
        attach(&a), work_a();
        attach(&b), work_b();
        attach(NULL), work_none();
    }
    return NULL;
}

static void fill(struct record *record, uint64_t id) {
    char hex[17];
    memcpy(record->trace, &id, 8), memcpy(record->trace + 8, &id, 8), memcpy(record->span, &id, 8);
    for (int i = 0; i < 8; ++i) sprintf(hex + 2 * i, "%02x", record->span[i]);
    record->size = 0;
    add(record, 0, hex);
}
static void *torn(void *swaps) {
    struct record records[2] = {{.size = 0}, {.size = 0}};
    if (!swaps) attach(records);
    for (uint64_t id = 1, left = 0; left || now_ns(CLOCK_MONOTONIC) < until_ns; left = (left + 1) % 1000) {
        id = id * 6364136223846793005u + 1442695040888963407u;
        struct record *record = records + (swaps ? id >> 63 : 0);
        if (swaps) attach(NULL);
        record->valid = 0;
        atomic_signal_fence(memory_order_seq_cst);
        fill(record, id);
        atomic_signal_fence(memory_order_seq_cst);
        record->valid = 1;
        if (swaps) attach(record);
        for (volatile int i = 0; i < 200; ++i) {
        }
    }
    return NULL;
}

__attribute__((noinline)) long handle(uint64_t id) {
#ifdef PROBES
    RAWBPF_USDT(otel, handle, id);
#endif
    return syscall(SYS_getpriority, 0, id & 0x3fffff) + (long)id;
}
static void *calls(void *number) {
    struct record record = {.size = 0};
    attach(&record);
    uint64_t id = 1 + (uint64_t)(intptr_t)number;
    for (int done = 0; done < 1500 || now_ns(CLOCK_MONOTONIC) < until_ns; ++done, usleep(500)) {
        id = id * 6364136223846793005u + 1442695040888963407u;
        record.valid = 0;
        atomic_signal_fence(memory_order_seq_cst);
        fill(&record, id);
        atomic_signal_fence(memory_order_seq_cst);
        record.valid = 1;
        handle(id);
    }
    return NULL;
}

int main(int count, char **words) {
    static const char *const keys[] = {"http_route", "user", NULL}, *const number[] = {"number", NULL},
                             *const more[] = {"http_route", "user", "tenant", NULL};
    if (count != 3) return 2;
    const double seconds = atof(words[2]);
    until_ns = now_ns(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);
#ifdef OPENED
    void *library = dlopen(getenv("OTEL_LIBRARY"), RTLD_NOW);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 2;
    *(void **)&otel_slot = dlsym(library, "otel_slot");
#endif
    const int is_torn = strcmp(words[1], "torn") == 0, late = strcmp(words[1], "late") == 0,
              leaves = strcmp(words[1], "leaves") == 0, has_calls = leaves || strcmp(words[1], "calls") == 0;
    publish("shop", is_torn || has_calls ? number : keys);
    puts("ready"), fflush(stdout);
    if (late) {
        struct record record = {.size = 0};
        add(&record, 0, "/early");
        record.valid = 1;
        attach(&record);
        const uint64_t half_ns = until_ns - (uint64_t)(seconds * 5e8);
        while (now_ns(CLOCK_MONOTONIC) < half_ns) work_a();
        publish("shop-2", more);
        add(&record, 2, "north");
        while (now_ns(CLOCK_MONOTONIC) < until_ns) work_b();
        return 0;
    }
    if (strcmp(words[1], "execs") == 0) {
        struct record record = {.size = 0};
        add(&record, 0, "/a");
        record.valid = 1;
        attach(&record);
        while (now_ns(CLOCK_MONOTONIC) < until_ns) work_a();
        return execl("/bin/sh", "sh", "-c", "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done", NULL);
    }
    if (strcmp(words[1], "waits") == 0) {
        struct record a = {.size = 0}, b = {.size = 0};
        add(&a, 0, "/a"), add(&b, 0, "/b");
        a.valid = b.valid = 1;
        while (now_ns(CLOCK_MONOTONIC) < until_ns) {
            attach(&a), usleep(30000);
            attach(&b), usleep(10000);
        }
        return 0;
    }
    pthread_t threads[2];
    for (intptr_t i = 0; i < 2; ++i) pthread_create(threads + i, NULL, is_torn ? torn : has_calls ? calls : shares, (void *)i);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    if (leaves) execl("/bin/sleep", "sleep", "1000", NULL);
    return 0;
}
