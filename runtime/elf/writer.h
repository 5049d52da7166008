// SPDX-License-Identifier: MIT
// A small writer of ELF files: sections, symbols, relocations, segments. The assembler makes its .o files with it, the tests
// their synthetic files, in both classes and byte orders.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::elf {

/// What a file is, beside its contents.
struct Target {
    uint16_t machine = 247;  ///< EM_*; 247 is EM_BPF
    uint16_t type = 1;       ///< ET_*; 1 is ET_REL
    bool is_64 = true;       ///< ELFCLASS64; else ELFCLASS32
    bool big_endian = false; ///< of headers and tables; contents are taken as they are
    uint64_t entry = 0;      ///< virtual address where the program starts; 0: none
};

/// Collects the parts; finish() lays them out. Symbols and sections are referred to by what add_*() returned.
class Writer {
  public:
    /// An empty file for that target; an ET_REL one for BPF, unless told otherwise.
    explicit Writer(Target target = {}) : target_(target) {}

    /// Appends a section and returns its index (the first is 1). index, name and size of `like` are set from the other arguments
    /// (but the size of SHT_NOBITS), its offset is chosen by finish(). Names and contents are copied, here and below.
    uint32_t add_section(std::string_view name, Section like, Bytes contents);
    /// SHT_PROGBITS with these SHF_* flags.
    uint32_t add_section(std::string_view name, uint64_t flags, Bytes contents, uint64_t alignment = 8);
    /// SHT_NOBITS: takes memory, not room in the file.
    uint32_t add_nobits(std::string_view name, uint64_t flags, uint64_t size, uint64_t alignment = 8);
    /// Appends a symbol and returns a handle, for relocations and symbol_index(). In the file, local symbols come first, as the
    /// format demands.
    uint32_t add_symbol(const Symbol &symbol);
    /// A relocation in section `in`; relocation.symbol is a handle. A section's relocations are all of one kind: SHT_REL unless
    /// one has an addend.
    void add_relocation(uint32_t in, const Relocation &relocation);
    /// A segment (PT_*, PF_*) over section `section`, at that section's address.
    void add_segment(uint32_t type, uint32_t flags, uint32_t section, uint64_t alignment = 0);

    /// The index of the symbol in the finished file, once all symbols are added.
    [[nodiscard]] uint32_t symbol_index(uint32_t handle) const;
    /// The file's bytes: the sections in the order they were added, then .rel*, .symtab, .strtab, .shstrtab.
    [[nodiscard]] std::vector<std::byte> finish() const;

  private:
    /// Handle to index: locals first.
    [[nodiscard]] std::vector<uint32_t> symbol_order() const;

    struct Part {
        Section header;
        std::string name;
        std::vector<std::byte> contents;
    };
    struct NamedSymbol {
        Symbol symbol;
        std::string name;
    };
    struct Relocations {
        uint32_t section;
        std::vector<Relocation> entries;
    };
    struct SegmentOver {
        Segment header;
        uint32_t section;
    };
    Target target_;
    std::vector<Part> parts_;
    std::vector<NamedSymbol> symbols_;
    std::vector<Relocations> relocations_;
    std::vector<SegmentOver> segments_;
};

} // namespace rawbpf::inline v0::elf
