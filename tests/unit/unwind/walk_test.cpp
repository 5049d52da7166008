// Two walks, one result: the program's, run by the emulator, and the one in user space, over the same tables, stacks and
// registers, from sensible ones to nonsense, for each machine.
#include "programs/unwind/walk.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "asm/builder.h"
#include "programs/profile/sample.h"
#include "programs/unwind/unwinder.h"
#include "runtime/base/format.h"
#include "runtime/emulator/machine.h"
#include "runtime/object/unit_object.h"
#include "tests/support/sanitized.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::unwind;

namespace {

constexpr uint32_t kPools = 3, kSlots = 4; // the last slot has no pool
constexpr uint32_t kRoom = 255, kStackBytes = 4096, kCodeBytes = 32768, kContextBytes = 512, kDepth = 16, kPid = 7;

struct Scratch {
    UnwindScratch<> walk;
    uint64_t frames[kRoom];
};

class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t next() { return state_ = state_ * 6364136223846793005u + 1442695040888963407u, state_ >> 16; }
    uint64_t below(uint64_t n) { return next() % n; }
    bool one_in(uint64_t n) { return below(n) == 0; }

  private:
    uint64_t state_;
};

/// The program in the emulator, with its maps.
class Emulated final : public WalkTables {
  public:
    UnwindProgramOptions options;
    std::vector<UnwindMapping> mappings;

    Emulated(Arch arch, bool bpf_loop) {
        options.depth = kDepth;
        options.pools = kSlots;
        options.processes = 4;
        options.has_bpf_loop = bpf_loop;
        options.copies = true; // then it keeps the first frame's registers
        options.arch = arch;
        if (find_machine(arch)->signs) options.address_mask = ~0ull >> 8;
        Builder b("walk");
        Unwinder unwinder(b, options);
        const MapRef scratch = b.array<Scratch>("scratch", 1);
        const MapRef stack = b.array<std::array<std::byte, kStackBytes + kCodeBytes>>("stack", 1);
        Code &f = b.program("kprobe", "walk");
        const Slot pid = f.stack<uint32_t>("pid"), zero = f.stack<uint32_t>("zero");
        const Label none = f.label("none");
        f.mov(r6, r1);
        f.store<uint32_t>(pid, kPid);
        f.store<uint32_t>(zero, 0);
        f.call(helper::map_lookup_elem, stack, zero);
        f.jump_if(r0 == 0, none);
        f.call(helper::map_lookup_elem, scratch, zero);
        f.jump_if(r0 == 0, none);
        f.mov(r8, r0);
        f.mov(r9, 0);
        Unwinder::WalkPlace place{UnwindContext::registers, pid};
        place.state = offsetof(Scratch, walk);
        place.frames = offsetof(Scratch, frames);
        place.room = kRoom;
        unwinder.walk(f, place);
        f.exit();
        f.bind(none);
        f.ret(0);
        Built built = b.finish();
        REQUIRE_MESSAGE(built, built.report());
        spec_ = object_of(*built).value();
        complete_unwind_maps(spec_);
        MapSpec *pools = spec_.find_map("unwind_pools");
        REQUIRE(pools);
        for (uint32_t i = 0; i < kPools; ++i) pools->slots.push_back({i, "pool" + std::to_string(i)});
        for (uint32_t i = 0; i < kPools; ++i) {
            spec_.maps.push_back(unwind_pool_spec());
            spec_.maps.back().name = "pool" + std::to_string(i);
        }
        auto machine = emulator::Machine::create(spec_);
        REQUIRE_MESSAGE(machine, machine.error().message());
        machine_ = std::move(*machine);
        context_.resize(kContextBytes);
        REQUIRE(machine_->set_memory(context_));
    }

    [[nodiscard]] emulator::EmulatedMap &map(std::string_view name) const {
        for (const auto &one : machine_->maps())
            if (one->name() == name) return *one;
        FAIL("no such map");
        std::abort();
    }
    [[nodiscard]] std::byte *bytes_of(std::string_view name, uint32_t place = 0) const {
        return reinterpret_cast<std::byte *>(map(name).value_at(place));
    }
    [[nodiscard]] const std::byte *pool(uint32_t number) const override {
        return number < kPools ? bytes_of("pool" + std::to_string(number)) : nullptr;
    }
    [[nodiscard]] const UnwindRule *rule(uint32_t number) const override {
        return number < UNWIND_RULES ? reinterpret_cast<const UnwindRule *>(bytes_of("unwind_rules", number)) : nullptr;
    }
    void put(uint32_t position, const void *from, size_t size) const {
        std::memcpy(bytes_of("pool" + std::to_string(position >> UNWIND_POOL_BITS)) + UNWIND_POOL_AT(position), from, size);
    }
    void set_rule(uint32_t number, const UnwindRule &is) const { std::memcpy(bytes_of("unwind_rules", number), &is, sizeof is); }
    /// Behind the stack, so that whatever one walk can read as its stack, the other can, too.
    [[nodiscard]] uint64_t code_address() const { return stack_address() + kStackBytes; }
    [[nodiscard]] bool code(uint64_t address, std::span<std::byte> into) const override {
        const uint64_t at = address - stack_address();
        if (at > stack().size() || stack().size() - at < into.size()) return false;
        std::memcpy(into.data(), stack().data() + at, into.size());
        return true;
    }
    [[nodiscard]] uint64_t stack_address() const { return map("stack").value_address(0); }
    [[nodiscard]] std::span<std::byte> stack() const { return {bytes_of("stack"), kStackBytes + kCodeBytes}; }

    /// What the process has mapped.
    void set_mappings(uint32_t position, std::vector<UnwindMapping> list) {
        put(position, list.data(), list.size() * sizeof(UnwindMapping));
        UnwindProcess process{};
        process.mappings = position;
        process.count = static_cast<uint32_t>(list.size());
        process.edition = ++edition_; // others are where tables were
        const uint32_t pid = kPid;
        REQUIRE(map("unwind_processes")
                    .update(reinterpret_cast<const uint8_t *>(&pid), reinterpret_cast<const uint8_t *>(&process), 0) == 0);
        mappings = std::move(list);
    }

    /// Rules in the memory of the scratch that such a map has.
    [[nodiscard]] size_t remembered(std::string_view in) const {
        UnwindScratch<> scratch;
        std::memcpy(&scratch, bytes_of(in), sizeof scratch);
        return static_cast<size_t>(std::count_if(std::begin(scratch.memory.rules_of), std::end(scratch.memory.rules_of),
                                                 [](const UnwindRemembered &one) { return one.code != 0; }));
    }

    Walked emulate(const UnwindRegisters &registers) {
        const auto put_register = [&](size_t at, uint64_t value) { std::memcpy(context_.data() + at, &value, sizeof value); };
        if (options.arch == Arch::arm64) {
            put_register(256, registers.pc);
            put_register(248, registers.sp);
            put_register(232, registers.fp);
            put_register(240, registers.lr);
            put_register(264, 0);
        } else if (options.arch == Arch::riscv64) {
            put_register(0, registers.pc);
            put_register(8, registers.lr);
            put_register(16, registers.sp);
            put_register(64, registers.fp);
        } else {
            put_register(128, registers.pc);
            put_register(152, registers.sp);
            put_register(32, registers.fp);
            put_register(56, registers.lr);
            put_register(112, registers.di);
            put_register(16, registers.code);
            put_register(136, 0x33);
        }
        REQUIRE(machine_->enter(0));
        const auto bytes = machine_->run();
        REQUIRE_MESSAGE(bytes, bytes.error().message());
        Scratch scratch;
        std::memcpy(&scratch, bytes_of("scratch"), sizeof scratch);
        CHECK((scratch.walk.state.ending & UNWIND_TABLES) != 0);
        CHECK(std::memcmp(&scratch.walk.state.leaf, &registers, sizeof registers) == 0);
        REQUIRE(*bytes / 8 <= kDepth);
        Walked out;
        out.ending = scratch.walk.state.ending & ~uint32_t{UNWIND_TABLES};
        out.frames.assign(scratch.frames, scratch.frames + *bytes / 8);
        return out;
    }
    [[nodiscard]] Walked walk(const UnwindRegisters &registers) const {
        return unwind::walk(options, *this, mappings, {registers, {stack().data(), stack().size()}});
    }

  private:
    ObjectSpec spec_;
    std::unique_ptr<emulator::Machine> machine_;
    std::vector<std::byte> context_;
    uint32_t edition_ = 0;
};

constexpr uint64_t kCode = 0x7f0000000000;
constexpr uint32_t kDirectory = 1 << UNWIND_POOL_BITS, kList = 2 << UNWIND_POOL_BITS, kRows = 0x100;
constexpr uint32_t kPages = 3, kPageRows = 40, kRules = 64;

/// A rule as a compiler could have asked for it, or not.
UnwindRule some_rule(Random &random, bool link, bool sensible) {
    const auto small = [&](int64_t from, int64_t to) {
        return static_cast<int16_t>(from + static_cast<int64_t>(random.below(static_cast<uint64_t>(to - from + 1))));
    };
    UnwindRule out{};
    out.kind = static_cast<uint8_t>(random.one_in(sensible ? 20 : 2) ? random.below(12)
                                    : random.one_in(8)               ? UNWIND_FP
                                                                     : UNWIND_SP);
    out.flags = static_cast<uint8_t>(random.one_in(link ? 3 : 12) ? random.below(random.one_in(4) ? 256 : 16) : 0);
    out.cfa = sensible ? static_cast<int16_t>(2 * small(1, 2)) : small(-32768, 32767); // see some_word()
    out.ra = -1;
    out.fp = random.one_in(2) ? 0 : -2;
    if (out.kind == UNWIND_FP_DEREF || (out.flags & UNWIND_FP_BY_FP)) out.fp = small(-2, 2);
    if (!sensible || random.one_in(25)) {
        out.fp = small(-9, 9);
        out.ra = random.one_in(2) ? small(-9, 9) : static_cast<int16_t>(out.fp + 1);
        if (random.one_in(2)) out.cfa = small(-3, 20);
    }
    // A frame pointer just below the stack pointer: a program reads it, a copy doesn't have it (listed_walk_test.cpp).
    if (out.kind == UNWIND_SP && out.ra == -1 && out.cfa + out.fp == -1) out.fp = 0;
    return out;
}

/// Eight bytes of code: one of those that both walks know, behind a call or not, or anything.
uint64_t some_code(Random &random, Arch arch) {
    const auto patterns = code_patterns(arch);
    const auto calls = call_forms(arch);
    const CodePattern &pattern = patterns[random.below(patterns.size())];
    const CallForm &call = calls[random.below(calls.size())];
    const auto entries = return_entries(arch);
    switch (random.below(5)) {
    case 4: return entries.empty() ? 0 : entries[random.below(entries.size())];
    case 0: return random.next() << 16 ^ random.next();
    case 1: return pattern.here | (random.next() << 16 & ~pattern.mask);
    case 2: return pattern.before_mask != 0 ? pattern.before : 0;
    default: return uint64_t{call.bits} << call.shift;
    }
}

/// Tables for four mappings: by table, by frame pointers, by table with a bias, and code of which nothing is known.
void make_tables(Emulated &both, Random &random, bool sensible) {
    for (uint32_t i = 0; i < kRules; ++i) both.set_rule(i, some_rule(random, find_machine(both.options.arch)->link, sensible));
    for (uint32_t at = 0; at < kCodeBytes; at += 8) {
        const uint64_t code = some_code(random, both.options.arch);
        std::memcpy(both.stack().data() + kStackBytes + at, &code, sizeof code);
    }
    for (uint32_t position = 0; position < kPools << UNWIND_POOL_BITS && !sensible; position += 4) {
        const auto word = static_cast<uint32_t>(random.below(uint64_t{kSlots} << UNWIND_POOL_BITS)) & ~0xffc0u;
        both.put(position, &word, sizeof word);
    }
    for (uint32_t page = 0; page < kPages && sensible; ++page) {
        uint32_t low = 0;
        const UnwindPage is{kRows + page * kPageRows * 4, random.one_in(20) ? 0 : kPageRows};
        both.put(kDirectory + page * uint32_t{sizeof is}, &is, sizeof is);
        for (uint32_t i = 0; i < kPageRows; ++i) {
            const uint32_t row = UNWIND_ROW(low, random.one_in(200) ? random.below(0x10000) : random.below(kRules));
            both.put(is.first + i * 4, &row, sizeof row);
            low += static_cast<uint32_t>(random.below(0x10000 / kPageRows));
        }
    }
    const auto pages = static_cast<uint32_t>(sensible ? kDirectory : random.below(kSlots) << UNWIND_POOL_BITS);
    std::vector<UnwindMapping> list{{both.code_address(), both.code_address() + kCodeBytes / 2, 0, 0, 0, UNWIND_BY_FP},
                                    {both.code_address() + kCodeBytes / 2, both.code_address() + kCodeBytes,
                                     both.code_address() + kCodeBytes / 2, pages, kPages, UNWIND_BY_TABLE},
                                    {kCode, kCode + 0x30000, kCode, pages, kPages, UNWIND_BY_TABLE},
                                    {kCode + 0x30000, kCode + 0x38000, 0, 0, 0, UNWIND_BY_FP},
                                    {kCode + 0x40000, kCode + 0x50000, kCode + 0x30000, pages, kPages, UNWIND_BY_TABLE},
                                    {kCode + 0x50000, kCode + 0x51000, 0, 0, 0, UNWIND_BY_NONE}};
    std::sort(list.begin(), list.end(), [](const UnwindMapping &a, const UnwindMapping &b) { return a.start < b.start; });
    both.set_mappings(kList, std::move(list));
}

/// Frames are an even number of words, so that with sensible rules return addresses are read from odd ones.
uint64_t some_word(Emulated &both, Random &random, uint64_t place) {
    switch (random.below(32)) {
    case 0: return random.one_in(3) ? 0 : random.next();
    case 1: return both.stack_address() + random.below(kStackBytes + 64);
    case 2: return kCode + random.below(0x52000);
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
    case 9: return both.code_address() + random.below(kCodeBytes);
    case 3: return (kCode + random.below(0x30000)) | 0xb5ull << 56; // signed, for arm64
    default: break;
    }
    if (place / 8 % 2 == 0) return both.stack_address() + place + 16 * random.below(8);
    return kCode + random.below(random.one_in(8) ? 0x38000 : 0x30000);
}

UnwindRegisters make_stack(Emulated &both, Random &random) {
    for (uint32_t at = 0; at < kStackBytes; at += 8) {
        const uint64_t word = some_word(both, random, at);
        std::memcpy(both.stack().data() + at, &word, sizeof word);
    }
    UnwindRegisters out{};
    out.pc = out.address = random.one_in(20)  ? some_word(both, random, 0)
                           : random.one_in(3) ? both.code_address() + random.below(kCodeBytes)
                                              : kCode + random.below(0x30000);
    if (both.options.arch == Arch::riscv64) out.pc = out.address &= ~UNWIND_EXACT_PC; // what tells the kernel's from user space's
    out.sp = both.stack_address();
    out.fp = some_word(both, random, 0);
    out.lr = random.one_in(4) ? 0 : some_word(both, random, find_machine(both.options.arch)->link ? 8 : 0);
    if (both.options.arch == Arch::x86_64) {
        out.di = random.one_in(4) ? 0 : some_word(both, random, 8);
        out.code = random.next();
    }
    return out;
}

std::string text(const Walked &walked) {
    std::string out = std::to_string(walked.ending) + ":";
    for (const uint64_t frame : walked.frames) append(out, " {:x}", frame);
    return out;
}

} // namespace

TEST_CASE("unwind walk: the program's and user space's agree, whatever the tables and the stack hold") {
    for (const Machine &machine : kMachines) {
        INFO(arch_info(machine.arch).name);
        Emulated with_loop(machine.arch, true), without(machine.arch, false);
        size_t endings[UNWIND_ENDINGS] = {}, frames = 0, walks = 0;
        for (uint64_t world = 1; world <= (test::slow() ? 16 : 40); ++world) {
            Emulated &both = world % 4 == 0 ? without : with_loop;
            Random random(world);
            make_tables(both, random, world % 8 != 1);
            for (int i = 0; i < 25; ++i) {
                const UnwindRegisters registers = make_stack(both, random);
                const Walked here = both.walk(registers), there = both.emulate(registers);
                REQUIRE(text(here) == text(there));
                REQUIRE(text(here) == text(both.emulate(registers))); // by the rules that it remembers
                ++endings[here.ending];
                frames += here.frames.size();
                ++walks;
            }
        }
        std::string seen;
        for (const size_t n : endings) append(seen, "{} ", n);
        append(seen, "{} frames", frames);
        INFO(seen);
        CHECK(frames > 2 * walks);
        CHECK(with_loop.remembered("scratch") > 0);
        CHECK(without.remembered("unwind_state") > 0);
        for (const uint32_t ending : {UNWIND_ENDED_ROOT, UNWIND_ENDED_NO_MAPPING, UNWIND_ENDED_NO_TABLE, UNWIND_ENDED_NO_RULE,
                                      UNWIND_ENDED_ODD, UNWIND_ENDED_UNREADABLE, UNWIND_ENDED_STUCK, UNWIND_ENDED_DEPTH}) {
            INFO(ending);
            CHECK(endings[ending] > 0);
        }
    }
}

namespace {

/// Tables that are written down: a page of rows, and their rules.
class Written final : public WalkTables {
  public:
    std::vector<std::byte> bytes{UNWIND_POOL_BYTES};
    std::vector<UnwindRule> rules;
    [[nodiscard]] const std::byte *pool(uint32_t number) const override { return number == 0 ? bytes.data() : nullptr; }
    [[nodiscard]] const UnwindRule *rule(uint32_t number) const override {
        return number < rules.size() ? &rules[number] : nullptr;
    }
    std::map<uint64_t, uint64_t> words_of_code; ///< at an address: eight bytes
    [[nodiscard]] bool code(uint64_t address, std::span<std::byte> into) const override {
        for (size_t at = 0; at < into.size(); at += 8) {
            const auto found = words_of_code.find(address + at);
            if (found == words_of_code.end()) return false;
            std::memcpy(into.data() + at, &found->second, 8);
        }
        return true;
    }
    /// 256 bytes of code for each rule.
    explicit Written(std::vector<UnwindRule> all) : rules(std::move(all)) {
        const UnwindPage page{64, static_cast<uint32_t>(rules.size())};
        std::memcpy(bytes.data(), &page, sizeof page);
        for (uint32_t i = 0; i < rules.size(); ++i) {
            const uint32_t row = UNWIND_ROW(i << 8, i);
            std::memcpy(bytes.data() + 64 + i * 4, &row, sizeof row);
        }
    }
};

Walked walk_copy(const Written &tables, const StackCopy &copy, Arch arch = Arch::x86_64) {
    UnwindProgramOptions program;
    program.arch = arch;
    const UnwindMapping mapping{0x10000, 0x20000, 0x10000, 0, 1, UNWIND_BY_TABLE};
    return walk(program, tables, {&mapping, 1}, copy);
}

Walked walk_words(const Written &tables, const std::vector<uint64_t> &words, uint64_t pc, uint64_t fp, size_t cut = SIZE_MAX) {
    StackCopy copy{{pc, pc, 0x7000, fp, 0, 0, 0}, std::as_bytes(std::span(words))};
    copy.bytes = copy.bytes.first(std::min(cut, copy.bytes.size()));
    return walk_copy(tables, copy);
}

} // namespace

TEST_CASE("unwind walk: a stack cut anywhere has the frames that are whole") {
    const Written tables({{}, {UNWIND_SP, 0, 2, 0, -1}, {UNWIND_SP, 0, 3, -2, -1}, {UNWIND_END, 0, 0, 0, 0}});
    const std::vector<uint64_t> words{0, 0x10205, 0, 0xfff0, 0x10105, 0, 0x10301, 0};
    const Walked all = walk_words(tables, words, 0x10100, 0x8888);
    CHECK(all.ending == UNWIND_ENDED_ROOT);
    CHECK(all.frames == std::vector<uint64_t>{0x10100, 0x10205, 0x10105, 0x10301});
    for (size_t cut = 0; cut < 56; ++cut) {
        const Walked part = walk_words(tables, words, 0x10100, 0x8888, cut);
        CHECK(part.ending == UNWIND_ENDED_UNREADABLE);
        CHECK(part.frames.size() == (cut < 16 ? 1 : cut < 40 ? 2 : 3));
        CHECK(std::equal(part.frames.begin(), part.frames.end(), all.frames.begin()));
    }
    CHECK(walk_words(tables, words, 0x30000, 0).ending == UNWIND_ENDED_NO_MAPPING);
    CHECK(walk_words(tables, words, 0x30000, 0).frames == std::vector<uint64_t>{0x30000});
    CHECK(walk_words(tables, words, 0x10000, 0).ending == UNWIND_ENDED_NO_RULE);
}

TEST_CASE("unwind walk: of a page that wasn't there nothing is read, and the walk goes on above it") {
    constexpr size_t kFirst = 4; // words up to the page's end
    const uint64_t sp = 0x7000 - kFirst * sizeof(uint64_t);
    const auto copied = [&](const std::vector<uint64_t> &words) {
        const UnwindRegisters registers{0x10100, 0x10100, sp, sp, 0, 0, 0};
        std::vector<std::byte> bytes(sizeof registers + words.size() * sizeof(uint64_t));
        std::memcpy(bytes.data(), &registers, sizeof registers);
        std::memcpy(bytes.data() + sizeof registers, words.data(), words.size() * sizeof(uint64_t));
        return bytes;
    };
    const Written large({{}, {UNWIND_SP, 0, 6, 0, -1}, {UNWIND_END, 0, 0, 0, 0}}); // a frame of six words
    const auto hollow = copied({0, 0, 0, 0, 5, 0x10205, 7});
    CHECK(read_copy(hollow)->absent == kFirst * sizeof(uint64_t));
    CHECK(walk_copy(large, read_copy(hollow).value()).frames == std::vector<uint64_t>{0x10100, 0x10205});
    CHECK(walk_copy(large, read_copy(hollow).value()).ending == UNWIND_ENDED_ROOT);
    CHECK(read_copy(copied({0, 0, 0, 1, 5, 0x10205, 7}))->absent == 0);
    CHECK(read_copy(copied({0, 0, 0, 0}))->absent == 0); // with nothing behind it, it was there
    // Of which the frame would be: nothing there says that it is the last one.
    const Written by_fp({{}, {UNWIND_FP, 0, 2, -2, -1}});
    CHECK(walk_copy(by_fp, read_copy(hollow).value()).ending == UNWIND_ENDED_UNREADABLE);
}

TEST_CASE("unwind walk: frames that lead to themselves end") {
    const Written tables({{}, {UNWIND_FP, 0, 2, -2, -1}, {UNWIND_SP, 0, 1, 0, -1}});
    const std::vector<uint64_t> loop{0x7000, 0x10105, 0, 0};
    CHECK(walk_words(tables, loop, 0x10100, 0x7000).ending == UNWIND_ENDED_STUCK);
    CHECK(walk_words(tables, loop, 0x10100, 0x7000).frames.size() == 2);
    CHECK(walk_words(tables, loop, 0x10100, ~0ull - 7).ending == UNWIND_ENDED_STUCK);
    CHECK(walk_words(tables, loop, 0x10100, 0x7001).ending == UNWIND_ENDED_STUCK);
    CHECK(walk_words(tables, loop, 0x10100, 0x70000).ending == UNWIND_ENDED_UNREADABLE);
    const std::vector<uint64_t> endless(1000, 0x10205);
    CHECK(walk_words(tables, endless, 0x10200, 0).ending == UNWIND_ENDED_DEPTH);
    CHECK(walk_words(tables, endless, 0x10200, 0).frames.size() == 127);
}

TEST_CASE("unwind walk: a record with a copy of the stack; one that is too short is none") {
    ProfileRecord fixed{};
    RecordHead &head = fixed.head;
    head.kernel_bytes = 8;
    head.user_bytes = 16;
    head.ending = UNWIND_ENDED_NO_PROCESS | UNWIND_COPIED;
    const UnwindRegisters registers{1, 2, 3, 4, 5, 6, 7};
    const uint64_t frames[] = {0xffff, 0x10, 0x20}, stack[] = {7, 8, 9};
    std::vector<std::byte> record;
    const auto add = [&](const void *from, size_t size) {
        record.insert(record.end(), static_cast<const std::byte *>(from), static_cast<const std::byte *>(from) + size);
    };
    add(&fixed, sizeof fixed);
    add(frames, sizeof frames);
    const size_t least = record.size() + sizeof registers;
    add(&registers, sizeof registers);
    add(stack, sizeof stack);
    for (size_t size = 0; size <= record.size(); ++size) {
        const auto sample = profile::parse_record(Bytes(record).first(size));
        REQUIRE(sample.has_value() == (size >= least));
        if (!sample) continue;
        REQUIRE(sample->copy);
        CHECK(sample->user.size() == 2);
        CHECK(sample->copy->registers.sp == 3);
        CHECK(sample->copy->bytes.size() == size - least);
    }
    head.ending = UNWIND_ENDED_ROOT | UNWIND_TABLES;
    std::memcpy(record.data(), &fixed, sizeof fixed);
    CHECK_FALSE(profile::parse_record(record)->copy);
}

TEST_CASE("unwind walk: in a hole of a table the frame pointer counts only where it leads behind a call") {
    constexpr uint64_t kCall = 0xe8ull << 24, kNoCall = 0x9090'9090'9090'9090;
    Written tables({{}, kGuess, {UNWIND_END, 0, 0, 0, 0}});
    const std::vector<uint64_t> words{0, 0, 0x7020, 0x10180, 0, 0x10210, 0, 0};
    tables.words_of_code = {{0x10100, kNoCall}, {0x10108, kNoCall}, {0x10178, kCall},
                            {0x10180, kNoCall}, {0x10208, kCall},   {0x10210, kNoCall}};
    const auto text_of = [&](uint64_t fp, const std::vector<uint64_t> &stack) {
        return text(walk_words(tables, stack, 0x10108, fp));
    };
    CHECK(text_of(0x7010, words) == "0: 10108 10180 10210");
    CHECK(text_of(0, words) == "4: 10108");      // data
    CHECK(text_of(0x7011, words) == "4: 10108"); // not aligned
    CHECK(text_of(0x6ff8, words) == "4: 10108"); // below the stack pointer
    CHECK(text_of(0x7100, words) == "6: 10108"); // perhaps: the copy ends before
    CHECK(text_of(0x7000'0000, words) == "4: 10108");
    CHECK(text_of(0x7010, {0, 0, 0x7020, 0x99999, 0, 0}) == "4: 10108"); // no code
    CHECK(text_of(0x7010, {0, 0, 0x7020, 0, 0, 0}) == "4: 10108");
    tables.words_of_code[0x10208] = kNoCall;
    CHECK(text_of(0x7010, words) == "4: 10108 10180");
    for (const uint64_t entry : return_entries(Arch::x86_64)) { // not behind a call, but Java's interpreter lets return to it
        tables.words_of_code[0x10210] = entry;
        CHECK(text_of(0x7010, words) == "0: 10108 10180 10210");
    }
    tables.words_of_code[0x10210] = kNoCall;
    tables.words_of_code.erase(0x10208); // can't be read
    CHECK(text_of(0x7010, words) == "4: 10108 10180");
}

TEST_CASE("unwind walk: CPython's trampolines say where their frame begins, and so do prologues and epilogues") {
    Written tables({{}, kGuess, {UNWIND_END, 0, 0, 0, 0}, {UNWIND_SP, 0, 1, 0, -1}});
    struct Case {
        uint64_t before, here;
        bool leaf;
        size_t words; // from sp on to the return address
    };
    for (const Case &one :
         {Case{0, 0xd1ff'08ec'8348, true, 0}, Case{0, 0x08c4'8348'd1ff, true, 1}, Case{0, 0xc308'c483'48, false, 1},
          Case{0, 0xc308'c483'48, true, 1}, Case{0, 0xc3, true, 0}, Case{0, 0xc35d'18c4'8348, false, 4},
          Case{0, 0xe589'4855, true, 0}, Case{0x55ull << 56, 0xe5'8948, true, 1}, Case{0, 0xc35d, true, 1}}) {
        INFO(one.here);
        tables.words_of_code = {{0x10110, one.before}, {0x10118, one.here}};
        std::vector<uint64_t> words{0x10118, 0, 0, 0, 0, 0, 0, 0};
        if (one.leaf) words.clear(), words.resize(8);
        words[(one.leaf ? 0 : 1) + one.words] = 0x10210;
        const Walked walked = walk_words(tables, words, one.leaf ? 0x10118 : 0x10300, 0x5); // fp is data
        CHECK(text(walked) == (one.leaf ? "0: 10118 10210" : "0: 10300 10118 10210"));
    }
}

TEST_CASE("unwind walk: riscv64's frames: by the link register, by tables, by a frame pointer that is the CFA") {
    Written tables({{UNWIND_SP, UNWIND_RA_IN_LR, 0, 0, 0},
                    {UNWIND_SP, 0, 2, -2, -1},
                    {UNWIND_FP, 0, 0, -2, -1},
                    kGuess,
                    {UNWIND_END, 0, 0, 0, 0},
                    {UNWIND_SIGNAL, 0, 0, 0, 0}});
    const auto walked = [&](const std::vector<uint64_t> &words, UnwindRegisters registers) {
        return text(walk_copy(tables, {registers, std::as_bytes(std::span(words))}, Arch::riscv64));
    };
    // sp 0x7000: the leaf's caller keeps s0 at 0x7000 and ra at 0x7008; of the next the CFA is s0, 0x7020.
    const std::vector<uint64_t> words{0x7020, 0x10210, 0x99, 0x10310, 0x7040, 0x10410, 0x10410, 0x10410};
    std::vector<uint64_t> by_cfa{0x7020, 0x10210, 0, 0x10410};
    CHECK(walked(by_cfa, {0x10010, 0x10010 | UNWIND_EXACT_PC, 0x7000, 0x5, 0x10110, 0, 0}) ==
          "0: " + format("{:x}", 0x10010 | UNWIND_EXACT_PC) + " 10110 10210 10410");
    // A frame pointer that is tried: its record lies below it, and it is the caller's stack pointer.
    tables.words_of_code = {{0x10308, 0x0e7ull << 32}, {0x10310, 0}, {0x10108, 0x9502ull << 48}, {0x10110, 0}};
    const std::vector<uint64_t> guessed{0x7000, 0x10110, 0x7040, 0x10410, 0x1, 0x10310};
    // in the guessed code at 0x10310: fp 0x7010 leads to {0x7000, 0x10110}, whose frame is sp + 16 from 0x7010 on
    CHECK(walked(guessed, {0x10310, 0x10310, 0x7000, 0x7010, 0, 0, 0}) == "0: 10310 10110 10410");
    tables.words_of_code[0x10108] = 0; // not behind a call
    CHECK(walked(guessed, {0x10310, 0x10310, 0x7000, 0x7010, 0, 0, 0}) == "4: 10310");
    CHECK(walked(guessed, {0x10310, 0x10310, 0x7008, 0x7010, 0, 0, 0}) == "4: 10310"); // its record would be below sp
    CHECK(walked(guessed, {0x10310, 0x10310, 0x7000, 0x8, 0, 0, 0}) == "4: 10310");
    // A signal: pc at 304, ra 312, sp 320, s0 368.
    std::vector<uint64_t> frame(60);
    frame[304 / 8] = 0x10010, frame[312 / 8] = 0x10110, frame[320 / 8] = 0x7000 + 54 * 8, frame[368 / 8] = 0x77;
    frame[55] = 0x10410;
    CHECK(walked(frame, {0x10510, 0x10510, 0x7000, 0, 0, 0, 0}) ==
          "0: 10510 " + format("{:x}", 0x10010 | UNWIND_EXACT_PC) + " 10110 10410");
}
