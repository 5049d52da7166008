// Code without frame pointers (see meson.build) whose stacks are known. A constructor notices the request before any test would
// run, as in profile_workload.cpp. The names are looked for in stacks, so nothing is inlined, and nothing becomes a jump that is
// a call.
#include "tests/kernel/unwind_workload.h"

#include <alloca.h>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__clang__)
#define FRAME extern "C" [[gnu::noinline, gnu::used]]
#else
#define FRAME extern "C" [[gnu::noinline, gnu::noclone, gnu::used]]
#endif
#define NOT_LAST asm volatile("" : : : "memory")

volatile unsigned long unwind_test_sink;

FRAME void uw_spin(long n) {
    for (long i = 0; i < n; ++i) asm volatile("");
}

FRAME void uw_recurse(int depth) {
    if (depth == 0)
        uw_spin(30000);
    else
        uw_recurse(depth - 1);
    NOT_LAST;
}
FRAME void uw_case_recurse() {
    uw_recurse(29);
    NOT_LAST;
}
FRAME void uw_case_deep() {
    uw_recurse(199);
    NOT_LAST;
}

FRAME void uw_case_twenty() { // with those that lead here
    uw_recurse(12);
    NOT_LAST;
}
#define HAVE_A_FRAME asm volatile("" : : "r"(__builtin_frame_address(0)))
FRAME void uw_framed(int depth) {
    HAVE_A_FRAME;
    if (depth == 0)
        uw_spin(30000);
    else
        uw_framed(depth - 1);
    NOT_LAST;
}
FRAME void uw_case_framed() {
    HAVE_A_FRAME;
    uw_framed(17);
    NOT_LAST;
}

FRAME int uw_compare(const void *a, const void *b) {
    uw_spin(10000);
    return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}
FRAME void uw_case_qsort() {
    int numbers[] = {3, 1, 2, 5, 4};
    qsort(numbers, 5, sizeof(int), uw_compare);
    NOT_LAST;
}

FRAME void uw_alloca(size_t bytes) {
    auto *place = static_cast<volatile char *>(alloca(bytes));
    place[0] = 1;
    uw_spin(20000);
    unwind_test_sink = static_cast<unsigned long>(place[0]);
}
FRAME void uw_case_alloca() {
    for (size_t bytes = 16; bytes < 4096; bytes *= 3) uw_alloca(bytes);
    NOT_LAST;
}

// The stack is aligned by hand: with alloca() as well, the CFA is found by a pointer that the function keeps.
FRAME void uw_aligned(size_t bytes) {
    alignas(128) volatile char aligned[128];
    auto *place = static_cast<volatile char *>(alloca(bytes));
    place[0] = 1;
    aligned[0] = 1;
    uw_spin(20000);
    unwind_test_sink = static_cast<unsigned long>(place[0] + aligned[0]);
}
// What calls it finds its own frame by the pointer that the other has put aside.
FRAME void uw_calls_aligned(size_t bytes) {
    auto *place = static_cast<volatile char *>(alloca(bytes));
    place[0] = 1;
    uw_aligned(bytes);
    unwind_test_sink = static_cast<unsigned long>(place[0]);
}
FRAME void uw_case_aligned() {
    for (size_t bytes = 16; bytes < 4096; bytes *= 3) uw_calls_aligned(bytes);
    NOT_LAST;
}

FRAME void *uw_thread(void *) {
    uw_spin(20000000);
    NOT_LAST;
    return nullptr;
}
FRAME void uw_case_thread() {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, uw_thread, nullptr) == 0) pthread_join(thread, nullptr);
    NOT_LAST;
}

// A page of its frame that nothing was written to yet isn't there, and its stack pointer is in it. (A new thread's stack is all
// like that.)
FRAME void *uw_hollow(void *) {
    constexpr size_t kPage = 4096;
    volatile char room[kPage + kPage / 2];
    for (size_t i = kPage; i < sizeof room; ++i) room[i] = 1;
    for (long i = 0; i < 20000000; ++i) asm volatile("");
    return nullptr;
}
FRAME void uw_case_hollow() {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, uw_hollow, nullptr) == 0) pthread_join(thread, nullptr);
    NOT_LAST;
}

// A function whose first instruction isn't one: the signal comes where nothing of its frame exists, and the address before it
// belongs to another function.
#if defined(__x86_64__)
constexpr long kUndefined = 2;
asm(".pushsection .text\n.globl uw_undefined\n.type uw_undefined, "
    "@function\nuw_undefined:\n.cfi_startproc\nud2\nret\n.cfi_endproc\n"
    ".size uw_undefined, .-uw_undefined\n.popsection");
#elif defined(__riscv)
constexpr long kUndefined = 4;
asm(".pushsection .text\n.globl uw_undefined\n.type uw_undefined, %function\nuw_undefined:\n.cfi_startproc\n.4byte "
    "0xc0001073\nret\n"
    ".cfi_endproc\n"
    ".size uw_undefined, .-uw_undefined\n.popsection");
#else
constexpr long kUndefined = 4;
asm(".pushsection .text\n.globl uw_undefined\n.type uw_undefined, %function\nuw_undefined:\n.cfi_startproc\nudf "
    "#0\nret\n.cfi_endproc\n"
    ".size uw_undefined, .-uw_undefined\n.popsection");
#endif
extern "C" void uw_undefined();
FRAME void uw_handler(int, siginfo_t *, void *context) {
    uw_spin(300000);
    auto *where = static_cast<ucontext_t *>(context);
#if defined(__x86_64__)
    where->uc_mcontext.gregs[REG_RIP] += kUndefined;
#elif defined(__riscv)
    where->uc_mcontext.__gregs[REG_PC] += kUndefined;
#else
    where->uc_mcontext.pc += kUndefined;
#endif
}
namespace {
void signal_to(int flags) {
    struct sigaction action {};
    action.sa_sigaction = uw_handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigaction(SIGILL, &action, nullptr);
}
} // namespace
FRAME void uw_case_signal() {
    signal_to(0);
    for (int i = 0; i < 20; ++i) uw_undefined();
    NOT_LAST;
}
FRAME void uw_case_signal_stack() {
    static char stack[1 << 16];
    stack_t other{};
    other.ss_sp = stack;
    other.ss_size = sizeof stack;
    sigaltstack(&other, nullptr);
    signal_to(SA_ONSTACK);
    for (int i = 0; i < 20; ++i) uw_undefined();
    NOT_LAST;
}

FRAME long uw_read(int fd, void *to, size_t bytes) {
#if defined(__x86_64__)
    long result = 0; // read
    asm volatile("syscall" : "+a"(result) : "D"(fd), "S"(to), "d"(bytes) : "rcx", "r11", "memory");
    return result;
#elif defined(__riscv)
    register long a0 asm("a0") = fd;
    register void *a1 asm("a1") = to;
    register size_t a2 asm("a2") = bytes;
    register long number asm("a7") = 63; // read
    asm volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(number) : "memory");
    return a0;
#else
    register long a0 asm("x0") = fd;
    register void *a1 asm("x1") = to;
    register size_t a2 asm("x2") = bytes;
    register long number asm("x8") = 63; // read
    asm volatile("svc 0" : "+r"(a0) : "r"(a1), "r"(a2), "r"(number) : "memory");
    return a0;
#endif
}
FRAME void uw_case_system() {
    static char buffer[1 << 16];
    const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < 50; ++i) unwind_test_sink = static_cast<unsigned long>(uw_read(zero, buffer, sizeof buffer));
    close(zero);
    NOT_LAST;
}

namespace {
// Until the test has told of all that it has mapped by now.
void stand_still() {
    prctl(PR_SET_NAME, "unwound");
    raise(SIGSTOP);
}

// Never comes back: the same program again, which recurses for so long and is at once at it.
void begin_anew(int milliseconds) {
    const std::string request = "brief:" + std::to_string(milliseconds);
    setenv("RAWBPF_UNWIND_WORKLOAD", request.c_str(), 1);
    char name[] = "brief";
    char *const arguments[] = {name, nullptr};
    execv("/proc/self/exe", arguments);
    _exit(127);
}

struct Case {
    const char *name;
    void (*run)();
} constexpr kCases[] = {
    {"recurse", uw_case_recurse}, {"deep", uw_case_deep},
    {"twenty", uw_case_twenty},   {"framed", uw_case_framed},
    {"qsort", uw_case_qsort},     {"alloca", uw_case_alloca},
    {"aligned", uw_case_aligned}, {"thread", uw_case_thread},
    {"signal", uw_case_signal},   {"signal_stack", uw_case_signal_stack},
    {"system", uw_case_system},   {"hollow", uw_case_hollow},
};
} // namespace

FRAME void uw_run(void (*run)(), int milliseconds) {
    const auto used_ms = [] { // a sanitized program has used a hundred before it gets here
        timespec now{};
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        return now.tv_sec * 1000 + now.tv_nsec / 1000000;
    };
    const auto start = used_ms();
    do {
        run();
    } while (used_ms() - start < milliseconds);
    NOT_LAST;
}

namespace {
// Children one after the other, each a program of its own that recurses for some milliseconds.
void storm(int milliseconds) {
    for (int i = 0; i < 50; ++i) {
        const pid_t child = fork();
        if (child == 0) begin_anew(milliseconds);
        int status = 0;
        waitpid(child, &status, 0);
    }
}

[[gnu::constructor]] void run_workload() {
    const char *request = std::getenv("RAWBPF_UNWIND_WORKLOAD");
    if (!request) return;
    const char *colon = std::strchr(request, ':');
    const std::string what(request, colon ? static_cast<size_t>(colon - request) : 0);
    if (what == "storm") {
        storm(std::atoi(colon + 1));
        _exit(0);
    }
    if (what == "brief") {
        uw_run(uw_case_recurse, std::atoi(colon + 1));
        _exit(0);
    }
    if (what == "exec") {
        stand_still();
        begin_anew(std::atoi(colon + 1));
    }
    for (const Case &one : kCases) {
        if (!colon || std::strlen(one.name) != static_cast<size_t>(colon - request) ||
            std::strncmp(one.name, request, std::strlen(one.name)) != 0)
            continue;
        stand_still();
        uw_run(one.run, std::atoi(colon + 1));
        _exit(0);
    }
    _exit(126);
}
} // namespace

std::vector<std::string> rawbpf::test::unwind_workload(const std::string &what, int milliseconds) {
    return {"env", "RAWBPF_UNWIND_WORKLOAD=" + what + ":" + std::to_string(milliseconds),
            "/proc/" + std::to_string(getpid()) + "/exe"};
}
