// Programs that are hard to unwind, one at a time, for tests/unwind/perf: `peers NAME MILLISECONDS` does nothing of interest for
// that much of its own CPU time, so that the same command gives two profilers the same stacks.
#include <alloca.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <stdexcept>
#include <string>
#include <sys/time.h>
#include <thread>

namespace {

volatile unsigned long sink;
double until;

double cpu_seconds() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

__attribute__((noinline)) void spin(int rounds) {
    for (int i = 0; i < rounds; ++i) sink = sink * 3 + static_cast<unsigned long>(i);
}

// libgcc unwinds at the same time, from the landing pads of eight frames.
__attribute__((noinline)) void thrower(int depth) {
    if (depth == 0) throw std::runtime_error("the end");
    std::string local(static_cast<size_t>(depth) * 30, 'a');
    thrower(depth - 1);
    sink = sink + local.size();
}
__attribute__((noinline)) void exceptions() {
    try {
        thrower(8);
    } catch (const std::exception &) {
        spin(500);
    }
}

// On top of whatever is interrupted, and that may be a function's first instruction.
__attribute__((noinline)) void in_handler() { spin(100000); }
void handler(int) { in_handler(); }
__attribute__((noinline)) int interrupted(int depth) {
    spin(20);
    return depth > 0 ? interrupted(depth - 1) + 1 : 0;
}
__attribute__((noinline)) void signals() { sink = sink + static_cast<unsigned long>(interrupted(12)); }

// A frame whose size isn't known before: the CFA goes by rbp, although the rest of the file has no frame pointer.
__attribute__((noinline)) void grower(int bytes) {
    char *local = static_cast<char *>(alloca(static_cast<size_t>(bytes)));
    memset(local, bytes, static_cast<size_t>(bytes));
    spin(200);
    sink = sink + static_cast<unsigned char>(local[bytes / 2]);
    if (bytes > 100) grower(bytes - 97);
}
__attribute__((noinline)) void grown() { grower(1500); }

// A frame that aligns the stack, so that the CFA has to be read from memory.
struct alignas(64) Aligned {
    double values[16];
};
__attribute__((noinline)) void aligner(int depth) {
    Aligned local;
    for (int i = 0; i < 16; ++i) local.values[i] = static_cast<double>(sink % 7) + depth * i;
    spin(100);
    double sum = 0;
    for (const double value : local.values) sum += value;
    if (depth > 0) aligner(depth - 1);
    sink = sink + static_cast<unsigned long>(sum + local.values[3]);
}
__attribute__((noinline)) void aligned() { aligner(9); }

// The library's templates, of which -O0 makes a function each.
int compare(const void *a, const void *b) {
    spin(3);
    return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}
__attribute__((noinline)) void plain() {
    std::map<int, std::string> map;
    for (int i = 0; i < 200; ++i) map[i * 7919 % 1000] = std::to_string(i);
    int values[300];
    for (int i = 0; i < 300; ++i) values[i] = static_cast<int>((static_cast<unsigned>(i) * 2654435761u) >> 8);
    qsort(values, 300, sizeof *values, compare);
}

void repeat(void (*work)()) {
    while (cpu_seconds() < until) work();
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const std::string name = argv[1];
    until = std::atoi(argv[2]) / 1e3;
    if (name == "exceptions") repeat(exceptions);
    if (name == "alloca") repeat(grown);
    if (name == "aligned") repeat(aligned);
    if (name == "plain") repeat(plain);
    if (name == "signals") {
        struct sigaction action {};
        action.sa_handler = handler;
        sigaction(SIGPROF, &action, nullptr);
        const itimerval every{{0, 4000}, {0, 4000}};
        setitimer(ITIMER_PROF, &every, nullptr);
        repeat(signals);
    }
    if (name == "threads") {
        std::thread threads[3];
        for (std::thread &thread : threads) thread = std::thread(repeat, plain);
        repeat(grown);
        for (std::thread &thread : threads) thread.join();
    }
    return sink == 0 ? 1 : 0;
}
