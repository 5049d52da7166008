// The functions of one ELF symbol table, sorted by address, 12 bytes each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::symbols {

/// Sorted functions: where each begins and ends, and where its name lies in the string table.
class FunctionTable {
  public:
    /// What find() knows: the names are the caller's business.
    struct Hit {
        uint64_t start = 0;
        uint32_t size = 0;
        uint32_t name = 0; ///< offset in the string table (for add(): whatever was given)
    };

    FunctionTable() = default;
    /// The functions of a SHT_SYMTAB or SHT_DYNSYM section. Malformed symbols are passed over; a malformed table is an error.
    [[nodiscard]] static Result<FunctionTable> build(const elf::Elf &elf, const elf::Section &table);
    /// Of ranges collected elsewhere (PLT entries), in any order. At one address the lowest name stays.
    [[nodiscard]] static FunctionTable of(std::vector<Hit> ranges);

    /// The innermost function that covers an address.
    [[nodiscard]] std::optional<Hit> find(uint64_t address) const;
    [[nodiscard]] size_t size() const { return entries_.size(); }
    [[nodiscard]] size_t memory() const { return entries_.capacity() * sizeof(Entry); }

  private:
    struct Entry {
        uint32_t start;       ///< behind base_
        uint32_t size : 31;   ///< bytes
        uint32_t covered : 1; ///< some earlier function reaches beyond this one's end
        uint32_t name;
    };
    uint64_t base_ = 0;
    std::vector<Entry> entries_;
};

} // namespace rawbpf::inline v0::symbols
