// The ELF reader on files that the writer made, in all four layouts, and on files that lie.
#include "runtime/elf/arm_code.h"
#include "runtime/elf/elf.h"
#include "runtime/elf/writer.h"

#include <elf.h>

#include "runtime/base/format.h"
#include "tests/support/test.h"

using namespace rawbpf;
using elf::Elf;

namespace {

struct Layout {
    bool is_64, big_endian;
};
constexpr Layout kLayouts[] = {{true, false}, {true, true}, {false, false}, {false, true}};

void append_u32(std::string &out, uint32_t value, bool big_endian) {
    if (big_endian) value = byte_swap(value);
    out.append(reinterpret_cast<const char *>(&value), 4);
}

std::string build_id_note(bool big_endian) {
    std::string note;
    for (uint32_t word : {4u, 3u, 1u}) append_u32(note, word, big_endian); // another note first, its description padded
    note += std::string("GNU\0abc\0", 8);
    for (uint32_t word : {4u, 5u, 3u}) append_u32(note, word, big_endian);
    return note + std::string("GNU\0\x01\x02\xab\xcd\xef\0\0\0", 12);
}

elf::Section like(uint32_t type, uint64_t flags, uint64_t address, uint64_t alignment) {
    elf::Section s;
    s.type = type;
    s.flags = flags;
    s.address = address;
    s.alignment = alignment;
    return s;
}

/// .text (a segment at 0x401000), a build-id note, .bss, three symbols and two relocations.
std::vector<std::byte> sample(Layout layout) {
    elf::Writer w(
        {.machine = EM_AARCH64, .type = ET_EXEC, .is_64 = layout.is_64, .big_endian = layout.big_endian, .entry = 0x401004});
    uint32_t text =
        w.add_section(".text", like(SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x401000, 16), bytes_of("0123456789abcdef"));
    uint32_t note =
        w.add_section(".note.gnu.build-id", like(SHT_NOTE, SHF_ALLOC, 0, 4), bytes_of(build_id_note(layout.big_endian)));
    uint32_t bss = w.add_nobits(".bss", SHF_ALLOC | SHF_WRITE, 0x1000000);
    w.add_segment(PT_LOAD, PF_R | PF_X, text, 0x1000);
    w.add_segment(PT_NOTE, PF_R, note);
    elf::Symbol global;
    global.name = "main";
    global.value = 0x401004;
    global.size = 8;
    global.section = text;
    global.type = STT_FUNC;
    global.binding = STB_GLOBAL;
    global.visibility = STV_HIDDEN;
    uint32_t first = w.add_symbol(global);
    elf::Symbol local = global;
    local.name = "counter";
    local.section = bss;
    local.type = STT_OBJECT;
    local.binding = STB_LOCAL;
    uint32_t second = w.add_symbol(local);
    elf::Relocation r;
    r.offset = 8;
    r.type = 10;
    r.symbol = first;
    r.addend = -4;
    w.add_relocation(text, r);
    r.offset = 12;
    r.symbol = second;
    r.addend = 0;
    w.add_relocation(text, r);
    return w.finish();
}

/// Reads everything there is to read; the result doesn't matter, only that nothing goes wrong on the way.
void read_everything(const Elf &elf) {
    (void)elf.build_id();
    (void)elf.file_offset(0x401004);
    (void)elf.address_of(0x48);
    for (const elf::Section &s : elf.sections()) {
        (void)elf.contents(s);
        (void)elf.relocations(s);
        for (size_t i = 0, n = elf.symbol_count(s); i < n; ++i) (void)elf.symbol(s, i);
        if (auto table = elf.symbol_table(s))
            for (size_t i = 0; i < table->size(); ++i) {
                (void)table->at(i);
                (void)table->name(i);
            }
    }
}

} // namespace

TEST_CASE("elf: both classes and byte orders are read alike") {
    for (Layout layout : kLayouts) {
        CAPTURE(layout.is_64);
        CAPTURE(layout.big_endian);
        std::vector<std::byte> file = sample(layout);
        auto elf = Elf::parse(file, "sample");
        REQUIRE(elf);
        CHECK(elf->is_64() == layout.is_64);
        CHECK(elf->big_endian() == layout.big_endian);
        CHECK(elf->machine() == EM_AARCH64);
        CHECK(elf->type() == ET_EXEC);
        CHECK(elf->entry() == 0x401004);

        const elf::Section *text = elf->find_section(".text");
        REQUIRE(text);
        CHECK(text->index == 1);
        CHECK(text->alignment == 16);
        CHECK(text->offset % 16 == 0);
        Bytes contents = elf->contents(*text);
        CHECK(std::string(reinterpret_cast<const char *>(contents.data()), contents.size()) == "0123456789abcdef");
        CHECK(!elf->find_section(".data"));

        const elf::Section *bss = elf->find_section(".bss");
        REQUIRE(bss);
        CHECK(bss->size == 0x1000000);
        CHECK(elf->contents(*bss).empty());

        CHECK(elf->build_id() == "0102abcdef");
        CHECK(elf->file_offset(0x401004) == text->offset + 4);
        CHECK(!elf->file_offset(0x401010));
        CHECK(!elf->file_offset(0x400fff));
        CHECK(elf->address_of(text->offset + 15) == 0x40100f);
        CHECK(!elf->address_of(text->offset + 16));

        const elf::Section *symtab = elf->find_section(".symtab");
        REQUIRE(symtab);
        CHECK(elf->symbol_count(*symtab) == 3);
        CHECK(symtab->info == 2); // first global: the local one was moved in front of it
        auto counter = elf->symbol(*symtab, 1);
        REQUIRE(counter);
        CHECK(counter->name == "counter");
        CHECK(counter->section == bss->index);
        auto main = elf->symbol(*symtab, 2);
        REQUIRE(main);
        CHECK(main->name == "main");
        CHECK(main->value == 0x401004);
        CHECK(main->size == 8);
        CHECK(main->type == STT_FUNC);
        CHECK(main->binding == STB_GLOBAL);
        CHECK(main->visibility == STV_HIDDEN);
        CHECK(!main->extended);
        auto beyond = elf->symbol(*symtab, 3);
        REQUIRE(!beyond);
        CHECK(beyond.error().context ==
              format("sample: section {} (.symtab): there is no symbol 3; there are only 3", symtab->index));

        const elf::Section *rela = elf->find_section(".rela.text");
        REQUIRE(rela);
        auto relocations = elf->relocations(*rela);
        REQUIRE(relocations);
        REQUIRE(relocations->size() == 2);
        CHECK((*relocations)[0].offset == 8);
        CHECK((*relocations)[0].type == 10);
        CHECK((*relocations)[0].symbol == 2);
        CHECK((*relocations)[0].addend == -4);
        CHECK((*relocations)[1].symbol == 1);
        CHECK((*relocations)[1].addend == 0);
    }
}

TEST_CASE("elf: a build-id is found without section headers") {
    std::vector<std::byte> file = sample({true, false});
    std::memset(file.data() + offsetof(Elf64_Ehdr, e_shoff), 0, 8);
    auto elf = Elf::parse(file, "sample");
    REQUIRE(elf);
    CHECK(elf->sections().empty());
    CHECK(elf->build_id() == "0102abcdef");
}

TEST_CASE("elf: the header's bytes are where the ABI says") {
    elf::Writer w;
    (void)w.add_section("a", 0, bytes_of("xyz"), 1);
    std::vector<std::byte> file = w.finish();
    Elf64_Ehdr header;
    std::memcpy(&header, file.data(), sizeof header);
    CHECK(std::memcmp(header.e_ident,
                      "\x7f"
                      "ELF\2\1\1\0\0\0\0\0\0\0\0\0",
                      16) == 0);
    CHECK(header.e_type == ET_REL);
    CHECK(header.e_machine == 247);
    CHECK(header.e_shnum == 3);
    CHECK(header.e_shstrndx == 2);
    CHECK(header.e_shoff == 80); // 64 header, 3 "xyz", 3 + 10 names
    CHECK(file.size() == 80 + 3 * 64);
}

TEST_CASE("elf: more than 65,279 sections") {
    elf::Writer w;
    for (uint32_t i = 1; i < 65300; ++i) (void)w.add_section("", 0, {}, 1);
    uint32_t last = w.add_section("last", 0, bytes_of("end"), 1);
    elf::Symbol s;
    s.name = "here";
    s.section = last;
    s.extended = true;
    (void)w.add_symbol(s);
    s.name = "absolute";
    s.section = SHN_ABS;
    s.extended = false;
    (void)w.add_symbol(s);
    std::vector<std::byte> file = w.finish();
    auto elf = Elf::parse(file, "many");
    REQUIRE(elf);
    CHECK(elf->sections().size() == 65300 + 5);
    const elf::Section *found = elf->find_section("last");
    REQUIRE(found);
    CHECK(found->index == 65300);
    const elf::Section *symtab = elf->find_section(".symtab");
    REQUIRE(symtab);
    auto here = elf->symbol(*symtab, 1);
    REQUIRE(here);
    CHECK(here->section == 65300);
    CHECK(here->extended);
    auto absolute = elf->symbol(*symtab, 2);
    REQUIRE(absolute);
    CHECK(absolute->section == SHN_ABS);
    CHECK(!absolute->extended);
}

TEST_CASE("elf: a file cut anywhere is refused or read within its bounds") {
    for (Layout layout : kLayouts) {
        std::vector<std::byte> file = sample(layout);
        for (size_t size = 0; size < file.size(); ++size) {
            std::vector<std::byte> cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(size)); // its own allocation, for ASan
            auto elf = Elf::parse(cut, "cut");
            CHECK(!elf); // section headers are last, so every cut loses some
        }
    }
}

TEST_CASE("elf: any byte may be wrong") {
    for (Layout layout : kLayouts) {
        const std::vector<std::byte> file = sample(layout);
        for (size_t i = 0; i < file.size(); ++i)
            for (unsigned flip : {0xffu, 0x01u, 0x80u}) {
                std::vector<std::byte> bad = file;
                bad[i] ^= static_cast<std::byte>(flip);
                if (auto elf = Elf::parse(bad, "bad")) read_everything(*elf);
            }
    }
}

TEST_CASE("elf: messages name the file, the place and the offset") {
    auto message = [](Bytes bytes) {
        auto elf = Elf::parse(bytes, "x.o");
        return elf ? std::string("no error") : elf.error().context;
    };
    CHECK(message(bytes_of("#!/bin/sh\necho not an ELF file\n")) == "x.o: ELF header: offset 0x0: not an ELF file");
    CHECK(message({}) == "x.o: ELF header: offset 0x0: not an ELF file");

    std::vector<std::byte> file = sample({true, false});
    Elf64_Ehdr header;
    std::memcpy(&header, file.data(), sizeof header);
    auto patched = [&](size_t at, uint64_t value, size_t size) {
        std::vector<std::byte> out = file;
        std::memcpy(out.data() + at, &value, size);
        return out;
    };
    size_t text = header.e_shoff + sizeof(Elf64_Shdr);
    CHECK(message(patched(text + offsetof(Elf64_Shdr, sh_size), ~0ull, 8)) ==
          format("x.o: section 1: offset 0xb0: 0xffffffffffffffff bytes go past the end of the file ({:#x})", file.size()));
    CHECK(message(patched(text + offsetof(Elf64_Shdr, sh_name), 0x10000, 4)) ==
          "x.o: section 1: its name, at offset 0x10000 of section 7, is outside of it or has no end");
    CHECK(message(patched(offsetof(Elf64_Ehdr, e_shentsize), 65, 2)) == "x.o: ELF header: e_shentsize is 65, and should be 64");
    CHECK(message(patched(offsetof(Elf64_Ehdr, e_shstrndx), 99, 2)) ==
          "x.o: ELF header: the section names should be in section 99, and there are only 8 sections");
    CHECK(message(patched(offsetof(Elf64_Ehdr, e_shoff), ~0ull, 8)) ==
          format("x.o: section headers: offset 0xffffffffffffffff: 8 entries of 64 bytes don't fit into a file of {} bytes",
                 file.size()));
    CHECK(message(patched(EI_CLASS, 7, 1)) == "x.o: ELF header: offset 0x4: class 7 is neither 32 nor 64 bits");

    std::vector<std::byte> wrong_link = patched(header.e_shoff + 4 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_link), 77, 4);
    auto elf = Elf::parse(wrong_link, "x.o");
    REQUIRE(elf);
    auto relocations = elf->relocations(*elf->find_section(".rela.text"));
    REQUIRE(!relocations);
    CHECK(relocations.error().context == "x.o: section 4 (.rela.text): its symbol table, section 77, doesn't exist");
}

TEST_CASE("elf: ARM and Thumb code are told apart by symbols") {
    elf::Writer w({.machine = EM_ARM, .type = ET_EXEC, .is_64 = false});
    const std::vector<std::byte> code(0x40);
    elf::Section like;
    like.type = SHT_PROGBITS;
    like.flags = SHF_ALLOC | SHF_EXECINSTR;
    like.address = 0x10000;
    like.alignment = 4;
    const uint32_t text = w.add_section(".text", like, code);
    const auto symbol = [&](std::string_view name, uint64_t value, uint8_t type) {
        elf::Symbol s;
        s.name = name, s.value = value, s.section = text, s.type = type, s.binding = STB_LOCAL;
        w.add_symbol(s);
    };
    symbol("in_arm", 0x10008, STT_FUNC);
    symbol("in_thumb", 0x10011, STT_FUNC);
    symbol("$a.7", 0x10020, STT_NOTYPE);
    symbol("$d", 0x10028, STT_NOTYPE);
    symbol("$t", 0x10030, STT_NOTYPE);
    symbol("$tail", 0x10034, STT_NOTYPE); // somebody's name
    const std::vector<std::byte> bytes = w.finish();
    const Result<elf::Elf> file = elf::Elf::parse(bytes, "test");
    REQUIRE(file);
    CHECK(elf::is_thumb(*file, 0x10004) == std::nullopt);
    CHECK(elf::is_thumb(*file, 0x10008) == false);
    CHECK(elf::is_thumb(*file, 0x1000f) == false);
    CHECK(elf::is_thumb(*file, 0x10010) == true);
    CHECK(elf::is_thumb(*file, 0x10024) == false);
    CHECK(elf::is_thumb(*file, 0x10038) == true);
    const elf::Section *table = nullptr;
    for (const elf::Section &section : file->sections())
        if (section.type == SHT_SYMTAB) table = &section;
    REQUIRE(table);
    const Result<elf::SymbolTable> symbols = file->symbol_table(*table);
    REQUIRE(symbols);
    bool seen = false;
    for (size_t i = 0; i < symbols->size(); ++i) {
        const elf::Symbol s = symbols->at(i);
        if (symbols->name(i).value_or("") != "in_thumb") continue;
        seen = true;
        CHECK(s.thumb);
        CHECK(s.value == 0x10010); // where the code is
    }
    CHECK(seen);
}
