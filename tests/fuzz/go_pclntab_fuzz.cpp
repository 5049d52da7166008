// Go's table of functions with everything in it a lie, in a file that is sound around it.
#include <cstdint>
#include <cstdlib>

#include <elf.h>

#include "runtime/elf/writer.h"
#include "runtime/symbols/elf_symbols.h"
#include "runtime/symbols/go_pclntab.h"

using namespace rawbpf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    // The first byte: whether the table has a section of its own, or is searched for.
    const bool own = (data[0] & 1) == 0;
    elf::Writer writer({EM_X86_64, ET_DYN, true, false, 0});
    elf::Section like;
    like.type = SHT_PROGBITS;
    like.flags = SHF_ALLOC | SHF_EXECINSTR;
    like.address = 0x401000;
    like.alignment = 16;
    const std::vector<std::byte> code(0x1000);
    writer.add_segment(PT_LOAD, PF_R | PF_X, writer.add_section(".text", like, code));
    like.flags = SHF_ALLOC;
    like.address = 0x500000;
    const Bytes table{reinterpret_cast<const std::byte *>(data) + 1, size - 1};
    writer.add_segment(PT_LOAD, PF_R, writer.add_section(own ? ".gopclntab" : ".data.rel.ro", like, table));
    elf::Section sign;
    sign.type = SHT_PROGBITS;
    writer.add_section(".go.buildinfo", sign, {});
    const std::vector<std::byte> image = writer.finish();
    auto elf = elf::Elf::parse(image, "fuzz");
    if (!elf) std::abort();
    if (auto functions = symbols::read_go_pclntab(*elf)) {
        if (functions->functions.size() > size / 8) std::abort();
        if (functions->names_offset > image.size() || functions->names_size > image.size() - functions->names_offset)
            std::abort();
    }
    auto symbols = symbols::ElfSymbols::parse(image, "fuzz");
    if (!symbols) std::abort();
    for (uint64_t address = 0x401000; address < 0x402000; address += 0x40)
        if (auto name = symbols->find_address(address); name && name->symbol.empty()) std::abort();
    return 0;
}
