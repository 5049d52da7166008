// The ELF reader on a file that a linker made and the kernel mapped: this very program. What it says about addresses must be
// what the running process sees.
#include <elf.h>
#include <sys/auxv.h>

#include "runtime/elf/elf.h"
#include "runtime/sys/file.h"
#include "tests/support/test.h"

using namespace rawbpf;

extern "C" __attribute__((noinline, used)) int elf_self_test_marker(int x) { return x * 3 + 1; }

TEST_CASE("elf kernel: this program's own symbols, addresses and bytes") {
    auto file = sys::map_file("/proc/self/exe");
    REQUIRE(file);
    auto elf = elf::Elf::parse(file->bytes(), "/proc/self/exe");
    REQUIRE(elf);
    const uint64_t bias = getauxval(AT_ENTRY) - elf->entry(); // where the kernel put it
    const uint64_t address = reinterpret_cast<uintptr_t>(&elf_self_test_marker) - bias;

    const elf::Section *symtab = elf->find_section(".symtab");
    if (!symtab) SKIP("this program was stripped");
    auto table = elf->symbol_table(*symtab);
    REQUIRE(table);
    bool found = false;
    for (size_t i = 0; i < table->size() && !found; ++i) {
        auto name = table->name(i);
        REQUIRE(name);
        if (*name != "elf_self_test_marker") continue;
        found = true;
        elf::Symbol s = table->at(i);
        CHECK(s.value == address);
        CHECK(s.type == STT_FUNC);
        CHECK(s.size > 0);
        CHECK(elf->sections()[s.section].name.starts_with(".text"));
    }
    CHECK(found);

    auto offset = elf->file_offset(address);
    REQUIRE(offset);
    CHECK(elf->address_of(*offset) == address);
    REQUIRE(file->size() >= *offset + 8);
    CHECK(std::memcmp(file->data() + *offset, reinterpret_cast<const void *>(&elf_self_test_marker), 8) == 0);
}

TEST_CASE("elf kernel: the vdso, which is only in memory") {
    const auto *at = reinterpret_cast<const std::byte *>(getauxval(AT_SYSINFO_EHDR));
    if (!at) SKIP("needs a vdso");
    auto maps = sys::read_file("/proc/self/maps");
    REQUIRE(maps);
    size_t name = maps->find("[vdso]"), line = maps->rfind('\n', name) + 1;
    REQUIRE(name != std::string::npos);
    const uint64_t from = std::stoull(maps->substr(line), nullptr, 16),
                   to = std::stoull(maps->substr(maps->find('-', line) + 1), nullptr, 16);
    auto elf = elf::Elf::parse({at, to - from}, "[vdso]");
    REQUIRE(elf);
    CHECK(elf->build_id());
    const elf::Section *dynsym = elf->find_section(".dynsym");
    REQUIRE(dynsym);
    auto table = elf->symbol_table(*dynsym);
    REQUIRE(table);
    size_t named = 0;
    for (size_t i = 0; i < table->size(); ++i) {
        auto symbol = table->name(i);
        REQUIRE(symbol);
        named += symbol->find("clock_gettime") != std::string_view::npos;
    }
    CHECK(named > 0);
}
