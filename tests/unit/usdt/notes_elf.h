// Small programs with USDT notes, of any machine, class and byte order.
//
//      .text 0x1000   .probes 0x3000 (semaphores)   .data 0x4000   .stapsdt.base   .note.stapsdt   .symtab
#pragma once

#include <elf.h>

#include <string>
#include <vector>

#include "runtime/elf/writer.h"

namespace rawbpf::test {

struct Note {
    uint64_t pc = 0x1010, base = 0x1100, semaphore = 0;
    std::string provider = "app", name = "probe", arguments = {};
    bool padded = false; ///< descsz counts the padding, as Go's does
};

struct NotesElf {
    elf::Target target{EM_X86_64, ET_DYN, true, false, 0};
    uint64_t base_address = 0x1100; ///< of .stapsdt.base
    std::vector<uint8_t> code;      ///< at 0x1000; nops behind it
    std::vector<std::pair<std::string, uint64_t>> symbols;
    std::string junk; ///< behind the notes

    template <class T> void put(std::vector<std::byte> &out, T number) const {
        if (target.big_endian) number = byte_swap(number);
        const Bytes bytes = bytes_of_object(number);
        out.insert(out.end(), bytes.begin(), bytes.end());
    }
    [[nodiscard]] std::vector<std::byte> section(const std::vector<Note> &notes) const {
        std::vector<std::byte> out;
        for (const Note &note : notes) {
            std::vector<std::byte> body;
            for (uint64_t number : {note.pc, note.base, note.semaphore}) {
                if (target.is_64)
                    put(body, number);
                else
                    put(body, static_cast<uint32_t>(number));
            }
            for (const std::string &text : {note.provider, note.name, note.arguments}) {
                const Bytes bytes = std::as_bytes(std::span(text.c_str(), text.size() + 1));
                body.insert(body.end(), bytes.begin(), bytes.end());
            }
            if (note.padded) body.resize((body.size() + 3) / 4 * 4);
            for (uint32_t number : {8U, static_cast<uint32_t>(body.size()), 3U}) put(out, number);
            const Bytes owner = bytes_of(std::string_view("stapsdt\0", 8));
            out.insert(out.end(), owner.begin(), owner.end());
            out.insert(out.end(), body.begin(), body.end());
            out.resize((out.size() + 3) / 4 * 4);
        }
        const Bytes more = bytes_of(std::string_view(junk));
        out.insert(out.end(), more.begin(), more.end());
        return out;
    }
    [[nodiscard]] std::vector<std::byte> file(const std::vector<Note> &notes) const {
        elf::Writer writer(target);
        auto add = [&](std::string_view name, uint32_t type, uint64_t flags, uint64_t address, Bytes contents) {
            elf::Section like;
            like.type = type;
            like.flags = flags;
            like.address = address;
            like.alignment = 4;
            return writer.add_section(name, like, contents);
        };
        std::vector<std::byte> text;
        for (uint8_t byte : code) text.push_back(std::byte{byte});
        const std::vector<uint8_t> nop = target.machine == EM_AARCH64 ? std::vector<uint8_t>{0x1f, 0x20, 0x03, 0xd5}
                                         : target.machine == EM_RISCV ? std::vector<uint8_t>{0x13, 0, 0, 0}
                                         : target.machine == EM_S390  ? std::vector<uint8_t>{0x47, 0, 0, 0}
                                                                      : std::vector<uint8_t>{0x90, 0x90, 0x90, 0x90};
        while (text.size() < 0x200) text.push_back(std::byte{nop[text.size() % 4]});
        const std::vector<std::byte> zeros(0x20);
        writer.add_segment(PT_LOAD, PF_R | PF_X, add(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, text));
        writer.add_segment(PT_LOAD, PF_R | PF_W, add(".probes", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x3000, zeros));
        const uint32_t data = add(".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x4000, zeros);
        writer.add_segment(PT_LOAD, PF_R | PF_W, data);
        if (base_address != 0) add(".stapsdt.base", SHT_PROGBITS, SHF_ALLOC, base_address, Bytes(zeros).first(1));
        add(".note.stapsdt", SHT_NOTE, 0, 0, section(notes));
        for (const auto &[name, value] : symbols) {
            elf::Symbol symbol;
            symbol.name = name;
            symbol.value = value;
            symbol.section = data;
            symbol.type = STT_OBJECT;
            symbol.binding = STB_GLOBAL;
            writer.add_symbol(symbol);
        }
        return writer.finish();
    }
};

} // namespace rawbpf::test
