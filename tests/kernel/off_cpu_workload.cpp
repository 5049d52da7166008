// Waits whose stacks are known, in code without frame pointers (see meson.build). The system call is made in the function itself,
// so that it is the leaf however stacks are walked. A constructor notices the request before any test would run.
#include "tests/kernel/off_cpu_workload.h"

#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__clang__)
#define FRAME extern "C" [[gnu::noinline, gnu::used]]
#else
#define FRAME extern "C" [[gnu::noinline, gnu::noclone, gnu::used]]
#endif
#define NOT_LAST asm volatile("" : : : "memory")

namespace {

// nanosleep(2), here and now.
[[gnu::always_inline]] inline void nap(long milliseconds) {
    const timespec time{milliseconds / 1000, milliseconds % 1000 * 1000000};
#if defined(__x86_64__)
    long result = SYS_nanosleep;
    asm volatile("syscall" : "+a"(result) : "D"(&time), "S"(nullptr) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long number asm("x8") = SYS_nanosleep;
    register const timespec *wanted asm("x0") = &time;
    register timespec *left asm("x1") = nullptr;
    asm volatile("svc 0" : "+r"(wanted) : "r"(number), "r"(left) : "memory");
#elif defined(__riscv)
    register long number asm("a7") = SYS_nanosleep;
    register const timespec *wanted asm("a0") = &time;
    register timespec *left asm("a1") = nullptr;
    asm volatile("ecall" : "+r"(wanted) : "r"(number), "r"(left) : "memory");
#endif
}

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

} // namespace

FRAME void oc_nap(long milliseconds) {
    nap(milliseconds);
    NOT_LAST;
}
FRAME void oc_short_nap(long milliseconds) {
    nap(milliseconds);
    NOT_LAST;
}
FRAME void oc_naps(int count, long milliseconds) {
    for (int i = 0; i < count; ++i) oc_nap(milliseconds);
    NOT_LAST;
}
FRAME void *oc_taker(void *) {
    prctl(PR_SET_NAME, "taker");
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return nullptr;
}
FRAME void oc_family() {
    for (int i = 0; i < 5; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            const pid_t grandchild = fork();
            oc_nap(50);
            if (grandchild > 0) waitpid(grandchild, nullptr, 0);
            _exit(0);
        }
        waitpid(child, nullptr, 0);
    }
    NOT_LAST;
}

namespace {

[[gnu::constructor]] void run_workload() {
    const char *request = getenv("RAWBPF_TEST_WAITS");
    if (!request) return;
    if (strcmp(request, "naps") == 0) {
        oc_naps(20, 30);
    } else if (strcmp(request, "on") == 0) {
        oc_naps(6000, 20);
    } else if (strcmp(request, "mutex") == 0) {
        pthread_mutex_lock(&mutex);
        pthread_t taker;
        if (pthread_create(&taker, nullptr, oc_taker, nullptr) != 0) _exit(1);
        oc_nap(1500);
        pthread_mutex_unlock(&mutex);
        pthread_join(taker, nullptr);
    } else if (strcmp(request, "short") == 0) {
        for (int i = 0; i < 40; ++i) oc_short_nap(10);
        oc_naps(2, 700);
    } else if (strcmp(request, "forks") == 0) {
        oc_family();
    } else if (strcmp(request, "stuck") == 0) {
        for (;;) oc_nap(60000);
    } else {
        _exit(126);
    }
    _exit(0);
}

} // namespace

std::vector<std::string> rawbpf::test::off_cpu_workload(const std::string &what) {
    return {"env", "RAWBPF_TEST_WAITS=" + what, "/proc/" + std::to_string(getpid()) + "/exe"};
}
