// Go's table of functions: each of its layouts by hand, both word sizes and byte orders, and damaged in every place.
#include <algorithm>
#include <tuple>

#include "runtime/symbols/go_pclntab.h"

#include "runtime/base/format.h"
#include "runtime/symbols/elf_symbols.h"
#include "tests/support/test.h"
#include "tests/unit/symbols/small_elf.h"

using namespace rawbpf;
using namespace rawbpf::symbols;
using test::SmallElf;

namespace {

constexpr uint64_t kText = SmallElf::kText;
constexpr uint32_t kGo12 = 0xfffffffb, kGo116 = 0xfffffffa, kGo118 = 0xfffffff0, kGo120 = 0xfffffff1;

struct Shape {
    uint32_t magic;
    size_t word = 8;
    bool big = false;
    uint64_t text = kText; // as the header says it, from 1.18 on
};

class Maker {
  public:
    explicit Maker(const Shape &shape) : shape_(shape) {}
    // main.main at +0x100 for 0x40 bytes, main.(*square).area at +0x140 for 0xc0.
    std::string table() {
        const bool relative = shape_.magic == kGo118 || shape_.magic == kGo120;
        const size_t field = relative ? 4 : shape_.word;
        const uint64_t base = relative ? 0 : kText;
        add(shape_.magic, 4);
        bytes_ += std::string("\0\0\1", 3);
        bytes_ += static_cast<char>(shape_.word);
        const std::string names = std::string("main.main") + '\0' + "main.(*square).area" + '\0';
        const size_t pairs = 5 * field, function = field + 8;
        if (shape_.magic == kGo12) {
            add(2, shape_.word);
            const size_t data = 8 + shape_.word + pairs + 4, names_at = data + 2 * function;
            pair(base + 0x100, data, field), pair(base + 0x140, data + function, field), add(base + 0x200, field);
            add(0, 4); // file table
            add(base + 0x100, field), add(names_at, 4), add(0, 4);
            add(base + 0x140, field), add(names_at + 10, 4), add(0, 4);
            bytes_ += names;
        } else {
            const size_t words = relative ? 8 : 7, names_at = 8 + words * shape_.word,
                         table_at = (names_at + names.size() + 7) & ~size_t{7};
            add(2, shape_.word), add(1, shape_.word);
            if (relative) add(shape_.text, shape_.word);
            add(names_at, shape_.word), add(0, shape_.word), add(0, shape_.word), add(0, shape_.word), add(table_at, shape_.word);
            bytes_ += names;
            bytes_.resize(table_at);
            pair(base + 0x100, pairs, field), pair(base + 0x140, pairs + function, field), add(base + 0x200, field);
            add(base + 0x100, field), add(0, 4), add(0, 4);
            add(base + 0x140, field), add(10, 4), add(0, 4);
        }
        return bytes_;
    }

  private:
    void add(uint64_t value, size_t width) {
        for (size_t i = 0; i < width; ++i) bytes_ += static_cast<char>(value >> 8 * (shape_.big ? width - 1 - i : i));
    }
    void pair(uint64_t pc, uint64_t offset, size_t width) { add(pc, width), add(offset, width); }
    Shape shape_;
    std::string bytes_;
};

std::string name_at(const ElfSymbols &symbols, uint64_t address) {
    const std::optional<Name> name = symbols.find_address(address);
    return name ? format("{}+{:#x}", name->symbol, name->offset) : "-";
}

std::vector<std::byte> program(const Shape &shape, std::string_view section = ".gopclntab") {
    SmallElf small;
    small.section(section, bytes_of(Maker(shape).table()));
    return small.finish();
}

void check_names(Bytes image) {
    Result<ElfSymbols> symbols = ElfSymbols::parse(image, "go");
    REQUIRE(symbols);
    CHECK(symbols->source() == ".gopclntab");
    CHECK(symbols->size() == 2);
    CHECK(name_at(*symbols, kText + 0xff) == "-");
    CHECK(name_at(*symbols, kText + 0x100) == "main.main+0x0");
    CHECK(name_at(*symbols, kText + 0x13f) == "main.main+0x3f");
    CHECK(name_at(*symbols, kText + 0x140) == "main.(*square).area+0x0");
    CHECK(name_at(*symbols, kText + 0x1ff) == "main.(*square).area+0xbf");
    CHECK(name_at(*symbols, kText + 0x200) == "-");
}

/// What a table's section, and others that are loaded, look like.
elf::Section loaded_section() {
    elf::Section out;
    out.type = SHT_PROGBITS;
    out.flags = SHF_ALLOC;
    out.address = 0x500000;
    out.alignment = 8;
    return out;
}

} // namespace

TEST_CASE("go pclntab: the layouts of Go 1.2, 1.16, 1.18 and 1.20") {
    for (uint32_t magic : {kGo12, kGo116, kGo118, kGo120}) {
        CAPTURE(magic);
        check_names(program({magic}));
        check_names(program({magic}, ".data.rel.ro.gopclntab"));
    }
}

TEST_CASE("go pclntab: 32 bits and the other byte order") {
    for (uint32_t magic : {kGo12, kGo116, kGo118, kGo120}) {
        for (const auto &[machine, is_64, big] :
             {std::tuple{EM_386, false, false}, {EM_PPC64, true, true}, {EM_MIPS, false, true}}) {
            CAPTURE(magic);
            CAPTURE(machine);
            elf::Writer writer({static_cast<uint16_t>(machine), ET_EXEC, is_64, big, 0});
            elf::Section text;
            text.type = SHT_PROGBITS;
            text.flags = SHF_ALLOC | SHF_EXECINSTR;
            text.address = kText;
            const std::string code(0x1000, '\0');
            writer.add_segment(PT_LOAD, PF_R | PF_X, writer.add_section(".text", text, bytes_of(code)));
            elf::Section like;
            like.type = SHT_PROGBITS;
            like.alignment = 8;
            const std::string table = Maker({magic, is_64 ? size_t{8} : size_t{4}, big}).table();
            writer.add_section(".gopclntab", like, bytes_of(table));
            const auto image = writer.finish();
            check_names(image);
        }
    }
}

TEST_CASE("go pclntab: a symbol table goes before it, exported names beside it") {
    SmallElf whole;
    whole.section(".gopclntab", bytes_of(Maker({kGo120}).table()));
    whole.symbols({{"other", kText + 0x100, 0x40}});
    auto image = whole.finish();
    CHECK(ElfSymbols::parse(image, "go")->source() == ".symtab");
    CHECK(name_at(*ElfSymbols::parse(image, "go"), kText + 0x100) == "other+0x0");
    CHECK(name_at(*ElfSymbols::parse(image, "go"), kText + 0x140) == "-");

    SmallElf exporting;
    exporting.section(".gopclntab", bytes_of(Maker({kGo120}).table()));
    exporting.symbols({{"crosscall2", kText + 0x300, 0x40}}, SHT_DYNSYM);
    image = exporting.finish();
    Result<ElfSymbols> symbols = ElfSymbols::parse(image, "go");
    REQUIRE(symbols);
    CHECK(name_at(*symbols, kText + 0x300) == "crosscall2+0x0");
    CHECK(name_at(*symbols, kText + 0x150) == "main.(*square).area+0x10");
}

TEST_CASE("go pclntab: the text's start by relocation, by .text where the header doesn't know it") {
    // 0 in the file, as in a position-independent program: the linker's relocation says what it will be.
    const elf::Section like = loaded_section();
    const std::string table = Maker({kGo120, 8, false, 0}).table();
    {
        SmallElf small;
        small.writer().add_section(".data.rel.ro.gopclntab", like, bytes_of(table));
        check_names(small.finish());
    }
    // As an external linker has it: the code begins with C's, and the table has no section of its own.
    for (bool sections : {true, false}) {
        CAPTURE(sections);
        SmallElf small;
        const std::string merged = std::string(64, '\xff') + table;
        const uint32_t data = small.writer().add_section(".data.rel.ro", like, bytes_of(merged));
        small.writer().add_segment(PT_LOAD, PF_R | PF_W, data);
        const Elf64_Rela relocations[] = {{0x500000, ELF64_R_INFO(0, R_X86_64_RELATIVE), 0x77},
                                          {0x500000 + 64 + 24, ELF64_R_INFO(0, R_X86_64_RELATIVE), kText + 0x20}};
        elf::Section rela;
        rela.type = SHT_RELA;
        rela.entry_size = sizeof(Elf64_Rela);
        rela.alignment = 8;
        small.writer().add_section(".rela.dyn", rela, std::as_bytes(std::span(relocations)));
        auto without = small.finish();
        CHECK(ElfSymbols::parse(without, "no sign of Go")->size() == 0);
        elf::Section note;
        note.type = SHT_NOTE;
        note.flags = SHF_ALLOC;
        note.alignment = 4;
        const std::string id("\4\0\0\0\4\0\0\0\4\0\0\0Go\0\0abcd", 20);
        small.writer().add_segment(PT_NOTE, PF_R,
                                   small.writer().add_section(sections ? ".note.go.buildid" : ".n", note, bytes_of(id)));
        auto image = small.finish();
        Result<ElfSymbols> symbols = ElfSymbols::parse(image, "go");
        REQUIRE(symbols);
        CHECK(name_at(*symbols, kText + 0x120) == "main.main+0x0");
        CHECK(name_at(*symbols, kText + 0x110) == "-");
    }
}

TEST_CASE("go pclntab: the text's start by the module's data, as Go 1.26 and newer have it") {
    const elf::Section like = loaded_section();
    const std::string table = Maker({kGo120, 8, false, 0}).table();
    // The table's address, other words, then the first function, the last one's end, the text's start.
    const uint64_t start = kText + 0x20, sound[] = {0x500000, 7, start + 0x100, start + 0x200, start};
    const auto name_of_first = [&](std::vector<uint64_t> words, bool relocated) {
        SmallElf small;
        small.writer().add_section(".gopclntab", like, bytes_of(table));
        elf::Section module = like;
        module.address = 0x600000;
        std::vector<Elf64_Rela> relocations;
        for (size_t i = 0; relocated && i < words.size(); ++i)
            if (words[i] != 7)
                relocations.push_back({0x600000 + i * 8, ELF64_R_INFO(0, R_X86_64_RELATIVE), static_cast<int64_t>(words[i])});
        if (relocated) std::fill(words.begin(), words.end(), 0);
        small.writer().add_section(".go.module", module, std::as_bytes(std::span(words)));
        elf::Section rela;
        rela.type = SHT_RELA;
        rela.entry_size = sizeof(Elf64_Rela);
        rela.alignment = 8;
        if (relocated) small.writer().add_section(".rela.dyn", rela, std::as_bytes(std::span(relocations)));
        const auto image = small.finish();
        const Result<ElfSymbols> symbols = ElfSymbols::parse(image, "go");
        REQUIRE(symbols);
        return name_at(*symbols, start + 0x100);
    };
    for (const bool relocated : {false, true}) {
        CAPTURE(relocated);
        std::vector<uint64_t> words(std::begin(sound), std::end(sound));
        CHECK(name_of_first(words, relocated) == "main.main+0x0");
        // What doesn't prove itself is none: then it is where .text begins.
        for (const size_t i : {0u, 2u, 3u, 4u}) {
            std::vector<uint64_t> wrong = words;
            wrong[i] += 8;
            CHECK(name_of_first(wrong, relocated) == "main.main+0x20");
        }
        for (size_t size = 0; size < words.size(); ++size)
            CHECK(name_of_first({words.begin(), words.begin() + static_cast<ptrdiff_t>(size)}, relocated) == "main.main+0x20");
    }
}

TEST_CASE("go pclntab: cut and flipped at every byte") {
    for (uint32_t magic : {kGo12, kGo116, kGo118, kGo120}) {
        const std::string table = Maker({magic}).table();
        for (size_t size = 0; size < table.size(); ++size) {
            SmallElf small;
            small.section(".gopclntab", bytes_of(table.substr(0, size)));
            const auto image = small.finish();
            Result<ElfSymbols> symbols = ElfSymbols::parse(image, "go");
            REQUIRE(symbols);
            CHECK(symbols->size() <= 2);
            for (uint64_t address : {kText + 0x100, kText + 0x150}) (void)symbols->find_address(address);
        }
        for (size_t at = 0; at < table.size(); ++at) {
            for (int bit : {0, 4, 7}) {
                std::string bad = table;
                bad[at] = static_cast<char>(bad[at] ^ 1 << bit);
                SmallElf small;
                small.section(".gopclntab", bytes_of(bad));
                const auto image = small.finish();
                Result<ElfSymbols> symbols = ElfSymbols::parse(image, "go");
                REQUIRE(symbols);
                for (uint64_t address = kText + 0xf0; address < kText + 0x210; address += 0x10) {
                    const std::optional<Name> name = symbols->find_address(address);
                    CHECK((!name || !name->symbol.empty()));
                }
            }
        }
    }
}

TEST_CASE("go pclntab: counts and offsets that lie") {
    for (uint64_t lie : {uint64_t{0}, uint64_t{1} << 31, uint64_t{1} << 32, ~uint64_t{0}, ~uint64_t{0} / 8}) {
        for (size_t word : {0u, 2u, 3u, 7u}) {
            std::string bad = Maker({kGo118}).table();
            std::memcpy(bad.data() + 8 + 8 * word, &lie, 8);
            SmallElf small;
            small.section(".gopclntab", bytes_of(bad));
            const auto image = small.finish();
            Result<ElfSymbols> symbols = ElfSymbols::parse(image, "go");
            REQUIRE(symbols);
            CHECK(symbols->size() <= 2);
            (void)symbols->find_address(kText + 0x100);
        }
    }
    // Ten thousand headers, none with a function: the search gives up early.
    std::string many;
    for (int i = 0; i < 10000; ++i) many += Maker({kGo120}).table().substr(0, 16);
    SmallElf small;
    const elf::Section like = loaded_section();
    small.writer().add_segment(PT_LOAD, PF_R, small.writer().add_section(".rodata", like, bytes_of(many)));
    small.section(".go.buildinfo", bytes_of("x"));
    const auto image = small.finish();
    CHECK(ElfSymbols::parse(image, "go")->size() == 0);
}
