// Which of a symbol table's entries are functions, which of their names is shown, and where they end.
#include "runtime/symbols/function_table.h"

#include "tests/support/test.h"
#include "tests/unit/symbols/small_elf.h"

using namespace rawbpf;
using namespace rawbpf::symbols;
using test::SmallElf;
using test::SmallSymbol;

namespace {

// The table of these symbols, and names as find() would give them.
struct Table {
    explicit Table(const std::vector<SmallSymbol> &symbols, uint16_t machine = EM_X86_64) {
        SmallElf small(machine);
        uint32_t index = small.symbols(symbols);
        bytes = small.finish();
        elf = elf::Elf::parse(bytes, "table");
        REQUIRE(elf);
        section = &elf->sections()[index];
        Result<FunctionTable> built = FunctionTable::build(*elf, *section);
        REQUIRE(built);
        functions = std::move(*built);
    }
    std::string at(uint64_t offset) {
        std::optional<FunctionTable::Hit> hit = functions.find(SmallElf::kText + offset);
        if (!hit) return "-";
        const char *strings = reinterpret_cast<const char *>(elf->contents(elf->sections()[section->link]).data());
        return strings + hit->name;
    }
    std::vector<std::byte> bytes;
    Result<elf::Elf> elf = elf::Elf();
    const elf::Section *section = nullptr;
    FunctionTable functions;
};

constexpr uint64_t kText = SmallElf::kText;

} // namespace

TEST_CASE("function table: sizes are respected, unsized functions last to the next symbol or the section's end") {
    Table t(
        {{"b", kText + 0x100, 0x10}, {"a", kText + 0x10, 0x20}, {"c", kText + 0x200, 0, STT_NOTYPE}, {"d", kText + 0x300, 0}});
    CHECK(t.functions.size() == 4);
    CHECK(t.at(0) == "-");
    CHECK(t.at(0x10) == "a");
    CHECK(t.at(0x2f) == "a");
    CHECK(t.at(0x30) == "-");
    CHECK(t.at(0x100) == "b");
    CHECK(t.at(0x110) == "-");
    CHECK(t.at(0x2ff) == "c");
    CHECK(t.at(0xfff) == "d");
    CHECK(t.at(0x1000) == "-");
    CHECK(t.at(UINT64_MAX - kText) == "-");
    CHECK(t.at(0x1'0000'0000) == "-");
}

TEST_CASE("function table: the sensible one of several names") {
    Table t({{"__GI___libc_malloc", kText, 8, STT_FUNC, STB_LOCAL},
             {"__libc_malloc", kText, 8},
             {"malloc", kText, 8},
             {"_start", kText + 0x10, 0, STT_NOTYPE},
             {"begin", kText + 0x10, 4, STT_FUNC, STB_LOCAL},
             {"weak", kText + 0x20, 4, STT_FUNC, STB_WEAK},
             {"global", kText + 0x20, 4},
             {"zz", kText + 0x30, 4},
             {"aa", kText + 0x30, 40}});
    CHECK(t.at(0) == "malloc");
    CHECK(t.at(0x10) == "begin");
    CHECK(t.at(0x20) == "global");
    CHECK(t.at(0x30) == "aa");
    CHECK(t.at(0x50) == "aa");
}

TEST_CASE("function table: labels inside a function, data, undefined and absolute symbols are no functions") {
    Table t({{"f", kText, 0x100},
             {"label", kText + 0x40, 0, STT_NOTYPE, STB_LOCAL},
             {"object", kText + 0x200, 8, STT_OBJECT},
             {"undefined", kText + 0x300, 8, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
             {"absolute", kText + 0x400, 8, STT_FUNC, STB_GLOBAL, SHN_ABS},
             {"outside", kText + 0x2000, 8},
             {"wild section", kText + 0x500, 8, STT_FUNC, STB_GLOBAL, 77},
             {"", kText + 0x600, 0, STT_NOTYPE}});
    CHECK(t.functions.size() == 1);
    CHECK(t.at(0x50) == "f");
}

TEST_CASE("function table: arm64's mapping symbols are noise") {
    Table t({{"$x", kText, 0, STT_NOTYPE, STB_LOCAL},
             {"$d.7", kText + 0x20, 0, STT_NOTYPE, STB_LOCAL},
             {".L3", kText + 0x24, 0, STT_NOTYPE, STB_LOCAL},
             {"real", kText + 4, 0, STT_NOTYPE},
             {"$dollar", kText + 0x40, 4}},
            EM_AARCH64);
    CHECK(t.functions.size() == 2);
    CHECK(t.at(0) == "-");
    CHECK(t.at(0x30) == "real");
    CHECK(t.at(0x40) == "$dollar");
}

TEST_CASE("function table: where functions overlap the innermost wins, and the outer one goes on behind it") {
    Table t({{"outer", kText, 0x100}, {"inner", kText + 0x20, 0x20}, {"innermost", kText + 0x28, 8}, {"next", kText + 0x100, 4}});
    CHECK(t.at(0x1f) == "outer");
    CHECK(t.at(0x20) == "inner");
    CHECK(t.at(0x28) == "innermost");
    CHECK(t.at(0x30) == "inner");
    CHECK(t.at(0x40) == "outer");
    CHECK(t.at(0xff) == "outer");
    CHECK(t.at(0x100) == "next");
    CHECK(t.at(0x104) == "-");
}

TEST_CASE("function table: sizes that wrap around or are absurd do no harm") {
    Table t({{"huge", kText, UINT64_MAX}, {"small", kText + 0x10, 4}, {"half", kText + 0x20, uint64_t{1} << 31}});
    CHECK(t.at(0x12) == "small");
    CHECK(t.at(0x18) == "huge");
    CHECK(t.at(0x30) == "half");
}

TEST_CASE("function table: ranges collected elsewhere, one at an address") {
    FunctionTable t = FunctionTable::of({{0x2000, 16, 7}, {0x1000, 16, 1}, {0x2000, 16, 8}});
    CHECK(t.size() == 2);
    CHECK(t.find(0x2008)->name == 7);
    CHECK(t.find(0x100f)->name == 1);
    CHECK(!t.find(0x1010));
    CHECK(!FunctionTable().find(0));
}

TEST_CASE("function table: 12 bytes a function") {
    Table t({{"a", kText, 4}, {"b", kText + 8, 4}, {"c", kText + 16, 4}});
    CHECK(t.functions.memory() == 36);
}
