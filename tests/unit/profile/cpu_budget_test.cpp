// What a profile may cost, tick by tick.
#include "programs/profile/cpu_budget.h"

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::profile;

namespace {

constexpr uint64_t kTick = 100'000'000;

/// A profile whose use is `fixed` + `by_rate` / slower, as a share of a CPU.
struct Machine {
    CpuBudget budget{0.01, 64};
    uint64_t now = 5'000'000'000, used = 70'000'000;
    uint32_t slower = 1;
    std::vector<uint32_t> turns = {};
    void run(double seconds, double fixed, double by_rate) {
        for (int i = 0; i < static_cast<int>(seconds * 10); ++i) {
            now += kTick;
            used += static_cast<uint64_t>((fixed + by_rate / slower) * double{kTick});
            const uint32_t next = budget.update(now, used);
            if (next != slower) turns.push_back(next);
            slower = next;
        }
    }
};

} // namespace

TEST_CASE("cpu budget: within it nothing changes") {
    Machine machine;
    machine.run(60, 0.001, 0.008);
    CHECK(machine.turns.empty());
    CHECK(machine.budget.slowest() == 1);
    CHECK(machine.budget.slowed_ns() == 0);
    CHECK(machine.budget.use() > 0.008);
    CHECK(machine.budget.use() < 0.01);
}

TEST_CASE("cpu budget: too much lowers the rate within a second and a half, far too much by more at once") {
    Machine machine;
    machine.run(0.9, 0, 0.015);
    CHECK(machine.turns.empty()); // a moment says nothing
    machine.run(0.6, 0, 0.015);
    CHECK(machine.turns == std::vector<uint32_t>{2}); // 0.75 %
    machine.run(60, 0, 0.015);
    CHECK(machine.turns.size() == 1); // neither too much nor little
    CHECK(machine.budget.slowest() == 2);
    CHECK(machine.budget.slowed_ns() > 60'000'000'000);

    Machine busy;
    busy.run(10, 0, 0.20);
    CHECK(busy.turns == std::vector<uint32_t>{4, 16, 32});
    CHECK(busy.slower == 32);
    CHECK(busy.budget.use() < 0.01);
}

TEST_CASE("cpu budget: what the rate doesn't change ends at the slowest") {
    Machine machine;
    machine.run(120, 0.02, 0.001);
    CHECK(machine.slower == 64);
    CHECK(machine.budget.slowest() == 64);
}

TEST_CASE("cpu budget: with little to do it goes up again, slowly, and slower after each time that was too soon") {
    Machine machine;
    machine.run(10, 0, 0.06);
    CHECK(machine.slower == 8); // 0.75 %
    machine.turns.clear();
    machine.run(4, 0, 0.001);
    CHECK(machine.turns.empty());
    machine.run(30, 0, 0.001);
    CHECK(machine.turns == std::vector<uint32_t>{4, 2, 1});

    // Whose cost grows with each doubling by more than double: up, down, up, down, with longer and longer waits.
    Machine odd;
    const auto run = [&](int seconds) {
        size_t before = odd.turns.size();
        for (int i = 0; i < seconds * 10; ++i) odd.run(0.1, 0, odd.slower == 1 ? 0.02 : 0.004);
        return odd.turns.size() - before;
    };
    const size_t first = run(60), later = run(600) / 10;
    CHECK(first >= 4);
    CHECK(later * 2 <= first);
    CHECK(later >= 1);
}

TEST_CASE("rate history: a sample stands for what its CPU's rate was at the time") {
    RateHistory history;
    CHECK(history.at(3, 100) == 1);
    history.change(3, 100, 4);
    history.change(3, 200, 2);
    history.change(0, 150, 4);
    CHECK(history.at(3, 99) == 1);
    CHECK(history.at(3, 100) == 4);
    CHECK(history.at(3, 199) == 4);
    CHECK(history.at(3, 200) == 2);
    CHECK(history.at(0, 149) == 1);
    CHECK(history.at(0, 1'000'000) == 4);
    CHECK(history.at(2, 1'000'000) == 1);
    CHECK(history.at(900, 1'000'000) == 1);
    for (uint64_t t = 300; t < 400; ++t) history.change(3, t, t % 2 ? 8 : 4);
    CHECK(history.at(3, 399) == 8);
    CHECK(history.at(3, 398) == 4);
}
