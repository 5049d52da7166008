// ELF symbols: tables, PLT and debug links of a hostile binary, and names for offsets all over it.
#include <cstdint>
#include <cstdlib>

#include "runtime/symbols/debug_files.h"
#include "runtime/symbols/elf_symbols.h"

using namespace rawbpf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Bytes image{reinterpret_cast<const std::byte *>(data), size};
    Result<symbols::ElfSymbols> parsed = symbols::ElfSymbols::parse(image, "fuzz");
    if (!parsed) return 0;
    if (parsed->size() > size) std::abort();
    for (uint64_t offset = 0; offset < size; offset += 1 + size / 64)
        if (auto name = parsed->find(offset); name && name->symbol.empty()) std::abort();
    for (uint64_t address : {uint64_t{0}, uint64_t{0x401000}, UINT64_MAX}) (void)parsed->find_address(address);
    if (Result<elf::Elf> elf = elf::Elf::parse(image, "fuzz"))
        if (auto link = symbols::debug_link(*elf); link && link->name.find('/') != std::string::npos) std::abort();
    return 0;
}
