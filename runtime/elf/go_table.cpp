// Go's pclntab: the address and name of each function, also after `strip` or -ldflags=-s. The runtime prints tracebacks from
// it, so it is in every Go program. Its header depends on the magic number at its start:
//
//     Go 1.2   fffffffb 00 00 quantum wordsize | functions (word) | (pc, offset) ... last pc
//     Go 1.16  fffffffa ...                    | functions, files, names, units, files, pcs, table (words; offsets from the header)
//     Go 1.18  fffffff0 ...                    | functions, files, TEXT START, names, units, files, pcs, table
//     Go 1.20  fffffff1                          the same; what changed is further in
//
//     table:     (pc, offset) (pc, offset) ... last pc      words; from 1.18 on 32 bits each, and pc counts from the text's start
//                        |
//                        +--> entry pc (as wide as pc), then 32 bits each: name (an offset into names), arguments, deferreturn,
//                             STACK (an offset into pcs), file, line, tables, unit, [line from 1.20 on]; 8 bits: function, FLAGS
//
// Before 1.16 all offsets count from the header, also those of names. The flags exist since 1.17; before it these bytes are
// zero.
//
// It is in .gopclntab, in position-independent programs in .data.rel.ro.gopclntab. An external linker (cgo with
// -buildmode=pie) merges that into .data.rel.ro, and a program may have no section headers. Then it is searched for, at
// multiples of 8, if notes or .go.buildinfo say that Go made the file.
//
// The start of the text: in position-independent programs the field is relocated at run time; in the file it is 0 with a
// relative relocation. If no relocation names it (Go may leave the field out), it is the start of .text, which is right for
// programs that Go's own linker made. Since Go 1.26 the header doesn't have it; then .go.module has it, behind the addresses of
// the first function and of the last one's end, which prove it. Only functions in executable code are used.
#include "runtime/elf/go_table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include <elf.h>

namespace rawbpf::inline v0::elf {
namespace {

constexpr uint32_t kGo12 = 0xfffffffb, kGo116 = 0xfffffffa, kGo118 = 0xfffffff0, kGo120 = 0xfffffff1;
constexpr int kMostTried = 16; // headers: what looks like one is one, but for files made to mislead
constexpr size_t kStep = 8;    // the linker aligns the table to 32, the header's parts to 4 or 8

// Some bytes of the file, and where they lie.
struct Part {
    Bytes bytes;
    uint64_t offset = 0, address = 0;
};

// A table's header, read and found to be sound.
class Table {
  public:
    static std::optional<Table> read(const Elf &elf, const Part &part) {
        Table table(elf, part);
        return table.read_header() ? std::optional(table) : std::nullopt;
    }
    [[nodiscard]] std::optional<GoTable> functions() const;

  private:
    Table(const Elf &elf, const Part &part) : elf_(&elf), part_(part) {}
    bool read_header();
    [[nodiscard]] std::optional<uint64_t> number(uint64_t at, size_t width) const {
        if (at > part_.bytes.size() || part_.bytes.size() - at < width) return std::nullopt;
        const std::byte *from = part_.bytes.data() + at;
        if (width == 8) return elf_->big_endian() ? byte_swap(load<uint64_t>(from)) : load<uint64_t>(from);
        return elf_->big_endian() ? byte_swap(load<uint32_t>(from)) : load<uint32_t>(from);
    }
    [[nodiscard]] std::optional<uint64_t> header_word(size_t index) const { return number(8 + index * word_, word_); }
    [[nodiscard]] uint64_t text_start(uint64_t written) const;
    [[nodiscard]] std::optional<uint64_t> text_of_module() const;
    [[nodiscard]] bool is_code(uint64_t address) const;

    const Elf *elf_;
    Part part_;
    size_t word_ = 8, field_ = 8; // bytes: of a pointer, of the table's pcs and offsets
    uint64_t count_ = 0, text_ = 0;
    uint64_t names_ = 0, table_ = 0, data_ = 0; // from the header: names, the pairs, what their offsets count from
    uint64_t steps_ = 0;                        // likewise: pcs
    uint64_t flags_ = 0;                        // from a function's name on; 0: there are none
    uint8_t quantum_ = 1;
};

bool Table::read_header() {
    const std::optional<uint64_t> magic = number(0, 4);
    if (!magic || part_.bytes.size() < 16) return false;
    const auto at = [&](size_t i) { return static_cast<uint8_t>(part_.bytes[i]); };
    const uint8_t quantum = at(6);
    if (at(4) != 0 || at(5) != 0 || (quantum != 1 && quantum != 2 && quantum != 4)) return false;
    word_ = at(7);
    if (word_ != (elf_->is_64() ? 8 : 4)) return false;
    field_ = word_;
    quantum_ = quantum;

    std::array<std::optional<uint64_t>, 8> words;
    for (size_t i = 0; i < words.size(); ++i) words[i] = header_word(i);
    switch (*magic) {
    case kGo12: table_ = 8 + word_; break;
    case kGo116:
        if (!words[6]) return false;
        names_ = *words[2];
        steps_ = words[5].value_or(0);
        flags_ = 33;
        table_ = data_ = *words[6];
        break;
    case kGo118:
    case kGo120:
        if (!words[7]) return false;
        names_ = *words[3];
        steps_ = words[6].value_or(0);
        flags_ = *magic == kGo120 ? 37 : 33;
        table_ = data_ = *words[7];
        field_ = 4;
        break;
    default: return false;
    }
    if (!words[0]) return false;
    count_ = *words[0];
    const uint64_t size = part_.bytes.size();
    if (names_ >= size || table_ >= size || count_ == 0 || count_ >= (size - table_) / (2 * field_)) return false;
    if (*magic == kGo118 || *magic == kGo120) text_ = text_start(*words[2]);
    return true;
}

// What the field holds in a running program, less the loader's bias.
uint64_t Table::text_start(uint64_t written) const {
    const uint64_t field = part_.address + 8 + 2 * word_;
    if (elf_->is_64()) {
        for (const Section &section : elf_->sections()) {
            if (section.type != SHT_RELA || written != 0) continue;
            const Bytes entries = elf_->contents(section);
            for (size_t at = 0; at + sizeof(Elf64_Rela) <= entries.size(); at += sizeof(Elf64_Rela)) {
                auto entry = load<Elf64_Rela>(entries.data() + at);
                if (elf_->big_endian()) entry = {byte_swap(entry.r_offset), byte_swap(entry.r_info), byte_swap(entry.r_addend)};
                if (entry.r_offset == field && ELF64_R_SYM(entry.r_info) == 0) return static_cast<uint64_t>(entry.r_addend);
            }
        }
    }
    if (is_code(written)) return written; // fixed, or with its addend in place
    if (const auto text = text_of_module()) return *text;
    const Section *text = elf_->find_section(".text");
    return text ? text->address : written;
}

// runtime.moduledata: a word that leads to this table ... minpc, maxpc, text
std::optional<uint64_t> Table::text_of_module() const {
    const Section *module = elf_->find_section(".go.module");
    const auto first = number(table_, field_), last = number(table_ + count_ * 2 * field_, field_);
    if (!module || !elf_->is_64() || elf_->big_endian() || !first || !last) return std::nullopt;
    const Bytes bytes = elf_->contents(*module);
    std::vector<uint64_t> words(bytes.size() / 8);
    if (words.size() < 3) return std::nullopt;
    std::memcpy(words.data(), bytes.data(), words.size() * 8);
    for (const Section &section : elf_->sections()) {
        if (section.type != SHT_RELA) continue;
        const Bytes entries = elf_->contents(section);
        for (size_t at = 0; at + sizeof(Elf64_Rela) <= entries.size(); at += sizeof(Elf64_Rela)) {
            const auto entry = load<Elf64_Rela>(entries.data() + at);
            const uint64_t offset = entry.r_offset - module->address;
            if (ELF64_R_SYM(entry.r_info) == 0 && offset % 8 == 0 && offset / 8 < words.size())
                words[offset / 8] = static_cast<uint64_t>(entry.r_addend);
        }
    }
    if (words[0] != part_.address) return std::nullopt;
    for (size_t i = 1; i + 2 < words.size(); ++i) {
        const uint64_t text = words[i + 2];
        if (is_code(text) && words[i] == text + *first && words[i + 1] == text + *last) return text;
    }
    return std::nullopt;
}

bool Table::is_code(uint64_t address) const {
    return std::any_of(elf_->segments().begin(), elf_->segments().end(), [&](const Segment &s) {
        return s.type == PT_LOAD && (s.flags & PF_X) && address >= s.address && address - s.address < s.memory_size;
    });
}

std::optional<GoTable> Table::functions() const {
    GoTable out;
    out.names = part_.bytes.subspan(names_);
    out.names_offset = part_.offset + names_;
    out.steps = part_.bytes.subspan(std::min<uint64_t>(steps_, part_.bytes.size()));
    out.quantum = quantum_;
    for (uint64_t i = 0; i < count_; ++i) {
        const uint64_t pair = table_ + i * 2 * field_;
        const auto begin = number(pair, field_), data = number(pair + field_, field_), end = number(pair + 2 * field_, field_);
        if (!begin || !data || !end) break;
        if (*end <= *begin || !is_code(text_ + *begin)) continue;
        uint64_t at = 0;
        if (__builtin_add_overflow(data_, *data, &at) || __builtin_add_overflow(at, field_, &at)) continue;
        const auto name = number(at, 4);                  // behind the entry pc
        if (!name || *name >= out.names.size()) continue; // 0 is a name: the first
        GoFunction function{text_ + *begin, text_ + *end, static_cast<uint32_t>(*name), 0, 0};
        function.stack = static_cast<uint32_t>(number(at + 12, 4).value_or(0));
        if (flags_ != 0 && at + flags_ < part_.bytes.size()) function.flags = static_cast<uint8_t>(part_.bytes[at + flags_]);
        out.functions.push_back(function);
    }
    if (out.functions.empty()) return std::nullopt;
    return out;
}

bool made_by_go(const Elf &elf) {
    if (elf.find_section(".note.go.buildid") || elf.find_section(".go.buildinfo")) return true;
    for (const Segment &segment : elf.segments()) {
        if (segment.type != PT_NOTE) continue;
        Section like;
        like.type = SHT_PROGBITS;
        like.offset = segment.offset;
        like.size = segment.file_size;
        const Bytes notes = elf.contents(like);
        // name size 4, description size, type 4 (Go's build-id), "Go\0\0"
        for (size_t at = 0; at + 16 <= notes.size(); at += 4)
            if (std::memcmp(notes.data() + at + 12, "Go\0", 4) == 0) return true;
    }
    return false;
}

// The first table in the part that has functions.
std::optional<GoTable> search(const Elf &elf, const Part &part) {
    const uint32_t wanted[] = {kGo12, kGo116, kGo118, kGo120};
    int tried = 0;
    for (size_t at = 0; at + 16 <= part.bytes.size() && tried < kMostTried; at += kStep) {
        auto magic = load<uint32_t>(part.bytes.data() + at);
        if (elf.big_endian()) magic = byte_swap(magic);
        if (magic < kGo118 || std::find(std::begin(wanted), std::end(wanted), magic) == std::end(wanted)) continue;
        ++tried;
        if (auto table = Table::read(elf, {part.bytes.subspan(at), part.offset + at, part.address + at}))
            if (auto functions = table->functions()) return functions;
    }
    return std::nullopt;
}

} // namespace

std::optional<GoTable> read_go_table(const Elf &elf) {
    for (std::string_view name : {".gopclntab", ".data.rel.ro.gopclntab"}) {
        const Section *section = elf.find_section(name);
        if (!section) continue;
        if (auto table = Table::read(elf, {elf.contents(*section), section->offset, section->address}))
            if (auto functions = table->functions()) return functions;
    }
    if (!made_by_go(elf)) return std::nullopt;
    for (const Segment &segment : elf.segments()) {
        if (segment.type != PT_LOAD || (segment.flags & PF_X)) continue;
        Section like;
        like.type = SHT_PROGBITS;
        like.offset = segment.offset;
        like.size = segment.file_size;
        if (auto found = search(elf, {elf.contents(like), segment.offset, segment.address})) return found;
    }
    return std::nullopt;
}

} // namespace rawbpf::inline v0::elf
