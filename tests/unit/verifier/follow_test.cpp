// What the verifier knows along one run, forwards and backwards.
#include "runtime/verifier/follow.h"

#include "asm/assemble.h"
#include "runtime/object/unit_object.h"
#include "tests/support/random_spec.h"
#include "tests/support/ranges.h"
#include "tests/support/sanitized.h"
#include "tests/support/test.h"

using namespace rawbpf;
using verifier::Follower;
using Standing = verifier::Follower::Standing;

namespace {

ObjectSpec spec_of(std::string_view text) {
    Assembled made = assemble(text);
    CHECK_MESSAGE(made, made.report());
    Result<ObjectSpec> spec = object_of(made.unit);
    CHECK(spec);
    return std::move(*spec);
}

} // namespace

TEST_CASE("follow: of a branch the side that the run took, also when it goes back") {
    const ObjectSpec spec = spec_of("r0 = *(u32 *)(r1 + 0)\nif r0 > 9 goto out\nr0 += 1\nout: r0 &= 15\nexit\n");
    Follower follower(spec, 0, {});
    uint64_t r[11] = {};
    CHECK(follower.state());
    CHECK(follower.state()->reg(1).sort == verifier::Sort::context);
    r[0] = 5;
    follower.advance(1, 0, r);
    CHECK(follower.state()->reg(0).bounds.u64.most == UINT32_MAX);
    follower.advance(2, 0, r);
    CHECK(follower.state()->reg(0).bounds.u64.most == 9);
    follower.advance(3, 0, r);
    CHECK(follower.state()->reg(0).bounds.u64.least == 1);
    follower.back();
    CHECK(follower.state()->reg(0).bounds.u64.least == 0);
    CHECK(follower.state()->insn == 2);
    follower.back();
    follower.back();
    CHECK(follower.state()->insn == 0);
    for (int i = 0; i < 2; ++i) follower.advance(0, 0, r); // noted already
    CHECK(follower.state()->insn == 2);
    CHECK(follower.standing() == Standing::follows);
}

TEST_CASE("follow: what it can't follow, it says") {
    const ObjectSpec refused = spec_of("r0 = *(u64 *)(r2 + 0)\nexit\n");
    uint64_t r[11] = {};
    Follower a(refused, 0, {});
    CHECK(a.state());
    a.advance(1, 0, r);
    CHECK(a.standing() == Standing::refused);
    CHECK(a.reason() == "R2 !read_ok");
    CHECK(!a.state());
    a.back();
    CHECK(a.state());
    const ObjectSpec decided = spec_of("r0 = 1\nif r0 == 1 goto out\nr0 = 2\nout: exit\n");
    Follower b(decided, 0, {});
    b.advance(1, 0, r);
    b.advance(2, 0, r); // no run goes there
    CHECK(b.standing() == Standing::impossible);
    const ObjectSpec whole = spec_of("r0 = 1\ngoto out\nr0 = 2\nout: exit\n"); // an instruction that nobody reaches
    Follower c(whole, 0, {.kernel = {5, 10}});
    CHECK(c.standing() != Standing::impossible);
    c.advance(1, 0, r);
    c.back();
}

TEST_CASE("follow: memory instead of a context, as exec calls programs") {
    const ObjectSpec spec = spec_of("if r2 != 4 goto out\nr3 = *(u32 *)(r1 + 0)\nout: r0 = 0\nexit\n");
    verifier::VerifyOptions options;
    options.memory = 4;
    CHECK(verifier::verify(spec, 0, options).outcome == verifier::Outcome::accepted);
    options.memory = 3;
    CHECK(verifier::verify(spec, 0, options).outcome == verifier::Outcome::accepted); // that branch isn't taken
    const test::Ranged ran = test::run_in_ranges(spec, 0, std::vector<std::byte>(3), options);
    CHECK(ran.mistake.empty());
    CHECK(ran.to_the_end);
}

TEST_CASE("follow: the numbers of runs never leave what is known: random programs that are accepted") {
    // Where each takes ten or twenty times as long, a third of them.
    const uint64_t programs = test::slow() ? 100 : 300;
    uint64_t runs = 0, compared = 0;
    for (uint64_t seed = 1; seed <= programs; ++seed) {
        const std::optional<ObjectSpec> spec = test::random_spec(seed);
        if (!spec || verifier::verify(*spec, 0).outcome != verifier::Outcome::accepted) continue;
        const test::Ranged ran = test::run_in_ranges(*spec, 0, test::random_bytes(seed, 64));
        INFO("seed ", seed);
        CHECK(ran.mistake == "");
        ++runs;
        compared += ran.compared;
    }
    CHECK(runs > programs / 6);
    CHECK(compared > 5'000 * programs / 300);
}
