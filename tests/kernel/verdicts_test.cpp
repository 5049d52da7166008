// The verifier of our own against the kernel's: the same random programs every time. `tests/verdicts` (verdicts.cpp) searches
// further.
#include <utility>

#include "tests/kernel/verdicts.h"
#include "tests/support/test.h"

using namespace rawbpf;
using test::Said;

TEST_CASE("verifier: a hundred random programs are judged as by the kernel") {
    ObjectSpec plain;
    plain.name = "plain";
    ProgramSpec returns;
    returns.name = "main";
    returns.type = BPF_PROG_TYPE_SOCKET_FILTER;
    returns.insns = {{0xb7, 0, 0, 0, 0}, {0x95, 0, 0, 0, 0}};
    plain.programs.push_back(std::move(returns));
    if (const test::Verdicts v = test::verdicts_on(plain, 0); v.kernel != Said::accepted)
        SKIP("programs can't be loaded here: " + v.kernel_reason);
#if !defined(__x86_64__)
    SKIP("compared on x86_64 only");
#endif
    // Elsewhere a rule may be missing whose program the kernel accepts. What it refuses, the model never accepts.
    const bool modelled = test::is_modelled_kernel();
    int decided = 0, refused = 0, agreed = 0;
    for (uint64_t seed = 1; seed <= 100; ++seed) {
        const std::optional<ObjectSpec> spec = test::random_spec(seed);
        if (!spec) continue;
        const test::Verdicts v = test::verdicts_on(*spec, 0);
        INFO("seed ", seed, ": the kernel: ", v.kernel_reason, "; ours: ", v.our_reason);
        CHECK(!v.wrongly_accepted());
        if (!v.decided()) continue;
        ++decided;
        refused += v.kernel == Said::refused;
        agreed += v.agree();
        if (modelled) CHECK(v.agree());
    }
    CHECK(decided > 80);
    CHECK(agreed * 100 >= decided * 95);
    CHECK(refused > 25);
    CHECK(refused < decided - (modelled ? 15 : 4)); // older kernels lack instructions that random programs have
}
