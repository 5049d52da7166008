// When programs are told of a process, and when not: around an exec.
#include "programs/processes/unwinding.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "runtime/base/fail.h"
#include "tests/support/test.h"
#include "tests/unit/processes/fakes.h"

using namespace rawbpf;
using namespace rawbpf::processes;
using namespace rawbpf::test;

namespace {

constexpr uint64_t kSecond = 1'000'000'000, kMs = 1'000'000;

struct FakeTables final : unwind::LiveTables {
    std::map<uint32_t, uint64_t> executed; // what the kernel's side has noticed
    std::set<uint32_t> known;              // published
    std::string log;

    Result<bool> update(uint32_t pid, std::span<const unwind::CodeMapping> mappings, uint64_t as_of_ns, uint64_t) override {
        append(log, "tell {} of {} as of {};", pid, mappings.size(), as_of_ns);
        known.insert(pid);
        return true;
    }
    bool executed_after(uint32_t pid, uint64_t t_ns) const override {
        const auto found = executed.find(pid);
        return found != executed.end() && found->second > t_ns;
    }
    void prepare(const Fd &, const std::string &) override {}
    Result<unwind::Walked> walk(uint32_t, std::span<const unwind::CodeMapping>, const unwind::StackCopy &, uint64_t) override {
        return fail(Errc::internal, "no copies here");
    }
    Result<void> ended(uint32_t pid) override {
        append(log, "{} has ended;", pid);
        known.erase(pid);
        return {};
    }
    void used(uint32_t pid, uint32_t module, uint64_t now_ns) override { append(log, "{} uses {} at {};", pid, module, now_ns); }
    bool published(uint32_t pid) const override { return known.count(pid) != 0; }
    Stats stats() const override { return {}; }
    std::vector<std::string> warnings() const override { return {}; }
};

struct Followed {
    FakeMaps proc;
    ProcessTable table{proc};
    Unwinding unwinding{table};
    FakeTables &tables = *[&] {
        auto made = std::make_unique<FakeTables>();
        FakeTables *all = made.get();
        unwinding.start(std::move(made));
        return all;
    }();

    /// A command's, at 100: of which everything is told.
    void begin_exec() {
        table.all_changes_are_told();
        table.want(10);
        table.exec(10, 100);
        table.map(10, region(0x1000, 0x2000, "/bin/a"));
    }
    /// What was told of, since the last call.
    std::string update(uint64_t now_ns) {
        const auto done = unwinding.update(now_ns);
        REQUIRE(done);
        CHECK(*done);
        return std::exchange(tables.log, {});
    }
    void stack(uint32_t pid, uint64_t t_ns, uint32_t ending) {
        const uint64_t leaf = 0x1010;
        processes::UserStack sent{pid, t_ns, ending, {&leaf, 1}, std::nullopt};
        CHECK_FALSE(unwinding.walk(sent));
    }
};

} // namespace

TEST_CASE("unwinding: a process in the middle of an exec is told of when the kernel's side has forgotten what it was") {
    Followed f;
    f.begin_exec();
    f.table.told_until(110);
    CHECK(f.update(120) == "");
    CHECK(f.unwinding.waiting());
    CHECK(f.update(130) == "");
    f.tables.executed[10] = 140;
    CHECK(f.update(150) == ""); // what is known is older
    CHECK(f.unwinding.waiting());
    f.table.told_until(145);
    CHECK(f.update(160) == "tell 10 of 1 as of 145;");
    CHECK_FALSE(f.unwinding.waiting());
    CHECK(f.update(170) == "");
}

TEST_CASE("unwinding: an exec that nobody notices doesn't hold things up for ever") {
    Followed f;
    f.begin_exec();
    f.table.told_until(200);
    CHECK(f.update(300) == "");
    CHECK(f.update(100 + 100 * kMs) == "tell 10 of 1 as of 200;");
    CHECK_FALSE(f.unwinding.waiting());
    f.tables.executed[10] = kSecond; // and one whose news doesn't come
    f.table.tell_again(10);
    CHECK(f.update(201) == "");
    CHECK(f.update(2 * kSecond) == "tell 10 of 1 as of 200;");
}

TEST_CASE("unwinding: what programs have forgotten is told again, when they say so") {
    Followed f;
    f.table.all_changes_are_told();
    f.proc.processes[10] = {region(0x1000, 0x2000, "/bin/a")};
    f.unwinding.sampled(10, 50);
    CHECK(f.update(60) == "tell 10 of 1 as of 50;");
    f.stack(10, 70, UNWIND_ENDED_ROOT | UNWIND_TABLES);
    CHECK(f.update(80) == "");
    f.stack(10, 90, UNWIND_ENDED_NO_PROCESS);
    CHECK(f.update(95) == "tell 10 of 1 as of 50;");
    f.stack(11, 90, UNWIND_ENDED_NO_PROCESS); // it wasn't told yet: sampled() sees to that
    CHECK(f.update(95) == "");
    CHECK(f.proc.read == std::vector<uint32_t>{10});
}

TEST_CASE("unwinding: where no changes are told, a process that is forgotten is looked at again, but not all the time") {
    Followed f;
    f.proc.processes[10] = {region(0x1000, 0x2000, "/bin/a")};
    f.unwinding.sampled(10, kSecond);
    CHECK(f.update(kSecond) == "tell 10 of 1 as of 1000000000;");
    f.proc.processes[10].push_back(region(0x5000, 0x6000, "/lib/b"));
    f.stack(10, kSecond + 5, UNWIND_ENDED_NO_PROCESS);
    CHECK(f.update(kSecond + 6) == "tell 10 of 1 as of 1000000000;");
    f.stack(10, 2 * kSecond, UNWIND_ENDED_NO_PROCESS | UNWIND_COPIED);
    CHECK(f.update(2 * kSecond) == "tell 10 of 2 as of 2000000000;");
    CHECK(f.proc.read.size() == 2);
}

TEST_CASE("unwinding: a stack that is only counted says again which modules it is in, and asks again for a JIT's names") {
    Followed f;
    f.table.all_changes_are_told();
    f.table.exec(10, 100);
    for (const auto &mapped : {region(0x1000, 0x2000, "/bin/a"), region(0x5000, 0x6000, "/lib/b"), region(0x9000, 0xa000, "")})
        f.table.map(10, mapped);
    f.proc.jit_there_at = 3;
    StackTree tree;
    uint32_t node = kNone;
    for (const uint64_t address : {0x1010, 0xf000, 0x1020, 0x5010, 0x9010}) // the outermost first; one is no code
        node = tree.intern_node(node, tree.intern_place(f.table.locate(10, address, false, kSecond)));
    CHECK(f.proc.jit_looks == 1);
    CHECK(f.tables.log.empty());
    const auto jit = f.table.locate(10, 0x9010, false, kSecond).module, b = f.table.locate(10, 0x5010, false, kSecond).module,
               a = f.table.locate(10, 0x1010, false, kSecond).module;
    f.unwinding.seen_again(tree, node, 10, 2 * kSecond);
    CHECK(std::exchange(f.tables.log, {}) ==
          format("10 uses {} at 2000000000;10 uses {} at 2000000000;10 uses {} at 2000000000;", jit, b, a));
    CHECK(f.proc.jit_looks == 2);
    f.unwinding.seen_again(tree, kNone, 10, 3 * kSecond); // it had no user stack
    f.unwinding.seen_again(tree, node, 11, 3 * kSecond);  // nothing is known of that one
    f.table.exit(10, true, 3 * kSecond);
    f.unwinding.seen_again(tree, node, 10, 3 * kSecond); // it has ended
    CHECK(f.tables.log.empty());
    CHECK(f.proc.jit_looks == 2);
    CHECK(f.proc.read.empty()); // nobody was looked at for it
}
