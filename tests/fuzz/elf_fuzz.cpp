// The ELF reader: whatever the bytes say, everything that it hands out lies inside them.
#include <cstdlib>

#include "runtime/elf/elf.h"

using namespace rawbpf;

namespace {

uint64_t sum; // every byte of every view is read, for the sanitizers to judge

void touch(Bytes bytes) {
    for (std::byte b : bytes) sum += static_cast<uint8_t>(b);
}

void read_symbols(const elf::Elf &elf, const elf::Section &section) {
    auto table = elf.symbol_table(section);
    if (!table) return;
    if (table->size() > elf.symbol_count(section)) std::abort();
    for (size_t i = 0; i < table->size(); ++i) {
        sum += table->at(i).value;
        if (auto name = table->name(i)) touch(bytes_of(*name));
        if (i % 16 == 0) (void)elf.symbol(section, i);
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    auto elf = elf::Elf::parse(std::as_bytes(std::span(data, size)), "fuzz");
    if (!elf) return 0;
    for (const elf::Section &s : elf->sections()) {
        touch(bytes_of(s.name));
        // Many sections may share the same bytes: a limit keeps the run linear in the input.
        if (s.index < 32) touch(elf->contents(s));
        if (s.index < 32) read_symbols(*elf, s);
        if (auto relocations = elf->relocations(s))
            for (const elf::Relocation &r : *relocations) sum += r.symbol;
        ByteReader r = elf->reader(s);
        while (r.c_string()) {
        }
        if (s.index > 64) break;
    }
    if (auto id = elf->build_id(); id && id->empty()) std::abort();
    for (uint64_t at : {uint64_t{0}, uint64_t{0x401000}, ~uint64_t{0}, elf->entry()}) {
        sum += elf->file_offset(at).value_or(0);
        sum += elf->address_of(at).value_or(0);
    }
    return 0;
}
