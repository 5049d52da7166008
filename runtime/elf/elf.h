// SPDX-License-Identifier: MIT
// A bounds-checked reader of ELF files: 64- and 32-bit, both byte orders, any machine.
//
//      +--------+----------------+------------------+-----------------+
//      | header | program headers| sections' bytes  | section headers |
//      +--------+----------------+------------------+-----------------+
//        Elf64_Ehdr  (segments)      .text .BTF ...     e_shoff
//
// It reads bytes that the caller mapped or read; it owns nothing and makes no system calls (PURE). The bytes must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::elf {

/// A section header (Elf64_Shdr; System V ABI, gABI chapter 4).
struct Section {
    uint32_t index = 0;      ///< in Elf::sections(); 0 is the null section
    std::string_view name;   ///< lies in the file's bytes; empty where the file has no names
    uint32_t type = 0;       ///< SHT_*
    uint64_t flags = 0;      ///< SHF_*
    uint64_t address = 0;    ///< in memory; 0: it is not loaded, or the file is not linked
    uint64_t offset = 0;     ///< in the file
    uint64_t size = 0;       ///< bytes in memory, and but for SHT_NOBITS in the file
    uint32_t link = 0;       ///< another section, by type: a symbol table's strings, a relocation section's symbols
    uint32_t info = 0;       ///< by type: a symbol table's first global symbol, the section that relocations are for
    uint64_t alignment = 0;  ///< bytes; 0 and 1: none
    uint64_t entry_size = 0; ///< bytes of an entry, of tables; else 0
};

/// A program header (Elf64_Phdr; gABI chapter 5). It may point outside the file.
struct Segment {
    uint32_t type = 0;   ///< PT_*
    uint32_t flags = 0;  ///< PF_R, PF_W, PF_X
    uint64_t offset = 0, ///< in the file
        address = 0,     ///< virtual address
        file_size = 0,   ///< bytes in the file
        memory_size = 0, ///< bytes in memory; what the file doesn't have is zero
        alignment = 0;   ///< bytes; 0 and 1: none
};

/// A symbol (Elf64_Sym; gABI chapter 4).
struct Symbol {
    std::string_view name;  ///< lies in the file's bytes; empty for none, and from SymbolTable::at()
    uint64_t value = 0;     ///< a virtual address; in ET_REL files an offset in the section
    uint64_t size = 0;      ///< bytes; 0: none, or unknown
    uint32_t section = 0;   ///< an index, or SHN_UNDEF, SHN_ABS, SHN_COMMON ...
    bool extended = false;  ///< the index came from SHT_SYMTAB_SHNDX: then 0xfff1 is a section and not SHN_ABS
    uint8_t type = 0;       ///< STT_*
    uint8_t binding = 0;    ///< STB_*
    uint8_t visibility = 0; ///< STV_*
    bool thumb = false;     ///< 32-bit ARM: a function in Thumb code; its value is the address, without the bit that says so
};

/// A relocation (Elf64_Rel, Elf64_Rela; gABI chapter 4).
struct Relocation {
    uint64_t offset = 0; ///< in ET_REL files in the section that is relocated, else a virtual address
    uint32_t type = 0;   ///< R_*
    uint32_t symbol = 0; ///< index into the symbol table
    int64_t addend = 0;  ///< 0 for SHT_REL
};

class Elf;

/// A symbol table read where it lies: 70,000 symbols cost nothing until they are asked for, and a name only when it is wanted.
/// Refers to the Elf that made it, which must stay where it is.
class SymbolTable {
  public:
    /// How many symbols there are, with the null symbol 0.
    [[nodiscard]] size_t size() const { return count_; }
    /// The symbol without its name. `index` must be below size().
    [[nodiscard]] Symbol at(size_t index) const;
    /// Its name, which lies in the file's bytes. Error: bad_input where it points outside the string table. `index` must be below
    /// size().
    [[nodiscard]] Result<std::string_view> name(size_t index) const;
    /// Where its name begins in the string table (the section's `link`), unchecked: for tables that keep offsets, not names.
    /// `index` must be below size().
    [[nodiscard]] uint32_t name_offset(size_t index) const;

  private:
    friend class Elf;
    const Elf *elf_ = nullptr;
    Bytes entries_, strings_, extended_;
    size_t count_ = 0, entry_size_ = 0;
    uint32_t section_ = 0;
};

/// Whether a file begins as ELF files do.
[[nodiscard]] bool is_elf(Bytes bytes);

/// A parsed file. The bytes must outlive it. Cheap: only the section and program headers are decoded at once; symbols are read
/// where they lie.
class Elf {
  public:
    /// Reads the headers. `name` is for messages, and copied. Errors (bad_input) name the file, the section and the offset.
    [[nodiscard]] static Result<Elf> parse(Bytes bytes, std::string_view name);

    [[nodiscard]] uint16_t machine() const { return machine_; }     ///< EM_*
    [[nodiscard]] uint16_t type() const { return type_; }           ///< ET_*
    [[nodiscard]] uint64_t entry() const { return entry_; }         ///< virtual address where the program starts; 0: none
    [[nodiscard]] bool is_64() const { return is_64_; }             ///< ELFCLASS64; else ELFCLASS32
    [[nodiscard]] bool big_endian() const { return big_endian_; }   ///< the file's byte order; integers are read in it
    [[nodiscard]] const std::string &name() const { return name_; } ///< as parse() was given it
    /// By index, with the null section 0; empty in a file without section headers. Valid as long as the Elf.
    [[nodiscard]] const std::vector<Section> &sections() const { return sections_; }
    /// In the file's order; empty in object files (ET_REL). Valid as long as the Elf.
    [[nodiscard]] const std::vector<Segment> &segments() const { return segments_; }
    /// The first section of that name, or nullptr. Valid as long as the Elf.
    [[nodiscard]] const Section *find_section(std::string_view name) const;
    /// The section's bytes in the file (empty for SHT_NOBITS). Bounds were checked by parse(). Compressed ones stay compressed.
    [[nodiscard]] Bytes contents(const Section &section) const;
    /// A reader over the section whose errors name file and section.
    [[nodiscard]] ByteReader reader(const Section &section) const;

    /// A fast view of a SHT_SYMTAB or SHT_DYNSYM section. Errors (bad_input): wrong section type, entry size or string table.
    [[nodiscard]] Result<SymbolTable> symbol_table(const Section &table) const;
    /// How many symbols a SHT_SYMTAB or SHT_DYNSYM section holds, with the null symbol; 0 for other sections.
    [[nodiscard]] size_t symbol_count(const Section &table) const;
    /// One symbol with its name. Checks the table each time; to read many, use symbol_table(). Errors (bad_input): as that, no
    /// such index, a name outside the string table.
    [[nodiscard]] Result<Symbol> symbol(const Section &table, size_t index) const;
    /// All relocations of a SHT_REL or SHT_RELA section. Errors (bad_input): wrong section type or entry size, a symbol that the
    /// table doesn't have.
    [[nodiscard]] Result<std::vector<Relocation>> relocations(const Section &section) const;

    /// The GNU build-id as lower-case hex, from sections or PT_NOTE; nullopt without one.
    [[nodiscard]] std::optional<std::string> build_id() const;
    /// File offset of a virtual address, by the PT_LOAD segments; nullopt where none covers it.
    [[nodiscard]] std::optional<uint64_t> file_offset(uint64_t address) const;
    /// Virtual address of a file offset (executable segments first); nullopt where none covers it.
    [[nodiscard]] std::optional<uint64_t> address_of(uint64_t file_offset) const;

  private:
    friend class SymbolTable;
    [[nodiscard]] Result<void> parse_sections(uint64_t offset, uint16_t entry_size, uint64_t count, uint32_t names);
    [[nodiscard]] Result<void> parse_segments(uint64_t offset, uint16_t entry_size, uint64_t count);
    /// "FILE: section 3 (.text)".
    [[nodiscard]] std::string label(const Section &section) const;

    Bytes bytes_;
    std::string name_;
    uint16_t machine_ = 0, type_ = 0;
    uint64_t entry_ = 0;
    bool is_64_ = true, big_endian_ = false;
    std::vector<Section> sections_;
    std::vector<Segment> segments_;
};

} // namespace rawbpf::inline v0::elf
