// Units into ELF objects, laid out as clang does it:
//
//      .text               functions that others call     STT_FUNC, local
//      "perf_event" ...    programs, one section a name   STT_FUNC, global
//                          R_BPF_64_32: call -> STT_FUNC, imm -1; R_BPF_64_64: lddw -> map, data section, function
//      .maps               zeros; what a map is says its type in .BTF: int (*type)[27] is number 27
//      .data .rodata .bss  variables, VAR and DATASEC in .BTF
//      license             a text
//      .BTF .BTF.ext       types; for each section of code functions, source lines, CO-RE relocations by byte offset
//
// What the kernel has to provide is undefined in the ELF file and declared in .BTF, in a DATASEC .ksyms without a section: VAR
// "const void" for a variable, FUNC for a function. What else is said of the kernel's types: kernel_types.h. Formats:
// Documentation/bpf/btf.rst, llvm_reloc.rst, libbpf's map definitions (Linux 6.18).
#include "runtime/object/unit_elf.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "asm/kinds.h"
#include "runtime/base/fail.h"
#include "runtime/elf/writer.h"
#include "runtime/object/kernel_types.h"
#include "runtime/object/unit_types.h"
#include "runtime/object/unit_values.h"

namespace rawbpf::inline v0 {

namespace object {
namespace {

using btf::Kind;
using btf::TypeId;

constexpr uint32_t kReloc64 = 1, kReloc32 = 10; // R_BPF_64_64, R_BPF_64_32
constexpr uint64_t kAlloc = 2, kWrite = 1, kExec = 4;
constexpr uint8_t kSttObject = 1, kSttFunc = 2, kSttSection = 3, kStbGlobal = 1;
constexpr uint32_t kExtern = 2; // BTF_VAR_GLOBAL_EXTERN, BTF_FUNC_EXTERN
constexpr uint32_t kMostColumns = 1023, kMostLines = (1u << 22) - 1;

class ObjectWriter {
  public:
    ObjectWriter(const Unit &unit, const btf::Btf *kernel) : unit_(unit), kernel_types_(unit.name, kernel, types_) {}

    Result<std::vector<std::byte>> write() {
        int32_ = types_.add_int("int", 4, true);
        kernel_types_.start(int32_);
        TRY(values_.start(unit_, int32_));
        TRY(place_functions());
        TRY(kernel_types_.find_fields(unit_));
        TRY(add_maps());
        TRY(add_data());
        TRY(add_code());
        std::vector<std::byte> license(unit_.license.size() + 1);
        std::memcpy(license.data(), unit_.license.c_str(), license.size());
        (void)elf_.add_section("license", kAlloc | kWrite, license, 1);
        const std::vector<std::byte> ext = write_ext(); // adds strings
        (void)elf_.add_section(".BTF", 0, types_.finish(), 4);
        (void)elf_.add_section(".BTF.ext", 0, ext, 4);
        return elf_.finish();
    }

  private:
    struct CoreRecord {
        uint32_t offset;
        TypeId type;
        std::string access;
    };
    struct CodeSection {
        std::string name;
        std::vector<const Function *> functions;
        std::vector<Insn> insns;
        uint32_t index = 0; ///< in the file
        std::vector<std::pair<uint32_t, TypeId>> func_info;
        struct Line {
            uint32_t offset, file, text, place;
        };
        std::vector<Line> lines;
        std::vector<CoreRecord> core;
    };
    struct Placed {
        size_t section;
        uint32_t insn;
        uint32_t symbol = 0;
    };
    struct External {
        TypeId type = 0;
        uint32_t symbol = 0;
        bool function = false;
    };

    // ---- maps and data ------------------------------------------------------------------------------------------------------

    /// int (*name)[number]
    TypeId number(uint32_t value) { return types_.add_ptr(types_.add_array(int32_, int32_, value)); }

    Result<void> add_maps() {
        struct Made {
            const MapDef *map;
            TypeId var;
            uint32_t offset, size;
        };
        std::vector<Made> made;
        uint32_t size = 0;
        for (const MapDef &map : unit_.maps) {
            if (map.name.starts_with('.')) continue;
            if (!map.contents.empty())
                return fail(Errc::invalid_argument,
                            "{}: map {} has contents, and an object file can't hold the contents of a map", unit_.name, map.name);
            std::vector<btf::Writer::Field> fields;
            auto add = [&](std::string_view name, TypeId type) {
                fields.push_back({name, type, static_cast<uint32_t>(fields.size()) * 64});
            };
            add("type", number(map.type));
            if (map.max_entries) add("max_entries", number(map.max_entries));
            if (map.flags || map.read_only) add("map_flags", number(map.flags | (map.read_only ? 1u << 7 : 0)));
            if (!map.key_type.empty())
                add("key", types_.add_ptr(TRY(values_.type_of(map.key_type))));
            else if (map.key_size)
                add("key_size", number(map.key_size));
            if (!map.value_type.empty())
                add("value", types_.add_ptr(TRY(values_.type_of(map.value_type))));
            else if (map.value_size)
                add("value_size", number(map.value_size));
            const uint32_t bytes = static_cast<uint32_t>(fields.size()) * 8;
            const TypeId type = types_.add_struct("", bytes, fields);
            made.push_back({&map, types_.add_var(legal_name(map.name), type, 1), size, bytes});
            size += bytes;
        }
        if (made.empty()) return {};
        std::vector<btf::VarSecinfo> vars;
        vars.reserve(made.size());
        for (const Made &one : made) vars.push_back({one.var, one.offset, one.size});
        (void)types_.add_datasec(".maps", size, vars);
        const uint32_t section = elf_.add_section(".maps", kAlloc | kWrite, std::vector<std::byte>(size));
        for (const Made &one : made) {
            elf::Symbol symbol;
            symbol.name = one.map->name;
            symbol.value = one.offset;
            symbol.size = one.size;
            symbol.section = section;
            symbol.type = kSttObject;
            symbol.binding = kStbGlobal;
            symbols_[one.map->name] = elf_.add_symbol(symbol);
        }
        return {};
    }

    Result<void> add_data() {
        for (const MapDef &map : unit_.maps) {
            if (!map.name.starts_with('.')) continue;
            constexpr uint32_t kMostBytes = 1u << 24;
            if (map.value_size > kMostBytes)
                return fail(Errc::invalid_argument, "{}: {} has {} bytes, and 16 MiB are the most", unit_.name, map.name,
                            map.value_size);
            const bool zero = map.name == ".bss" || map.name.starts_with(".bss.");
            if (zero && std::any_of(map.contents.begin(), map.contents.end(), [](uint8_t b) { return b != 0; }))
                return fail(Errc::invalid_argument, "{}: {} has contents, and a section of that name is all zeros", unit_.name,
                            map.name);
            std::vector<std::byte> bytes(zero ? 0 : map.value_size);
            for (size_t i = 0; i < std::min(map.contents.size(), bytes.size()); ++i) bytes[i] = std::byte{map.contents[i]};
            const uint64_t flags = map.read_only ? kAlloc : kAlloc | kWrite;
            const uint32_t section =
                zero ? elf_.add_nobits(map.name, flags, map.value_size) : elf_.add_section(map.name, flags, bytes);
            elf::Symbol whole;
            whole.section = section;
            whole.type = kSttSection;
            symbols_[map.name] = elf_.add_symbol(whole);
            (void)TRY(values_.section_of(unit_, map));
            for (const Variable &variable : unit_.variables) {
                if (variable.map != map.name) continue;
                elf::Symbol symbol;
                symbol.name = variable.name;
                symbol.value = variable.offset;
                symbol.size = variable.size;
                symbol.section = section;
                symbol.type = kSttObject;
                symbol.binding = kStbGlobal;
                (void)elf_.add_symbol(symbol);
            }
        }
        return {};
    }

    // ---- code ---------------------------------------------------------------------------------------------------------------

    Result<void> place_functions() {
        sections_.push_back({".text", {}, {}, 0, {}, {}, {}});
        for (const Function &function : unit_.functions) {
            const std::string name = function.section.empty() ? ".text" : function.section;
            size_t index = 0;
            while (index < sections_.size() && sections_[index].name != name) ++index;
            if (index == sections_.size()) sections_.push_back({name, {}, {}, 0, {}, {}, {}});
            CodeSection &section = sections_[index];
            if (!placed_.emplace(function.name, Placed{index, static_cast<uint32_t>(section.insns.size())}).second)
                return fail(Errc::invalid_argument, "{}: two functions are called {}", unit_.name, function.name);
            section.functions.push_back(&function);
            section.insns.insert(section.insns.end(), function.insns.begin(), function.insns.end());
        }
        return {};
    }

    Result<void> add_code() {
        object::FunctionTypes function_types;
        function_types.start(types_, int32_);
        for (CodeSection &section : sections_) // numbers and offsets first: relocations point both ways
            for (const Function *function : section.functions) {
                const uint32_t base = placed_.find(function->name)->second.insn;
                section.func_info.emplace_back(base * 8, function_types.add(types_, *function, legal_name(function->name)));
                add_lines(section, *function, base);
                for (const Ref &ref : function->refs)
                    if (ref.kind == RefKind::field) TRY(add_field(section, *function, base, ref));
                for (const Ref &ref : function->refs) patch(section.insns[base + ref.insn], ref);
            }
        for (CodeSection &section : sections_) {
            if (section.name == ".text" && section.functions.empty()) {
                section.index = elf_.add_section(".text", kAlloc | kExec, Bytes());
                continue;
            }
            section.index = elf_.add_section(section.name, kAlloc | kExec, std::as_bytes(std::span(section.insns)));
            for (const Function *function : section.functions) {
                Placed &placed = placed_.find(function->name)->second;
                elf::Symbol symbol;
                symbol.name = function->name;
                symbol.value = uint64_t{placed.insn} * 8;
                symbol.size = function->insns.size() * 8;
                symbol.section = section.index;
                symbol.type = kSttFunc;
                symbol.binding = function->section.empty() && !function->global ? 0 : kStbGlobal;
                placed.symbol = elf_.add_symbol(symbol);
            }
        }
        for (const CodeSection &section : sections_)
            for (const Function *function : section.functions)
                for (const Ref &ref : function->refs)
                    if (ref.kind != RefKind::field) TRY(add_relocation(section, *function, ref));
        if (!kernel_symbols_.empty()) { // variables and functions, all of them declared only
            std::vector<btf::VarSecinfo> vars;
            for (auto &[name, external] : kernel_symbols_) vars.push_back({external.type, 0, 0});
            (void)types_.add_datasec(".ksyms", 0, vars);
        }
        return {};
    }

    /// What the instruction itself says, beside its relocation: as clang has it.
    static void patch(Insn &insn, const Ref &ref) {
        switch (ref.kind) {
        case RefKind::map:
        case RefKind::ksym:
        case RefKind::function:
            insn.src = 0;
            insn.imm = 0;
            break;
        case RefKind::map_value:
            insn.src = 0;
            insn.imm = static_cast<int32_t>(ref.addend);
            break;
        case RefKind::call:
        case RefKind::kfunc:
            insn.src = 1;
            insn.off = 0;
            insn.imm = -1;
            break;
        case RefKind::field: break;
        }
    }

    /// The undefined symbol for something of the kernel's, and its declaration: VAR "const void", or FUNC with its prototype.
    Result<uint32_t> external(const Ref &ref) {
        if (auto known = kernel_symbols_.find(ref.symbol); known != kernel_symbols_.end()) {
            const bool called = known->second.function;
            if (called != (ref.kind == RefKind::kfunc))
                return fail(Errc::unsupported, "{}: {} is called and its address is taken; an object declares it as one",
                            unit_.name, ref.symbol);
            return known->second.symbol;
        }
        External external;
        external.function = ref.kind == RefKind::kfunc;
        external.type = external.function ? types_.add_func(ref.symbol, TRY(kernel_types_.prototype(ref.symbol)), kExtern)
                                          : types_.add_var(ref.symbol, types_.add_modifier(Kind::const_, 0), kExtern);
        elf::Symbol symbol;
        symbol.name = ref.symbol;
        symbol.binding = kStbGlobal;
        external.symbol = elf_.add_symbol(symbol);
        kernel_symbols_.emplace(ref.symbol, external);
        return external.symbol;
    }

    Result<void> add_relocation(const CodeSection &section, const Function &function, const Ref &ref) {
        uint32_t symbol = 0;
        const uint32_t base = placed_.find(function.name)->second.insn;
        auto missing = [&](std::string_view what) {
            return fail(Errc::invalid_argument, "{}: function {}: instruction {}: there is no {} called {}", unit_.name,
                        function.name, ref.insn, what, ref.symbol);
        };
        switch (ref.kind) {
        case RefKind::map:
        case RefKind::map_value: {
            auto at = symbols_.find(ref.symbol);
            if (at == symbols_.end()) return missing("map");
            symbol = at->second;
            break;
        }
        case RefKind::call:
        case RefKind::function: {
            auto at = placed_.find(ref.symbol);
            if (at == placed_.end()) return missing("function");
            symbol = at->second.symbol;
            break;
        }
        case RefKind::kfunc:
        case RefKind::ksym: symbol = TRY(external(ref)); break;
        case RefKind::field: return {};
        }
        elf::Relocation relocation;
        relocation.offset = (uint64_t{base} + ref.insn) * 8;
        relocation.type = ref.kind == RefKind::call || ref.kind == RefKind::kfunc ? kReloc32 : kReloc64;
        relocation.symbol = symbol;
        elf_.add_relocation(section.index, relocation);
        return {};
    }

    Result<void> add_field(CodeSection &section, const Function &function, uint32_t base, const Ref &ref) {
        const KernelField use = kernel_types_.field(ref.symbol);
        if (ref.addend != 0)
            return fail(
                Errc::invalid_argument,
                "{}: function {}: @{} plus a number can't be relocated in an object file; add the number in another instruction",
                unit_.name, function.name, ref.symbol);
        Insn &insn = section.insns[base + ref.insn];
        const uint8_t kind = insn.code & 7;
        if (kind >= 1 && kind <= 3) { // loads and stores have it in off
            if (use.offset > INT16_MAX)
                return fail(Errc::invalid_argument, "{}: @{} is at offset {}; the largest offset of an instruction is 32767",
                            unit_.name, ref.symbol, use.offset);
            insn.off = static_cast<int16_t>(use.offset);
        } else
            insn.imm = static_cast<int32_t>(use.offset);
        section.core.push_back({(base + ref.insn) * 8, use.root, use.access});
        return {};
    }

    void add_lines(CodeSection &section, const Function &function, uint32_t base) {
        int64_t last = -1;
        std::vector<bool> starts(function.insns.size(), true);
        for (size_t i = 0; i + 1 < starts.size(); ++i)
            if (starts[i] && is_wide(function.insns[i])) starts[i + 1] = false;
        for (const SourceLine &line : function.lines) {
            if (line.insn >= starts.size() || !starts[line.insn] || int64_t{line.insn} <= last) continue;
            const uint32_t insn = last < 0 ? 0 : line.insn; // the first one counts from the function's start
            const uint32_t place = std::min(line.line, kMostLines) << 10 | std::min(line.column, kMostColumns);
            section.lines.push_back({(base + insn) * 8, types_.string(line.file), types_.string(line.text), place});
            last = line.insn;
        }
    }

    // ---- .BTF.ext -----------------------------------------------------------------------------------------------------------

    std::vector<std::byte> write_ext() {
        std::vector<uint32_t> functions = {8}, lines = {16}, core = {16};
        for (CodeSection &section : sections_) {
            const uint32_t name = types_.string(section.name);
            if (!section.func_info.empty()) {
                functions.insert(functions.end(), {name, static_cast<uint32_t>(section.func_info.size())});
                for (auto &[offset, type] : section.func_info) functions.insert(functions.end(), {offset, type});
            }
            if (!section.lines.empty()) {
                lines.insert(lines.end(), {name, static_cast<uint32_t>(section.lines.size())});
                for (const CodeSection::Line &line : section.lines)
                    lines.insert(lines.end(), {line.offset, line.file, line.text, line.place});
            }
            if (!section.core.empty()) {
                core.insert(core.end(), {name, static_cast<uint32_t>(section.core.size())});
                for (const CoreRecord &record : section.core)
                    core.insert(core.end(), {record.offset, record.type, types_.string(record.access), 0u});
            }
        }
        if (core.size() == 1) core.clear();
        if (lines.size() == 1) lines.clear();
        const uint32_t sizes[] = {static_cast<uint32_t>(functions.size() * 4), static_cast<uint32_t>(lines.size() * 4),
                                  static_cast<uint32_t>(core.size() * 4)};
        std::vector<uint32_t> words = {0x0001eb9f, 32, 0, sizes[0], sizes[0], sizes[1], sizes[0] + sizes[1], sizes[2]};
        words.insert(words.end(), functions.begin(), functions.end());
        words.insert(words.end(), lines.begin(), lines.end());
        words.insert(words.end(), core.begin(), core.end());
        const Bytes bytes = std::as_bytes(std::span(words));
        return {bytes.begin(), bytes.end()};
    }

    const Unit &unit_;
    elf::Writer elf_;
    btf::Writer types_;
    KernelTypes kernel_types_;
    TypeId int32_ = 0;
    UnitValues values_{types_};
    std::map<std::string, External, std::less<>> kernel_symbols_;
    std::vector<CodeSection> sections_;
    std::map<std::string, Placed, std::less<>> placed_;
    std::map<std::string, uint32_t, std::less<>> symbols_;
};

} // namespace
} // namespace object

Result<std::vector<std::byte>> write_object(const Unit &unit, const btf::Btf *kernel) {
    return object::ObjectWriter(unit, kernel).write();
}

} // namespace rawbpf::inline v0
