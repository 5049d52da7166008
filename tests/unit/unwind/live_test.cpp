// Pools, rules, tables and lists of mappings, against a kernel that remembers what it was told and in which order.
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>

#include "programs/unwind/processes.h"
#include "programs/unwind/tables.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::unwind;

namespace {

/// Reads as a program would: from what was published, at any time.
class Fake final : public PoolSource, public RuleSink, public ProcessSink {
  public:
    std::vector<std::unique_ptr<std::byte[]>> memory;
    size_t visible = 0;
    std::map<uint32_t, UnwindRule> rules;
    std::map<uint32_t, UnwindProcess> processes;
    std::map<uint32_t, uint64_t> executed;
    std::string log;
    int fail_put = 0, fail_add = 0;

    Result<std::byte *> add(uint32_t pool) override {
        if (fail_add) return fail_os(fail_add, "making a pool");
        CHECK(pool == memory.size());
        memory.push_back(std::make_unique<std::byte[]>(UNWIND_POOL_BYTES));
        append(log, "add {};", pool);
        return memory.back().get();
    }
    Result<void> publish() override {
        if (visible != memory.size()) append(log, "publish;");
        visible = memory.size();
        return {};
    }
    Result<void> settle() override {
        append(log, "settle;");
        return {};
    }
    Result<void> put(uint32_t number, const UnwindRule &rule) override {
        rules[number] = rule;
        return {};
    }
    Result<bool> put(uint32_t pid, const UnwindProcess &process, uint64_t as_of_ns) override {
        if (fail_put) return fail_os(fail_put, "putting a process");
        for (uint32_t i = 0; i < process.count; ++i) // everything that it leads to must be there now
            REQUIRE((process.mappings >> UNWIND_POOL_BITS) < visible);
        processes[pid] = process;
        append(log, "put {};", pid);
        if (executed[pid] <= as_of_ns) return true;
        processes.erase(pid);
        return false;
    }
    bool has(uint32_t pid) override { return processes.count(pid) != 0; }
    void exec(uint32_t pid, uint64_t t_ns) {
        processes.erase(pid);
        executed[pid] = t_ns;
    }
    Result<void> erase(uint32_t pid) override {
        CHECK(processes.erase(pid) == 1);
        append(log, "erase {};", pid);
        return {};
    }

    template <class T> T at(uint32_t position, uint32_t index = 0) const {
        T out{};
        std::memcpy(&out, memory[position >> UNWIND_POOL_BITS].get() + UNWIND_POOL_AT(position) + index * sizeof(T), sizeof out);
        return out;
    }
    /// What a program would find for an address of a process: "by fp", "none", or kind and CFA.
    std::string find(uint32_t pid, uint64_t pc) const {
        const auto found = processes.find(pid);
        if (found == processes.end()) return "no process";
        for (uint32_t i = 0; i < found->second.count; ++i) {
            const auto mapping = at<UnwindMapping>(found->second.mappings, i);
            if (pc < mapping.start || pc >= mapping.end) continue;
            if (mapping.kind == UNWIND_BY_FP) return "by fp";
            if (mapping.kind == UNWIND_BY_NONE) return "none";
            const uint64_t offset = pc - mapping.bias;
            if (offset >> UNWIND_PAGE_BITS >= mapping.page_count) return "no page";
            const auto page = at<UnwindPage>(mapping.pages, static_cast<uint32_t>(offset >> UNWIND_PAGE_BITS));
            uint32_t rule = 0;
            for (uint32_t row = 0; row < page.rows; ++row) {
                const auto value = at<uint32_t>(page.first, row);
                if (UNWIND_ROW_LOW(value) <= (offset & 0xffff)) rule = UNWIND_ROW_RULE(value);
            }
            if (rule == 0) return "no rule";
            const UnwindRule &is = rules.at(rule);
            if (is.flags & UNWIND_GUESSED) return is.flags & UNWIND_TO_ROOT ? "guess up to the root" : "guess";
            return format("{}{:+}", is.kind == UNWIND_SP ? "sp" : "fp", is.cfa);
        }
        return "no mapping";
    }
};

/// One page at `base`: nothing below 0x100, then sp+1, from 0x200 on sp+`cfa`.
Table small_table(uint64_t base, int16_t cfa) {
    Table table;
    table.base = base;
    table.rules = {{}, {UNWIND_SP, 0, 1, 0, -1}, {UNWIND_SP, 0, cfa, -2, -1}};
    table.rows = {UNWIND_ROW(0, 0), UNWIND_ROW(0x100, 1), UNWIND_ROW(0x200, 2)};
    table.pages = {{0, 3}};
    return table;
}

Table large_table(uint32_t pages, uint32_t rows) {
    Table table;
    table.rules = {{}, {UNWIND_SP, 0, 7, 0, -1}};
    for (uint32_t i = 0; i < pages; ++i) {
        table.pages.push_back({static_cast<uint32_t>(table.rows.size()), rows});
        for (uint32_t row = 0; row < rows; ++row) table.rows.push_back(UNWIND_ROW(row, 1));
    }
    return table;
}

bool no_room() { return false; }

} // namespace

TEST_CASE("unwind pools: pieces fit, touch, and become one again, but not before programs have let go") {
    Fake kernel;
    Pools pools(kernel, 2);
    const auto a = pools.allocate(100), b = pools.allocate(1), c = pools.allocate(UNWIND_POOL_BYTES - 128 - 32);
    REQUIRE((a && b && c));
    CHECK(*a % 32 == 0);
    CHECK(*b == *a + 128);
    CHECK(pools.used() == UNWIND_POOL_BYTES);
    CHECK(pools.pools() == 1);
    pools.release(*b, 1);
    pools.release(*a, 100);
    CHECK(pools.used() == UNWIND_POOL_BYTES - 160);
    const auto d = pools.allocate(64); // what was given back may still be read, and is too little to wait for: a second pool
    REQUIRE(d);
    CHECK((*d >> UNWIND_POOL_BITS) == 1);
    CHECK(kernel.log == "add 0;add 1;");
    REQUIRE(pools.allocate(UNWIND_POOL_BYTES - 64));
    CHECK(pools.allocate(160) == a); // all is full: now it is waited for, and the two pieces are one
    CHECK(kernel.log == "add 0;add 1;settle;");
    CHECK(!pools.allocate(32));
    CHECK(!pools.allocate(UNWIND_POOL_BYTES + 1));
    CHECK(kernel.log == "add 0;add 1;settle;");
}

TEST_CASE("unwind pools: the smallest piece that is large enough is taken; none reaches into the next pool") {
    Fake kernel;
    Pools pools(kernel, 3);
    std::vector<uint32_t> at;
    for (uint32_t bytes : {64u, 32u, 1024u, 32u, 256u, 32u}) at.push_back(*pools.allocate(bytes));
    REQUIRE(pools.allocate(UNWIND_POOL_BYTES - 1440));
    REQUIRE(pools.allocate(UNWIND_POOL_BYTES));
    REQUIRE(pools.allocate(UNWIND_POOL_BYTES));
    pools.release(at[0], 64);
    pools.release(at[2], 1024);
    pools.release(at[4], 256);
    CHECK(pools.allocate(200) == at[4]);
    CHECK(pools.allocate(64) == at[0]);
    CHECK(pools.allocate(65) == at[2]);
    pools.release(UNWIND_POOL_BYTES, UNWIND_POOL_BYTES);
    pools.release(2 * UNWIND_POOL_BYTES, UNWIND_POOL_BYTES);
    REQUIRE(pools.allocate(UNWIND_POOL_BYTES));
    const auto last = pools.allocate(UNWIND_POOL_BYTES);
    REQUIRE(last);
    CHECK(UNWIND_POOL_AT(*last) == 0);
}

TEST_CASE("unwind pools: a pool that can't be made is the end of growing, and says why") {
    Fake kernel;
    kernel.fail_add = ENOMEM;
    Pools pools(kernel, 64);
    CHECK(!pools.allocate(32));
    REQUIRE(pools.failure());
    CHECK(pools.failure()->os == ENOMEM);
    kernel.fail_add = 0;
    CHECK(!pools.allocate(32));
}

TEST_CASE("unwind rules: each once, and when all numbers are taken a stop") {
    Fake kernel;
    Rules rules(kernel);
    const UnwindRule one{UNWIND_SP, 0, 1, 0, -1};
    CHECK(*rules.intern({}) == 0);
    CHECK(*rules.intern(one) == 1);
    CHECK(*rules.intern({UNWIND_FP, 0, 2, -2, -1}) == 2);
    CHECK(*rules.intern(one) == 1);
    for (int16_t cfa = 2; rules.size() < UNWIND_RULES; ++cfa) {
        const size_t next = rules.size();
        CHECK(*rules.intern({UNWIND_SP, 0, cfa, 0, -1}) == next);
    }
    CHECK(rules.overflows() == 0);
    CHECK(*rules.intern({UNWIND_SP, 0, 9000, 0, -1}) == 0);
    CHECK(*rules.intern(one) == 1);
    CHECK(rules.overflows() == 1);
    CHECK(kernel.rules.size() == UNWIND_RULES - 1);
    CHECK(kernel.rules.at(2).kind == UNWIND_FP);
}

TEST_CASE("unwind tables: what a program finds is what the table says, wherever the file is mapped") {
    Fake kernel;
    Pools pools(kernel, 8);
    Rules rules(kernel);
    Tables tables(pools, rules, no_room);
    Processes processes(pools, kernel, kernel, 8);
    // Code at 0x31000 of memory and 0x1000 of the file.
    const uint32_t a = tables.add(small_table(0x30000, 5), {{0x1000, 0x31000, 0x2000}}, Tables::Gaps::tried, "a", 1);
    Table table = small_table(0x30000, 9);
    table.rows[1] = UNWIND_ROW(0x1100, 1);
    table.rows[2] = UNWIND_ROW(0x1200, 2);
    const uint32_t b = tables.add(table, {{0x1234, 0x31234, 0x2000}}, Tables::Gaps::tried, "b", 1);
    CHECK(a != b);
    CHECK(tables.find("b") == b);
    CHECK(tables.find("c") == Tables::kNone);
    const std::vector<UnwindMapping> list{tables.mapping(a, 0x7f0000, 0x7f2000, 0x1000),
                                          tables.mapping(b, 0x7f8000, 0x7fb000, 0x1000),
                                          tables.mapping(b, 0x7fc000, 0x7fd000, 0x9000)};
    REQUIRE(*processes.publish(10, list, 1, 1) == Publication::done);
    CHECK(kernel.find(10, 0x7f0000 - 0x1000 + 0x1150) == "sp+5"); // a: row at 0x200, the page begins below the mapping
    CHECK(kernel.find(10, 0x7f8000 + 0x50) == "guess");           // b: 0x31050
    CHECK(kernel.find(10, 0x7f8000 + 0x100) == "sp+1");
    CHECK(kernel.find(10, 0x7f8000 + 0x1ff) == "sp+1");
    CHECK(kernel.find(10, 0x7f8000 + 0x200) == "sp+9");
    CHECK(kernel.find(10, 0x7fc000) == "none"); // no executable segment is there
    CHECK(kernel.find(10, 0x7ff000) == "no mapping");
    CHECK(kernel.find(11, 0x7f0000) == "no process");
}

TEST_CASE("unwind tables: code without rows is guessed, with or without frame pointers up to the root") {
    Fake kernel;
    Pools pools(kernel, 8);
    Rules rules(kernel);
    Tables tables(pools, rules, no_room);
    Processes processes(pools, kernel, kernel, 8);
    const std::vector<Tables::Segment> code{{0, 0x10000, 0x40000}};
    const auto publish = [&](uint32_t pid, uint32_t module) {
        const UnwindMapping mapping = tables.mapping(module, 0x10000, 0x50000, 0);
        REQUIRE(*processes.publish(pid, {&mapping, 1}, 1, 1) == Publication::done);
    };
    publish(2, tables.add(small_table(0x20000, 5), code, Tables::Gaps::tried, "holes", 1));
    publish(3, tables.add(small_table(0x20000, 5), code, Tables::Gaps::by_fp, "go", 1));
    publish(4, tables.add(Table{}, code, Tables::Gaps::tried, "none", 1));
    publish(5, tables.refuse("refused", "hostile"));
    publish(6, tables.add_without_rows("compiled"));
    CHECK(kernel.find(2, 0x10500) == "guess");
    CHECK(kernel.find(2, 0x20050) == "guess");
    CHECK(kernel.find(2, 0x20150) == "sp+1");
    CHECK(kernel.find(2, 0x4ffff) == "guess");
    CHECK(kernel.find(3, 0x20050) == "guess up to the root");
    CHECK(kernel.find(3, 0x20150) == "sp+1");
    CHECK(kernel.find(4, 0x20150) == "by fp");
    CHECK(kernel.find(5, 0x20150) == "none");
    CHECK(kernel.find(6, 0x20150) == "by fp");
}

TEST_CASE("unwind tables: code whose frames are alike has a rule everywhere, and all such code one table") {
    Fake kernel;
    Pools pools(kernel, 8);
    Rules rules(kernel);
    Tables tables(pools, rules, no_room);
    Processes processes(pools, kernel, kernel, 8);
    const uint32_t four = tables.add_uniform({4, 0}, 1), five = tables.add_uniform({5, -3}, 1);
    CHECK(four != five);
    CHECK(tables.add_uniform({4, 0}, 2) == four);
    const std::vector<UnwindMapping> list{tables.mapping(four, 0x7f0000, 0x7f0000 + (300 << 20), 0),
                                          tables.mapping(five, 0x7fff'f7f1'1000, 0x7fff'f7f1'2000, 0)};
    REQUIRE(*processes.publish(10, list, 1, 1) == Publication::done);
    CHECK(kernel.find(10, 0x7f0000) == "sp+4");
    CHECK(kernel.find(10, 0x7f0000 + (256 << 20) - 1) == "sp+4");
    CHECK(kernel.find(10, 0x7f0000 + (256 << 20)) == "no page");
    CHECK(kernel.find(10, 0x7fff'f7f1'1fff) == "sp+5");
    tables.drop(four);
    CHECK(tables[tables.add_uniform({4, 0}, 3)].state == Tables::State::resident);
}

TEST_CASE("unwind tables: the least used makes room, after the processes that see it") {
    Fake kernel;
    Pools pools(kernel, 2);
    Rules rules(kernel);
    Processes processes(pools, kernel, kernel, 8);
    Tables *all = nullptr;
    uint64_t now = 0;
    Tables tables(pools, rules, [&] {
        const uint32_t victim = all->least_used(now);
        if (victim == Tables::kNone) return false;
        REQUIRE(processes.withdraw_users((*all)[victim].directory));
        all->drop(victim);
        return true;
    });
    all = &tables;
    const std::vector<Tables::Segment> code{{0, 0, 0x400000}};
    const auto add = [&](const char *identity) {
        ++now;
        return tables.add(large_table(4, 50'000), code, Tables::Gaps::tried, identity, now); // 800 KB
    };
    const uint32_t a = add("a"), b = add("b");
    const auto publish = [&](uint32_t pid, uint32_t module) {
        const UnwindMapping mapping = tables.mapping(module, 0, 0x400000, 0);
        REQUIRE(*processes.publish(pid, {&mapping, 1}, now, now) == Publication::done);
    };
    publish(1, a);
    publish(2, b);
    CHECK(kernel.find(1, 0x30500) == "sp+7");
    tables.used(a, ++now);
    kernel.log.clear();
    const uint32_t c = add("c");
    CHECK(tables[b].state == Tables::State::dropped);
    CHECK(tables[c].state == Tables::State::resident);
    CHECK(kernel.log == "erase 2;settle;"); // nobody may see it while it is written over
    CHECK(kernel.find(1, 0x30500) == "sp+7");
    CHECK(kernel.find(2, 0x30500) == "no process");
    CHECK(tables.drops() == 1);
    const uint32_t before = kernel.processes[1].edition;
    publish(3, c);
    CHECK(kernel.processes[3].edition > before); // what was remembered of b's place is no news of c
    tables.used(a, now);
    tables.used(c, now);
    CHECK(tables.least_used(now) == Tables::kNone);
    CHECK(tables.add(large_table(4, 50'000), code, Tables::Gaps::tried, "b", now) == b); // no room: all others are in use
    CHECK(tables[b].state == Tables::State::dropped);
    CHECK(tables.mapping(b, 0, 0x1000, 0).kind == UNWIND_BY_NONE);
    const uint64_t used = pools.used();
    CHECK(tables.add(large_table(4, 50'000), code, Tables::Gaps::tried, "b", now + 1) == b); // still none, and nothing leaks
    CHECK(pools.used() == used);
}

namespace {
/// One pool, and mappings to tell of.
struct OneList {
    Fake kernel;
    Pools pools{kernel, 1};
    Processes processes{pools, kernel, kernel, 3};
    std::vector<UnwindMapping> list{{0x1000, 0x2000, 0, 0, 0, UNWIND_BY_FP}};
};
} // namespace

TEST_CASE("unwind processes: first the list, then the pool, then the entry, and the old list is kept from reuse") {
    Fake kernel;
    Pools pools(kernel, 4);
    Processes processes(pools, kernel, kernel, 3);
    std::vector<UnwindMapping> list(2);
    list[0] = {0x1000, 0x2000, 0, 0, 0, UNWIND_BY_FP};
    list[1] = {0x5000, 0x6000, 0, 0, 0, UNWIND_BY_NONE};
    REQUIRE(*processes.publish(10, list, 1, 1) == Publication::done);
    CHECK(kernel.log == "add 0;publish;put 10;");
    const UnwindProcess before = kernel.processes[10];
    REQUIRE(*processes.publish(11, list, 2, 2) == Publication::done); // a child: the same list
    CHECK(kernel.processes[11].mappings == before.mappings);
    CHECK(pools.used() == 64);
    kernel.log.clear();
    REQUIRE(*processes.publish(11, list, 2, 2) == Publication::done); // no news
    CHECK(kernel.log.empty());
    list[1].end = 0x7000;
    REQUIRE(*processes.publish(10, list, 3, 3) == Publication::done);
    CHECK(kernel.processes[10].mappings != before.mappings);
    CHECK(kernel.find(10, 0x6500) == "none");
    CHECK(kernel.find(11, 0x6500) == "no mapping");
    REQUIRE(processes.withdraw(11));
    CHECK(pools.used() == 64);
    list[1].end = 0x8000;
    REQUIRE(*processes.publish(12, list, 4, 4) == Publication::done);
    CHECK(kernel.processes[12].mappings != before.mappings); // in quarantine

    REQUIRE(*processes.publish(13, list, 5, 5) == Publication::done);
    processes.used(10, 6);
    REQUIRE(*processes.publish(14, list, 7, 7) == Publication::done); // the fourth of three: 12 was used least recently
    CHECK(processes.evictions() == 1);
    CHECK(!processes.published(12));
    CHECK(processes.published(10));
    CHECK(kernel.processes.size() == 3);

    kernel.fail_put = EPERM; // what the kernel refuses changes nothing
    const uint64_t used = pools.used();
    list[0].end = 0x3000;
    CHECK(!processes.publish(10, list, 8, 8));
    CHECK(pools.used() == used);
    CHECK(kernel.find(10, 0x6500) == "none");
}

TEST_CASE("unwind processes: an exec takes away what was told before it") {
    OneList all;
    auto &[kernel, pools, processes, list] = all;
    REQUIRE(*processes.publish(10, list, 5, 6) == Publication::done);
    kernel.exec(10, 7);
    list[0].end = 0x3000; // news that is older than the exec
    CHECK(*processes.publish(10, list, 6, 8) == Publication::executed);
    CHECK(!processes.published(10));
    CHECK(kernel.find(10, 0x1000) == "no process");
    CHECK(pools.used() == 0);
    CHECK(*processes.publish(10, list, 7, 9) == Publication::done);
    CHECK(kernel.find(10, 0x2000) == "by fp");
    kernel.exec(10, 10); // the same program again, at the same address
    CHECK(*processes.publish(10, list, 11, 12) == Publication::done);
    CHECK(kernel.find(10, 0x2000) == "by fp");
    CHECK(pools.used() == 32);
    REQUIRE(*processes.publish(11, list, 11, 12) == Publication::done); // a child's list is its parent's
    kernel.exec(11, 13);
    CHECK(*processes.publish(11, list, 12, 14) == Publication::executed);
    CHECK(kernel.find(10, 0x2000) == "by fp");
    REQUIRE(processes.withdraw(10));
    CHECK(pools.used() == 0);
}

TEST_CASE("unwind processes: a list without room takes back what was seen") {
    OneList all;
    auto &[kernel, pools, processes, list] = all;
    REQUIRE(*processes.publish(10, list, 1, 1) == Publication::done);
    REQUIRE(pools.allocate(UNWIND_POOL_BYTES - 32));
    list[0].end = 0x3000;
    CHECK(*processes.publish(10, list, 1, 1) == Publication::no_room);
    CHECK(kernel.find(10, 0x1000) == "no process"); // the old list would be wrong
    CHECK(*processes.publish(10, {}, 1, 1) == Publication::no_room);
    CHECK(*processes.publish(11, std::vector<UnwindMapping>(UNWIND_MAX_MAPPINGS + 1), 1, 1) == Publication::no_room);
}
