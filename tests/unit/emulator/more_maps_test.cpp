// Tries, bloom filters, maps of maps, arenas, jump tables, timers: in programs, as they are used. What the kernel says to the
// same programs is in tests/kernel/emulator_kernel_test.cpp.
#include <algorithm>
#include <cerrno>

#include "runtime/object/elf_object.h"
#include "tests/support/spec_from.h"
#include "tests/unit/emulator/emulated.h"

namespace rawbpf::inline v0 {
extern const std::span<const std::byte> golden_jumps;
}
using namespace rawbpf;
using namespace rawbpf::test;
using emulator::EmulatedMap;

namespace {

uint64_t result(const ObjectSpec &spec) {
    Result<uint64_t> r0 = run(spec);
    if (!r0) FAIL(r0.error().message());
    return *r0;
}
std::string problem(const ObjectSpec &spec) {
    Result<uint64_t> r0 = run(spec);
    return r0 ? std::string() : r0.error().message();
}
bool says(const std::string &text, std::string_view part) {
    if (text.find(part) != std::string::npos) return true;
    MESSAGE(text);
    return false;
}

struct Made {
    emulator::Memory memory;
    emulator::Journal journal;
    Result<std::unique_ptr<EmulatedMap>> make(uint32_t type, uint32_t key, uint32_t value, uint32_t entries, uint32_t flags = 0,
                                              uint64_t extra = 0) {
        MapSpec spec;
        spec.name = "m";
        spec.type = type;
        spec.key_size = key;
        spec.value_size = value;
        spec.max_entries = entries;
        spec.flags = flags;
        spec.map_extra = extra;
        return EmulatedMap::create(spec, memory, journal);
    }
};
const uint8_t *bytes(const auto &value) { return reinterpret_cast<const uint8_t *>(&value); }

struct Prefix {
    uint32_t bits;
    uint8_t data[4];
    [[nodiscard]] bool covers(const Prefix &other) const {
        if (bits > other.bits) return false;
        for (uint32_t n = 0; n < bits; ++n)
            if ((data[n / 8] ^ other.data[n / 8]) >> (7 - n % 8) & 1) return false;
        return true;
    }
};

} // namespace

TEST_CASE("emulator: a trie finds the longest prefix") {
    Made made;
    auto trie = made.make(BPF_MAP_TYPE_LPM_TRIE, 8, 8, 40, BPF_F_NO_PREALLOC);
    REQUIRE(trie);
    std::vector<std::pair<Prefix, uint64_t>> model;
    uint32_t seed = 7;
    auto next = [&] { return (seed = seed * 1664525 + 1013904223) >> 8; };
    for (uint64_t round = 1; round < 6000; ++round) {
        Prefix key{next() % 34, {}};
        for (uint8_t &byte : key.data) byte = next() % 3 ? 0 : static_cast<uint8_t>(next());
        auto same = std::find_if(model.begin(), model.end(),
                                 [&](auto &one) { return one.first.bits == key.bits && one.first.covers(key); });
        switch (next() % 3) {
        case 0: {
            const uint64_t flags = next() % 4;
            int64_t expected = 0;
            if (flags > BPF_EXIST || key.bits > 32)
                expected = -EINVAL;
            else if (same != model.end())
                expected = flags == BPF_NOEXIST ? -EEXIST : 0;
            else
                expected = flags == BPF_EXIST ? -ENOENT : model.size() == 40 ? -ENOSPC : 0;
            REQUIRE((*trie)->update(bytes(key), bytes(round), flags) == expected);
            if (expected == 0 && same != model.end()) *same = {key, round};
            if (expected == 0 && same == model.end()) model.emplace_back(key, round);
            break;
        }
        case 1: {
            const std::pair<Prefix, uint64_t> *best = nullptr;
            for (auto &one : model)
                if (one.first.covers(key) && (!best || one.first.bits > best->first.bits)) best = &one;
            if (key.bits > 32) best = nullptr;
            const uint64_t address = (*trie)->lookup(bytes(key));
            REQUIRE((address != 0) == (best != nullptr));
            if (best) REQUIRE(std::memcmp(made.memory.find(address, 8, true), &best->second, 8) == 0);
            break;
        }
        default:
            REQUIRE((*trie)->erase(bytes(key)) == (key.bits > 32 ? -EINVAL : same == model.end() ? -ENOENT : 0));
            if (key.bits <= 32 && same != model.end()) model.erase(same);
        }
    }
    CHECK(says(made.make(BPF_MAP_TYPE_LPM_TRIE, 8, 8, 4).error().message(), "BPF_F_NO_PREALLOC"));
    CHECK(says(made.make(BPF_MAP_TYPE_LPM_TRIE, 4, 8, 4, 1).error().message(), "1 to 256 bytes of data"));
}

TEST_CASE("emulator: a bloom filter has all that was put in, and little else") {
    Made made;
    auto bloom = made.make(BPF_MAP_TYPE_BLOOM_FILTER, 0, 12, 100, 0, 3);
    REQUIRE(bloom);
    struct {
        uint32_t words[3] = {};
    } value;
    auto of = [&](uint32_t n) {
        value.words[0] = n;
        value.words[2] = n * 3;
        return reinterpret_cast<const uint8_t *>(&value);
    };
    CHECK((*bloom)->add(of(1), BPF_EXIST) == -EINVAL);
    for (uint32_t n = 0; n < 100; ++n) CHECK((*bloom)->add(of(n), BPF_ANY) == 0);
    int wrong = 0;
    for (uint32_t n = 0; n < 1100; ++n)
        if (const int64_t there = (*bloom)->may_contain(of(n)); n < 100)
            CHECK(there == 0);
        else
            wrong += there == 0;
    CHECK(wrong < 200);
    CHECK(says(made.make(30, 4, 8, 4).error().message(), "no keys"));
}

TEST_CASE("emulator: maps that can't be") {
    Made made;
    for (uint32_t type : {BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_ARRAY, BPF_MAP_TYPE_QUEUE}) {
        const uint32_t key = type == BPF_MAP_TYPE_QUEUE ? 0 : 4;
        CHECK(says(made.make(type, key, 8, UINT32_MAX).error().message(), "4 GiB of addresses for all maps"));
        CHECK(says(made.make(type, key, UINT32_MAX, UINT32_MAX).error().message(), "4 GiB of addresses for all maps"));
        CHECK(says(made.make(type, key, UINT32_MAX, 1).error().message(), "4 GiB of addresses for all maps"));
    }
    CHECK(says(made.make(BPF_MAP_TYPE_HASH, 4, 1, 1U << 31).error().message(), "4 GiB of addresses for all maps"));
    CHECK(says(made.make(BPF_MAP_TYPE_HASH, 4, 0, 1U << 31).error().message(), "value_size is 0"));
    CHECK(says(made.make(33, 0, 0, 1U << 30).error().message(), "4 GiB of addresses for all maps"));
}

TEST_CASE("emulator: a pointer to a value that was replaced sees what it saw") {
    // The kernel puts the new value into an element that it kept aside; what is written through the old pointer is lost.
    std::string inlined = R"(
.map m hash key 4 value 8 entries 4
    *(u32 *)(r10 - 4) = 1
    *(u64 *)(r10 - 16) = 5
    call put
    call get
    if r0 == 0 goto out
    r6 = r0
    *(u64 *)(r10 - 16) = 7
    call put
    r7 = *(u64 *)(r6 + 0)
    *(u64 *)(r6 + 0) = 100
    call get
    if r0 == 0 goto out
    r0 = *(u64 *)(r0 + 0)
    r7 *= 10
    r0 += r7
out: exit
)";
    auto replace = [&](std::string_view from, std::string_view to) {
        for (size_t at; (at = inlined.find(from)) != std::string::npos;) inlined.replace(at, from.size(), to);
    };
    replace("call put", "r1 = m ll\nr2 = r10\nr2 += -4\nr3 = r10\nr3 += -16\nr4 = 0\ncall bpf_map_update_elem");
    replace("call get", "r1 = m ll\nr2 = r10\nr2 += -4\ncall bpf_map_lookup_elem");
    CHECK(result(test::spec_from(inlined)) == 57);
    replace("m hash", "m percpu_hash"); // which are overwritten
    CHECK(result(test::spec_from(inlined)) == 170);
}

TEST_CASE("emulator: maps in maps") {
    for (const char *kind : {"array_of_maps", "hash_of_maps"}) {
        ObjectSpec spec = test::spec_from(std::string(".map outer ") + kind + R"( key 4 value 4 entries 4
.map one array key 4 value 8 entries 1
.map two array key 4 value 8 entries 1
    r6 = 0
    *(u32 *)(r10 - 8) = 0
    *(u32 *)(r10 - 4) = 0
next:
    r1 = outer ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto none
    r1 = r0
    r2 = r10
    r2 += -8
    call bpf_map_lookup_elem
    if r0 == 0 goto none
    r1 = *(u32 *)(r10 - 4)
    r1 += 1
    lock *(u64 *)(r0 + 0) += r1
    r6 += 1
none:
    r1 = *(u32 *)(r10 - 4)
    r1 += 1
    *(u32 *)(r10 - 4) = r1
    if r1 < 6 goto next
    r0 = r6
    exit
)");
        spec.maps[0].inner = std::make_shared<MapSpec>(spec.maps[1]);
        spec.maps[0].slots = {{1, "one"}, {3, "two"}};
        auto machine = emulator::Machine::create(spec);
        REQUIRE(machine);
        REQUIRE((*machine)->enter(0));
        CHECK((*machine)->run().value() == 2);
        CHECK(*(*machine)->maps()[1]->value_at(0) == 2);
        CHECK(*(*machine)->maps()[2]->value_at(0) == 4);
        spec.maps[0].slots = {{1, "nobody"}};
        CHECK(says(problem(spec), "nobody can't be its entry 1"));
    }
}

TEST_CASE("emulator: an arena's pages") {
    const ObjectSpec spec = test::spec_from(R"(
.map a arena entries 3 flags 0x400
.program p "syscall"
    r1 = a ll
    r2 = 0
    r3 = 2
    r4 = -1
    r5 = 0
    call kfunc bpf_arena_alloc_pages
    r7 = r0
    r6 = addr_space_cast(r0, 0, 1)
    *(u64 *)(r6 + 8) = 5
    r8 = addr_space_cast(r6, 1, 0)
    r7 -= r8
    r0 = *(u64 *)(r6 + 8)
    r0 += r7
    r2 = 0
    r2 = addr_space_cast(r2, 1, 0)
    r0 += r2
    exit
)");
    CHECK(result(spec) == 5);
    ObjectSpec freed = spec;
    freed.programs[0].insns.pop_back();
    auto &code = freed.programs[0].insns;
    load_map(freed, 1, 0);
    code.push_back(i("mov_reg", {.dst = 2, .src = 8}));
    code.push_back(i("mov", {.dst = 3, .imm = 1}));
    freed.programs[0].fixups.push_back({});
    freed.programs[0].fixups.back().insn = static_cast<uint32_t>(code.size());
    freed.programs[0].fixups.back().kind = Fixup::Kind::kfunc;
    freed.programs[0].fixups.back().symbol = "bpf_arena_free_pages";
    code.push_back(i("call_kfunc"));
    code.push_back(i("ldxb", {.dst = 0, .src = 6}));
    code.push_back(i("exit"));
    CHECK(says(problem(freed), "a part of map a that isn't in use"));
    freed.programs[0].fixups.back().symbol = "bpf_who_knows";
    CHECK(says(problem(freed), "bpf_who_knows is a kernel function, which the emulator doesn't have"));
}

TEST_CASE("emulator: a jump through a table, and where it can't go") {
    ObjectSpec spec = test::spec_from(R"(
.map table insn_array key 4 value 16 entries 3
    r1 = table ll
    r1 += 8
    r1 = *(u64 *)(r1 + 0)
    gotox r1
    r0 = 1
    exit
    r0 = 2
    exit
)");
    spec.programs[0].fixups[0].kind = Fixup::Kind::map_value;
    spec.maps[0].contents.resize(48);
    spec.maps[0].contents[16] = std::byte{7};
    CHECK(result(spec) == 2);
    spec.maps[0].contents[16] = std::byte{5};
    CHECK(result(spec) == 1);
    spec.maps[0].contents[16] = std::byte{1}; // the second half of an instruction
    CHECK(says(problem(spec), "not the address of an instruction"));
    spec.maps[0].contents[16] = std::byte{99};
    CHECK(says(problem(spec), "not the address of an instruction"));
    CHECK(says(fault({i("gotox", {.dst = 1})}), "not the address of an instruction"));
    CHECK(says(fault({raw(0xbf, 1, 1, 1, 7), i("exit")}), "address space 0"));
}

TEST_CASE("emulator: a compiler's jump tables") {
    ObjectSpec spec = parse_object(golden_jumps, "jumps.bpf.o").value(); // object/golden/jumps.bpf.c
    constexpr uint64_t kWeights[] = {50, 61, 72, 83, 94, 105, 2, 2}, kSums[] = {1000, 3000, 2000, 5000, 7000, 6000, 4000, 0};
    std::swap(spec.programs[0], spec.programs[1]);
    for (size_t n = 0; n < std::size(kWeights); ++n) {
        CAPTURE(n);
        spec.find_global("chosen")[0] = static_cast<std::byte>(n);
        CHECK(result(spec) == kWeights[n] + kSums[n]); // `second` and the function that it calls
    }
}

namespace {
constexpr std::string_view kTimers = R"(
.map m array key 4 value 24 entries 2
.bss order u64
.program p "socket"
    r6 = 1
again:
    *(u32 *)(r10 - 4) = r6
    r1 = m ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r7 = r0
    r1 = r7
    r2 = m ll
    r3 = 1
    call bpf_timer_init
    r1 = r7
    r2 = fired ll
    call bpf_timer_set_callback
    r1 = r7
    r2 = r6
    r2 *= 1000
    r3 = 0
    call bpf_timer_start
    r6 -= 1
    if r6 == 0 goto again
out:
    r0 = 42
    exit
.function fired
    r6 = r3
    r7 = *(u32 *)(r2 + 0)
    r7 += 1
    r1 = order ll
    r2 = *(u64 *)(r1 + 0)
    r2 *= 10
    r2 += r7
    *(u64 *)(r1 + 0) = r2
    r1 = r6
    r2 = 1
    r3 = 0
    call bpf_timer_start
    r0 = 0
    exit
)";
} // namespace

TEST_CASE("emulator: timers run when the program has ended, in order, once a run") {
    const ObjectSpec spec = test::spec_from(kTimers);
    for (const bool stepping : {false, true}) {
        auto machine = emulator::Machine::create(spec, {.stepping = stepping});
        REQUIRE(machine);
        auto order = [&] {
            uint64_t value;
            std::memcpy(&value, (*machine)->maps()[1]->value_at(0), 8);
            return value;
        };
        REQUIRE((*machine)->enter(0));
        if (stepping) {
            size_t steps = 0;
            while ((*machine)->step().value()) ++steps;
            CHECK((*machine)->cpu().r[0] == 42);
            CHECK(order() == 12);
            size_t back = 0;
            while ((*machine)->back()) ++back;
            CHECK(back >= steps);
            CHECK(order() == 0);
            while ((*machine)->step().value()) ++steps;
            CHECK(order() == 12); // and again the same
            continue;
        }
        CHECK((*machine)->run().value() == 42); // not the callbacks' result
        CHECK(order() == 12);
        REQUIRE((*machine)->enter(0));
        CHECK((*machine)->run().value() == 42); // they had started themselves again
        CHECK(order() > 1200);
    }
    ObjectSpec wrong = spec;
    auto &code = wrong.programs[0].insns;
    code[code.size() - 2].imm = 3; // r0 = 0 of the callback
    CHECK(says(problem(wrong), "a timer's callback returned 3"));
}

TEST_CASE("emulator: a timer's helpers have the kernel's answers") {
    auto with = [](std::string_view what) {
        return test::spec_from(std::string(R"(
.map m hash key 4 value 24 entries 2
.program p "socket"
    *(u32 *)(r10 - 4) = 1
    *(u64 *)(r10 - 32) = 0
    *(u64 *)(r10 - 24) = 0
    *(u64 *)(r10 - 16) = 0
    r1 = m ll
    r2 = r10
    r2 += -4
    r3 = r10
    r3 += -32
    r4 = 0
    call bpf_map_update_elem
    r1 = m ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    r6 = r0
    r1 = r0
)") + std::string(what) + "\nexit\n.function back\nr0 = 0\nexit\n");
    };
    const std::string init = "r2 = m ll\nr3 = 1\ncall bpf_timer_init\nr1 = r6\n";
    const std::string set = "r2 = back ll\ncall bpf_timer_set_callback\nr1 = r6\n",
                      start = "r2 = 5\nr3 = 0\ncall bpf_timer_start\n";
    const std::string remove = "r1 = m ll\nr2 = r10\nr2 += -4\ncall bpf_map_delete_elem\nr1 = r6\n";
    auto errno_is = [](const ObjectSpec &spec, int number) { return static_cast<int64_t>(result(spec)) == -number; };
    CHECK(errno_is(with("r2 = m ll\nr3 = 5\ncall bpf_timer_init"), EINVAL));
    CHECK(errno_is(with(init + "r2 = m ll\nr3 = 1\ncall bpf_timer_init"), EBUSY));
    CHECK(errno_is(with(start), EINVAL));
    CHECK(errno_is(with(init + start), EINVAL)); // no callback
    CHECK(result(with(init + set + start)) == 0);
    CHECK(errno_is(with(init + set + "r2 = 5\nr3 = 8\ncall bpf_timer_start"), EINVAL));
    CHECK(errno_is(with("call bpf_timer_cancel"), EINVAL));
    CHECK(result(with(init + "call bpf_timer_cancel")) == 0);
    CHECK(result(with(init + set + start + "r1 = r6\ncall bpf_timer_cancel")) == 1);
    CHECK(errno_is(with(init + set + remove + start), EINVAL)); // it went with the value
    CHECK(says(problem(with("r1 = r10\n" + init)), "isn't in a value of map m"));
    CHECK(says(problem(with("r1 = 5\n" + set)), "isn't the address of a timer"));
}

TEST_CASE("emulator: numbers to count with") {
    const ObjectSpec spec = test::spec_from(R"(
    r6 = 0
    r1 = r10
    r1 += -8
    r2 = 3
    r3 = 7
    call kfunc bpf_iter_num_new
next:
    r1 = r10
    r1 += -8
    call kfunc bpf_iter_num_next
    if r0 == 0 goto out
    r1 = *(s32 *)(r0 + 0)
    r6 *= 10
    r6 += r1
    goto next
out:
    r1 = r10
    r1 += -8
    call kfunc bpf_iter_num_destroy
    r0 = r6
    exit
)");
    CHECK(result(spec) == 3456);
}
