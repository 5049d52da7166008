// When kernel addresses get names: a pass at a time, and not too often.
#include "programs/session/kernel_names.h"

#include <cstdint>
#include <vector>

#include "tests/support/test.h"
#include "tests/unit/processes/fakes.h"

using namespace rawbpf;
using namespace rawbpf::session;
using namespace rawbpf::test;

namespace {

constexpr uint64_t kMs = 1'000'000, kSecond = 1'000'000'000;

struct Named {
    FakeSymbols source;
    ModuleTable modules;
    StackTree tree;
    Namer namer{tree, modules, source, {}};
    KernelNames names{tree, namer};

    uint32_t stack(uint64_t leaf, uint64_t caller) {
        const uint32_t outer = tree.intern_node(kNone, tree.intern_place(kernel_place(caller, true)));
        return tree.intern_node(outer, tree.intern_place(kernel_place(leaf)));
    }
};

} // namespace

TEST_CASE("kernel names: a pass is affordable when the last one took a twentieth of the time since, or less") {
    PassBudget budget;
    CHECK(budget.affordable(0)); // the first one always
    budget.passed(kSecond, kSecond + 30 * kMs);
    CHECK_FALSE(budget.affordable(kSecond + 30 * kMs));
    CHECK_FALSE(budget.affordable(kSecond + 629 * kMs));
    CHECK(budget.affordable(kSecond + 630 * kMs));
}

TEST_CASE("kernel names: nothing waits for more than two seconds") {
    PassBudget budget;
    budget.passed(kSecond, 2 * kSecond); // of a machine that is out of breath
    CHECK_FALSE(budget.due(3 * kSecond, kSecond));
    CHECK(budget.due(3 * kSecond + 1, kSecond));
    CHECK_FALSE(budget.due(3 * kSecond + 1, kSecond + 1));
}

TEST_CASE("kernel names: what is known is shown at once, what isn't waits for the next pass, which is one for all") {
    Named n;
    const std::vector<uint32_t> first{n.stack(0xffff8110, 0xffff8200), n.stack(0xffff8310, 0xffff8200)};
    CHECK_FALSE(n.names.known(first[0]));
    CHECK(n.names.ready(first, 1, 1));
    n.names.name(first);
    CHECK(n.source.kernel_passes == 1);
    CHECK(n.names.known(first[1]));
    n.names.budget().passed(kSecond, 2 * kSecond); // it was slow
    CHECK(n.names.ready(first, 2 * kSecond, 2 * kSecond));
    n.names.name(first); // a pass that isn't needed isn't made, nor counted
    CHECK(n.source.kernel_passes == 1);
    const std::vector<uint32_t> mixed{first[0], n.stack(0xffff8410, 0xffff8200)};
    CHECK_FALSE(n.names.ready(mixed, 2 * kSecond, 2 * kSecond));
    CHECK(n.names.ready(mixed, 4 * kSecond + 1, 2 * kSecond));
    CHECK(n.names.known(kNone)); // no kernel stack, nothing to wait for
}
