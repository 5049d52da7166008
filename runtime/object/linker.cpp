// Joining objects.
//
//      a.o                     b.o                        out.o
//      .text   [ helper ]      .text  [ twice ]           .text   [ helper | twice ]
//      xdp     [ main ]        .maps  [ seen ]            xdp     [ main ]
//      symbols: main, helper   symbols: twice, seen       .maps   [ seen ]
//               twice (extern)                            symbols: main, helper, twice, seen
//
// A section goes behind what has the same name already, at its alignment, so everything in it moves by one number. Symbols move
// with it. A relocation against a named symbol only needs the symbol's new index; one against a section (static functions and
// variables) has its offset in the instruction itself, to which that number is added: in bytes for ld_imm64, in instructions for
// calls.
//
// Between files, a name has one definition: a strong one wins over weak ones, the first weak one over later ones, any over a
// declaration. The losing code stays where it is, without a name, and no program calls it. A hidden symbol may be used by all
// files of this link and is hidden afterwards. A declaration in .ksyms or .kconfig is the kernel's, and no file may define it.
//
// Jump tables hold places counted from the start of a section of code, with no relocation that says so: the code that refers to a
// table tells which section, and by how much it moved. Compilers number them in each file anew (BPF.JT.0.0), as global symbols;
// here they stay their file's.
//
// The rules are libbpf's (Documentation/bpf/libbpf; its linker has them since 0.4): what it links, this links to the same
// instructions. Debug sections (.debug_*), .llvm_addrsig and their relocations are left out.
#include "runtime/object/linker.h"

#include <elf.h>

#include <algorithm>

#include "asm/insn.h"
#include "runtime/base/fail.h"
#include "runtime/elf/writer.h"
#include "runtime/object/elf_kind.h"
#include "runtime/object/link_image.h"

namespace rawbpf::inline v0 {
namespace object {
namespace {

constexpr uint32_t kRel64_64 = 1, kRelAbs64 = 2, kRelAbs32 = 3, kRelNoDyld32 = 4, kRel64_32 = 10; // R_BPF_*
constexpr uint64_t kMaxSection = uint64_t{1} << 30;

bool left_out(const elf::Section &section) {
    switch (section.type) {
    case SHT_PROGBITS:
    case SHT_NOBITS: break;
    default: return true;
    }
    return section.name.starts_with(".debug_") || section.name == ".BTF" || section.name == ".BTF.ext" ||
           section.name == ".eh_frame";
}

Result<LinkedFile> open_file(const LinkInput &input) {
    LinkedFile file;
    file.name = input.name;
    file.elf = TRY(elf::Elf::parse(input.bytes, input.name));
    TRY(check_elf_kind(file.elf, input.name));
    if (file.elf.type() != ET_REL)
        return fail(Errc::bad_input, "{}: it isn't an object, as compilers write them with -c: its type is {}, not {}",
                    input.name, file.elf.type(), ET_REL);
    const elf::Section *symtab = nullptr;
    for (const elf::Section &section : file.elf.sections()) {
        if (section.type == SHT_SYMTAB) {
            if (symtab) return fail(Errc::bad_input, "{}: the object has a second symbol table", input.name);
            symtab = &section;
        }
        if (section.type == SHT_PROGBITS && section.name == ".BTF") file.btf = &section;
        if (section.type == SHT_PROGBITS && section.name == ".BTF.ext") file.btf_ext = &section;
    }
    if (!symtab) return fail(Errc::bad_input, "{}: it has no symbol table; was the object stripped?", input.name);
    const elf::SymbolTable table = TRY(file.elf.symbol_table(*symtab));
    for (size_t i = 0; i < table.size(); ++i) {
        elf::Symbol symbol = table.at(i);
        symbol.name = TRY(table.name(i));
        if (symbol.section == SHN_COMMON && !symbol.extended)
            return fail(Errc::bad_input, "{}: {} is a common symbol; compile with -fno-common", input.name, symbol.name);
        const bool inside = symbol.section < file.elf.sections().size();
        if (!inside && (symbol.section < SHN_LORESERVE || symbol.extended))
            return fail(Errc::bad_input, "{}: symbol {} is in section {}, which doesn't exist", input.name, i, symbol.section);
        if (inside && symbol.section != SHN_UNDEF && symbol.type != STT_SECTION) {
            const elf::Section &section = file.elf.sections()[symbol.section];
            if (symbol.value > section.size || symbol.size > section.size - symbol.value)
                return fail(Errc::bad_input, "{}: {}: symbol {} goes past the section's end", input.name, section.name,
                            symbol.name);
        }
        file.symbols.push_back(symbol);
    }
    file.places.resize(file.elf.sections().size());
    if (!file.btf) return file;
    file.types = TRY(btf::Btf::parse(file.elf.contents(*file.btf), format("{}: .BTF", input.name)));
    for (btf::TypeId id = 1; id < file.types->end_id(); ++id) {
        const btf::Type t = TRY(file.types->type(id));
        if (t.kind == btf::Kind::datasec)
            for (uint32_t i = 0; i < t.vlen; ++i) file.section_of_type[TRY(file.types->secinfo(t, i)).type] = t.name;
        const bool global =
            (t.kind == btf::Kind::func && t.vlen != 0) || (t.kind == btf::Kind::var && file.types->var_linkage(t) != 0);
        if (global) file.globals.emplace(t.name, id);
    }
    return file;
}

// ---- sections -----------------------------------------------------------------------------------------------------------------

class Joiner {
  public:
    Result<std::vector<std::byte>> link(std::span<const LinkInput> inputs) {
        for (const LinkInput &input : inputs) image_.files.push_back(TRY(open_file(input)));
        for (uint32_t file = 0; file < image_.files.size(); ++file) TRY(join_sections(file));
        for (uint32_t file = 0; file < image_.files.size(); ++file) TRY(join_symbols(file));
        for (uint32_t file = 0; file < image_.files.size(); ++file) TRY(join_relocations(file));
        return write();
    }

  private:
    Result<void> join_sections(uint32_t number) {
        LinkedFile &file = image_.files[number];
        for (const elf::Section &section : file.elf.sections()) {
            if (left_out(section)) continue;
            auto [at, fresh] = by_name_.try_emplace(section.name, static_cast<uint32_t>(image_.sections.size()));
            if (fresh) image_.sections.push_back({section.name, section, {}, 0, number});
            LinkedSection &into = image_.sections[at->second];
            const LinkedFile &first = image_.files[into.first_file];
            file.places[section.index] = {at->second, into.size};
            const Bytes bytes = file.elf.contents(section);
            if (!fresh && image_.only_once(section.name)) {
                file.places[section.index].offset = 0;
                if (into.data.size() != bytes.size() || !std::equal(bytes.begin(), bytes.end(), into.data.begin()))
                    return fail(Errc::invalid_argument, "{} and {} have different {}s: \"{}\" and \"{}\"", first.name, file.name,
                                section.name, shown(into.data), shown(bytes));
                continue;
            }
            if (into.like.type != section.type || into.like.flags != section.flags)
                return fail(Errc::invalid_argument,
                            "{} and {}: their sections {} are of different kinds (type {} and {}, flags {:#x} and {:#x})",
                            first.name, file.name, section.name, into.like.type, section.type, into.like.flags, section.flags);
            const uint64_t align = std::max<uint64_t>(section.alignment, 1);
            if ((align & (align - 1)) != 0 || align > 65536)
                return fail(Errc::bad_input, "{}: {}: its alignment is {}, and must be a power of two up to 65536", file.name,
                            section.name, align);
            const uint64_t offset = (into.size + align - 1) & ~(align - 1);
            into.like.alignment = std::max(into.like.alignment, align);
            file.places[section.index].offset = offset;
            if (offset + section.size > kMaxSection)
                return fail(Errc::invalid_argument, "{}: section {} would have more than {} bytes", file.name, section.name,
                            kMaxSection);
            into.size = offset + section.size;
            if (section.type == SHT_NOBITS) continue;
            into.data.resize(offset);
            into.data.insert(into.data.end(), bytes.begin(), bytes.end());
        }
        return {};
    }
    static std::string shown(Bytes bytes) {
        std::string out;
        for (std::byte b : bytes.first(std::min<size_t>(bytes.size(), 32)))
            if (const char c = static_cast<char>(b); c != '\0') out += c >= 0x20 && c < 0x7f ? c : '?';
        return out;
    }

    // ---- symbols
    // -------------------------------------------------------------------------------------------------------------------

    Result<void> join_symbols(uint32_t number) {
        const LinkedFile &file = image_.files[number];
        for (uint32_t i = 0; i < file.symbols.size(); ++i) {
            const elf::Symbol &symbol = file.symbols[i];
            if (symbol.binding == STB_LOCAL || symbol.name.empty() || is_table(file, symbol)) continue;
            if (symbol.section >= file.places.size()) continue; // SHN_ABS and its like: a number, in no section
            LinkedSymbol mine{number,      i, symbol.section != SHN_UNDEF, symbol.binding == STB_WEAK, symbol.visibility,
                              symbol.type, {}};
            if (!mine.defined) mine.extern_section = extern_section(file, symbol.name);
            if (mine.defined && !image_.holds(number, file.places[symbol.section])) continue; // of what is left out
            auto [at, fresh] = image_.symbols.try_emplace(symbol.name, mine);
            if (!fresh) TRY(resolve(symbol.name, at->second, mine));
        }
        return {};
    }
    static bool is_table(const LinkedFile &file, const elf::Symbol &symbol) {
        return symbol.section != SHN_UNDEF && symbol.section < file.places.size() &&
               file.section(symbol.section).name == ".jumptables";
    }
    static std::string_view extern_section(const LinkedFile &file, std::string_view name) {
        auto type = file.globals.find(name);
        if (type == file.globals.end()) return {};
        auto section = file.section_of_type.find(type->second);
        return section == file.section_of_type.end() ? std::string_view() : section->second;
    }
    [[nodiscard]] std::string_view section_of(const LinkedSymbol &symbol) const {
        if (!symbol.defined) return symbol.extern_section;
        const LinkedFile &file = image_.files[symbol.file];
        return file.section(file.symbols[symbol.symbol].section).name;
    }

    Result<void> resolve(std::string_view name, LinkedSymbol &known, LinkedSymbol mine) {
        const std::string &a = image_.files[known.file].name, &b = image_.files[mine.file].name;
        const std::string_view here = section_of(known), there = section_of(mine);
        if (!here.empty() && !there.empty() && here != there && (!known.defined || !mine.defined))
            return fail(Errc::invalid_argument, "{}: {} has it in section {}, and {} has it in {}", name, a, here, b, there);
        if (known.defined && mine.defined && !known.weak && !mine.weak)
            return Unexpected(make_error(Errc::invalid_argument, format("{} is defined in {} and in {}", name, a, b),
                                         "make it static, declare it extern in one of them, or mark one definition __weak"));
        const bool functions = known.type == STT_FUNC;
        if (known.defined && mine.defined && functions != (mine.type == STT_FUNC))
            return fail(Errc::invalid_argument, "{} is a function in {}, and something else in {}", name, functions ? a : b,
                        functions ? b : a);
        TRY(check_types(name, known, mine));
        const uint8_t visibility = hidden(known) || hidden(mine) ? STV_HIDDEN : known.visibility;
        if (!known.defined && !mine.defined) {
            known.weak &= mine.weak; // one that must be there is enough
            if (known.extern_section.empty()) known.extern_section = mine.extern_section;
        } else if (mine.defined && (!known.defined || (known.weak && !mine.weak))) {
            known = mine;
        }
        known.visibility = visibility;
        return {};
    }
    static bool hidden(const LinkedSymbol &symbol) {
        return symbol.visibility == STV_HIDDEN || symbol.visibility == STV_INTERNAL;
    }

    Result<void> check_types(std::string_view name, const LinkedSymbol &known, const LinkedSymbol &mine) const;

    // ---- relocations ----------------------------------------------------------------------------------------------------------

    struct Reference {
        uint32_t section; // of the output
        elf::Relocation relocation;
        uint32_t file; // of the symbol
    };

    Result<void> join_relocations(uint32_t number) {
        const LinkedFile &file = image_.files[number];
        std::map<uint32_t, uint64_t> tables; // symbol -> what the code that uses it moved by
        for (const elf::Section &section : file.elf.sections()) {
            if (section.type != SHT_REL && section.type != SHT_RELA) continue;
            if (section.info >= file.places.size() || file.places[section.info].section == kNoSection) continue;
            const LinkPlace place = file.places[section.info];
            LinkedSection &into = image_.sections[place.section];
            for (elf::Relocation r : TRY(file.elf.relocations(section))) {
                const uint64_t width = r.type == kRelAbs32 || r.type == kRelNoDyld32 ? 4 : 8;
                const elf::Section &own = file.section(section.info);
                if (r.symbol >= file.symbols.size() || own.type == SHT_NOBITS || r.offset > own.size ||
                    own.size - r.offset < width)
                    return fail(Errc::bad_input,
                                "{}: {}: offset {:#x}: a relocation of symbol {} that has no address in the object", file.name,
                                section.name, r.offset, r.symbol);
                const elf::Symbol &symbol = file.symbols[r.symbol];
                r.offset += place.offset;
                if (is_table(file, symbol) && (own.flags & SHF_EXECINSTR))
                    if (auto [at, fresh] = tables.try_emplace(r.symbol, place.offset); !fresh && at->second != place.offset)
                        return fail(Errc::unsupported, "{}: {}: offset {:#x}: jump table {} is used by the code of two sections",
                                    file.name, section.name, r.offset, symbol.name);
                if (symbol.type == STT_SECTION) {
                    const LinkPlace target = symbol.section < file.places.size() ? file.places[symbol.section] : LinkPlace{};
                    if (target.section == kNoSection)
                        return fail(Errc::bad_input, "{}: {}: offset {:#x}: a relocation to a section that isn't linked",
                                    file.name, section.name, r.offset);
                    TRY_IN(shift(into.data.data() + r.offset, r.type, target.offset), "{}: {}: offset {:#x}", file.name,
                           section.name, r.offset);
                }
                references_.push_back({place.section, r, number});
            }
        }
        return move_tables(file, tables);
    }

    Result<void> move_tables(const LinkedFile &file, const std::map<uint32_t, uint64_t> &tables) {
        std::map<uint64_t, uint64_t> moved; // entry -> by how much
        for (const auto &[number, by] : tables) {
            const elf::Symbol &symbol = file.symbols[number];
            const LinkPlace place = file.places[symbol.section];
            std::vector<std::byte> &data = image_.sections[place.section].data;
            if (by != 0 && (symbol.size == 0 || symbol.size % sizeof(uint64_t)))
                return fail(Errc::bad_input, "{}: {} covers {} bytes, so it isn't a jump table with entries of 8 bytes",
                            file.name, symbol.name, symbol.size);
            for (uint64_t at = place.offset + symbol.value; at + sizeof(uint64_t) <= place.offset + symbol.value + symbol.size;
                 at += sizeof(uint64_t)) {
                auto [known, fresh] = moved.try_emplace(at, by);
                if (!fresh && known->second != by)
                    return fail(Errc::unsupported, "{}: jump table {} is used by the code of two sections", file.name,
                                symbol.name);
                if (!fresh) continue;
                if (at + sizeof(uint64_t) > data.size())
                    return fail(Errc::bad_input, "{}: jump table {} has no bytes", file.name, symbol.name);
                const uint64_t entry = load<uint64_t>(data.data() + at) + by;
                std::memcpy(data.data() + at, &entry, sizeof entry);
            }
        }
        return {};
    }

    /// Adds what a section moved by to the offset that an instruction or word keeps in itself.
    static Result<void> shift(std::byte *at, uint32_t type, uint64_t by) {
        auto add = [&]<class T>(std::byte *where, T amount) -> Result<void> {
            T value = load<T>(where);
            if (__builtin_add_overflow(value, amount, &value))
                return fail(Errc::bad_input, "an offset no longer fits in its {} bytes", sizeof(T));
            std::memcpy(where, &value, sizeof value);
            return {};
        };
        switch (type) {
        case kRel64_64: return add(at + offsetof(Insn, imm), static_cast<int32_t>(by));
        case kRel64_32: return add(at + offsetof(Insn, imm), static_cast<int32_t>(by / sizeof(Insn)));
        case kRelAbs64: return add(at, by);
        case kRelAbs32:
        case kRelNoDyld32: return add(at, static_cast<uint32_t>(by));
        default: return fail(Errc::bad_input, "rawbpf doesn't know relocation type {}", type);
        }
    }

    // ---- output
    // ----------------------------------------------------------------------------------------------------------------------

    Result<std::vector<std::byte>> write() {
        elf::Writer writer;
        std::vector<uint32_t> index, section_symbol(image_.sections.size(), kNoSection);
        for (const LinkedSection &section : image_.sections) {
            if (section.like.type == SHT_NOBITS)
                index.push_back(writer.add_nobits(section.name, section.like.flags, section.size, section.like.alignment));
            else
                index.push_back(writer.add_section(section.name, section.like.flags, section.data, section.like.alignment));
        }
        auto moved = [&](const LinkedFile &file, elf::Symbol symbol) {
            if (symbol.section != SHN_UNDEF && symbol.section < file.places.size()) {
                const LinkPlace place = file.places[symbol.section];
                symbol.value += place.offset;
                symbol.section = index[place.section];
            }
            symbol.extended = false;
            return symbol;
        };
        // Local names: functions and variables, and whatever a relocation needs.
        std::vector<std::map<uint32_t, uint32_t>> handles(image_.files.size());
        for (uint32_t f = 0; f < image_.files.size(); ++f) {
            const LinkedFile &file = image_.files[f];
            for (uint32_t i = 0; i < file.symbols.size(); ++i) {
                const elf::Symbol &symbol = file.symbols[i];
                const bool thing = symbol.type == STT_FUNC || symbol.type == STT_OBJECT;
                const bool own = symbol.binding == STB_LOCAL || is_table(file, symbol);
                if (!own || !thing || symbol.section >= file.places.size()) continue;
                if (!image_.holds(f, file.places[symbol.section])) continue;
                elf::Symbol local = moved(file, symbol);
                local.binding = STB_LOCAL;
                handles[f][i] = writer.add_symbol(local);
            }
        }
        std::map<std::string_view, uint32_t> global;
        for (const auto &[name, symbol] : image_.symbols) {
            const LinkedFile &file = image_.files[symbol.file];
            elf::Symbol out = moved(file, file.symbols[symbol.symbol]);
            out.binding = symbol.weak ? STB_WEAK : STB_GLOBAL;
            out.visibility = symbol.visibility;
            global[name] = writer.add_symbol(out);
        }
        for (const Reference &reference : references_) {
            const LinkedFile &file = image_.files[reference.file];
            const elf::Symbol &symbol = file.symbols[reference.relocation.symbol];
            elf::Relocation r = reference.relocation;
            if (symbol.type == STT_SECTION) {
                uint32_t &handle = section_symbol[file.places[symbol.section].section];
                if (handle == kNoSection) {
                    elf::Symbol own;
                    own.section = index[file.places[symbol.section].section];
                    own.type = STT_SECTION;
                    handle = writer.add_symbol(own);
                }
                r.symbol = handle;
            } else if (auto at = global.find(symbol.name);
                       symbol.binding != STB_LOCAL && at != global.end() && !is_table(file, symbol)) {
                r.symbol = at->second;
            } else {
                auto [local, fresh] = handles[reference.file].try_emplace(r.symbol, 0);
                if (fresh) {
                    if (symbol.section < file.places.size() && symbol.section != SHN_UNDEF &&
                        file.places[symbol.section].section == kNoSection)
                        return fail(Errc::bad_input, "{}: a relocation to {}, whose section isn't linked", file.name,
                                    symbol.name);
                    elf::Symbol own = moved(file, symbol);
                    if (is_table(file, symbol)) own.binding = STB_LOCAL;
                    local->second = writer.add_symbol(own);
                }
                r.symbol = local->second;
            }
            writer.add_relocation(index[reference.section], r);
        }
        const LinkedTypes types = TRY(link_types(image_));
        if (!types.btf.empty()) writer.add_section(".BTF", 0, types.btf, 4);
        if (!types.btf_ext.empty()) writer.add_section(".BTF.ext", 0, types.btf_ext, 4);
        return writer.finish();
    }

    LinkImage image_;
    std::map<std::string_view, uint32_t> by_name_;
    std::vector<Reference> references_;
};

Result<void> Joiner::check_types(std::string_view name, const LinkedSymbol &known, const LinkedSymbol &mine) const {
    const bool map = section_of(known) == ".maps" || section_of(mine) == ".maps";
    return check_link_types(name, image_.files[known.file], image_.files[mine.file], map);
}

} // namespace
} // namespace object

Result<std::vector<std::byte>> link_objects(std::span<const LinkInput> inputs) {
    if (inputs.empty()) return fail(Errc::invalid_argument, "there are no objects to link");
    return object::Joiner().link(inputs);
}

} // namespace rawbpf::inline v0
