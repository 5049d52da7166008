// Writes ELF; elf.cpp reads it.
//
//      header | program headers | given sections | .relNAME ... | .symtab .symtab_shndx .strtab .shstrtab | section headers
//
// Local symbols must come before the others, and sh_info says where they end. So finish() decides the order of symbols, and
// then translates relocations, which hold handles until then. With 0xff00 sections or more the counts move into section 0 and
// symbols' sections into .symtab_shndx.
//
// Source: System V ABI, gABI chapter 4; <elf.h>.
#include "runtime/elf/writer.h"

#include <algorithm>

#include <elf.h>

namespace rawbpf::inline v0::elf {

namespace {

/// Appends fields in the file's width and byte order.
struct Output {
    std::vector<std::byte> bytes;
    bool wide, swap;

    template <class T> void put(T value) {
        if (swap) value = byte_swap(value);
        auto raw = bytes_of_object(value);
        bytes.insert(bytes.end(), raw.begin(), raw.end());
    }
    void u8(uint8_t v) { put(v); }
    void u16(uint16_t v) { put(v); }
    void u32(uint32_t v) { put(v); }
    void word(uint64_t v) { wide ? put(v) : put(static_cast<uint32_t>(v)); }
    void raw(Bytes b) { bytes.insert(bytes.end(), b.begin(), b.end()); }
    void align(uint64_t alignment) {
        if (alignment > 1) bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    }
};

/// A string table; offset 0 is the empty string.
struct Strings {
    std::string text = std::string(1, '\0');
    uint32_t add(std::string_view s) {
        if (s.empty()) return 0;
        uint32_t offset = static_cast<uint32_t>(text.size());
        text.append(s);
        text.push_back('\0');
        return offset;
    }
};

} // namespace

uint32_t Writer::add_section(std::string_view name, Section like, Bytes contents) {
    like.index = static_cast<uint32_t>(parts_.size() + 1);
    like.name = {};
    if (like.type != SHT_NOBITS) like.size = contents.size();
    parts_.push_back({like, std::string(name), {contents.begin(), contents.end()}});
    return like.index;
}

uint32_t Writer::add_section(std::string_view name, uint64_t flags, Bytes contents, uint64_t alignment) {
    Section like;
    like.type = SHT_PROGBITS;
    like.flags = flags;
    like.alignment = alignment;
    return add_section(name, like, contents);
}

uint32_t Writer::add_nobits(std::string_view name, uint64_t flags, uint64_t size, uint64_t alignment) {
    Section like;
    like.type = SHT_NOBITS;
    like.flags = flags;
    like.size = size;
    like.alignment = alignment;
    return add_section(name, like, {});
}

uint32_t Writer::add_symbol(const Symbol &symbol) {
    symbols_.push_back({symbol, std::string(symbol.name)});
    return static_cast<uint32_t>(symbols_.size() - 1);
}

void Writer::add_relocation(uint32_t in, const Relocation &relocation) {
    auto at = std::find_if(relocations_.begin(), relocations_.end(), [&](const Relocations &r) { return r.section == in; });
    if (at == relocations_.end()) at = relocations_.insert(at, {in, {}});
    at->entries.push_back(relocation);
}

void Writer::add_segment(uint32_t type, uint32_t flags, uint32_t section, uint64_t alignment) {
    Segment s;
    s.type = type;
    s.flags = flags;
    s.alignment = alignment;
    segments_.push_back({s, section});
}

std::vector<uint32_t> Writer::symbol_order() const {
    std::vector<uint32_t> index(symbols_.size());
    uint32_t next = 1; // 0 is the null symbol
    for (bool local : {true, false})
        for (size_t i = 0; i < symbols_.size(); ++i)
            if ((symbols_[i].symbol.binding == STB_LOCAL) == local) index[i] = next++;
    return index;
}

uint32_t Writer::symbol_index(uint32_t handle) const { return symbol_order()[handle]; }

std::vector<std::byte> Writer::finish() const {
    const bool wide = target_.is_64;
    std::vector<Part> parts = parts_;
    auto append_part = [&](std::string name, uint32_t type, Output &&out, uint32_t link, uint32_t info, uint64_t entry_size) {
        Part p;
        p.name = std::move(name);
        p.header.index = static_cast<uint32_t>(parts.size() + 1);
        p.header.type = type;
        p.header.link = link;
        p.header.info = info;
        p.header.entry_size = entry_size;
        p.header.alignment = entry_size ? (wide ? 8 : 4) : 1;
        p.header.size = out.bytes.size();
        p.contents = std::move(out.bytes);
        parts.push_back(std::move(p));
    };
    auto output = [&] { return Output{{}, wide, target_.big_endian}; };

    // Where the tables will be: every relocation section refers to .symtab, which comes after them.
    uint32_t symtab = static_cast<uint32_t>(parts.size() + relocations_.size() + 1);
    bool extended = std::any_of(symbols_.begin(), symbols_.end(), [](const NamedSymbol &s) { return s.symbol.extended; });
    uint32_t strtab = symtab + (extended ? 2 : 1);

    const std::vector<uint32_t> order = symbol_order();
    for (const Relocations &r : relocations_) {
        bool addend = std::any_of(r.entries.begin(), r.entries.end(), [](const Relocation &e) { return e.addend != 0; });
        Output out = output();
        for (const Relocation &e : r.entries) {
            uint64_t symbol = order[e.symbol];
            out.word(e.offset);
            out.word(wide ? symbol << 32 | e.type : symbol << 8 | (e.type & 0xff));
            if (addend) out.word(static_cast<uint64_t>(e.addend));
        }
        append_part((addend ? ".rela" : ".rel") + parts_[r.section - 1].name, addend ? SHT_RELA : SHT_REL, std::move(out), symtab,
                    r.section, (addend ? 3 : 2) * (wide ? 8 : 4));
    }

    if (!symbols_.empty()) {
        Strings names;
        Output table = output(), sections = output();
        auto put = [&](const Symbol &s, std::string_view name) {
            uint16_t section = s.extended ? uint16_t{SHN_XINDEX} : static_cast<uint16_t>(s.section);
            uint8_t info = static_cast<uint8_t>(s.binding << 4 | (s.type & 0xf));
            table.u32(names.add(name));
            if (wide) {
                table.u8(info);
                table.u8(s.visibility);
                table.u16(section);
            }
            table.word(s.value);
            table.word(s.size);
            if (!wide) {
                table.u8(info);
                table.u8(s.visibility);
                table.u16(section);
            }
            sections.u32(s.extended ? s.section : 0);
        };
        put({}, {});
        uint32_t first_global = 1;
        for (bool local : {true, false})
            for (const NamedSymbol &s : symbols_)
                if ((s.symbol.binding == STB_LOCAL) == local) {
                    put(s.symbol, s.name);
                    first_global += local;
                }
        append_part(".symtab", SHT_SYMTAB, std::move(table), strtab, first_global, wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));
        if (extended) append_part(".symtab_shndx", SHT_SYMTAB_SHNDX, std::move(sections), symtab, 0, 4);
        Output text = output();
        text.raw(bytes_of(names.text));
        append_part(".strtab", SHT_STRTAB, std::move(text), 0, 0, 0);
    }

    Strings section_names;
    std::vector<uint32_t> name_offsets;
    name_offsets.reserve(parts.size() + 1);
    for (const Part &p : parts) name_offsets.push_back(section_names.add(p.name));
    name_offsets.push_back(section_names.add(".shstrtab"));
    Output text = output();
    text.raw(bytes_of(section_names.text));
    append_part(".shstrtab", SHT_STRTAB, std::move(text), 0, 0, 0);

    const uint64_t count = parts.size() + 1;
    const size_t header_size = wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
    const size_t segment_size = wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    uint64_t offset = header_size + segments_.size() * segment_size;
    for (Part &p : parts) {
        uint64_t alignment = std::max<uint64_t>(p.header.alignment, 1);
        offset = (offset + alignment - 1) / alignment * alignment;
        p.header.offset = offset;
        offset += p.contents.size();
    }
    const uint64_t section_headers = (offset + 7) / 8 * 8;

    Output out = output();
    const uint8_t ident[EI_NIDENT] = {ELFMAG0,
                                      ELFMAG1,
                                      ELFMAG2,
                                      ELFMAG3,
                                      wide ? uint8_t{ELFCLASS64} : uint8_t{ELFCLASS32},
                                      target_.big_endian ? uint8_t{ELFDATA2MSB} : uint8_t{ELFDATA2LSB},
                                      EV_CURRENT};
    out.raw(bytes_of_object(ident));
    out.u16(target_.type);
    out.u16(target_.machine);
    out.u32(EV_CURRENT);
    out.word(target_.entry);
    out.word(segments_.empty() ? 0 : header_size);
    out.word(section_headers);
    out.u32(0);
    out.u16(static_cast<uint16_t>(header_size));
    out.u16(static_cast<uint16_t>(segments_.empty() ? 0 : segment_size));
    out.u16(static_cast<uint16_t>(std::min<size_t>(segments_.size(), PN_XNUM)));
    out.u16(wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr));
    out.u16(static_cast<uint16_t>(count >= SHN_LORESERVE ? 0 : count));
    out.u16(static_cast<uint16_t>(count - 1 >= SHN_LORESERVE ? uint64_t{SHN_XINDEX} : count - 1));

    for (const SegmentOver &s : segments_) {
        const Section &over = parts[s.section - 1].header;
        out.u32(s.header.type);
        if (wide) out.u32(s.header.flags);
        out.word(over.offset);
        out.word(over.address);
        out.word(over.address);
        out.word(over.type == SHT_NOBITS ? 0 : over.size);
        out.word(over.size);
        if (!wide) out.u32(s.header.flags);
        out.word(s.header.alignment);
    }
    for (const Part &p : parts) {
        out.bytes.resize(p.header.offset);
        out.raw(p.contents);
    }
    out.bytes.resize(section_headers);

    auto put_header = [&](uint32_t name, const Section &s) {
        out.u32(name);
        out.u32(s.type);
        out.word(s.flags);
        out.word(s.address);
        out.word(s.offset);
        out.word(s.size);
        out.u32(s.link);
        out.u32(s.info);
        out.word(s.alignment);
        out.word(s.entry_size);
    };
    Section null;
    if (count >= SHN_LORESERVE) null.size = count;
    if (count - 1 >= SHN_LORESERVE) null.link = static_cast<uint32_t>(count - 1);
    if (segments_.size() >= PN_XNUM) null.info = static_cast<uint32_t>(segments_.size());
    put_header(0, null);
    for (size_t i = 0; i < parts.size(); ++i) put_header(name_offsets[i], parts[i].header);
    return std::move(out.bytes);
}

} // namespace rawbpf::inline v0::elf
