// `rawbpf inspect`: an object file without a kernel.
//
// First everything is collected into rows (the name and offset of a global variable come from three places: the section's map,
// BTF's DATASEC, the VAR). Then the rows are written as a table for people, or as JSON. Both have the same contents.
#include "programs/inspect/object_view.h"

#include <elf.h>

#include <algorithm>
#include <iterator>

#include "asm/kinds.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"
#include "runtime/base/hex.h"
#include "runtime/base/stable_sort.h"
#include "runtime/btf/print_c.h"
#include "runtime/btf/print_value.h"
#include "runtime/elf/elf.h"
#include "runtime/object/core_describe.h"

namespace rawbpf::inline v0::inspect {

using render::JsonLine;

namespace {

struct Global {
    std::string_view section;
    std::string name, type;
    std::string_view linkage;
    uint32_t offset = 0, size = 0;
    std::string value; ///< hexadecimal bytes, at most kShownBytes; empty: zero
    std::string typed; ///< the same for people: 7, "text", {1, 2}
};
struct Reference {
    std::string_view program;
    uint32_t insn = 0;
    std::string_view kind;
    std::string what;
    bool weak = false;
};

struct View {
    std::vector<elf::Section> sections;
    std::vector<Global> globals;
    std::vector<Reference> references;
    size_t core = 0;
    uint32_t types = 0;
    size_t text = 0; ///< of values, before they were cut
};

constexpr size_t kShownBytes = 16, kShownColumns = 64;
constexpr size_t kMostText = 1 << 20; // of values: a file can give everything the largest type that it has

std::string_view section_type(uint32_t type) {
    switch (type) {
    case SHT_PROGBITS: return "PROGBITS";
    case SHT_SYMTAB: return "SYMTAB";
    case SHT_STRTAB: return "STRTAB";
    case SHT_RELA: return "RELA";
    case SHT_NOBITS: return "NOBITS";
    case SHT_REL: return "REL";
    case 0x6fff4c03: return "LLVM_ADDRSIG";
    default: return "?";
    }
}

// Zero, and what a file can't make good, is left out.
void read_value(View &view, Global &global, const MapSpec &map, const btf::Btf &btf, btf::TypeId type) {
    if (map.contents.size() < global.offset || map.contents.size() - global.offset < global.size) return;
    const Bytes bytes(map.contents.data() + global.offset, global.size);
    if (std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; })) return;
    global.value = hex_text(bytes.first(std::min(bytes.size(), kShownBytes)));
    if (bytes.size() > kShownBytes) global.value += "...";
    global.typed = global.value;
    if (view.text > kMostText) return;
    const Result<std::string> typed = btf::print_value(btf, type, bytes);
    if (!typed) return;
    view.text += typed->size();
    global.typed = render::cut(*typed, kShownColumns);
}

// The map that holds the variables of a section: its own, or the arena.
const MapSpec *map_of(const ObjectSpec &spec, std::string_view section) {
    for (const MapSpec &map : spec.maps)
        if (map.data_section == section || (section == ".addr_space.1" && map.type == uint32_t(MapType::ARENA))) return &map;
    return nullptr;
}

Result<void> gather_globals(View &view, const ObjectSpec &spec, const btf::Btf &btf) {
    for (btf::TypeId id = 1; id < btf.end_id(); ++id) {
        const btf::Type section = TRY(btf.type(id));
        if (section.kind != btf::Kind::datasec) continue;
        const MapSpec *map = section.name.empty() || section.name == ".kconfig" ? nullptr : map_of(spec, section.name);
        if (!map) continue;
        for (uint32_t i = 0; i < section.vlen; ++i) {
            const btf::VarSecinfo place = TRY(btf.secinfo(section, i));
            const btf::Type var = TRY(btf.type(place.type));
            if (var.kind != btf::Kind::var) continue;
            Global g;
            g.section = section.name;
            g.name = var.name;
            g.type = btf::describe(btf, var.size_or_type);
            const uint32_t linkage = btf.var_linkage(var);
            g.linkage = linkage == 0 ? "static" : linkage == 1 ? "global" : "extern";
            g.offset = place.offset;
            g.size = place.size;
            read_value(view, g, *map, btf, var.size_or_type);
            view.globals.push_back(std::move(g));
        }
    }
    return {};
}

Result<View> gather(const ObjectSpec &spec, Bytes bytes) {
    View view;
    const elf::Elf file = TRY(elf::Elf::parse(bytes, spec.name));
    view.sections = file.sections();
    std::optional<btf::Btf> btf;
    if (!spec.btf.empty()) {
        btf = TRY(btf::Btf::parse(spec.btf, format("{}: .BTF", spec.name)));
        view.types = btf->end_id() - 1;
        TRY(gather_globals(view, spec, *btf));
    }
    for (const ProgramSpec &program : spec.programs) {
        std::vector<Reference> references;
        for (const Fixup &f : program.fixups) {
            Reference r{program.name, f.insn, "map", f.symbol, f.weak};
            const bool map = f.kind == Fixup::Kind::map_fd || f.kind == Fixup::Kind::map_value;
            if (map) r.what = f.map < spec.maps.size() ? spec.maps[f.map].name : "?";
            if (f.kind == Fixup::Kind::map_value) {
                r.kind = "map_value";
                append(r.what, "+{}", f.offset);
            } else if (f.kind == Fixup::Kind::jump_table) {
                r.kind = "jump_table";
                if (f.map < program.jump_tables.size()) r.what = format("{} places", program.jump_tables[f.map].size());
            } else if (!map) {
                r.kind = f.kind == Fixup::Kind::kfunc ? "kfunc" : "ksym";
            }
            references.push_back(std::move(r));
        }
        for (const CoreRelocation &c : program.core_relocations) {
            std::string what = "?";
            if (btf) {
                Result<std::string> text = describe_core(*btf, c);
                what = text ? *text : text.error().message();
            }
            references.push_back({program.name, c.insn, core_kind_name(c.kind), format("{} ({})", what, c.access), false});
            ++view.core;
        }
        stable_sort(references, [](const Reference &a, const Reference &b) { return a.insn < b.insn; });
        std::move(references.begin(), references.end(), std::back_inserter(view.references));
    }
    return view;
}

void line(std::string &out, std::string text) {
    text.erase(text.find_last_not_of(' ') + 1);
    render::append_line(out, text);
}

std::string attach_name(const ProgramSpec &p) {
    return p.expected_attach_type || p.needs_attach_btf ? std::string(attach_type_name(p.expected_attach_type)) : std::string();
}

std::string flags_of(const MapSpec &m) {
    std::string out;
    if (m.flags) append(out, ", flags {:#x}", m.flags);
    if (m.map_extra) append(out, ", extra {:#x}", m.map_extra);
    if (m.pin_by_name) out += ", pinned by name";
    if (m.inner) append(out, ", of {} {}/{}", map_type_name(m.inner->type), m.inner->key_size, m.inner->value_size);
    if (!m.slots.empty()) append(out, ", {} slots filled", m.slots.size());
    if (m.freeze) out += ", read-only";
    if (!m.autocreate) out += ", only on request";
    return out;
}

} // namespace

Result<std::string> object_text(const ObjectSpec &spec, Bytes elf) {
    const View view = TRY(gather(spec, elf));
    std::string out;
    line(out,
         format("object {}: license \"{}\", {} types in {} bytes of BTF", spec.name, spec.license, view.types, spec.btf.size()));
    out += "\nsections\n";
    for (const elf::Section &s : view.sections)
        if (s.type != SHT_NULL)
            line(out, format("  {:3} {:<28} {:<9} {:8} bytes{}", s.index, s.name, section_type(s.type), s.size,
                             s.flags & SHF_EXECINSTR ? ", code" : ""));
    if (!spec.programs.empty()) out += "\nprograms\n";
    for (const ProgramSpec &p : spec.programs) {
        const std::string attach = attach_name(p);
        std::string text = format("  {:<24} {:<28} {}", p.name, p.section, program_type_name(p.type));
        if (!attach.empty()) append(text, " {}", attach);
        append(text, ", {} instructions", p.insns.size());
        if (p.subprograms.size() > 1) append(text, ", {} functions", p.subprograms.size());
        if (!p.core_relocations.empty()) append(text, ", {} CO-RE relocations", p.core_relocations.size());
        if (p.sleepable) text += ", sleepable";
        if (!p.autoload) text += ", only on request";
        line(out, text);
    }
    if (!spec.maps.empty()) out += "\nmaps\n";
    for (const MapSpec &m : spec.maps)
        line(out, format("  {:<24} {:<20} key {}, value {}, {} entries{}", m.name, map_type_name(m.type), m.key_size,
                         m.value_size, m.max_entries, flags_of(m)));
    if (!view.globals.empty()) out += "\nglobal variables\n";
    for (const Global &g : view.globals)
        line(out, format("  {:<10} {:6} {:6} bytes  {} {} : {}{}{}", g.section, g.offset, g.size, g.linkage, g.name, g.type,
                         g.typed.empty() ? "" : " = ", g.typed));
    if (!spec.externs.empty()) out += "\nexterns\n";
    for (const ExternSpec &e : spec.externs)
        line(out, format("  {:<10} {} {}{}", e.section, e.is_function ? "function" : "variable", e.name, e.weak ? ", weak" : ""));
    if (!view.references.empty()) out += "\nrelocations\n";
    for (const Reference &r : view.references)
        line(out, format("  {:<24} {:5}  {:<14} {}{}", r.program, r.insn, r.kind, r.what, r.weak ? " (weak)" : ""));
    return out;
}

Result<std::string> object_json(const ObjectSpec &spec, Bytes elf) {
    const View view = TRY(gather(spec, elf));
    std::string out;
    JsonLine(out, "object")
        .text("name", spec.name)
        .text("license", spec.license)
        .number("kernel_version", spec.kernel_version)
        .number("types", view.types)
        .number("btf_size", spec.btf.size())
        .number("programs", spec.programs.size())
        .number("maps", spec.maps.size())
        .number("core_relocations", view.core);
    for (const elf::Section &s : view.sections)
        if (s.type != SHT_NULL)
            JsonLine(out, "section")
                .number("index", s.index)
                .text("name", s.name)
                .text("kind", section_type(s.type))
                .number("size", s.size)
                .number("flags", s.flags);
    for (const ProgramSpec &p : spec.programs)
        JsonLine(out, "program")
            .text("program", p.name)
            .text("section", p.section)
            .text("prog_type", program_type_name(p.type))
            .text_or_null("attach_type", attach_name(p))
            .text_or_null("target", p.attach_target)
            .number("insns", p.insns.size())
            .number("functions", p.subprograms.size())
            .number("core_relocations", p.core_relocations.size())
            .truth("sleepable", p.sleepable)
            .truth("autoload", p.autoload);
    for (const MapSpec &m : spec.maps)
        JsonLine(out, "map")
            .text("map", m.name)
            .text("map_type", map_type_name(m.type))
            .number("key_size", m.key_size)
            .number("value_size", m.value_size)
            .number("max_entries", m.max_entries)
            .number("flags", m.flags)
            .hex("map_extra", m.map_extra)
            .truth("pin_by_name", m.pin_by_name)
            .truth("autocreate", m.autocreate)
            .text_or_null("section", m.data_section)
            .text_or_null("inner", m.inner ? map_type_name(m.inner->type) : std::string_view());
    for (const Global &g : view.globals)
        JsonLine(out, "global")
            .text("name", g.name)
            .text("section", g.section)
            .text("linkage", g.linkage)
            .number("offset", g.offset)
            .number("size", g.size)
            .text("c_type", g.type)
            .text_or_null("value", g.value);
    for (const ExternSpec &e : spec.externs)
        JsonLine(out, "extern")
            .text("name", e.name)
            .text("section", e.section)
            .text("kind", e.is_function ? "function" : "variable")
            .truth("weak", e.weak);
    for (const Reference &r : view.references)
        JsonLine(out, "relocation")
            .text("program", r.program)
            .number("insn", r.insn)
            .text("kind", r.kind)
            .text("what", r.what)
            .truth("weak", r.weak);
    return out;
}

} // namespace rawbpf::inline v0::inspect
