// A spec as text. It shows what the loader will ask the kernel for, and nothing that changes from run to run: the same object
// gives the same text, so that you can compare two specs with diff, and a test can contain a whole one.
#include <algorithm>

#include "asm/kinds.h"
#include "runtime/base/format.h"
#include "runtime/base/hex.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {

namespace {

void print_map(std::string &out, const MapSpec &map, std::string_view indent) {
    append(out, "{}map {}: {}, key {}, value {}, entries {}", indent, map.name, map_type_name(map.type), map.key_size,
           map.value_size, map.max_entries);
    if (map.flags) append(out, ", flags {:#x}", map.flags);
    if (map.map_extra) append(out, ", extra {:#x}", map.map_extra);
    if (map.numa_node) append(out, ", numa node {}", map.numa_node);
    if (map.key_type) append(out, ", key type [{}]", map.key_type);
    if (map.value_type) append(out, ", value type [{}]", map.value_type);
    if (map.pin_by_name) out += ", pinned by name";
    if (!map.data_section.empty()) append(out, ", section {}", map.data_section);
    if (map.freeze) out += ", frozen";
    out += '\n';
    constexpr size_t kRow = 16, kMost = 4096;
    for (size_t at = 0; at < map.contents.size(); at += kRow) {
        if (at == kMost) {
            append(out, "{}    ... {} bytes in all\n", indent, map.contents.size());
            break;
        }
        const Bytes row = Bytes(map.contents).subspan(at, std::min(kRow, map.contents.size() - at));
        append(out, "{}    {:04x}: {}\n", indent, at, hex_text(row, " "));
    }
    for (const MapSpec::Slot &slot : map.slots) append(out, "{}    [{}] = {}\n", indent, slot.index, slot.target);
    if (map.inner) print_map(out, *map.inner, "    ");
}

std::string_view fixup_name(Fixup::Kind kind) {
    switch (kind) {
    case Fixup::Kind::map_fd: return "map";
    case Fixup::Kind::map_value: return "value of";
    case Fixup::Kind::kfunc: return "kfunc";
    case Fixup::Kind::ksym: return "ksym";
    case Fixup::Kind::jump_table: return "jump table";
    }
    return "?";
}

void print_table(std::string &out, const ProgramSpec &program, const Fixup &fixup) {
    append(out, "  {}", fixup_name(fixup.kind));
    if (fixup.offset) append(out, "+{}", fixup.offset);
    if (fixup.map >= program.jump_tables.size()) return;
    out += ":";
    for (uint32_t place : program.jump_tables[fixup.map]) append(out, " {}", place);
}

void print_program(std::string &out, const ProgramSpec &program, const ObjectSpec &spec) {
    append(out, "program {}: section {}, type {}", program.name, program.section, program_type_name(program.type));
    if (program.expected_attach_type) append(out, ", attach type {}", attach_type_name(program.expected_attach_type));
    if (!program.attach_target.empty()) append(out, ", target {}", program.attach_target);
    if (program.flags) append(out, ", flags {:#x}", program.flags);
    if (!program.autoload) out += ", only on request";
    append(out, ", {} instructions, {} line infos\n", program.insns.size(), program.line_info.size());

    // Everything that belongs to one instruction is printed with it; all lists ascend.
    size_t sub = 0, fix = 0, core = 0, field = 0, func = 0;
    for (uint32_t i = 0; i < program.insns.size(); ++i) {
        for (; sub < program.subprograms.size() && program.subprograms[sub].insn == i; ++sub) {
            append(out, "  {}:", program.subprograms[sub].name);
            if (func < program.func_info.size() && program.func_info[func].insn == i)
                append(out, " func [{}]", program.func_info[func++].type);
            out += '\n';
        }
        const Insn &insn = program.insns[i];
        append(out, "    {:4}: {:02x} {:x}{:x} {:04x} {:08x}", i, insn.code, unsigned(insn.src), unsigned(insn.dst),
               static_cast<uint16_t>(insn.off), static_cast<uint32_t>(insn.imm));
        for (; fix < program.fixups.size() && program.fixups[fix].insn == i; ++fix) {
            const Fixup &fixup = program.fixups[fix];
            if (fixup.kind == Fixup::Kind::jump_table) {
                print_table(out, program, fixup);
                continue;
            }
            append(out, "  {} {}", fixup_name(fixup.kind),
                   fixup.symbol.empty() ? fixup.map < spec.maps.size() ? spec.maps[fixup.map].name : "?" : fixup.symbol);
            if (fixup.kind == Fixup::Kind::map_value) append(out, "+{}", static_cast<int32_t>(fixup.offset));
            if (fixup.weak) out += " (weak)";
        }
        for (; core < program.core_relocations.size() && program.core_relocations[core].insn == i; ++core) {
            const CoreRelocation &relocation = program.core_relocations[core];
            append(out, "  core kind {} type [{}] access {}", relocation.kind, relocation.type, relocation.access);
        }
        for (; field < program.field_references.size() && program.field_references[field].insn == i; ++field)
            append(out, "  offset of {}", program.field_references[field].path);
        out += '\n';
    }
}

} // namespace

std::string print_spec(const ObjectSpec &spec) {
    std::string out;
    append(out, "object {}: license \"{}\", {} bytes of BTF\n", spec.name, spec.license, spec.btf.size());
    if (spec.kernel_version) append(out, "kernel version {:#x}\n", spec.kernel_version);
    for (const ExternSpec &external : spec.externs) {
        append(out, "extern {} {}: {}, type [{}]", external.is_function ? "function" : "variable", external.name,
               external.section, external.type);
        if (external.size) append(out, ", {} bytes at {}", external.size, external.offset);
        out += external.weak ? ", weak\n" : "\n";
    }
    for (const std::string &note : spec.notes) append(out, "note: {}\n", note);
    for (const MapSpec &map : spec.maps) print_map(out, map, "");
    for (const ProgramSpec &program : spec.programs) print_program(out, program, spec);
    return out;
}

} // namespace rawbpf::inline v0
