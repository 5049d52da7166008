// The emulator against the kernel's JIT: random programs, the same ones every time. `./dev fuzz engines` searches further.
#include "tests/kernel/engines.h"
#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("emulator: two hundred random programs do the same as in the kernel") {
    if (const std::string why = test::refusal("mov", {}); !why.empty()) SKIP("programs can't be run here: " + why);
    if (!test::can_compare().empty()) SKIP("this kernel lacks cpu v4's instructions, 6.6");
    const bool newest = test::has_newest();
    int refused = 0;
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        const test::Compared compared = test::compare_engines(seed, newest);
        if (compared.refused) {
            ++refused;
            MESSAGE("seed ", seed, ": ", compared.why);
            continue;
        }
        INFO("seed ", seed);
        CHECK(compared.why == "");
    }
    CHECK(refused < 20); // a verifier may find one too complex
}
