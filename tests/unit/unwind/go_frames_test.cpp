// Go's steps of the stack pointer as rules: a table by hand, whole and damaged.
#include "runtime/unwind/go_frames.h"

#include <algorithm>
#include <string>

#include "tests/support/test.h"
#include "tests/unit/symbols/small_elf.h"
#include "tests/unit/unwind/cfi_elf.h"

using namespace rawbpf;
using test::SmallElf;

namespace {

constexpr uint64_t kText = SmallElf::kText;

struct Function {
    std::string name;
    uint32_t size;
    std::string steps; ///< without the zero behind them; empty: none
    uint8_t flags = 0;
};

void add(std::string &to, uint64_t value, size_t width) {
    for (size_t i = 0; i < width; ++i) to += static_cast<char>(i < sizeof value ? value >> 8 * i : 0);
}

/// Go 1.20's, of functions behind each other from the text's start on.
std::string go_table(const std::vector<Function> &functions, uint8_t quantum = 1) {
    std::string names, steps(1, '\0'), pairs, entries;
    uint64_t pc = 0;
    for (const Function &function : functions) {
        add(pairs, pc, 4), add(pairs, (functions.size() * 2 + 1) * 4 + entries.size(), 4);
        add(entries, pc, 4), add(entries, names.size(), 4), add(entries, 0, 8);
        add(entries, function.steps.empty() ? 0 : steps.size(), 4);
        add(entries, 0, 20), add(entries, 0, 1), add(entries, function.flags, 1), add(entries, 0, 2);
        names += function.name + '\0';
        if (!function.steps.empty()) steps += function.steps + '\0';
        pc += function.size;
    }
    add(pairs, pc, 4);
    std::string out;
    add(out, 0xfffffff1, 4), out += std::string("\0\0", 2), out += static_cast<char>(quantum), out += '\x8';
    const size_t names_at = 8 + 8 * 8, steps_at = names_at + names.size(), table_at = (steps_at + steps.size() + 3) / 4 * 4;
    add(out, functions.size(), 8), add(out, 0, 8), add(out, kText, 8), add(out, names_at, 8), add(out, 0, 8), add(out, 0, 8);
    add(out, steps_at, 8), add(out, table_at, 8);
    out += names + steps;
    out.resize(table_at);
    return out + pairs + entries;
}

std::string rules(const std::vector<Function> &functions, uint16_t machine = EM_X86_64, size_t cut = SIZE_MAX) {
    SmallElf small(machine);
    std::string table = go_table(functions, machine == EM_X86_64 ? 1 : 4);
    table.resize(std::min(cut, table.size()));
    small.section(".gopclntab", bytes_of(table));
    const auto image = small.finish();
    const auto built = unwind::build_table(elf::Elf::parse(image, "go").value()).value();

    const std::string all = test::text(built);
    return (all.starts_with("400000 none, ") ? all.substr(13) : all) +
           (built.stats.bad_entries != 0 ? ", bad: " + built.stats.first_bad : "");
}

} // namespace

TEST_CASE("unwind go: where the stack pointer is, by the steps; the frame pointer lies at the frame's top") {
    // 0 bytes for 4, then 24 for 40 (0x50: +40 zigzag), then 0
    CHECK(rules({{"main.f", 64, std::string("\x02\x04\x30\x28\x2f\x14", 6)}}) ==
          "401000 sp+8 ra-8, 401004 sp+32 fp-16 ra-8, 40102c sp+8 ra-8, 401040 none");
    CHECK(rules({{"main.f", 64, std::string("\x02\x01\x30\x0a\x2f\x05", 6)}}, EM_AARCH64) ==
          "401000 sp+0, 401004 sp+24 fp-32 ra-24, 40102c sp+0, 401040 none");
    CHECK(rules({{"main.f", 64, std::string("\x02\x01\x30\x0a\x2f\x05", 6)}}, EM_RISCV) ==
          "401000 sp+0, 401004 sp+24 ra-24, 40102c sp+0, 401040 none");
    CHECK(rules({{"main.leaf", 16, ""}}) == "401000 sp+8 ra-8, 401010 none");
    CHECK(rules({{"main.f", 16, std::string("\x03\x10", 2)}}).find("odd") != std::string::npos); // above where it was
    CHECK(rules({{"main.f", 16, std::string("\x82\x80\x80\x80\x04\x10", 6)}}).find("odd") != std::string::npos); // too far
}

TEST_CASE("unwind go: where stacks end, and where they go on elsewhere") {
    const std::string flat("\x02\x10", 2);
    CHECK(rules({{"main.f", 16, flat}, {"runtime.goexit.abi0", 16, flat, 1}, {"runtime.systemstack.abi0", 16, flat, 2}}) ==
          "401000 sp+8 ra-8, 401010 end, 401020 fp+16 fp-16 ra-8, 401030 none");
    CHECK(rules({{"runtime.mstart", 16, flat}, {"runtime.mcall", 16, flat}}) ==
          "401000 end, 401010 fp+16 fp-16 ra-8, 401020 none");
    CHECK(rules({{"main.mcall", 16, flat}, {"runtime.sigtramp", 16, flat, 1}}) == "401000 sp+8 ra-8, 401020 none");
    // The frame pointer is the goroutine's while there is a frame: before and behind it the stack pointer is where the steps say.
    const std::string framed("\x02\x04\x30\x08\x2f\x04", 6); // 0 bytes for 4, 24 for 8, 0 for 4
    CHECK(rules({{"time.now", 16, framed, 2}}) == "401000 sp+8 ra-8, 401004 fp+16 fp-16 ra-8, 40100c sp+8 ra-8, 401010 none");
    CHECK(rules({{"runtime.nanotime1.abi0", 16, framed}}) == rules({{"time.now", 16, framed}}));
    CHECK(rules({{"gogo", 16, flat, 2}}) == "401000 fp+16 fp-16 ra-8, 401010 none");
    // Other assembly that moves it stays on its stack, so a frame pointer that leads astray is no root.
    CHECK(rules({{"main.aligned", 16, framed, 2}}) == rules({{"time.now", 16, framed, 2}}));
    // A handler returns to its first byte, so the byte before it is looked up.
    CHECK(rules({{"main.f", 16, flat}, {"runtime.sigreturn__sigaction", 16, flat}}) ==
          "401000 sp+8 ra-8, 40100f signal, 401020 none");
}

TEST_CASE("unwind go: only what switches stacks has a root where its frame pointer leads nowhere") {
    elf::GoTable table;
    const auto kind = [&](std::string_view name, uint8_t flags) {
        table.names = bytes_of(name);
        elf::GoFunction function;
        function.flags = flags;
        return unwind::go_kind(table, function);
    };
    CHECK(kind("time.now", elf::kGoWritesStackPointer) == unwind::GoKind::switches);
    CHECK(kind("time.now", 0) == unwind::GoKind::switches); // before Go 1.17
    CHECK(kind("time.Now", 0) == unwind::GoKind::plain);
    CHECK(kind("main.aligned", elf::kGoWritesStackPointer) == unwind::GoKind::moves);
    CHECK(kind("runtime.anything", elf::kGoWritesStackPointer) == unwind::GoKind::switches);
}

TEST_CASE("unwind go: damaged tables cost their functions") {
    CHECK(rules({{"main.f", 16, std::string("\x80\x80\x80\x80\x80\x80", 6)}}).find("bad: go: .gopclntab") != std::string::npos);
    const std::vector<Function> all{{"main.f", 64, std::string("\x02\x04\x30\x28\x2f\x14", 6)},
                                    {"runtime.goexit", 16, "\x02\x10"}};
    for (size_t cut = 0; cut < go_table(all).size(); ++cut) (void)rules(all, EM_X86_64, cut);
}
