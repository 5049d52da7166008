// A BPF object file, from bytes to ObjectSpec.
//
//      section          what it is                                   becomes
//      license          a string                                     ObjectSpec::license
//      .text            functions that others call                   appended to the programs that call them
//      kprobe/foo ...   programs, several a section                  ObjectSpec::programs
//      .maps            definitions in BTF; bytes are all zero       ObjectSpec::maps
//      .rodata .data    global variables                             one-entry array maps
//      .bss             those that start as zero (no bytes)          one-entry array maps
//      .BTF .BTF.ext    types; places in the code that use them      ObjectSpec::btf, relocations, func and line info
//      .struct_ops      structs of functions for the kernel to call  struct_ops maps
//      .addr_space.1    global variables in the arena                contents of the arena's map
//      .jumptables      where a switch goes on (gotox, 6.19)         ProgramSpec::jump_tables
//      .rel<section>    what instructions refer to                   calls aimed, ProgramSpec::fixups
//
// This is a convention of clang's BPF back end and libbpf (Documentation/bpf/libbpf/program_types.rst, btf.rst), which gcc
// follows; machine EM_BPF, some old gcc wrote EM_NONE. The file isn't linked: sections have no addresses, symbols are offsets.
#include "runtime/object/elf_object.h"

#include <elf.h>
#include <linux/bpf.h>

#include <algorithm>

#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"
#include "runtime/object/elf_kind.h"
#include "runtime/object/image.h"
#include "runtime/object/sections.h"

namespace rawbpf::inline v0 {

namespace object {

const elf::Symbol *Image::find_symbol(std::string_view wanted) const {
    auto at = std::lower_bound(by_name.begin(), by_name.end(), wanted,
                               [&](uint32_t index, std::string_view text) { return symbols[index].name < text; });
    return at != by_name.end() && symbols[*at].name == wanted ? &symbols[*at] : nullptr;
}

const elf::Section *Image::find_section(std::string_view wanted) const {
    auto at = std::lower_bound(by_section.begin(), by_section.end(), wanted,
                               [&](uint32_t index, std::string_view text) { return section(index).name < text; });
    return at != by_section.end() && section(*at).name == wanted ? &section(*at) : nullptr;
}

const Image::Datasec *Image::find_datasec(std::string_view wanted) const {
    for (const Datasec &datasec : datasecs)
        if (datasec.name == wanted) return &datasec;
    return nullptr;
}

const Image::MapPlace *Image::find_map(uint64_t offset, bool inside) const {
    auto after = std::upper_bound(map_places.begin(), map_places.end(), offset,
                                  [](uint64_t wanted, const MapPlace &place) { return wanted < place.offset; });
    if (after == map_places.begin()) return nullptr;
    const MapPlace &place = *(after - 1);
    return (inside ? offset - place.offset < place.size : offset == place.offset) ? &place : nullptr;
}

namespace {

constexpr std::string_view kArena = ".addr_space.1"; // what clang names variables of that address space
constexpr std::string_view kStructOps[] = {".struct_ops", ".struct_ops.link", "?.struct_ops", "?.struct_ops.link"};

bool named(std::string_view section, std::string_view stem) {
    return section.starts_with(stem) && (section.size() == stem.size() || section[stem.size()] == '.');
}

/// One pass over the sections: what each is for.
Result<void> read_sections(Image &image, ObjectSpec &spec) {
    const elf::Elf &elf = image.elf;
    image.roles.assign(elf.sections().size(), Role::other);
    image.code.resize(elf.sections().size());
    for (const elf::Section &section : elf.sections()) image.by_section.push_back(section.index);
    stable_sort(image.by_section, [&](uint32_t a, uint32_t b) { return image.section(a).name < image.section(b).name; });
    spec.license.clear();
    for (const elf::Section &section : elf.sections()) {
        const std::string_view name = section.name;
        Role &role = image.roles[section.index];
        switch (section.type) {
        case SHT_SYMTAB:
            if (image.symtab) return image.bad(section, 0, "the object has a second symbol table");
            image.symtab = &section;
            break;
        case SHT_REL:
        case SHT_RELA: image.relocations.push_back(&section); break;
        case SHT_NOBITS:
            if (section.size == 0) break;
            if (named(name, ".bss")) role = Role::bss;
            if (name == kArena) role = Role::arena;
            break;
        case SHT_PROGBITS:
            if (name == "license") {
                spec.license = TRY(elf.reader(section).c_string());
            } else if (name == "version") {
                spec.kernel_version = TRY(elf.reader(section).read<uint32_t>());
            } else if (name == ".BTF") {
                image.btf = &section;
            } else if (name == ".BTF.ext") {
                image.btf_ext = &section;
            } else if (name == ".maps") {
                image.maps = &section;
                role = Role::maps;
            } else if (name == "maps") {
                image.legacy_maps = &section;
                role = Role::legacy_maps;
            } else if (section.size == 0) {
                break;
            } else if (section.flags & SHF_EXECINSTR) {
                role = Role::code;
            } else if (named(name, ".rodata")) {
                role = Role::rodata;
            } else if (named(name, ".data")) {
                role = Role::data;
            } else if (name == kArena) {
                role = Role::arena;
            } else if (name == ".jumptables") {
                role = Role::jump_tables;
            } else if (std::find(std::begin(kStructOps), std::end(kStructOps), name) != std::end(kStructOps)) {
                role = Role::struct_ops;
            }
            break;
        default: break;
        }
        if (role == Role::arena) image.arena = &section;
    }
    if (!image.symtab) return fail(Errc::bad_input, "{}: it has no symbol table; was the object stripped?", image.name);
    return {};
}

Result<void> read_symbols(Image &image) {
    const elf::SymbolTable table = TRY(image.elf.symbol_table(*image.symtab));
    image.symbols.reserve(table.size());
    for (size_t i = 0; i < table.size(); ++i) {
        elf::Symbol symbol = table.at(i);
        const bool local = symbol.binding == STB_LOCAL;
        if (!local || symbol.type == STT_FUNC) symbol.name = TRY(table.name(i)); // labels of debug sections go without
        if (!local && !symbol.name.empty()) image.by_name.push_back(static_cast<uint32_t>(i));
        image.symbols.push_back(symbol);
    }
    stable_sort(image.by_name, [&](uint32_t a, uint32_t b) { return image.symbols[a].name < image.symbols[b].name; });
    return {};
}

/// Compilers of before 2020 and hand-written assembly give functions no type. Where nothing in a section of code is a function,
/// its global symbols are.
std::vector<bool> sections_with_functions(const Image &image) {
    std::vector<bool> out(image.roles.size());
    for (const elf::Symbol &symbol : image.symbols)
        if (symbol.type == STT_FUNC && symbol.section < out.size()) out[symbol.section] = true;
    return out;
}

Image::Use use_of(const elf::Section &section, const elf::Symbol &symbol) {
    if (section.name == ".text") return Image::Use::callable;
    if (symbol.binding != STB_LOCAL) return Image::Use::program;
    return find_section_kind(section.name) ? Image::Use::unless_called : Image::Use::callable;
}

/// The functions, from the symbols. Hand-written assembly may leave sizes out: such a function ends at the next.
Result<void> read_functions(Image &image) {
    struct Found {
        uint32_t section;
        uint64_t start, size;
        uint32_t symbol;
    };
    std::vector<Found> found;
    const std::vector<bool> typed = sections_with_functions(image);
    for (const elf::Symbol &symbol : image.symbols) {
        if (symbol.section >= image.roles.size() || image.roles[symbol.section] != Role::code) continue;
        const bool untyped = symbol.type == STT_NOTYPE && symbol.binding != STB_LOCAL && !typed[symbol.section];
        if (symbol.type != STT_FUNC && !untyped) continue;
        const elf::Section &section = image.section(symbol.section);
        if (symbol.value >= section.size || symbol.size > section.size - symbol.value)
            return image.bad(section, symbol.value, "function {} of {} bytes doesn't fit in the section's {}", symbol.name,
                             symbol.size, section.size);
        if (symbol.value % sizeof(Insn) || symbol.size % sizeof(Insn))
            return image.bad(section, symbol.value, "function {}: offset or size ({}) is not a multiple of 8", symbol.name,
                             symbol.size);
        if (symbol.name.empty() || symbol.name.size() > Image::kLongestName)
            return image.bad(section, symbol.value, "the name of a function has {} characters, and 1 to {} are possible",
                             symbol.name.size(), Image::kLongestName);
        found.push_back({symbol.section, symbol.value, symbol.size, image.symbol_index(symbol)});
    }
    image.functions.reserve(found.size());
    auto is_local = [&](const Found &f) { return image.symbols[f.symbol].binding == STB_LOCAL; };
    stable_sort(found, [&](const Found &a, const Found &b) {
        if (a.section != b.section) return a.section < b.section;
        if (a.start != b.start) return a.start < b.start;
        return is_local(a) < is_local(b); // of two names for one function the global one counts
    });
    for (size_t i = 0; i < found.size(); ++i) {
        const Found &f = found[i];
        const elf::Section &section = image.section(f.section);
        const elf::Symbol &symbol = image.symbols[f.symbol];
        uint64_t size = f.size;
        if (!image.functions.empty() && image.functions.back().section == f.section) {
            const Code &last = image.functions.back();
            if (last.start * sizeof(Insn) == f.start && (size == 0 || last.insns.size() == size)) continue;
            if (f.start < last.start * sizeof(Insn) + last.insns.size())
                return image.bad(section, f.start, "functions {} and {} overlap", last.name, symbol.name);
        }
        if (size == 0) {
            size_t next = i + 1;
            while (next < found.size() && found[next].section == f.section && found[next].start == f.start) ++next;
            const bool more = next < found.size() && found[next].section == f.section;
            size = ((more ? found[next].start : section.size) - f.start) / sizeof(Insn) * sizeof(Insn);
        }
        Code code;
        code.name = symbol.name;
        code.section = f.section;
        code.start = static_cast<uint32_t>(f.start / sizeof(Insn));
        code.insns = image.elf.contents(section).subspan(f.start, size);
        image.functions.push_back(code);
        image.uses.push_back(use_of(section, symbol));
        if (symbol.binding != STB_LOCAL && (symbol.visibility == STV_HIDDEN || symbol.visibility == STV_INTERNAL))
            image.hidden.emplace_back(symbol.name);
    }
    stable_sort(image.hidden);
    return {};
}

/// The function that a tag "exception_callback:NAME" on the program names: a global one in .text. None where there is no such
/// function, or where there are two tags: the verifier refuses such a program, and says why.
uint32_t exception_callback_of(const Image &image, std::string_view program) {
    const Image::Callback *found = nullptr;
    for (const Image::Callback &tag : image.exception_callbacks) {
        if (tag.function != program) continue;
        if (found) return Assembler::kNone;
        found = &tag;
    }
    if (!found || !image.find_symbol(found->callback)) return Assembler::kNone;
    for (uint32_t i = 0; i < image.functions.size(); ++i)
        if (image.functions[i].name == found->callback && image.section(image.functions[i].section).name == ".text") return i;
    return Assembler::kNone;
}

/// A static function in a program's section that nobody calls, and whose address nobody takes, is a program.
void decide_uses(Image &image) {
    const auto called = [&](uint32_t function) {
        if (image.uses[function] == Image::Use::unless_called) image.uses[function] = Image::Use::callable;
    };
    for (const Code &code : image.functions) {
        for (const CodeRef &ref : code.refs)
            if (ref.kind == CodeRef::Kind::call || ref.kind == CodeRef::Kind::function) called(ref.index);
        // Calls inside a section may come without a relocation.
        size_t next = 0;
        for (uint32_t i = code.start; i < code.start + code.count(); ++i) {
            while (next < code.refs.size() && code.refs[next].insn < i) ++next;
            if (next < code.refs.size() && code.refs[next].insn == i) continue;
            const Insn insn = code.insn(i);
            if (insn.code != (BPF_JMP | BPF_CALL) || insn.src != BPF_PSEUDO_CALL) continue;
            const int64_t target = int64_t{i} + insn.imm + 1;
            const Code *callee = target < 0 ? nullptr : find_code(image.functions, code.section, static_cast<uint64_t>(target));
            if (callee) called(static_cast<uint32_t>(callee - image.functions.data()));
        }
    }
    for (Image::Use &use : image.uses)
        if (use == Image::Use::unless_called) use = Image::Use::program;
}

Result<void> make_programs(Image &image, ObjectSpec &spec) {
    for (Code &code : image.functions) {
        const CodeSection &section = image.code[code.section];
        code.refs = part_of(section.refs, code.start, code.count());
        code.tables = image.tables;
        code.core = part_of(section.core, code.start, code.count());
        code.func_info = part_of(section.func_info, code.start, code.count());
        code.line_info = part_of(section.line_info, code.start, code.count());
    }
    decide_uses(image);
    constexpr std::ptrdiff_t kMany = 1024; // a file can claim more than it makes good
    const std::ptrdiff_t programs = std::count(image.uses.begin(), image.uses.end(), Image::Use::program);
    spec.programs.reserve(static_cast<size_t>(std::min(kMany, programs)));
    spec.only_functions = programs == 0 && !image.functions.empty();
    Assembler assembler(image.name, image.functions, spec.externs);
    for (uint32_t i = 0; i < image.functions.size(); ++i) {
        if (image.uses[i] != Image::Use::program) continue;
        const Code &code = image.functions[i];
        ProgramSpec program;
        program.name = code.name;
        classify(program, image.section(code.section).name);
        TRY(assembler.assemble(i, program, exception_callback_of(image, code.name)));
        spec.programs.push_back(std::move(program));
    }
    return {};
}

} // namespace
} // namespace object

Result<ObjectSpec> parse_object(Bytes elf, std::string_view name) {
    using namespace object;
    Image image;
    image.name = name;
    image.elf = TRY(elf::Elf::parse(elf, name));
    TRY(check_elf_kind(image.elf, image.name));

    ObjectSpec spec;
    spec.name = name;
    TRY(read_sections(image, spec));
    TRY(read_symbols(image));
    TRY(read_functions(image));
    TRY(read_btf(image, spec));
    TRY(read_maps(image, spec));
    TRY(read_map_slots(image, spec));
    if (std::find(image.roles.begin(), image.roles.end(), Role::struct_ops) != image.roles.end())
        TRY(read_struct_ops_part(image, spec));
    TRY(read_code_relocations(image, spec));
    TRY(note_data_relocations(image, spec));
    TRY(read_btf_ext(image));
    TRY(make_programs(image, spec));
    return spec;
}

} // namespace rawbpf::inline v0
