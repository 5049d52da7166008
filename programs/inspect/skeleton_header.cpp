// Skeletons: an object as a header of C++.
//
// The types come from the object's own BTF, through c_header.h. The BTF has no type for a section of variables as one struct,
// so that is added in a BTF split from the object's:
//
//      DATASEC .bss: VAR hits u64 at 0, VAR last task at 8      -->  STRUCT Bss { u64 hits; task last; }
//      map seen: key type 7, value type 9                       -->  TYPEDEF seen_key 7, TYPEDEF seen_value 9
//
// The writer of the header then handles order, packing and gaps, so that the struct has exactly the layout of the map's bytes.
// Variables lose their const and volatile, because the skeleton's user sets them.
#include "programs/inspect/skeleton_header.h"

#include <algorithm>
#include <set>

#include "programs/inspect/c_words.h"
#include "runtime/base/fail.h"
#include "runtime/btf/c_header.h"

namespace rawbpf::inline v0::inspect {

namespace {

using btf::Kind;
using btf::TypeId;

class Skeletons {
  public:
    Skeletons(const ObjectSpec &spec, std::string_view name) : spec_(spec), name_(name) {}

    Result<std::string> write(Bytes elf) {
        TRY(collect());
        std::string out = format("// {}: made by `rawbpf gen skeleton`; edit the program it was made of instead.\n", name_);
        out += "#pragma once\n\n#include <rawbpf/runtime/link/skeleton.h>\n\n";
        append(out, "namespace {} {{\n\n", name_);
        out += types_;
        out += "\n// ---- the object\n\nalignas(8) inline constexpr unsigned char kObject[] = {";
        append_bytes(out, elf);
        out += "\n};\n\n";
        out += "class Skeleton : public ::rawbpf::Skeleton {\n  public:\n"
               "    [[nodiscard]] static ::rawbpf::Result<Skeleton> open() {\n"
               "        Skeleton out;\n";
        append(out, "        auto opened = ::rawbpf::Skeleton::open(out, std::as_bytes(std::span(kObject)), {});\n",
               quoted(spec_.name));
        out += "        if (!opened) return ::rawbpf::Unexpected(std::move(opened).error());\n        return out;\n    }\n";
        out += members_;
        append(out, "}};\n\n}} // namespace {}\n", name_);
        return out;
    }

  private:
    std::string unique(std::string wanted) { return inspect::unique(used_, std::move(wanted)); }

    Result<void> collect() {
        for (std::string_view taken : {"Skeleton", "kObject", "open", "load", "attach", "detach", "links", "notes", "spec",
                                       "object", "variables", "map", "program"})
            used_.insert(std::string(taken));
        if (spec_.btf.empty()) {
            for (const MapSpec &map : spec_.maps)
                if (!map.data_section.empty())
                    return fail(Errc::unsupported, "{}: {} has variables, but the object has no BTF; compile with -g", spec_.name,
                                map.data_section);
            add_maps({});
            add_programs();
            return {};
        }
        const btf::Btf base = TRY(btf::Btf::parse(spec_.btf, format("{}: .BTF", spec_.name)));
        btf::Writer added(base);
        std::vector<TypeId> roots;
        TRY(add_variables(base, added, roots));
        std::vector<std::pair<std::string, std::string>> typed(spec_.maps.size());
        for (size_t i = 0; i < spec_.maps.size(); ++i) {
            const MapSpec &map = spec_.maps[i];
            if (!map.data_section.empty() || map.key_type == 0 || map.value_type == 0) continue;
            Result<uint64_t> key = base.size_of(map.key_type), value = base.size_of(map.value_type);
            if (!key || !value || *key != map.key_size || *value != map.value_size) continue;
            typed[i] = {unique(identifier(map.name) + "_key"), unique(identifier(map.name) + "_value")};
            roots.push_back(added.add_typedef(typed[i].first, map.key_type));
            roots.push_back(added.add_typedef(typed[i].second, map.value_type));
        }
        if (!roots.empty()) {
            const std::vector<std::byte> bytes = added.finish();
            const btf::Btf all = TRY(btf::Btf::parse(bytes, format("{}: .BTF", spec_.name), &base));
            types_ = TRY(btf::c_header(all, {.roots = roots, .kfuncs = false, .cplusplus = true}));
        }
        for (const auto &[section, type] : sections_) {
            append(members_, "    /// {}\n",
                   section.starts_with(".rodata") ? "Constants: to be set before load()." : "Variables.");
            append(members_, "    [[nodiscard]] {} &{}() {{ return *static_cast<{} *>(variables({})); }}\n", type,
                   unique(section_word(section)), type, quoted(section));
        }
        add_maps(typed);
        add_programs();
        return {};
    }

    /// const and volatile off, from the elements of arrays, too.
    Result<TypeId> plain(const btf::Btf &base, btf::Writer &added, TypeId id, int depth = 32) {
        btf::Type t = TRY(base.type(id));
        while (t.kind == Kind::const_ || t.kind == Kind::volatile_ || t.kind == Kind::restrict_ || t.kind == Kind::type_tag) {
            id = t.size_or_type;
            t = TRY(base.type(id));
            if (--depth < 0) return fail(Errc::bad_input, "{}: type {}: no end", base.name(), id);
        }
        if (t.kind != Kind::array || depth <= 0) return id;
        const btf::Array a = base.array(t);
        const TypeId element = TRY(plain(base, added, a.element, depth - 1));
        return element == a.element ? id : added.add_array(element, a.index, a.count);
    }

    Result<void> add_variables(const btf::Btf &base, btf::Writer &added, std::vector<TypeId> &roots) {
        for (TypeId id = 1; id < base.end_id(); ++id) {
            const btf::Type section = TRY(base.type(id));
            if (section.kind != Kind::datasec || section.name == ".kconfig") continue;
            const auto map = std::find_if(spec_.maps.begin(), spec_.maps.end(), [&](const MapSpec &m) {
                return !m.data_section.empty() && m.data_section == section.name;
            });
            if (map == spec_.maps.end() || section.vlen == 0) continue;
            std::vector<std::string> names;
            std::vector<btf::Writer::Field> fields;
            std::set<std::string> taken;
            names.reserve(section.vlen); // fields keep views of them
            for (uint32_t i = 0; i < section.vlen; ++i) {
                const btf::VarSecinfo place = TRY(base.secinfo(section, i));
                const btf::Type var = TRY(base.type(place.type));
                if (var.kind != Kind::var) continue;
                if (place.offset >= (1u << 28))
                    return fail(Errc::bad_input, "{}: {}: a variable at {}", spec_.name, section.name, place.offset);
                names.push_back(inspect::unique(taken, identifier(var.name)));
                fields.push_back({names.back(), TRY(plain(base, added, var.size_or_type)), place.offset * 8});
            }
            std::string type = section_word(section.name);
            if (type[0] >= 'a' && type[0] <= 'z') type[0] = static_cast<char>(type[0] - 'a' + 'A'); // Bss, Rodata, Data_config
            type = unique(std::move(type));
            // Up to a boundary, or the end would make it a packed struct, whose members can't be bound to references.
            roots.push_back(added.add_struct(type, (map->value_size + 7) / 8 * 8, fields));
            sections_.emplace_back(section.name, type);
        }
        return {};
    }

    void add_maps(const std::vector<std::pair<std::string, std::string>> &typed) {
        for (size_t i = 0; i < spec_.maps.size(); ++i) {
            const MapSpec &map = spec_.maps[i];
            if (!map.data_section.empty()) continue;
            const std::string name = unique(identifier(map.name) + "_map");
            if (i < typed.size() && !typed[i].first.empty())
                append(
                    members_,
                    "    [[nodiscard]] ::rawbpf::TypedMap<{0}, {1}> {2}() {{ return ::rawbpf::TypedMap<{0}, {1}>(map({3})); }}\n",
                    typed[i].first, typed[i].second, name, quoted(map.name));
            else
                append(members_, "    [[nodiscard]] ::rawbpf::Map &{}() {{ return *map({}); }}\n", name, quoted(map.name));
        }
    }
    void add_programs() {
        for (const ProgramSpec &program : spec_.programs)
            append(members_, "    [[nodiscard]] ::rawbpf::Program *{}() {{ return program({}); }}\n",
                   unique(identifier(program.name) + "_program"), quoted(program.name));
    }

    const ObjectSpec &spec_;
    std::string_view name_;
    std::string types_, members_;
    std::vector<std::pair<std::string, std::string>> sections_; // name, type
    std::set<std::string> used_;
};

} // namespace

std::string skeleton_name(std::string_view path) {
    if (const size_t slash = path.rfind('/'); slash != std::string_view::npos) path.remove_prefix(slash + 1);
    for (std::string_view end : {".o", ".bpf"})
        if (path.ends_with(end)) path.remove_suffix(end.size());
    return identifier(path);
}

Result<std::string> skeleton_header(const ObjectSpec &spec, Bytes elf, std::string_view name) {
    return Skeletons(spec, name).write(elf);
}

} // namespace rawbpf::inline v0::inspect
