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

struct Section {
    uint32_t index = 0;
    std::string_view name;
    uint32_t type = 0; ///< SHT_*
    uint64_t flags = 0;
    uint64_t address = 0;
    uint64_t offset = 0; ///< in the file
    uint64_t size = 0;   ///< in memory; SHT_NOBITS has no bytes
    uint32_t link = 0;
    uint32_t info = 0;
    uint64_t alignment = 0;
    uint64_t entry_size = 0;
};

struct Segment {
    uint32_t type = 0;  ///< PT_*
    uint32_t flags = 0; ///< PF_R, PF_W, PF_X
    uint64_t offset = 0, address = 0, file_size = 0, memory_size = 0, alignment = 0;
};

struct Symbol {
    std::string_view name;
    uint64_t value = 0;
    uint64_t size = 0;
    uint32_t section = 0;  ///< an index, or SHN_UNDEF, SHN_ABS, SHN_COMMON ...
    bool extended = false; ///< the index came from SHT_SYMTAB_SHNDX: then 0xfff1 is a section and not SHN_ABS
    uint8_t type = 0;      ///< STT_*
    uint8_t binding = 0;   ///< STB_*
    uint8_t visibility = 0;
};

struct Relocation {
    uint64_t offset = 0;
    uint32_t type = 0;   ///< R_*
    uint32_t symbol = 0; ///< index into the symbol table
    int64_t addend = 0;  ///< 0 for SHT_REL
};

class Elf;

/// A symbol table read where it lies: 70,000 symbols cost nothing until they are asked for, and a name only when it is wanted.
/// Refers to the Elf that made it, which must stay where it is.
class SymbolTable {
  public:
    [[nodiscard]] size_t size() const { return count_; }
    /// The symbol without its name. `index` must be below size().
    [[nodiscard]] Symbol at(size_t index) const;
    /// Its name; an error where it points outside the string table.
    [[nodiscard]] Result<std::string_view> name(size_t index) const;
    /// Where its name begins in the string table (the section's `link`), unchecked: for tables that keep offsets, not names.
    [[nodiscard]] uint32_t name_offset(size_t index) const;

  private:
    friend class Elf;
    const Elf *elf_ = nullptr;
    Bytes entries_, strings_, extended_;
    size_t count_ = 0, entry_size_ = 0;
    uint32_t section_ = 0;
};

/// A parsed file. Cheap: only the section and program headers are decoded at once; symbols are read where they lie.
class Elf {
  public:
    /// `name` is for messages. Errors (bad_input) name the file, the section and the offset.
    [[nodiscard]] static Result<Elf> parse(Bytes bytes, std::string_view name);

    [[nodiscard]] uint16_t machine() const { return machine_; } ///< EM_*
    [[nodiscard]] uint16_t type() const { return type_; }       ///< ET_*
    [[nodiscard]] uint64_t entry() const { return entry_; }
    [[nodiscard]] bool is_64() const { return is_64_; }
    [[nodiscard]] bool big_endian() const { return big_endian_; }
    [[nodiscard]] const std::string &name() const { return name_; }
    [[nodiscard]] const std::vector<Section> &sections() const { return sections_; }
    [[nodiscard]] const std::vector<Segment> &segments() const { return segments_; }
    /// The first section of that name, or nullptr.
    [[nodiscard]] const Section *find_section(std::string_view name) const;
    /// The section's bytes in the file (empty for SHT_NOBITS). Bounds were checked by parse(). Compressed ones stay compressed.
    [[nodiscard]] Bytes contents(const Section &section) const;
    /// A reader over the section whose errors name file and section.
    [[nodiscard]] ByteReader reader(const Section &section) const;

    /// A fast view of a SHT_SYMTAB or SHT_DYNSYM section. Errors: wrong section type, entry size or string table.
    [[nodiscard]] Result<SymbolTable> symbol_table(const Section &table) const;
    /// How many symbols a SHT_SYMTAB or SHT_DYNSYM section holds.
    [[nodiscard]] size_t symbol_count(const Section &table) const;
    /// One symbol with its name; checks the table each time, so symbol_table() is for whoever reads many.
    [[nodiscard]] Result<Symbol> symbol(const Section &table, size_t index) const;
    /// All relocations of a SHT_REL or SHT_RELA section.
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
