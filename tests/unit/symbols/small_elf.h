// A small shared object for the tests of this room: one text section in one executable segment, and a symbol table of either
// type, with everything where the test wants it.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <elf.h>

#include "runtime/elf/writer.h"

namespace rawbpf::test {

struct SmallSymbol {
    std::string_view name;
    uint64_t value, size;
    uint8_t type = STT_FUNC, binding = STB_GLOBAL;
    int section = -1; ///< -1: .text
};

class SmallElf {
  public:
    static constexpr uint64_t kText = 0x401000; ///< where .text is mapped

    explicit SmallElf(uint16_t machine = EM_X86_64, size_t text_size = 0x1000)
        : writer_({machine, ET_DYN, true, false, 0}), text_(text_size) {
        elf::Section like;
        like.type = SHT_PROGBITS;
        like.flags = SHF_ALLOC | SHF_EXECINSTR;
        like.address = kText;
        like.alignment = 16;
        text_index_ = writer_.add_section(".text", like, text_);
        writer_.add_segment(PT_LOAD, PF_R | PF_X, text_index_);
    }
    elf::Writer &writer() { return writer_; }

    /// Adds .symtab (or .dynsym) with these symbols; the index of its section.
    uint32_t symbols(const std::vector<SmallSymbol> &symbols, uint32_t type = SHT_SYMTAB) {
        std::string strings(1, '\0');
        std::vector<Elf64_Sym> table(1);
        for (const SmallSymbol &symbol : symbols) {
            Elf64_Sym entry{};
            entry.st_name = static_cast<uint32_t>(strings.size());
            entry.st_info = ELF64_ST_INFO(symbol.binding, symbol.type);
            entry.st_shndx = static_cast<uint16_t>(symbol.section < 0 ? static_cast<int>(text_index_) : symbol.section);
            entry.st_value = symbol.value;
            entry.st_size = symbol.size;
            table.push_back(entry);
            strings += symbol.name;
            strings += '\0';
        }
        elf::Section like;
        like.type = SHT_STRTAB;
        like.alignment = 1;
        bool dynamic = type == SHT_DYNSYM;
        uint32_t link = writer_.add_section(dynamic ? ".dynstr" : ".strtab", like, bytes_of(strings));
        like = {};
        like.type = type;
        like.link = link;
        like.entry_size = sizeof(Elf64_Sym);
        like.alignment = 8;
        return writer_.add_section(dynamic ? ".dynsym" : ".symtab", like, std::as_bytes(std::span(table)));
    }
    void build_id(std::string_view id) {
        struct {
            uint32_t name_size = 4, size, type = NT_GNU_BUILD_ID;
            char name[4] = {'G', 'N', 'U', 0};
        } header;
        header.size = static_cast<uint32_t>(id.size());
        std::string note(reinterpret_cast<const char *>(&header), sizeof header);
        note += id;
        elf::Section like;
        like.type = SHT_NOTE;
        like.flags = SHF_ALLOC;
        like.alignment = 4;
        writer_.add_section(".note.gnu.build-id", like, bytes_of(note));
    }
    void debug_link(std::string_view name, uint32_t crc) {
        std::string contents(name);
        contents.resize((name.size() + 4) & ~size_t{3});
        contents.append(reinterpret_cast<const char *>(&crc), 4);
        section(".gnu_debuglink", bytes_of(contents));
    }
    uint32_t section(std::string_view name, Bytes contents) {
        elf::Section like;
        like.type = SHT_PROGBITS;
        like.alignment = 4;
        return writer_.add_section(name, like, contents);
    }
    [[nodiscard]] std::vector<std::byte> finish() const { return writer_.finish(); }

  private:
    elf::Writer writer_;
    std::vector<std::byte> text_;
    uint32_t text_index_ = 0;
};

/// The file offset of an address in .text.
inline uint64_t offset_in(Bytes image, uint64_t address) {
    return elf::Elf::parse(image, "small")->file_offset(address).value_or(~uint64_t{0});
}

} // namespace rawbpf::test
