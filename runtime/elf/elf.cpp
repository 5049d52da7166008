// Reads ELF without trusting it.
//
// Two classes (32, 64 bits) times two byte orders make four layouts of the same fields. Instead of four sets of structs,
// Fields reads the fields one after another, with the width and byte order from the header. Every table is range checked once,
// before its first field is read. So the same code reads a big-endian MIPS binary and a BPF object.
//
//      e_shoff --> +---------+---------+---------+ ...     e_shnum entries; where there are 0xff00 or more, e_shnum is 0 and the
//                  | null  0 | .text 1 | .data 2 |         real count lies in entry 0's sh_size, e_shstrndx in its sh_link and
//                  +---------+---------+---------+         e_phnum in its sh_info
//                     |sh_name, an offset
//                     v
//      e_shstrndx --> "\0.text\0.data\0"
//
// Opening decodes only the headers. A table of 70,000 symbols is 1.7 MB that is already mapped; SymbolTable reads single
// entries from it, so opening a large library costs the same as opening a small one.
//
// Program headers may point outside the file: files that hold only debug information keep the headers of the binary that they
// were split from. So they are checked when their bytes are used.
//
// Source: System V ABI, gABI chapters 4 and 5; elf(5); <elf.h>.
#include "runtime/elf/elf.h"

#include <algorithm>

#include <elf.h>

#include "runtime/base/fail.h"
#include "runtime/base/hex.h"

namespace rawbpf::inline v0::elf {

namespace {

bool inside(uint64_t offset, uint64_t size, uint64_t total) { return offset <= total && size <= total - offset; }

/// Reads one field after another. The caller has checked the range of all of them.
struct Fields {
    const std::byte *at;
    bool wide; // ELFCLASS64
    bool swap;

    template <class T> T next() {
        T value = load<T>(at);
        at += sizeof(T);
        return swap ? byte_swap(value) : value;
    }
    uint8_t u8() { return next<uint8_t>(); }
    uint16_t u16() { return next<uint16_t>(); }
    uint32_t u32() { return next<uint32_t>(); }
    /// An address, an offset or a size: as wide as the class.
    uint64_t word() { return wide ? next<uint64_t>() : next<uint32_t>(); }
    int64_t signed_word() { return wide ? static_cast<int64_t>(next<uint64_t>()) : static_cast<int32_t>(next<uint32_t>()); }
};

Section read_section(Fields f, uint32_t index, uint32_t &name) {
    Section s;
    s.index = index;
    name = f.u32();
    s.type = f.u32();
    s.flags = f.word();
    s.address = f.word();
    s.offset = f.word();
    s.size = f.word();
    s.link = f.u32();
    s.info = f.u32();
    s.alignment = f.word();
    s.entry_size = f.word();
    return s;
}

size_t header_size(bool wide) { return wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr); }
size_t section_header_size(bool wide) { return wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr); }
size_t segment_header_size(bool wide) { return wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr); }
size_t symbol_size(bool wide) { return wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym); }

/// The NUL-ended string at `offset`, without its NUL.
std::optional<std::string_view> string_at(Bytes table, uint64_t offset) {
    if (offset >= table.size()) return std::nullopt;
    const char *start = reinterpret_cast<const char *>(table.data()) + offset;
    const void *end = std::memchr(start, 0, table.size() - offset);
    if (!end) return std::nullopt;
    return std::string_view(start, static_cast<const char *>(end) - start);
}

bool holds_bytes(const Section &section) { return section.type != SHT_NOBITS && section.type != SHT_NULL; }

} // namespace

bool is_elf(Bytes bytes) { return bytes.size() >= SELFMAG && std::memcmp(bytes.data(), ELFMAG, SELFMAG) == 0; }

Result<Elf> Elf::parse(Bytes bytes, std::string_view name) {
    Elf elf;
    elf.bytes_ = bytes;
    elf.name_ = name;
    auto ident = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
    if (bytes.size() < EI_NIDENT || !is_elf(bytes))
        return fail(Errc::bad_input, "{}: ELF header: offset 0x0: not an ELF file", name);
    if (ident(EI_CLASS) != ELFCLASS32 && ident(EI_CLASS) != ELFCLASS64)
        return fail(Errc::bad_input, "{}: ELF header: offset {:#x}: class {} is neither 32 nor 64 bits", name, +EI_CLASS,
                    ident(EI_CLASS));
    if (ident(EI_DATA) != ELFDATA2LSB && ident(EI_DATA) != ELFDATA2MSB)
        return fail(Errc::bad_input, "{}: ELF header: offset {:#x}: rawbpf doesn't know byte order {}", name, +EI_DATA,
                    ident(EI_DATA));
    if (ident(EI_VERSION) != EV_CURRENT)
        return fail(Errc::bad_input, "{}: ELF header: offset {:#x}: rawbpf doesn't know version {}", name, +EI_VERSION,
                    ident(EI_VERSION));
    elf.is_64_ = ident(EI_CLASS) == ELFCLASS64;
    elf.big_endian_ = ident(EI_DATA) == ELFDATA2MSB;
    if (bytes.size() < header_size(elf.is_64_))
        return fail(Errc::bad_input, "{}: ELF header: offset {:#x}: needs {} bytes, and {} are left", name, +EI_NIDENT,
                    header_size(elf.is_64_) - EI_NIDENT, bytes.size() - EI_NIDENT);

    Fields f{bytes.data() + EI_NIDENT, elf.is_64_, elf.big_endian_};
    elf.type_ = f.u16();
    elf.machine_ = f.u16();
    f.u32(); // e_version repeats EI_VERSION
    elf.entry_ = f.word();
    uint64_t segments_at = f.word();
    uint64_t sections_at = f.word();
    f.u32(); // e_flags
    f.u16(); // e_ehsize
    uint16_t segment_entry = f.u16();
    uint64_t segment_count = f.u16();
    uint16_t section_entry = f.u16();
    uint64_t section_count = f.u16();
    uint32_t names = f.u16();

    if (sections_at != 0) {
        size_t entry = section_header_size(elf.is_64_);
        if (section_count == 0 || names == SHN_XINDEX || segment_count == PN_XNUM) {
            if (!inside(sections_at, entry, bytes.size()))
                return fail(Errc::bad_input, "{}: section headers: offset {:#x}: needs {} bytes, and the file has {}", name,
                            sections_at, entry, bytes.size());
            uint32_t ignored;
            Section first = read_section({bytes.data() + sections_at, elf.is_64_, elf.big_endian_}, 0, ignored);
            if (section_count == 0) section_count = first.size;
            if (names == SHN_XINDEX) names = first.link;
            if (segment_count == PN_XNUM) segment_count = first.info;
        }
        TRY(elf.parse_sections(sections_at, section_entry, section_count, names));
    }
    if (segments_at != 0 && segment_count != 0) TRY(elf.parse_segments(segments_at, segment_entry, segment_count));
    return elf;
}

Result<void> Elf::parse_sections(uint64_t offset, uint16_t entry_size, uint64_t count, uint32_t names) {
    size_t entry = section_header_size(is_64_);
    if (count == 0) return {};
    if (entry_size != entry)
        return fail(Errc::bad_input, "{}: ELF header: e_shentsize is {}, and should be {}", name_, entry_size, entry);
    if (count > bytes_.size() / entry || !inside(offset, count * entry, bytes_.size()))
        return fail(Errc::bad_input,
                    "{}: section headers: offset {:#x}: {} entries of {} bytes don't fit into a file of {} bytes", name_, offset,
                    count, entry, bytes_.size());
    if (names != SHN_UNDEF && names >= count)
        return fail(Errc::bad_input, "{}: ELF header: the section names should be in section {}, and there are only {} sections",
                    name_, names, count);

    // Names come last: the string table that holds them is itself one of the sections.
    std::vector<uint32_t> name_offsets(count);
    sections_.reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
        Section s =
            read_section({bytes_.data() + offset + i * entry, is_64_, big_endian_}, static_cast<uint32_t>(i), name_offsets[i]);
        // Entry 0 may hold the real counts in its fields.
        if (i == 0) s.size = s.offset = s.link = s.info = 0;
        if (holds_bytes(s) && !inside(s.offset, s.size, bytes_.size()))
            return fail(Errc::bad_input, "{}: section {}: offset {:#x}: {:#x} bytes go past the end of the file ({:#x})", name_,
                        i, s.offset, s.size, bytes_.size());
        sections_.push_back(s);
    }
    if (names == SHN_UNDEF) return {};
    Bytes table = contents(sections_[names]);
    for (uint64_t i = 0; i < count; ++i) {
        if (name_offsets[i] == 0) continue;
        std::optional<std::string_view> text = string_at(table, name_offsets[i]);
        if (!text)
            return fail(Errc::bad_input,
                        "{}: section {}: its name, at offset {:#x} of section {}, is outside of it or has no end", name_, i,
                        name_offsets[i], names);
        sections_[i].name = *text;
    }
    return {};
}

Result<void> Elf::parse_segments(uint64_t offset, uint16_t entry_size, uint64_t count) {
    size_t entry = segment_header_size(is_64_);
    if (entry_size != entry)
        return fail(Errc::bad_input, "{}: ELF header: e_phentsize is {}, and should be {}", name_, entry_size, entry);
    if (count > bytes_.size() / entry || !inside(offset, count * entry, bytes_.size()))
        return fail(Errc::bad_input,
                    "{}: program headers: offset {:#x}: {} entries of {} bytes don't fit into a file of {} bytes", name_, offset,
                    count, entry, bytes_.size());
    segments_.reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
        Fields f{bytes_.data() + offset + i * entry, is_64_, big_endian_};
        Segment s;
        s.type = f.u32();
        if (is_64_) s.flags = f.u32();
        s.offset = f.word();
        s.address = f.word();
        f.word(); // p_paddr
        s.file_size = f.word();
        s.memory_size = f.word();
        if (!is_64_) s.flags = f.u32();
        s.alignment = f.word();
        segments_.push_back(s);
    }
    return {};
}

std::string Elf::label(const Section &section) const {
    return section.name.empty() ? format("{}: section {}", name_, section.index)
                                : format("{}: section {} ({})", name_, section.index, section.name);
}

const Section *Elf::find_section(std::string_view name) const {
    auto found = std::find_if(sections_.begin(), sections_.end(), [&](const Section &s) { return s.name == name; });
    return found == sections_.end() ? nullptr : &*found;
}

Bytes Elf::contents(const Section &section) const {
    if (!holds_bytes(section) || !inside(section.offset, section.size, bytes_.size())) return {};
    return bytes_.subspan(section.offset, section.size);
}

ByteReader Elf::reader(const Section &section) const { return ByteReader(contents(section), label(section), 0, big_endian_); }

Result<SymbolTable> Elf::symbol_table(const Section &table) const {
    if (table.type != SHT_SYMTAB && table.type != SHT_DYNSYM)
        return fail(Errc::bad_input, "{}: it isn't a symbol table", label(table));
    if (table.entry_size != symbol_size(is_64_))
        return fail(Errc::bad_input, "{}: its symbols have {} bytes, and should have {}", label(table), table.entry_size,
                    symbol_size(is_64_));
    if (table.link >= sections_.size() || sections_[table.link].type != SHT_STRTAB)
        return fail(Errc::bad_input, "{}: section {} should be its string table, and isn't a string table", label(table),
                    table.link);
    SymbolTable out;
    out.elf_ = this;
    out.entries_ = contents(table);
    out.strings_ = contents(sections_[table.link]);
    out.entry_size_ = table.entry_size;
    out.count_ = out.entries_.size() / out.entry_size_;
    out.section_ = table.index;
    for (const Section &s : sections_)
        if (s.type == SHT_SYMTAB_SHNDX && s.link == table.index) out.extended_ = contents(s);
    return out;
}

Symbol SymbolTable::at(size_t index) const {
    Fields f{entries_.data() + index * entry_size_, elf_->is_64_, elf_->big_endian_};
    Symbol s;
    uint8_t info, other;
    f.u32(); // st_name
    if (elf_->is_64_) {
        info = f.u8();
        other = f.u8();
        s.section = f.u16();
        s.value = f.word();
        s.size = f.word();
    } else {
        s.value = f.word();
        s.size = f.word();
        info = f.u8();
        other = f.u8();
        s.section = f.u16();
    }
    s.type = info & 0xf;
    s.binding = info >> 4;
    s.visibility = other & 3;
    if (elf_->machine() == EM_ARM && (s.type == STT_FUNC || s.type == STT_GNU_IFUNC) && (s.value & 1) != 0) {
        s.thumb = true;
        --s.value;
    }
    if (s.section == SHN_XINDEX && inside(index * 4, 4, extended_.size())) {
        s.section = Fields{extended_.data() + index * 4, elf_->is_64_, elf_->big_endian_}.u32();
        s.extended = true;
    }
    return s;
}

uint32_t SymbolTable::name_offset(size_t index) const {
    return Fields{entries_.data() + index * entry_size_, elf_->is_64_, elf_->big_endian_}.u32(); // st_name comes first
}

Result<std::string_view> SymbolTable::name(size_t index) const {
    uint32_t offset = name_offset(index);
    if (offset == 0) return std::string_view();
    std::optional<std::string_view> text = string_at(strings_, offset);
    if (!text)
        return fail(Errc::bad_input,
                    "{}: symbol {}: its name, at offset {:#x} of the string table, is outside of it or has no end",
                    elf_->label(elf_->sections_[section_]), index, offset);
    return *text;
}

size_t Elf::symbol_count(const Section &table) const {
    if (table.type != SHT_SYMTAB && table.type != SHT_DYNSYM) return 0;
    return contents(table).size() / symbol_size(is_64_);
}

Result<Symbol> Elf::symbol(const Section &table, size_t index) const {
    SymbolTable symbols = TRY(symbol_table(table));
    if (index >= symbols.size())
        return fail(Errc::bad_input, "{}: there is no symbol {}; there are only {}", label(table), index, symbols.size());
    Symbol s = symbols.at(index);
    s.name = TRY(symbols.name(index));
    return s;
}

Result<std::vector<Relocation>> Elf::relocations(const Section &section) const {
    bool with_addend = section.type == SHT_RELA;
    if (!with_addend && section.type != SHT_REL)
        return fail(Errc::bad_input, "{}: it isn't a relocation section", label(section));
    size_t entry = (with_addend ? 3 : 2) * (is_64_ ? 8 : 4);
    if (section.entry_size != entry)
        return fail(Errc::bad_input, "{}: its relocations have {} bytes, and should have {}", label(section), section.entry_size,
                    entry);
    Bytes bytes = contents(section);
    if (bytes.size() % entry != 0)
        return fail(Errc::bad_input, "{}: offset {:#x}: the last relocation is incomplete", label(section),
                    bytes.size() / entry * entry);
    // A linker's .rela.iplt refers to no table at all.
    std::optional<size_t> limit;
    if (section.link != 0) {
        if (section.link >= sections_.size())
            return fail(Errc::bad_input, "{}: its symbol table, section {}, doesn't exist", label(section), section.link);
        limit = symbol_count(sections_[section.link]);
    }
    std::vector<Relocation> out;
    out.reserve(bytes.size() / entry);
    for (size_t at = 0; at < bytes.size(); at += entry) {
        Fields f{bytes.data() + at, is_64_, big_endian_};
        Relocation r;
        r.offset = f.word();
        uint64_t info = f.word();
        r.type = static_cast<uint32_t>(is_64_ ? info & 0xffffffff : info & 0xff);
        r.symbol = static_cast<uint32_t>(is_64_ ? info >> 32 : info >> 8);
        if (with_addend) r.addend = f.signed_word();
        if (limit && r.symbol != 0 && r.symbol >= *limit)
            return fail(Errc::bad_input, "{}: offset {:#x}: symbol {} doesn't exist; the table has {}", label(section), at,
                        r.symbol, *limit);
        out.push_back(r);
    }
    return out;
}

/// The NT_GNU_BUILD_ID among notes: namesz, descsz, type, name and description, both padded.
static std::optional<std::string> build_id_in(Bytes notes, uint64_t alignment, bool swap) {
    ByteReader r(notes, "notes", 0, swap);
    size_t padding = alignment == 8 ? 8 : 4;
    while (r.left() >= sizeof(Elf64_Nhdr)) {
        Result<uint32_t> name_size = r.read<uint32_t>(), size = r.read<uint32_t>(), type = r.read<uint32_t>();
        if (!name_size || !size || !type) return std::nullopt;
        Result<Bytes> name = r.take(*name_size);
        if (!name) return std::nullopt;
        r.align(padding);
        Result<Bytes> id = r.take(*size);
        if (!id) return std::nullopt;
        if (*type == NT_GNU_BUILD_ID && name->size() == 4 && std::memcmp(name->data(), ELF_NOTE_GNU, 4) == 0 && !id->empty())
            return hex_text(*id);
        r.align(padding);
    }
    return std::nullopt;
}

std::optional<std::string> Elf::build_id() const {
    for (const Section &s : sections_)
        if (s.type == SHT_NOTE)
            if (std::optional<std::string> id = build_id_in(contents(s), s.alignment, big_endian_)) return id;
    for (const Segment &s : segments_)
        if (s.type == PT_NOTE && inside(s.offset, s.file_size, bytes_.size()))
            if (std::optional<std::string> id = build_id_in(bytes_.subspan(s.offset, s.file_size), s.alignment, big_endian_))
                return id;
    return std::nullopt;
}

std::optional<uint64_t> Elf::file_offset(uint64_t address) const {
    for (const Segment &s : segments_)
        if (s.type == PT_LOAD && address >= s.address && address - s.address < s.file_size)
            return s.offset + (address - s.address);
    return std::nullopt;
}

std::optional<uint64_t> Elf::address_of(uint64_t file_offset) const {
    for (bool executable : {true, false})
        for (const Segment &s : segments_)
            if (s.type == PT_LOAD && ((s.flags & PF_X) != 0) == executable && file_offset >= s.offset &&
                file_offset - s.offset < s.file_size)
                return s.address + (file_offset - s.offset);
    return std::nullopt;
}

} // namespace rawbpf::inline v0::elf
