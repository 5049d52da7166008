// engines SECONDS [SEED]: random programs on the kernel's JIT and on the emulator until time is up or two results differ.
//
// Of three seeds one is a program, one a program with maps, one several programs with tail calls across them. A difference is
// printed with its seed and its listing, and, where there are no maps, again as hex for `rawbpf exec --both -`.
#include "tests/kernel/engines.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "asm/print.h"

using namespace rawbpf;

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
    const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 0) : static_cast<uint64_t>(time(nullptr)) * 1'000'000;
    const time_t end = time(nullptr) + static_cast<time_t>(seconds);
    uint64_t tried = 0, refused = 0;
    std::string last;
    const bool newest = test::has_newest();
    for (uint64_t n = seed; time(nullptr) < end; ++n, ++tried) {
        const test::Compared compared =
            n % 3 == 2 && newest ? test::compare_programs(n) : test::compare_engines(n, newest, n % 3);
        if (compared.refused) {
            ++refused;
            last = compared.why;
            continue;
        }
        if (compared.why.empty()) continue;
        std::printf("FAIL engines: seed %llu: %s\n", static_cast<unsigned long long>(n), compared.why.c_str());
        for (size_t i = 0; i < compared.insns.size(); i += is_wide(compared.insns[i]) ? 2 : 1)
            std::printf("  %4zu: %s\n", i, print(std::span(compared.insns).subspan(i)).c_str());
        std::printf("%s  ", compared.text.c_str());
        for (size_t i = 0; n % 3 == 0 && i < compared.insns.size() * sizeof(Insn); ++i)
            std::printf("%02x", reinterpret_cast<const uint8_t *>(compared.insns.data())[i]);
        std::printf("\n");
        return 1;
    }
    if (tried == 0 || refused * 5 > tried) {
        std::printf("SKIP engines: the kernel refused %llu of %llu programs: %s\n", static_cast<unsigned long long>(refused),
                    static_cast<unsigned long long>(tried), last.c_str());
        return 77;
    }
    std::printf("PASS engines: %llu programs agree from seed %llu on (%llu more were refused)\n",
                static_cast<unsigned long long>(tried - refused), static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(refused));
    return 0;
}
