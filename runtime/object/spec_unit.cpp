// Converts specs into units: from the loader's form back to the readable one.
//
//      ProgramSpec: [ entry | walk | hash ]  calls aimed         Function entry   call walk
//                    fixup 3: map 0                     -->      Function walk    r1 = counts ll    # ...
//                    line_info, core_relocations                 Function hash
//
// In a spec a function that three programs call exists three times; in the unit it exists once (spec_functions.h). Two
// different functions of the same name (static ones of several files) get a number.
#include "runtime/object/spec_unit.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "asm/print.h"
#include "runtime/base/fail.h"
#include "runtime/object/core.h"
#include "runtime/object/spec_functions.h"

namespace rawbpf::inline v0 {

namespace object {
namespace {

class SpecReader {
  public:
    explicit SpecReader(const ObjectSpec &spec) : spec_(spec) {}

    Result<Unit> read() {
        unit_.name = spec_.name;
        unit_.license = spec_.license;
        if (!spec_.btf.empty()) types_ = TRY(btf::Btf::parse(spec_.btf, spec_.name));
        std::set<std::string> taken;
        for (const MapSpec &from : spec_.maps) {
            MapDef map;
            const std::string name = plain_symbol(from.data_section.empty() ? from.name : from.data_section);
            map.name = name;
            for (int copy = 2; !taken.insert(map.name).second; ++copy) map.name = format("{}_{}", name, copy);
            map_names_.push_back(map.name);
            map.type = from.type;
            map.key_size = from.key_size;
            map.value_size = from.value_size;
            map.max_entries = from.max_entries;
            map.flags = from.flags;
            map.contents.resize(from.contents.size());
            std::transform(from.contents.begin(), from.contents.end(), map.contents.begin(),
                           [](std::byte b) { return static_cast<uint8_t>(b); });
            unit_.maps.push_back(std::move(map));
        }
        for (const ProgramSpec &program : spec_.programs) add_program(program);
        unit_.functions = std::move(functions_).finish(std::move(taken));
        return std::move(unit_);
    }

  private:
    std::string core_note(const CoreRelocation &relocation) const {
        std::string out = format("CO-RE {} ", core_kind_name(relocation.kind));
        if (types_)
            if (auto type = types_->type(relocation.type)) {
                out += type->name;
                // Members by name, as far as they have one.
                btf::TypeId at = relocation.type;
                const bool is_field = relocation.kind <= static_cast<uint32_t>(CoreKind::field_rshift);
                std::string_view rest(relocation.access);
                rest =
                    is_field && rest.find(':') != std::string_view::npos ? rest.substr(rest.find(':') + 1) : std::string_view();
                while (!rest.empty()) {
                    uint32_t index = 0;
                    const size_t end = std::min(rest.find(':'), rest.size());
                    for (char c : rest.substr(0, end))
                        index = c >= '0' && c <= '9' && index < 100000 ? index * 10 + static_cast<uint32_t>(c - '0') : index;
                    rest = end < rest.size() ? rest.substr(end + 1) : std::string_view();
                    auto resolved = types_->resolve(at);
                    if (!resolved) break;
                    if (resolved->kind == btf::Kind::array) {
                        append(out, "[{}]", index);
                        at = types_->array(*resolved).element;
                        continue;
                    }
                    if ((resolved->kind != btf::Kind::struct_ && resolved->kind != btf::Kind::union_) || index >= resolved->vlen)
                        break;
                    auto member = types_->member(*resolved, index);
                    if (!member) break;
                    if (!member->name.empty()) append(out, ".{}", member->name);
                    at = member->type;
                }
            }
        return out + format(" ({})", relocation.access);
    }

    /// "jump table: +3 +7": instructions of the function.
    static std::string table_note(const std::vector<uint32_t> &places, uint32_t from) {
        constexpr size_t kMost = 16;
        std::string out = "jump table:";
        for (size_t i = 0; i < places.size() && i < kMost; ++i) append(out, " {}", int64_t{places[i]} - from);
        if (places.size() > kMost) append(out, " ... {} in all", places.size());
        return out;
    }

    void add_program(const ProgramSpec &program) {
        std::vector<ProgramSpec::Subprogram> parts = program.subprograms;
        if (parts.empty() || parts[0].insn != 0) parts.insert(parts.begin(), {0, program.name});
        std::vector<SpecPart> made(parts.size());
        auto end_of = [&](size_t n) { return n + 1 < parts.size() ? parts[n + 1].insn : program.insns.size(); };
        auto has_insns = [&](size_t n) { return parts[n].insn < end_of(n) && end_of(n) <= program.insns.size(); };
        std::map<int64_t, size_t> part_starts;
        for (size_t n = 0; n < parts.size(); ++n)
            if (has_insns(n)) part_starts.emplace(parts[n].insn, n);
        auto part_at = [&](int64_t insn) {
            auto at = part_starts.find(insn);
            return at == part_starts.end() ? parts.size() : at->second;
        };
        // All lists of a spec ascend: those of one function are in one piece.
        auto piece = [](const auto &list, uint32_t from, uint32_t to) {
            auto below = [](const auto &entry, uint32_t insn) { return entry.insn < insn; };
            const auto first = std::lower_bound(list.begin(), list.end(), from, below);
            const auto last = std::lower_bound(first, list.end(), to, below);
            return std::span(list.data() + (first - list.begin()), static_cast<size_t>(last - first));
        };
        std::vector<bool> starts(program.insns.size(), true);
        for (size_t i = 0; i + 1 < starts.size(); ++i)
            if (starts[i] && is_wide(program.insns[i])) starts[i + 1] = false;
        for (size_t n = 0; n < parts.size(); ++n) {
            if (!has_insns(n)) continue;
            const uint32_t from = parts[n].insn, to = static_cast<uint32_t>(end_of(n));
            Function &function = made[n].function;
            function.name = parts[n].name;
            if (n == 0) function.section = program.section;
            function.insns.assign(program.insns.begin() + from, program.insns.begin() + to);
            for (const Fixup &fixup : piece(program.fixups, from, to)) add_ref(function, fixup, from);
            for (uint32_t i = from; i < to; ++i) {
                const Insn &insn = program.insns[i];
                const bool call = insn.code == 0x85 && insn.src == 1, address = is_wide(insn) && insn.src == 4;
                if (!starts[i] || (!call && !address)) continue;
                const size_t target = part_at(int64_t{i} + 1 + insn.imm);
                if (target == parts.size()) continue;
                made[n].targets.push_back(target);
                Ref ref;
                ref.insn = i - from;
                ref.kind = call ? RefKind::call : RefKind::function;
                if (call) function.insns[i - from].imm = -1;
                if (address) function.insns[i - from].imm = 0;
                function.refs.push_back(std::move(ref));
            }
            std::sort(function.refs.begin(), function.refs.end(), [](const Ref &a, const Ref &b) { return a.insn < b.insn; });
            function.notes.resize(function.insns.size());
            for (const Fixup &fixup : piece(program.fixups, from, to))
                if (fixup.kind == Fixup::Kind::jump_table && fixup.map < program.jump_tables.size())
                    function.notes[fixup.insn - from] = table_note(program.jump_tables[fixup.map], from);
            for (const CoreRelocation &relocation : piece(program.core_relocations, from, to))
                function.notes[relocation.insn - from] = core_note(relocation);
            for (const FieldReference &field : piece(program.field_references, from, to)) {
                Ref ref;
                ref.insn = field.insn - from;
                ref.kind = RefKind::field;
                ref.symbol = field.path;
                ref.addend = field.addend;
                function.refs.push_back(std::move(ref));
            }
            std::sort(function.refs.begin(), function.refs.end(), [](const Ref &a, const Ref &b) { return a.insn < b.insn; });
            for (const LineInfo &info : piece(program.line_info, from, to)) {
                if (!types_) break;
                SourceLine line;
                line.insn = info.insn - from;
                if (auto file = types_->string(info.file)) line.file = *file;
                if (auto text = types_->string(info.line)) line.text = *text;
                line.line = info.number_column >> 10;
                line.column = info.number_column & 1023;
                function.lines.push_back(std::move(line));
            }
        }
        functions_.add(std::move(made));
    }

    void add_ref(Function &function, const Fixup &fixup, uint32_t from) const {
        Ref ref;
        ref.insn = fixup.insn - from;
        switch (fixup.kind) {
        case Fixup::Kind::map_fd:
        case Fixup::Kind::map_value:
            if (fixup.map >= spec_.maps.size()) return;
            ref.kind = fixup.kind == Fixup::Kind::map_fd ? RefKind::map : RefKind::map_value;
            ref.symbol = map_names_[fixup.map];
            ref.addend = fixup.offset;
            break;
        case Fixup::Kind::kfunc:
            ref.kind = RefKind::kfunc;
            ref.symbol = fixup.symbol;
            break;
        case Fixup::Kind::ksym:
            ref.kind = RefKind::ksym;
            ref.symbol = fixup.symbol;
            break;
        case Fixup::Kind::jump_table: return; // a note: the text has no word for it
        }
        function.refs.push_back(std::move(ref));
    }

    const ObjectSpec &spec_;
    Unit unit_;
    std::optional<btf::Btf> types_;
    SpecFunctions functions_;
    std::vector<std::string> map_names_; ///< in the unit, each another one
};

} // namespace
} // namespace object

Result<Unit> unit_of(const ObjectSpec &spec) { return object::SpecReader(spec).read(); }

} // namespace rawbpf::inline v0
