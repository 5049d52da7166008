// Unwind tables: a whole ELF file, or (anything else) the bytes of both sections of a small one, first for x86_64 and then for
// arm64, whose instructions are read too. Whatever comes out must hold what table.h and layout.h promise to the BPF side.
#include <cstdint>
#include <cstdlib>
#include <elf.h>

#include "runtime/elf/writer.h"
#include "runtime/unwind/table.h"

using namespace rawbpf;

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

void look_at(Bytes image) {
    Result<elf::Elf> file = elf::Elf::parse(image, "fuzz");
    if (!file) return;
    Result<unwind::Table> table = unwind::build_table(*file);
    if (!table) return;
    require(!table->rules.empty() && table->rules[0].kind == UNWIND_NONE && table->rules.size() <= UNWIND_RULES);
    require(table->pages.size() <= UINT16_MAX && table->base % (1 << UNWIND_PAGE_BITS) == 0);
    size_t rows = 0;
    for (size_t i = 0; i < table->pages.size(); ++i) {
        const unwind::TablePage &page = table->pages[i];
        require(page.first == rows && page.rows <= UNWIND_MAX_PAGE_ROWS);
        rows += page.rows;
        require(rows <= table->rows.size());
        for (uint32_t row = 0; row < page.rows; ++row) {
            const uint32_t at = UNWIND_ROW_LOW(table->rows[page.first + row]);
            require(row == 0 ? at == 0 : at > UNWIND_ROW_LOW(table->rows[page.first + row - 1]));
            require(UNWIND_ROW_RULE(table->rows[page.first + row]) < table->rules.size());
        }
        const uint64_t begin = table->base + (i << UNWIND_PAGE_BITS);
        (void)table->find(begin);
        (void)table->find(begin + 0xffff);
    }
    require(rows == table->rows.size());
    // A page costs a row or none, an instruction of a program one, a function two.
    require(rows <= image.size() + table->pages.size());
    for (const UnwindRule &rule : table->rules) require(rule.kind < UNWIND_KINDS);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const Bytes input{reinterpret_cast<const std::byte *>(data), size};
    look_at(input);
    if (size < 1 || (size >= 4 && data[0] == 0x7f && data[1] == 'E')) return 0;
    const Bytes sections = input.subspan(1);
    const size_t first = sections.size() * data[0] / 255;
    for (const uint16_t machine : {uint16_t{EM_X86_64}, uint16_t{EM_AARCH64}}) {
        elf::Writer writer({machine, ET_DYN, true, false, 0});
        const auto add = [&](std::string_view name, uint64_t address, uint64_t flags, Bytes bytes) {
            elf::Section like;
            like.type = SHT_PROGBITS;
            like.flags = flags;
            like.address = address;
            return writer.add_section(name, like, bytes);
        };
        writer.add_segment(PT_LOAD, PF_R | PF_X, writer.add_nobits(".text", SHF_ALLOC | SHF_EXECINSTR, 0x100000));
        // The same bytes again as instructions, of functions and of what lies between them.
        writer.add_segment(PT_LOAD, PF_R | PF_X, add(".more", 0x300000, SHF_ALLOC | SHF_EXECINSTR, sections));
        add(".eh_frame", 0x200000, SHF_ALLOC, sections.first(first));
        add(".debug_frame", 0, 0, sections.subspan(first));
        look_at(writer.finish());
    }
    return 0;
}
