// A program with probes that it makes while it runs; for tests/cli/run. It says "up", and fires them at each line that it reads.
#include <cstdio>

#include "runtime/provider/provider.h"

using namespace rawbpf;

namespace {
enum class Color : int8_t { red = -1 };
}

int main() {
    usdt::Provider own("own");
    const auto mixed = own.add<int, const char *, double, float, uint8_t, Color, uint64_t>("mixed");
    const auto twelve = own.add<int, long, short, char, unsigned, long, int, int8_t, uint16_t, uint64_t, double, bool>("twelve");
    const auto none = own.add<>("none");
    if (Result<void> loaded = own.load(); !loaded) {
        std::fprintf(stderr, "%s\n", loaded.error().message().c_str());
        return 1;
    }
    std::puts("up");
    std::fflush(stdout);
    for (int c; (c = std::getchar()) != EOF;) {
        if (c != '\n') continue;
        std::printf("%d\n", mixed.enabled());
        std::fflush(stdout);
        mixed(-7, "hello", 2.5, -0.25F, 250, Color::red, ~0ULL);
        twelve(1, -2, -3, 'd', 4000000000U, 6, -7, int8_t{-8}, uint16_t{65000}, 10, 11.5, true);
        none();
    }
    return 0;
}
