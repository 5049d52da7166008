// A program without frame pointers that is hard to unwind, for tests/unwind/samples: what it does is of no interest, how deep it
// stands and in what kind of frame is. It never ends.
#include <alloca.h>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <sys/time.h>
#include <thread>

namespace {

volatile unsigned long sink;

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

// A frame whose size isn't known before: the CFA goes by rbp, although the rest of the file has no frame pointer.
__attribute__((noinline)) void grower(int bytes) {
    char *local = static_cast<char *>(alloca(static_cast<size_t>(bytes)));
    memset(local, bytes, static_cast<size_t>(bytes));
    spin(200);
    sink = sink + static_cast<unsigned char>(local[bytes / 2]);
    if (bytes > 100) grower(bytes - 97);
}

// A frame that aligns the stack, so that the CFA has to be read from memory.
struct alignas(64) Aligned {
    double values[16];
};
__attribute__((noinline)) void aligner(int depth) {
    Aligned local;
    for (int i = 0; i < 16; ++i) local.values[i] = std::sin(depth + i);
    spin(100);
    sink = sink + static_cast<unsigned long>(local.values[3] * 1000);
    if (depth > 0) aligner(depth - 1);
}

int compare(const void *a, const void *b) {
    spin(3);
    return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

// On top of whatever is interrupted.
void handler(int) { spin(20000); }

[[noreturn]] void work() {
    static const std::regex pattern("a(b|c)*d");
    for (;;) {
        try {
            thrower(8);
        } catch (const std::exception &) {
            spin(10);
        }
        grower(2000);
        aligner(9);
        std::map<int, std::string> map;
        for (int i = 0; i < 200; ++i) map[i * 7919 % 1000] = std::to_string(i);
        for (int i = 0; i < 20; ++i) sink = sink + std::regex_match("abcbcbcbcbcd", pattern);
        int values[300];
        for (int i = 0; i < 300; ++i) values[i] = static_cast<int>((static_cast<unsigned>(i) * 2654435761u) >> 8);
        qsort(values, 300, sizeof *values, compare);
    }
}

} // namespace

// With an argument there are no signals.
int main(int count, char **) {
    struct sigaction action {};
    action.sa_handler = handler;
    sigaction(SIGALRM, &action, nullptr);
    const itimerval every{{0, 3000}, {0, 3000}};
    if (count == 1) setitimer(ITIMER_REAL, &every, nullptr);
    std::thread second(work);
    work();
}
