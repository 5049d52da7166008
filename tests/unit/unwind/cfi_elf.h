// Small programs with call frame information written by hand.
//
//      .text 0x10000, 192 KiB (3 pages)   .got 0x70000   .eh_frame 0x80000   .debug_frame
#pragma once

#include <elf.h>

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/format.h"
#include "runtime/elf/writer.h"
#include "runtime/unwind/table.h"

namespace rawbpf::test {

using Program = std::vector<uint8_t>;

struct Cfi {
    bool eh = true, wide = false; // .eh_frame; 64-bit DWARF
    std::vector<std::byte> bytes = {};
    uint64_t address = 0x80000;

    template <class T> static void put(std::vector<std::byte> &out, T number) {
        const Bytes all = bytes_of_object(number);
        out.insert(out.end(), all.begin(), all.end());
    }
    static void put(std::vector<std::byte> &out, const Program &program) {
        for (uint8_t byte : program) out.push_back(std::byte{byte});
    }
    void offset(std::vector<std::byte> &out, uint64_t number, bool as_id = false) const {
        if (wide && !(as_id && eh))
            put(out, number);
        else
            put(out, static_cast<uint32_t>(number));
    }
    // The body of an entry behind its length; returns where the entry begins.
    uint64_t entry(std::vector<std::byte> body) {
        const uint64_t at = bytes.size();
        while (body.size() % 4) body.push_back(std::byte{0});
        if (wide) put(bytes, UINT32_MAX);
        offset(bytes, body.size());
        bytes.insert(bytes.end(), body.begin(), body.end());
        return at;
    }

    struct Cie {
        Program program = {0x0c, 7, 8, 0x90, 1}; // def_cfa rsp 8; offset rip CFA-8
        std::string augmentation = "zR";
        Program data = {0x1b}; // pcrel, sdata4
        uint8_t version = 1, code_align = 1, data_align = 0x78 /* -8 */, column = 16;
    };
    uint64_t cie(const Cie &cie) {
        std::vector<std::byte> body;
        offset(body, eh ? 0 : UINT64_MAX, true);
        put(body, cie.version);
        for (char c : cie.augmentation) body.push_back(std::byte(c));
        put(body, uint8_t{0});
        if (cie.version == 4) put(body, Program{8, 0});
        put(body, Program{cie.code_align, cie.data_align, cie.column});
        if (!cie.augmentation.empty()) {
            put(body, static_cast<uint8_t>(cie.data.size()));
            put(body, cie.data);
        }
        put(body, cie.program);
        return entry(body);
    }
    uint64_t cie() { return cie(Cie{}); }

    // `where`: start and size in the CIE's encoding.
    void fde_raw(uint64_t cie, const std::vector<std::byte> &where, const Program &program, bool sized = true) {
        std::vector<std::byte> body;
        const uint64_t id_at = bytes.size() + (wide ? 12 : 4);
        offset(body, eh ? id_at - cie : cie, true);
        body.insert(body.end(), where.begin(), where.end());
        if (sized) put(body, uint8_t{0});
        put(body, program);
        entry(body);
    }
    // With the usual encoding: pcrel, sdata4.
    void fde(uint64_t cie, uint64_t start, uint32_t size, const Program &program = {}) {
        std::vector<std::byte> where;
        const uint64_t at = address + bytes.size() + (wide ? 12 : 4) + (wide && !eh ? 8 : 4);
        put(where, static_cast<uint32_t>(start - at));
        put(where, size);
        fde_raw(cie, where, program);
    }
    // Absolute, as in .debug_frame.
    void fde_absolute(uint64_t cie, uint64_t start, uint64_t size, const Program &program = {}) {
        std::vector<std::byte> where;
        put(where, start);
        put(where, size);
        fde_raw(cie, where, program, false);
    }
};

struct CfiElf {
    elf::Target target{EM_X86_64, ET_DYN, true, false, 0};
    Cfi eh{}, debug{.eh = false};
    std::vector<uint8_t> code = std::vector<uint8_t>(0x30000, 0xcc); ///< .text
    const char *code_name = ".text";
    uint64_t debug_flags = 0;
    const char *debug_name = ".debug_frame";

    std::vector<uint32_t> plt = {};        ///< .plt, at 0x20000
    std::vector<elf::Symbol> symbols = {}; ///< of .text
    std::vector<Elf64_Dyn> dynamic = {};
    bool interpreter = false; ///< PT_INTERP

    [[nodiscard]] std::vector<std::byte> file() const {
        elf::Writer writer(target);
        const auto add = [&](std::string_view name, uint64_t flags, uint64_t address, Bytes contents) {
            elf::Section like;
            like.type = SHT_PROGBITS;
            like.flags = flags;
            like.address = address;
            like.alignment = 8;
            return writer.add_section(name, like, contents);
        };
        const uint32_t text = add(code_name, SHF_ALLOC | SHF_EXECINSTR, 0x10000, std::as_bytes(std::span(code)));
        writer.add_segment(PT_LOAD, PF_R | PF_X, text);
        if (!plt.empty()) {
            const uint32_t stubs = add(".plt", SHF_ALLOC | SHF_EXECINSTR, 0x20000, std::as_bytes(std::span(plt)));
            writer.add_segment(PT_LOAD, PF_R | PF_X, stubs);
        }
        for (elf::Symbol symbol : symbols) {
            symbol.section = text;
            symbol.type = STT_FUNC;
            writer.add_symbol(symbol);
        }
        if (!dynamic.empty()) add(".dynamic", SHF_ALLOC, 0x60000, std::as_bytes(std::span(dynamic)));
        if (interpreter) writer.add_segment(PT_INTERP, PF_R, text);
        add(".got", SHF_ALLOC | SHF_WRITE, 0x70000, {});
        if (!eh.bytes.empty()) add(".eh_frame", SHF_ALLOC, eh.address, eh.bytes);
        if (!debug.bytes.empty()) add(debug_name, debug_flags, 0, debug.bytes);
        return writer.finish();
    }
    [[nodiscard]] unwind::Table table() const {
        const std::vector<std::byte> image = file();
        return unwind::build_table(elf::Elf::parse(image, "app").value()).value();
    }
};

/// "sp+16 fp-16 ra-8", "fp+16 ...", "none", "odd" ...; fp and lr are left out where the registers still hold them.
inline std::string text(const UnwindRule &rule) {
    constexpr std::string_view kinds[] = {"none", "sp", "fp", "*fp", "plt", "signal", "end", "odd", "*sp", "r10"};
    std::string out(kinds[rule.kind]);
    if (rule.kind == UNWIND_NONE || (rule.kind >= UNWIND_SIGNAL && rule.kind <= UNWIND_ODD)) return out;
    append(out, "{:+}", rule.cfa * 8);
    if (rule.fp != 0 || rule.flags & UNWIND_FP_BY_FP)
        append(out, " fp{}{:+}{}", rule.flags & UNWIND_FP_BY_FP ? "(fp" : "", rule.fp * 8,
               rule.flags & UNWIND_FP_BY_FP ? ")" : "");
    if (!(rule.flags & (UNWIND_RA_IN_LR | UNWIND_RA_IN_DI))) append(out, " ra{:+}", rule.ra * 8);
    if (rule.flags & UNWIND_RA_IN_DI) out += " ra=di";
    if (rule.flags & UNWIND_RA_SIGNED) out += " signed";
    return out;
}

/// "10000 sp+8 ra-8, 10001 ..., 10010 none"
inline std::string text(const unwind::Table &table) {
    std::string out;
    for (size_t page = 0; page < table.pages.size(); ++page)
        for (uint32_t i = 0; i < table.pages[page].rows; ++i) {
            const uint32_t row = table.rows[table.pages[page].first + i];
            append(out, "{}{:x} {}", out.empty() ? "" : ", ", table.base + (page << UNWIND_PAGE_BITS) + UNWIND_ROW_LOW(row),
                   text(table.rules[UNWIND_ROW_RULE(row)]));
        }
    return out;
}

} // namespace rawbpf::test
