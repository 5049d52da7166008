// ELF symbols: tables, PLT, debug links and USDT notes of a hostile binary, and names for offsets all over it.
#include <cstdint>
#include <cstdlib>

#include "runtime/link/usdt.h"
#include "runtime/symbols/debug_files.h"
#include "runtime/symbols/elf_symbols.h"

using namespace rawbpf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Bytes image{reinterpret_cast<const std::byte *>(data), size};
    std::vector<std::string> notes;
    for (uint16_t machine : {62, 183}) {
        const UsdtSpec spec = read_usdt_arguments({reinterpret_cast<const char *>(data), size}, machine, notes);
        if (spec.count < 0 || static_cast<uint32_t>(spec.count) > UsdtSpec::kMostArguments) std::abort();
    }
    if (Result<elf::Elf> elf = elf::Elf::parse(image, "fuzz"))
        if (auto sites = find_usdt_sites(*elf, "", ""); sites && sites->size() > size) std::abort();
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
