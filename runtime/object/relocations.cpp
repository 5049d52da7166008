// Resolves what instructions refer to: .rel sections for sections of code.
//
//      instruction                    symbol                          means
//      call imm=-1                    FUNC f                          function f
//      call imm=N                     section .text                   the function at instruction N + 1 of .text (a static one)
//      call                           undefined                       a kernel function (kfunc)
//      ld_imm64 imm=0                 OBJECT in .maps                 that map
//      ld_imm64 imm=offset            section or OBJECT in .data ...  symbol + offset in the section's map
//      ld_imm64 imm=offset            section or OBJECT in .addr_space.1    symbol + offset among the arena's variables
//      ld_imm64 imm=offset            FUNC or section of code         the address of a function (callback)
//      ld_imm64                       undefined                       a kernel symbol, or a .kconfig value
//      ld_imm64 imm=offset            OBJECT in .jumptables           the symbol's bytes: a table of places that gotox goes to
//
// clang and gcc write SHT_REL: the addend is in the instruction. The kinds of symbol and instruction define the meaning; the
// relocation's own type (R_BPF_64_64, R_BPF_64_32) adds nothing and is ignored, as in libbpf.
//
// A relocation in data (`static int *const table[] = {&a, &b};`) asks for an address that doesn't exist: a map's value has no
// address in the kernel that a program could use. The bytes stay as in the file, mostly zeros, and programs read these. libbpf
// ignores this silently; rawbpf makes a note.
#include <elf.h>
#include <linux/bpf.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"
#include "runtime/object/image.h"

namespace rawbpf::inline v0::object {

namespace {

/// Reads the relocations of one section of code.
class Reader {
  public:
    Reader(Image &image, const ObjectSpec &spec, const elf::Section &section, bool has_addend)
        : image_(image), spec_(spec), section_(section), bytes_(image.elf.contents(section)), has_addend_(has_addend) {}

    /// Adds what one relocation says to `out`; nothing for code that belongs to no function (an overridden weak one).
    Result<void> read(const elf::Relocation &relocation, std::vector<CodeRef> &out) const {
        const uint64_t at = relocation.offset;
        if (at % sizeof(Insn) || at >= bytes_.size() || bytes_.size() - at < sizeof(Insn))
            return image_.bad(section_, at, "a relocation is for a byte where no instruction starts");
        if (relocation.symbol >= image_.symbols.size())
            return image_.bad(section_, at, "a relocation is against symbol {}, and there are only {}", relocation.symbol,
                              image_.symbols.size());
        CodeRef ref;
        ref.insn = static_cast<uint32_t>(at / sizeof(Insn));
        if (!find_code(image_.functions, section_.index, ref.insn)) return {};
        const Insn insn = load<Insn>(bytes_.data() + at);
        const elf::Symbol &symbol = image_.symbols[relocation.symbol];
        if (insn.code == (BPF_JMP | BPF_CALL))
            TRY(read_call(ref, at, insn, relocation));
        else if (is_wide(insn))
            TRY(read_load(ref, at, insn, relocation));
        else
            return image_.bad(section_, at, "a relocation against {} is on opcode {:#x}, which can't hold it", shown(symbol),
                              insn.code);
        out.push_back(ref);
        return {};
    }

  private:
    std::string_view shown(const elf::Symbol &symbol) const {
        if (!symbol.name.empty() || symbol.section >= image_.roles.size()) return symbol.name;
        return image_.section(symbol.section).name;
    }

    Result<uint32_t> extern_index(uint64_t at, uint32_t symbol) const {
        const uint32_t index = image_.extern_of_symbol[symbol];
        if (index == Image::kNone) return undefined(at, image_.symbols[symbol].name);
        return index;
    }

    /// "hello.bpf.c:3: `return helper(1);`: " of an instruction; empty: the object has no lines.
    std::string line_at(uint64_t at) const {
        if (!read_btf_ext(image_) || !image_.types) return {}; // comes after the relocations, where they are sound
        const std::vector<LineInfo> &lines = image_.code[section_.index].line_info;
        const auto after =
            std::find_if(lines.begin(), lines.end(), [&](const LineInfo &line) { return line.insn > at / sizeof(Insn); });
        const Code *function = find_code(image_.functions, section_.index, static_cast<uint32_t>(at / sizeof(Insn)));
        if (after == lines.begin() || !function || (after - 1)->insn < function->start) return {};
        const LineInfo &line = *(after - 1);
        const std::string_view file = image_.types->string(line.file).value_or(std::string_view()),
                               text = image_.types->string(line.line).value_or(std::string_view());
        if (file.empty() || line.number_column >> 10 == 0) return {};
        const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
        std::string out = format("{}:{}", file.substr(file.rfind('/') + 1), line.number_column >> 10);
        if (const uint32_t column = line.number_column & 1023) append(out, ":{}", column);
        if (begin < text.size()) append(out, " `{}`", text.substr(begin));
        return out + ": ";
    }

    [[gnu::cold]] Unexpected undefined(uint64_t at, std::string_view name) const {
        const Insn insn = load<Insn>(bytes_.data() + at);
        Error error =
            make_error(Errc::bad_input, format("{}: {}{}: offset {:#x}: {} is defined nowhere: neither in this object nor "
                                               "declared __ksym or __kconfig",
                                               image_.name, line_at(at), section_.name, at, name));
        constexpr std::string_view kLibrary[] = {"memcpy", "memset", "memmove", "memcmp", "strlen", "strcmp", "strncmp"};
        if (insn.code != (BPF_JMP | BPF_CALL))
            error.hint =
                "define the variable here, or link the object with the one that defines it: rawbpf link -o OUT OBJECT...";
        else if (std::find(std::begin(kLibrary), std::end(kLibrary), name) != std::end(kLibrary))
            error.hint = format("BPF programs have no C library: use __builtin_{}() with a small constant size, or define a "
                                "static function of your own",
                                name);
        else
            error.hint = "define the function here (static, if only this file calls it), or link the object with the one that "
                         "defines it: rawbpf link -o OUT OBJECT...; declare a kernel function extern, with __ksym";
        return Unexpected(std::move(error));
    }

    /// The function that starts at that byte of a section.
    Result<uint32_t> function_at(uint64_t at, const elf::Symbol &symbol, int64_t offset) const {
        const Code *code = offset < 0 || offset % int64_t(sizeof(Insn))
                               ? nullptr
                               : find_code(image_.functions, symbol.section, static_cast<uint64_t>(offset) / sizeof(Insn));
        if (!code || int64_t(code->start) * int64_t(sizeof(Insn)) != offset)
            return image_.bad(section_, at, "refers to {}, byte {} of its section, where no function starts", shown(symbol),
                              offset);
        return static_cast<uint32_t>(code - image_.functions.data());
    }

    Result<void> read_call(CodeRef &ref, uint64_t at, const Insn &insn, const elf::Relocation &relocation) const {
        const elf::Symbol &symbol = image_.symbols[relocation.symbol];
        if (symbol.section == SHN_UNDEF) {
            ref.kind = CodeRef::Kind::kfunc;
            ref.index = TRY(extern_index(at, relocation.symbol));
            if (!spec_.externs[ref.index].is_function)
                return image_.bad(section_, at, "calls {}, which is declared as a variable", symbol.name);
            return {};
        }
        if (insn.src != BPF_PSEUDO_CALL)
            return image_.bad(section_, at, "a relocation against {} is on a call of a helper", shown(symbol));
        int64_t addend = has_addend_ ? relocation.addend : (int64_t(insn.imm) + 1) * int64_t(sizeof(Insn));
        // gcc's assembler, up to 2.40, adds the symbol's own value, in bytes. A call never goes past a function's start.
        if (symbol.type == STT_FUNC && int64_t(insn.imm) + 1 == static_cast<int64_t>(symbol.value)) addend = 0;
        const int64_t offset = static_cast<int64_t>(symbol.value) + addend;
        ref.kind = CodeRef::Kind::call;
        ref.index = TRY(function_at(at, symbol, offset));
        return {};
    }

    Result<void> read_load(CodeRef &ref, uint64_t at, const Insn &insn, const elf::Relocation &relocation) const {
        const elf::Symbol &symbol = image_.symbols[relocation.symbol];
        if (symbol.section == SHN_UNDEF) {
            ref.index = TRY(extern_index(at, relocation.symbol));
            const ExternSpec &external = spec_.externs[ref.index];
            ref.kind = CodeRef::Kind::ksym;
            if (external.section == ".kconfig") ref = {ref.insn, CodeRef::Kind::map_value, image_.kconfig_map, external.offset};
            return {};
        }
        if (symbol.section >= image_.roles.size())
            return image_.bad(section_, at, "refers to {} in special section {:#x}; is it a variable without an initial value?",
                              shown(symbol), symbol.section);
        const elf::Section &place = image_.section(symbol.section);
        const uint64_t addend = static_cast<uint64_t>(has_addend_ ? relocation.addend : int64_t(insn.imm));
        const uint64_t offset = symbol.value + addend;
        switch (image_.roles[symbol.section]) {
        case Role::code:
            ref.kind = CodeRef::Kind::function;
            ref.index = TRY(function_at(at, symbol, static_cast<int64_t>(offset)));
            return {};
        case Role::maps:
        case Role::legacy_maps: {
            const Image::MapPlace *map = image_.find_map(symbol.type == STT_SECTION ? offset : symbol.value);
            if (!map) return image_.bad(section_, at, "refers to {} in {}, where no map starts", shown(symbol), place.name);
            ref.kind = CodeRef::Kind::map;
            ref.index = map->map;
            return {};
        }
        case Role::rodata:
        case Role::data:
        case Role::bss:
            // A pointer may be formed before or past an array and be moved back: the verifier judges where it ends up.
            ref.kind = CodeRef::Kind::map_value;
            ref.index = image_.map_of_section[symbol.section];
            ref.offset = static_cast<uint32_t>(offset);
            return {};
        case Role::arena:
            ref.kind = CodeRef::Kind::map_value;
            ref.index = image_.arena_map;
            ref.offset = static_cast<uint32_t>(offset);
            return {};
        case Role::jump_tables: return read_table(ref, at, addend, relocation.symbol);
        default:
            return image_.bad(section_, at, "refers to {} in section {}, which is neither a map nor data", shown(symbol),
                              place.name);
        }
    }

    /// A jump table is what its symbol covers; its places are judged with the function that uses it (assemble.cpp).
    Result<void> read_table(CodeRef &ref, uint64_t at, uint64_t addend, uint32_t number) const {
        const elf::Symbol &symbol = image_.symbols[number];
        const elf::Section &place = image_.section(symbol.section);
        ref.kind = CodeRef::Kind::table;
        ref.offset = static_cast<uint32_t>(addend);
        if (image_.table_of_symbol.empty()) image_.table_of_symbol.assign(image_.symbols.size(), Image::kNone);
        uint32_t &known = image_.table_of_symbol[number];
        if (known == Image::kNone) {
            if (symbol.size == 0 || symbol.size % sizeof(uint64_t) || symbol.value % sizeof(uint64_t) ||
                symbol.value > place.size || symbol.size > place.size - symbol.value)
                return image_.bad(section_, at,
                                  "{} covers {} bytes at {:#x} of {}'s {}, so it isn't a jump table with entries of 8 bytes",
                                  shown(symbol), symbol.size, symbol.value, place.name, place.size);
            known = static_cast<uint32_t>(image_.tables.size());
            image_.tables.push_back(image_.elf.contents(place).subspan(symbol.value, symbol.size));
        }
        ref.index = known;
        return {};
    }

    Image &image_;
    const ObjectSpec &spec_;
    const elf::Section &section_;
    Bytes bytes_;
    bool has_addend_;
};

} // namespace

Result<void> read_code_relocations(Image &image, const ObjectSpec &spec) {
    for (const elf::Section *table : image.relocations) {
        if (table->info >= image.roles.size() || image.roles[table->info] != Role::code) continue;
        if (table->link != image.symtab->index) return image.bad(*table, 0, "the relocations are against another symbol table");
        std::vector<CodeRef> &refs = image.code[table->info].refs;
        const std::vector<elf::Relocation> relocations = TRY(image.elf.relocations(*table));
        refs.reserve(refs.size() + relocations.size());
        const Reader reader(image, spec, image.section(table->info), table->type == SHT_RELA);
        for (const elf::Relocation &relocation : relocations) TRY(reader.read(relocation, refs));
        stable_sort(refs, [](const CodeRef &a, const CodeRef &b) { return a.insn < b.insn; });
    }
    return {};
}

Result<void> note_data_relocations(const Image &image, ObjectSpec &spec) {
    for (const elf::Section *table : image.relocations) {
        if (table->info >= image.roles.size()) continue;
        const Role role = image.roles[table->info];
        if (role != Role::data && role != Role::rodata && role != Role::arena && role != Role::jump_tables) continue;
        const std::vector<elf::Relocation> relocations = TRY(image.elf.relocations(*table));
        if (relocations.empty()) continue;
        const elf::Relocation &first = relocations.front();
        std::string_view what;
        if (first.symbol < image.symbols.size()) {
            const elf::Symbol &symbol = image.symbols[first.symbol];
            what = symbol.name;
            if (what.empty() && symbol.section < image.roles.size()) what = image.section(symbol.section).name;
        }
        const std::string where = format("{}at offset {:#x}", what.empty() ? "" : format("of {}, ", what), first.offset);
        spec.notes.push_back(
            relocations.size() == 1
                ? format("{}: rawbpf left an address, {}, as it is in the file: data in a map can't hold pointers",
                         image.section(table->info).name, where)
                : format("{}: rawbpf left {} addresses, the first {}, as they are in the file: data in a map can't hold pointers",
                         image.section(table->info).name, relocations.size(), where));
    }
    return {};
}

} // namespace rawbpf::inline v0::object
