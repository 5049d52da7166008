// 32-bit ARM has two instruction sets, and a program may use both: ARM's (4 bytes each) and Thumb's (2 or 4). The bytes don't say
// which. Symbols do ("ELF for the Arm Architecture", 5.5):
//
//      main   FUNC     value 0x10431      the lowest bit says Thumb; the address is 0x10430 (elf::Symbol::thumb)
//      $a $t $d.1  NOTYPE                 from here on: ARM, Thumb, data
#include "runtime/elf/arm_code.h"

#include <elf.h>

namespace rawbpf::inline v0::elf {

std::optional<bool> is_thumb(const Elf &file, uint64_t address) {
    std::optional<bool> out;
    uint64_t nearest = 0;
    const auto see = [&](const Symbol &symbol, bool thumb) {
        if (symbol.section == SHN_UNDEF || symbol.value > address || (out && symbol.value < nearest)) return;
        nearest = symbol.value;
        out = thumb;
    };
    for (const Section &section : file.sections()) {
        if (section.type != SHT_SYMTAB && section.type != SHT_DYNSYM) continue;
        const Result<SymbolTable> table = file.symbol_table(section);
        if (!table) continue; // a damaged table is one that doesn't have it
        for (size_t i = 0; i < table->size(); ++i) {
            const Symbol symbol = table->at(i);
            if (symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC) see(symbol, symbol.thumb);
            if (symbol.type != STT_NOTYPE) continue;
            const std::string_view name = table->name(i).value_or(std::string_view());
            const bool mapping = name.size() >= 2 && name[0] == '$' && (name.size() == 2 || name[2] == '.');
            if (mapping && (name[1] == 'a' || name[1] == 't')) see(symbol, name[1] == 't');
        }
    }
    return out;
}

} // namespace rawbpf::inline v0::elf
