// The workloads. They are part of the test binary, so that the tests need no second file and find their symbols in a file that is
// certainly not stripped; a constructor notices the request before any test would run. Their functions keep frame pointers (see
// meson.build) and do the same arithmetic, so that time follows the number of iterations.
#include "tests/kernel/profile_workload.h"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

volatile unsigned long profile_test_sink;

/// Compilers leave the frame out of functions that call nothing, whatever they are told; asking for its address makes them build
/// it.
#define HAVE_A_FRAME asm volatile("" : : "r"(__builtin_frame_address(0)))

/// So many rounds of as many cycles each. In a register, for which this file is always optimised (meson.build): how long a load
/// takes that follows a store to the same place differs between functions, and between runs of one.
[[gnu::always_inline]] inline void work(long rounds) {
    unsigned long x = profile_test_sink;
    for (long i = 0; i < rounds; ++i) {
        x = x * 3 + static_cast<unsigned long>(i);
        asm volatile("" : "+r"(x));
    }
    profile_test_sink = x;
}

// Not in an anonymous namespace and not inlined: these names are looked for in profiles. Aligned alike, so that nothing but the
// number of rounds differs between the two: how a short loop lies in lines of the cache decides how fast it is, more so while a
// neighbour on the host uses the same core. (Seen with one loop across two lines: 67 to 70 % in place of 75, for some seconds,
// and then not again.)
[[gnu::noinline, gnu::aligned(64)]] void hot_a(long n) {
    HAVE_A_FRAME;
    work(n);
    asm volatile("");
}
[[gnu::noinline, gnu::aligned(64)]] void hot_b(long n) {
    HAVE_A_FRAME;
    work(n);
    asm volatile("");
}

namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point in(int milliseconds) { return Clock::now() + std::chrono::milliseconds(milliseconds); }

} // namespace

[[gnu::noinline]] void split_body(int milliseconds) {
    HAVE_A_FRAME;
    // Rounds of many lengths: if all took 1 ms, a clock of 999 Hz would meet each at nearly the same place.
    unsigned long random = 1;
    for (const auto end = in(milliseconds); Clock::now() < end;) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const long n = 50000 + static_cast<long>(random >> 48) * 100000 / 65536;
        hot_a(3 * n);
        hot_b(n);
    }
    asm volatile("");
}

[[gnu::noinline]] void worker_body(int milliseconds) {
    HAVE_A_FRAME;
    for (const auto end = in(milliseconds); Clock::now() < end;) hot_a(100000);
    asm volatile("");
}

/// Works for so many microseconds of CPU time of the thread, however long that takes.
void spend(long microseconds) {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    const long end = now.tv_sec * 1000000 + now.tv_nsec / 1000 + microseconds;
    do {
        hot_a(10000);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec * 1000000 + now.tv_nsec / 1000 < end);
}

[[gnu::noinline]] void burst_body(int milliseconds) {
    HAVE_A_FRAME;
    spend(1000L * milliseconds);
    asm volatile("");
}

[[gnu::noinline]] void crumb_body(long microseconds) {
    HAVE_A_FRAME;
    spend(microseconds);
    asm volatile("");
}

[[gnu::noinline]] void system_body(int milliseconds) {
    HAVE_A_FRAME;
    static char buffer[1 << 16];
    const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    for (const auto end = in(milliseconds); Clock::now() < end;)
        if (read(zero, buffer, sizeof buffer) < 0) break;
    close(zero);
    asm volatile("");
}

[[gnu::noinline]] void fault_body(int pages) {
    HAVE_A_FRAME;
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), size = static_cast<size_t>(pages) * page;
    void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    madvise(memory, size, MADV_NOHUGEPAGE); // one fault a page
    for (size_t at = 0; at < size; at += page) static_cast<volatile char *>(memory)[at] = 1;
    munmap(memory, size);
    asm volatile("");
}

// By syscall(2), which leaves the frame pointer alone, where libc's own functions use that register for other things. It has no
// frame itself, so that a walk by frame pointers passes over who called it: what is looked for is the caller of that.
[[gnu::noinline]] void sleep_body() {
    HAVE_A_FRAME;
    const timespec time{0, 5'000'000};
    syscall(SYS_nanosleep, &time, nullptr);
    asm volatile("");
}
[[gnu::noinline]] void sleep_caller(int times) {
    HAVE_A_FRAME;
    for (int i = 0; i < times; ++i) sleep_body();
    asm volatile("");
}
[[gnu::noinline]] void call_body() {
    HAVE_A_FRAME;
    profile_test_sink = profile_test_sink + static_cast<unsigned long>(syscall(SYS_getpriority, 0, 0));
    asm volatile("");
}
[[gnu::noinline]] void call_caller(int times) {
    HAVE_A_FRAME;
    for (int i = 0; i < times; ++i) call_body();
    asm volatile("");
}

/// Position-independent and without a call, so that a copy of its bytes runs anywhere.
[[gnu::noinline]] unsigned long spin(unsigned long n) {
    for (unsigned long i = 0; i < n; ++i) asm volatile("");
    return n;
}

#ifdef __clang__
__attribute__((no_sanitize("function"))) // which reads what stands before a function: here that is nothing
#endif
[[gnu::noinline]] void
jit_body(int milliseconds) {
    HAVE_A_FRAME;
    constexpr size_t kCode = 128;
    void *code = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(code, reinterpret_cast<const void *>(&spin), kCode);
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(static_cast<char *>(code), static_cast<char *>(code) + kCode);
    char path[64];
    std::snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    if (FILE *map = std::fopen(path, "w")) {
        std::fprintf(map, "%lx %zx script:hot_loop\n", reinterpret_cast<unsigned long>(code), kCode);
        std::fclose(map);
    }
    unsigned long (*function)(unsigned long);
    std::memcpy(&function, &code, sizeof function);
    for (const auto end = in(milliseconds); Clock::now() < end;) function(1000000);
}

namespace {

/// Runs this binary again as another workload, and waits for it.
void again(const char *request) {
    const pid_t child = fork();
    if (child == 0) {
        setenv("RAWBPF_TEST_WORKLOAD", request, 1);
        char name[] = "again";
        char *const arguments[] = {name, nullptr};
        execve("/proc/self/exe", arguments, environ);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
}

[[gnu::constructor]] void run_workload() {
    const char *request = std::getenv("RAWBPF_TEST_WORKLOAD");
    if (!request) return;
    const char *colon = std::strchr(request, ':');
    const int milliseconds = colon ? std::atoi(colon + 1) : 100;
    const std::string what(request, colon ? static_cast<size_t>(colon - request) : std::strlen(request));
    if (what == "split") {
        split_body(milliseconds);
    } else if (what == "threads") {
        std::thread one(worker_body, milliseconds), two(worker_body, milliseconds);
        one.join();
        two.join();
    } else if (what == "burst") {
        prctl(PR_SET_NAME, "burst");
        burst_body(milliseconds);
    } else if (what == "short") {
        for (int i = 0; i < 20; ++i) again("burst:20");
    } else if (what == "crumbs") {
        for (int i = 0; i < milliseconds / 2; ++i) {
            const pid_t child = fork();
            if (child == 0) {
                crumb_body(2000);
                _exit(0);
            }
            waitpid(child, nullptr, 0);
        }
    } else if (what == "naps") {
        std::vector<std::thread> threads;
        for (int i = 0; i < 100; ++i)
            threads.emplace_back([=] {
                for (int k = 0; k < 3; ++k) {
                    usleep(static_cast<useconds_t>(milliseconds) * 250);
                    crumb_body(2000);
                }
            });
        for (std::thread &thread : threads) thread.join();
    } else if (what == "orphan") {
        // The first thread ends, another goes on; the process forks one that nobody waits for.
        if (fork() == 0) {
            if (fork() == 0) worker_body(milliseconds);
            _exit(0);
        }
        std::thread([=] {
            worker_body(milliseconds);
            _exit(0);
        }).detach();
        syscall(SYS_exit, 0); // of the thread; pthread_exit would unwind what called this constructor
    } else if (what == "forks") {
        const pid_t child = fork();
        if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
        worker_body(milliseconds);
        if (child == 0) _exit(0);
        waitpid(child, nullptr, 0);
    } else if (what == "system") {
        system_body(milliseconds);
    } else if (what == "faults") {
        fault_body(milliseconds);
    } else if (what == "sleeps") {
        sleep_caller(milliseconds);
    } else if (what == "calls") {
        call_caller(milliseconds);
    } else if (what == "jit") {
        jit_body(milliseconds);
    } else {
        _exit(126);
    }
    _exit(0);
}

} // namespace

std::vector<std::string> rawbpf::test::workload(const std::string &what, int milliseconds) {
    return {"env", "RAWBPF_TEST_WORKLOAD=" + what + ":" + std::to_string(milliseconds),
            "/proc/" + std::to_string(getpid()) + "/exe"};
}
