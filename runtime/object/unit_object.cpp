// Converts DSL units into specs.
//
// A unit's functions refer to maps and to each other by name. Here the names become numbers, and the Assembler that also puts
// the functions of an ELF file together does the rest. Unlike an ELF file, a unit has no BTF, so it is made:
//
//      keys, values, variables                            as far as the unit says their types (unit_values.h)
//      INT "int", PTR -> void, FUNC_PROTO int (void *ctx), FUNC_PROTO int ()
//      FUNC "profile" (global: a program)      FUNC "walk" (static: verified together with its callers)
//      strings: file names and source lines    for line_info
//
// The kernel is strict about both lists: func_info for all functions or none, line_info strictly ascending, one at the start of
// every function, none in the middle of an ld_imm64.
#include "runtime/object/unit_object.h"

#include <algorithm>
#include <map>

#include "asm/kinds.h"
#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"
#include "runtime/object/code.h"
#include "runtime/object/unit_types.h"
#include "runtime/object/unit_values.h"

namespace rawbpf::inline v0 {

namespace object {
namespace {

constexpr uint32_t kReadOnlyProg = 1u << 7; // BPF_F_RDONLY_PROG, 5.2
constexpr uint32_t kMostColumns = 1023, kMostLines = (1u << 22) - 1;

class UnitReader {
  public:
    explicit UnitReader(const Unit &unit) : unit_(unit), parts_(unit.functions.size()), code_(unit.functions.size()) {}

    Result<ObjectSpec> read() {
        spec_.name = unit_.name;
        spec_.license = unit_.license;
        const btf::TypeId int32 = types_.add_int("int", 4, true);
        TRY(values_.start(unit_, int32));
        for (const MapDef &map : unit_.maps) TRY(add_map(map));
        for (uint32_t i = 0; i < unit_.functions.size(); ++i)
            if (!functions_.emplace(unit_.functions[i].name, i).second)
                return fail(Errc::invalid_argument, "{}: two functions are called {}", unit_.name, unit_.functions[i].name);
        function_types_.start(types_, int32);
        for (uint32_t i = 0; i < unit_.functions.size(); ++i) TRY(add_function(i));
        spec_.btf = types_.finish();

        Assembler assembler(unit_.name, code_, spec_.externs);
        for (uint32_t i = 0; i < unit_.functions.size(); ++i) {
            const Function &function = unit_.functions[i];
            if (function.section.empty()) continue;
            ProgramSpec program;
            program.name = function.name;
            classify(program, function.section);
            TRY(assembler.assemble(i, program));
            spec_.programs.push_back(std::move(program));
        }
        return std::move(spec_);
    }

  private:
    /// What the Code of one function points to.
    struct Parts {
        std::vector<CodeRef> refs;
        std::vector<FieldReference> fields;
        std::vector<FuncInfo> func_info;
        std::vector<LineInfo> line_info;
    };

    Result<void> add_map(const MapDef &from) {
        if (!maps_.emplace(from.name, static_cast<uint32_t>(spec_.maps.size())).second)
            return fail(Errc::invalid_argument, "{}: two maps are called {}", unit_.name, from.name);
        MapSpec map;
        map.name = from.name;
        if (from.name.starts_with('.')) {
            map.data_section = from.name;
            map.name = data_map_name(unit_.name, from.name);
        }
        map.type = from.type;
        map.key_size = from.key_size;
        map.value_size = from.value_size;
        map.max_entries = from.max_entries;
        map.flags = from.flags | (from.read_only ? kReadOnlyProg : 0);
        map.freeze = from.read_only;
        if (from.contents.size() > from.value_size)
            return fail(Errc::invalid_argument, "{}: map {}: its contents have {} bytes, and its value has {}", unit_.name,
                        from.name, from.contents.size(), from.value_size);
        const Bytes contents = std::as_bytes(std::span(from.contents));
        map.contents.assign(contents.begin(), contents.end());
        if (!contents.empty()) map.contents.resize(from.value_size);
        if (!from.key_type.empty() && !from.value_type.empty()) { // the kernel takes both or none
            map.key_type = TRY(values_.type_of(from.key_type));
            map.value_type = TRY(values_.type_of(from.value_type));
        }
        if (!map.data_section.empty()) map.value_type = TRY(values_.section_of(unit_, from));
        spec_.maps.push_back(std::move(map));
        return {};
    }

    Result<void> add_function(uint32_t index) {
        const Function &function = unit_.functions[index];
        Parts &parts = parts_[index];
        if (function.insns.empty()) return fail(Errc::invalid_argument, "{}: function {} is empty", unit_.name, function.name);
        for (const Ref &ref : function.refs) TRY(add_ref(function, ref, parts));
        auto by_insn = [](const auto &a, const auto &b) { return a.insn < b.insn; };
        stable_sort(parts.refs, by_insn);
        stable_sort(parts.fields, by_insn);
        parts.func_info.push_back({0, function_types_.add(types_, function, legal_name(function.name, true))});
        add_lines(function, parts);

        Code &code = code_[index];
        code.name = function.name;
        code.section = index;
        code.insns = std::as_bytes(std::span(function.insns));
        code.refs = parts.refs;
        code.fields = parts.fields;
        code.func_info = parts.func_info;
        code.line_info = parts.line_info;
        return {};
    }

    Result<uint32_t> number_of(const std::map<std::string, uint32_t, std::less<>> &names, const Function &function,
                               const Ref &ref, std::string_view what) const {
        auto at = names.find(ref.symbol);
        if (at == names.end())
            return fail(Errc::invalid_argument, "{}: function {}: instruction {}: there is no {} called {}", unit_.name,
                        function.name, ref.insn, what, ref.symbol);
        return at->second;
    }

    uint32_t extern_number(std::string_view name, bool is_function) {
        const uint32_t next = static_cast<uint32_t>(spec_.externs.size());
        auto [at, added] = externs_.emplace(name, next);
        if (added) {
            ExternSpec external;
            external.name = name;
            external.section = ".ksyms";
            external.is_function = is_function;
            spec_.externs.push_back(std::move(external));
        }
        return at->second;
    }

    Result<void> add_ref(const Function &function, const Ref &ref, Parts &parts) {
        if (ref.insn >= function.insns.size())
            return fail(Errc::invalid_argument, "{}: function {}: a reference to {} from instruction {}, and there are only {}",
                        unit_.name, function.name, ref.symbol, ref.insn, function.insns.size());
        CodeRef out;
        out.insn = ref.insn;
        switch (ref.kind) {
        case RefKind::map:
            out.kind = CodeRef::Kind::map;
            out.index = TRY(number_of(maps_, function, ref, "map"));
            break;
        case RefKind::map_value:
            out.kind = CodeRef::Kind::map_value;
            out.index = TRY(number_of(maps_, function, ref, "map"));
            out.offset = static_cast<uint32_t>(ref.addend);
            break;
        case RefKind::call:
            out.kind = CodeRef::Kind::call;
            out.index = TRY(number_of(functions_, function, ref, "function"));
            break;
        case RefKind::function:
            out.kind = CodeRef::Kind::function;
            out.index = TRY(number_of(functions_, function, ref, "function"));
            break;
        case RefKind::field: parts.fields.push_back({ref.insn, ref.symbol, ref.addend}); return {};
        case RefKind::kfunc:
            out.kind = CodeRef::Kind::kfunc;
            out.index = extern_number(ref.symbol, true);
            break;
        case RefKind::ksym:
            out.kind = CodeRef::Kind::ksym;
            out.index = extern_number(ref.symbol, false);
            break;
        }
        parts.refs.push_back(out);
        return {};
    }

    void add_lines(const Function &function, Parts &parts) {
        std::vector<bool> starts(function.insns.size(), true); // an instruction, not the second half of one
        for (size_t i = 0; i + 1 < starts.size(); ++i)
            if (starts[i] && is_wide(function.insns[i])) starts[i + 1] = false;
        int64_t last = -1;
        for (const SourceLine &line : function.lines) {
            if (line.insn >= starts.size() || !starts[line.insn] || int64_t{line.insn} <= last) continue;
            const uint32_t insn = parts.line_info.empty() ? 0 : line.insn; // the first one counts from the function's start
            const uint32_t place = std::min(line.line, kMostLines) << 10 | std::min(line.column, kMostColumns);
            parts.line_info.push_back({insn, types_.string(line.file), types_.string(line.text), place});
            last = line.insn;
        }
    }

    const Unit &unit_;
    ObjectSpec spec_;
    std::vector<Parts> parts_;
    std::vector<Code> code_;
    std::map<std::string, uint32_t, std::less<>> maps_, functions_, externs_;
    btf::Writer types_;
    UnitValues values_{types_};
    FunctionTypes function_types_;
};

} // namespace
} // namespace object

Result<ObjectSpec> object_of(const Unit &unit) { return object::UnitReader(unit).read(); }

} // namespace rawbpf::inline v0
