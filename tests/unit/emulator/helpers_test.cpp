// Maps and helpers, with the kernel's results.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "asm/builder.h"
#include "runtime/base/format.h"
#include "runtime/object/unit_object.h"
#include "tests/unit/emulator/emulated.h"

using namespace rawbpf;
using namespace rawbpf::test;
using emulator::EmulatedMap;

namespace {

struct Maps {
    emulator::Memory memory;
    emulator::Journal journal;
    std::unique_ptr<EmulatedMap> make(uint32_t type, uint32_t key, uint32_t value, uint32_t entries) {
        MapSpec spec;
        spec.name = "m";
        spec.type = type;
        spec.key_size = key;
        spec.value_size = value;
        spec.max_entries = entries;
        return EmulatedMap::create(spec, memory, journal).value();
    }
};
const uint8_t *bytes(const auto &value) { return reinterpret_cast<const uint8_t *>(&value); }

} // namespace

TEST_CASE("emulator: a hash has the kernel's answers") {
    Maps maps;
    auto map = maps.make(BPF_MAP_TYPE_HASH, 4, 8, 3);
    auto put = [&](uint32_t key, uint64_t value, uint64_t flags = BPF_ANY) {
        return map->update(bytes(key), bytes(value), flags);
    };
    auto get = [&](uint32_t key) {
        const uint64_t address = map->lookup(bytes(key));
        const uint8_t *at = address ? maps.memory.find(address, 8, false) : nullptr;
        uint64_t value = 0;
        if (at) std::memcpy(&value, at, 8);
        return value;
    };
    CHECK(put(1, 10, BPF_EXIST) == -ENOENT);
    CHECK(put(1, 10) == 0);
    CHECK(put(1, 11, BPF_NOEXIST) == -EEXIST);
    CHECK(put(1, 12, BPF_EXIST) == 0);
    CHECK(put(2, 20) == 0);
    CHECK(put(3, 30) == 0);
    CHECK(put(4, 40) == -E2BIG);
    CHECK(put(1, 1, 77) == -EINVAL);
    CHECK(get(1) == 12);
    CHECK(get(4) == 0);
    const uint32_t two = 2, nine = 9;
    CHECK(map->erase(bytes(two)) == 0);
    CHECK(map->erase(bytes(nine)) == -ENOENT);
    CHECK(put(4, 40) == 0);
    CHECK(get(4) == 40);
    CHECK(get(2) == 0);
    // Many: against a simple model.
    auto big = maps.make(BPF_MAP_TYPE_HASH, 4, 8, 500);
    std::vector<int> model(1000);
    uint32_t seed = 1, count = 0;
    for (int n = 0; n < 20000; ++n) {
        seed = seed * 1664525 + 1013904223;
        const uint32_t key = (seed >> 8) % 1000;
        const uint64_t value = static_cast<uint64_t>(n) + 1;
        if (seed >> 30) {
            const int64_t result = big->update(bytes(key), bytes(value), BPF_ANY);
            CHECK(result == (model[key] || count < 500 ? 0 : -E2BIG));
            if (result == 0) count += !model[key], model[key] = n + 1;
        } else {
            CHECK(big->erase(bytes(key)) == (model[key] ? 0 : -ENOENT));
            count -= model[key] != 0, model[key] = 0;
        }
    }
    for (uint32_t key = 0; key < 1000; ++key) CHECK((big->lookup(bytes(key)) != 0) == (model[key] != 0));
}

TEST_CASE("emulator: arrays, LRU, queues, stacks") {
    Maps maps;
    auto array = maps.make(BPF_MAP_TYPE_ARRAY, 4, 5, 4);
    const uint64_t value = 0x0807060504030201;
    const uint32_t three = 3, four = 4;
    CHECK(array->update(bytes(three), bytes(value), BPF_ANY) == 0);
    CHECK(array->update(bytes(four), bytes(value), BPF_ANY) == -E2BIG);
    CHECK(array->update(bytes(three), bytes(value), BPF_NOEXIST) == -EEXIST);
    CHECK(array->erase(bytes(three)) == -EINVAL);
    CHECK(array->lookup(bytes(four)) == 0);
    CHECK(maps.memory.find(array->lookup(bytes(three)), 5, true)[4] == 5);
    CHECK(maps.memory.find(array->lookup(bytes(three)), 6, true) == nullptr);

    auto lru = maps.make(BPF_MAP_TYPE_LRU_HASH, 4, 8, 4);
    for (uint32_t key = 0; key < 100; ++key) {
        CHECK(lru->update(bytes(key), bytes(value), BPF_ANY) == 0);
        const uint32_t first = 0;
        CHECK(lru->lookup(bytes(first)) != 0); // in use, so it stays
    }
    uint32_t left = 0;
    for (uint32_t place = lru->next_entry(0); place < 4; place = lru->next_entry(place + 1)) ++left;
    CHECK(left == 4);

    for (uint32_t type : {BPF_MAP_TYPE_QUEUE, BPF_MAP_TYPE_STACK}) {
        auto queue = maps.make(type, 0, 8, 3);
        uint64_t out = 99;
        auto pop = [&] { return queue->pop(reinterpret_cast<uint8_t *>(&out), true); };
        CHECK(pop() == -ENOENT);
        CHECK(out == 0);
        for (uint64_t n : {1, 2, 3}) CHECK(queue->push(bytes(n), BPF_ANY) == 0);
        const uint64_t extra = 4;
        CHECK(queue->push(bytes(extra), BPF_ANY) == -E2BIG);
        CHECK(queue->push(bytes(extra), BPF_EXIST) == 0); // forgets the oldest
        CHECK(queue->push(bytes(extra), BPF_NOEXIST) == -EINVAL);
        for (uint64_t expected : type == BPF_MAP_TYPE_QUEUE ? std::vector<uint64_t>{2, 3, 4} : std::vector<uint64_t>{4, 3, 2}) {
            CHECK(queue->pop(reinterpret_cast<uint8_t *>(&out), false) == 0);
            CHECK(out == expected);
            CHECK(pop() == 0);
            CHECK(out == expected);
        }
        CHECK(pop() == -ENOENT);
    }
}

TEST_CASE("emulator: ring buffer records have bounds, and must be given back") {
    Maps maps;
    auto ring = maps.make(BPF_MAP_TYPE_RINGBUF, 0, 0, 4096);
    const uint64_t a = ring->reserve(12), b = ring->reserve(8);
    CHECK(maps.memory.find(a, 12, true) != nullptr);
    CHECK(maps.memory.find(a + 8, 5, true) == nullptr); // 16 are set aside, 12 were asked for
    CHECK(maps.memory.miss(a + 8, 8, true).find("4 bytes past the end of the record in map m, which has 12 bytes") !=
          std::string::npos);
    std::memcpy(maps.memory.find(b, 8, true), "abcdefgh", 8);
    CHECK(ring->release(a, true));
    CHECK(!ring->release(a, true));
    CHECK(!ring->release(b + 8, false));
    CHECK(maps.memory.find(a, 1, false) == nullptr);
    CHECK(ring->release(b, false));
    CHECK(ring->output(reinterpret_cast<const uint8_t *>("xy"), 2) == 0);
    std::vector<std::string> records;
    ring->each_record([&](std::string_view record) { records.emplace_back(record); });
    CHECK(records == std::vector<std::string>{"abcdefgh", "xy"});
    CHECK(ring->reserve(5000) == 0);
    int more = 0;
    while (ring->output(reinterpret_cast<const uint8_t *>("xyz"), 3) == 0) ++more;
    CHECK(more == (4095 - 24 - 16 - 16) / 16); // the last byte of the ring is never used, as in the kernel

    ObjectSpec spec = spec_of({});
    spec.programs[0].insns.clear();
    const uint32_t map = add_map(spec, "events", BPF_MAP_TYPE_RINGBUF, 0, 0, 4096);
    load_map(spec, 1, map);
    for (const Insn &insn : {i("mov", {.dst = 2, .imm = 8}), i("mov", {.dst = 3}), i("call", {.imm = 131}), i("mov"), i("exit")})
        spec.programs[0].insns.push_back(insn);
    Result<uint64_t> leaked = run(spec);
    REQUIRE(!leaked);
    CHECK(leaked.error().message().find("1 reserved record of map events") != std::string::npos);
}

TEST_CASE("emulator: a program of the builder runs whole") {
    Builder b("counting");
    auto counts = b.hash<uint32_t, uint64_t>("counts", 8);
    Code &f = b.program("socket", "count");
    auto key = f.stack<uint32_t>("key");
    f.store<uint32_t>(key, 7);
    f.lookup(counts, key, [&] {
        f.mov(r1, 1);
        f.atomic_add<uint64_t>(r0, r1);
    });
    f.ret(0);
    Built built = b.finish();
    REQUIRE_MESSAGE(built, built.report());
    const ObjectSpec spec = object_of(*built).value();
    auto machine = emulator::Machine::create(spec).value();
    const uint32_t seven = 7;
    const uint64_t five = 5;
    REQUIRE(machine->maps()[0]->update(bytes(seven), bytes(five), BPF_ANY) == 0);
    REQUIRE(machine->enter(0));
    REQUIRE(machine->run());
    REQUIRE(machine->enter(0));
    REQUIRE(machine->run());
    uint64_t value = 0;
    std::memcpy(&value, machine->memory().find(machine->maps()[0]->lookup(bytes(seven)), 8, false), 8);
    CHECK(value == 7);
}

TEST_CASE("emulator: callbacks, tail calls, printing") {
    // bpf_loop(5, add, &sum): sum += index, and 1 from the callback ends it
    ObjectSpec loop =
        spec_of({i("stdw", {.dst = 10, .off = -8}), i("mov", {.dst = 1, .imm = 5}), raw(0x18, 2, 4, 0, 8), Insn{},
                 i("mov_reg", {.dst = 3, .src = 10}), i("add", {.dst = 3, .imm = -8}), i("mov", {.dst = 4}),
                 i("call", {.imm = 181}), i("lsh", {.dst = 0, .imm = 32}), i("ldxdw", {.dst = 1, .src = 10, .off = -8}),
                 i("or_reg", {.dst = 0, .src = 1}), // calls << 32 | sum
                 i("ldxdw", {.dst = 4, .src = 2}), i("add_reg", {.dst = 4, .src = 1}), i("stxdw", {.dst = 2, .src = 4}), i("mov"),
                 i("jne", {.dst = 1, .off = 1, .imm = 3}), i("mov", {.dst = 0, .imm = 1}), i("exit")});
    auto &code = loop.programs[0].insns;
    code.insert(code.begin() + 11, i("exit"));
    code[2].imm = 12 - 3;
    CHECK(run(loop).value() == (uint64_t{4} << 32 | 6)); // 0 + 1 + 2 + 3
    auto stepping = emulator::Machine::create(loop, {.stepping = true}).value();
    REQUIRE(stepping->enter(0));
    size_t steps = 0;
    while (!stepping->ended()) {
        REQUIRE(stepping->step());
        ++steps;
    }
    CHECK(stepping->cpu().r[0] == (uint64_t{4} << 32 | 6));
    for (; steps; --steps) REQUIRE(stepping->back());
    CHECK(stepping->pc() == 0);

    // Tail calls: to `other`, and from there to itself until the kernel's limit.
    ObjectSpec tail = spec_of({});
    auto &first = tail.programs[0];
    first.insns = {i("mov_reg", {.dst = 6, .src = 1})};
    const uint32_t table = add_map(tail, "table", BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 2);
    tail.maps[table].slots.push_back({1, "main"});
    load_map(tail, 2, table);
    for (const Insn &insn : {i("ldxdw", {.dst = 7, .src = 6}), i("add", {.dst = 7, .imm = 1}), i("stxdw", {.dst = 6, .src = 7}),
                             i("mov_reg", {.dst = 1, .src = 6}), i("mov", {.dst = 3, .imm = 1}), i("call", {.imm = 12}),
                             i("mov_reg", {.dst = 0, .src = 7}), i("exit")})
        first.insns.push_back(insn);
    std::vector<std::byte> memory(8);
    CHECK(run(tail, memory).value() == 34); // once, and 33 more

    // bpf_trace_printk("n=%d %s\n", -3, "yes")
    auto text = [](uint64_t address, std::string_view what, std::vector<Insn> &into) {
        for (size_t n = 0; n < what.size(); n += 4) {
            int32_t part = 0;
            std::memcpy(&part, what.data() + n, std::min<size_t>(4, what.size() - n));
            into.push_back(i("stw", {.dst = 10, .off = -static_cast<int64_t>(address) + static_cast<int64_t>(n), .imm = part}));
        }
    };
    ObjectSpec print = spec_of({});
    auto &p = print.programs[0].insns;
    text(32, std::string_view("n=%d %s %llx\0", 13), p);
    text(16, std::string_view("yes\0", 4), p);
    for (const Insn &insn :
         {i("mov_reg", {.dst = 1, .src = 10}), i("add", {.dst = 1, .imm = -32}), i("mov", {.dst = 2, .imm = 13}),
          i("mov32", {.dst = 3, .imm = -3}), i("mov_reg", {.dst = 4, .src = 10}), i("add", {.dst = 4, .imm = -16}),
          i("mov", {.dst = 5, .imm = -1}), i("call", {.imm = 6}), i("exit")})
        p.push_back(insn);
    auto machine = emulator::Machine::create(print).value();
    REQUIRE(machine->enter(0));
    CHECK(machine->run().value() == 25);
    CHECK(machine->printed() == "n=-3 yes ffffffffffffffff\n");

    CHECK(fault({i("call", {.imm = 69}), i("exit")}).find("the emulator doesn't have this helper") != std::string::npos);
    CHECK(fault({i("call", {.imm = 69}), i("exit")}).find("call 69") != std::string::npos);
    CHECK(fault({i("mov", {.dst = 1, .imm = 5}), i("call", {.imm = 1}), i("exit")}).find("r1 = 0x5 isn't the address of a map") !=
          std::string::npos);
}

TEST_CASE("emulator: printf's widths and signs, as printf has them") {
    ObjectSpec spec = spec_of({i("exit")});
    auto machine = emulator::Machine::create(spec).value();
    auto ours = [&](const std::string &format, uint64_t value) {
        std::string out; // the format with its zero
        return emulator::bpf_printf(*machine, {format.c_str(), format.size() + 1}, std::array{value}, out) ? out : "-EINVAL";
    };
    for (const char *flags : {"", "-", "0", "+", " ", "-0", "+0", "+ ", "- "})
        for (const char *width : {"", "1", "7", "30"})
            for (const char *kind : {"d", "u", "x", "X", "lld", "llu", "llx"})
                for (uint64_t value : {uint64_t{0}, uint64_t{42}, ~uint64_t{0}, uint64_t{1} << 63, uint64_t{0x80000000}}) {
                    const std::string_view plus(flags);
                    if (kind != std::string_view("d") && kind != std::string_view("lld") && plus.find_first_of("+ ") != plus.npos)
                        continue; // printf leaves it undefined for unsigned numbers
                    const std::string form = format("%{}{}{}", flags, width, kind);
                    char theirs[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                    if (std::string_view(kind).starts_with("ll"))
                        std::snprintf(theirs, sizeof theirs, form.c_str(), static_cast<unsigned long long>(value));
                    else
                        std::snprintf(theirs, sizeof theirs, form.c_str(), static_cast<unsigned>(value));
#pragma GCC diagnostic pop
                    CAPTURE(form);
                    CHECK(ours(form.c_str(), value) == theirs);
                }
    CHECK(ours("[%3c|", 'a') == "[  a|");
    for (const char *unknown : {"%#x", "%y", "%", "%lc", "%lllx", "%.3s", "%d %d", "%ssx", "%pz", "%pI5", "\x01", "%5"})
        CHECK_MESSAGE(ours(unknown, 1) == "-EINVAL", unknown);
    CHECK(ours("%% %px", 1) == "% 0000000000000001");
    CHECK(ours("%99999999999d", 1).size() == 8388607);
    std::string out;
    CHECK_FALSE(emulator::bpf_printf(*machine, "no zero", {}, out));
}
