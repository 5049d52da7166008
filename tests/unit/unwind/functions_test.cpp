// Functions of a file without symbols: from call frame information written by hand, and up to what a profile's frame shows.
#include "runtime/unwind/functions.h"

#include "runtime/base/format.h"
#include "runtime/symbols/elf_symbols.h"
#include "tests/support/test.h"
#include "tests/unit/unwind/cfi_elf.h"

using namespace rawbpf;
using test::CfiElf;

namespace {

std::string ranges(const CfiElf &app) {
    const std::vector<std::byte> bytes = app.file();
    const elf::Elf elf = elf::Elf::parse(bytes, "app").value();
    std::string out;
    for (const auto &[start, end] : unwind::function_ranges(elf)) out += format("{:x}-{:x} ", start, end);
    return out;
}

} // namespace

TEST_CASE("unwind functions: each that has an entry, whatever else stands there") {
    CfiElf app;
    const uint64_t cie = app.eh.cie();
    app.eh.fde(cie, 0x10000, 64);
    app.eh.fde(cie, 0x10080, 0); // empty
    app.eh.fde(app.eh.cie({.program = {}, .augmentation = "zR", .data = {0x1b}}), 0x10100, 32,
               {0x3f, 0x3f}); // programs aren't run
    app.eh.fde(cie, 0x10040, 16);
    CHECK(ranges(app) == "10000-10040 10100-10120 10040-10050 ");
    app.eh.fde(0x7000, 0x10200, 16); // its CIE isn't one
    app.eh.fde(cie, 0x10300, 16);
    CHECK(ranges(app) == "10000-10040 10100-10120 10040-10050 10300-10310 ");
    app.eh.bytes.resize(app.eh.bytes.size() - 8); // cut: the last entry doesn't fit any more
    CHECK(ranges(app) == "10000-10040 10100-10120 10040-10050 ");
    app.target.machine = EM_S390;
    CHECK(ranges(app).empty());
    CHECK(ranges(CfiElf{}).empty());
}

TEST_CASE("unwind functions: symbols tell where a function begins that has no name") {
    CfiElf app;
    const uint64_t cie = app.eh.cie();
    app.eh.fde(cie, 0x10000, 64);
    app.eh.fde(cie, 0x10100, 32);
    const std::vector<std::byte> bytes = app.file();
    const elf::Elf elf = elf::Elf::parse(bytes, "app").value();
    const uint64_t text = elf.find_section(".text")->offset;
    const auto symbols = symbols::ElfSymbols::parse(bytes, "app").value();
    CHECK(symbols.begin_of(text) == text);
    CHECK(symbols.begin_of(text + 63) == text);
    CHECK(!symbols.begin_of(text + 64)); // between two
    CHECK(symbols.begin_of(text + 0x11f) == text + 0x100);
    CHECK(!symbols.begin_of(text + 0x120));
    CHECK(!symbols.begin_of(0)); // no code
    CHECK(!symbols::ElfSymbols().begin_of(text));
}
