// An entry's programs aren't run: only its first two fields are read, the function's address and size.
#include "runtime/unwind/functions.h"

#include <elf.h>

#include "runtime/unwind/cfi.h"

namespace rawbpf::inline v0::unwind {

std::vector<FunctionRange> function_ranges(const elf::Elf &file) {
    std::vector<FunctionRange> out;
    const elf::Section *section = file.find_section(".eh_frame");
    if (!section || !machine_of_elf(file.machine()) || section->size > kMostFrameBytes) return out;
    const Frames frames = frames_of(file, *section, true);
    Entry entry;
    Cie cie;
    for (uint64_t at = 0; entry = read_entry(frames, at), entry.kind != Entry::end; at = entry.next) {
        Function function;
        if (entry.kind != Entry::fde) continue;
        if (cie.at != entry.cie_at && read_cie(frames, entry.cie_at, cie)) continue;
        if (!read_fde(frames, cie, entry.rest, function) && function.start < function.end)
            out.push_back({function.start, function.end});
    }
    return out;
}

std::vector<elf::SymbolTable> symbol_tables(const elf::Elf &file) {
    constexpr int kMost = 4;
    std::vector<elf::SymbolTable> out;
    int looked = 0;
    for (const elf::Section &section : file.sections()) {
        if ((section.type != SHT_DYNSYM && section.type != SHT_SYMTAB) || ++looked > kMost) continue;
        if (auto symbols = file.symbol_table(section)) out.push_back(*symbols);
    }
    return out;
}

} // namespace rawbpf::inline v0::unwind
