// Object files: whatever the bytes are, a spec or an error. What becomes a spec is relocated against types like those of the
// sample objects, looked up and printed, since all of that trusts what parse_object() let through.
#include <algorithm>
#include <cstdlib>

#include "runtime/object/core.h"
#include "runtime/object/elf_object.h"
#include "runtime/object/sections.h"

using namespace rawbpf;

namespace {

/// A kernel with the types that the seeds ask for, other offsets and sizes, and some of them twice.
const btf::Btf &kernel() {
    static const std::vector<std::byte> bytes = [] {
        btf::Writer w;
        const auto i32 = w.add_int("int", 4, true), u64 = w.add_int("unsigned long", 8, false);
        const auto hidden = w.add_struct("", 16, {{"pid", i32, 0}, {"tgid", u64, 64}}, true);
        (void)w.add_struct("task_struct", 64,
                           {{"state", u64, 0},
                            {"", hidden, 64},
                            {"comm", w.add_array(i32, i32, 4), 256},
                            {"mm", w.next_id() + 1, 384},
                            {"in_execve", i32, 451, 1}});
        (void)w.add_ptr(w.next_id() - 1);
        (void)w.add_struct("task_struct___2", 64, {{"pid", i32, 64}});
        (void)w.add_enum("pid_type", 4, {{"PIDTYPE_PID", 3}, {"PIDTYPE_TGID", -1}});
        (void)w.add_typedef("u32", i32);
        return w.finish();
    }();
    static const btf::Btf btf = *btf::Btf::parse(bytes, "vmlinux");
    return btf;
}

/// Everything that the loader will take for granted.
void check(ObjectSpec &spec) {
    for (ProgramSpec &program : spec.programs) {
        if (program.insns.empty()) std::abort();
        for (const Fixup &fixup : program.fixups) {
            if (fixup.insn >= program.insns.size()) std::abort();
            const bool wide = fixup.kind != Fixup::Kind::kfunc;
            if (wide && fixup.insn + 1 >= program.insns.size()) std::abort();
            const bool map = fixup.kind == Fixup::Kind::map_fd || fixup.kind == Fixup::Kind::map_value;
            if (map && fixup.map >= spec.maps.size()) std::abort();
            if (fixup.kind == Fixup::Kind::jump_table && fixup.map >= program.jump_tables.size()) std::abort();
        }
        for (const std::vector<uint32_t> &table : program.jump_tables)
            for (uint32_t place : table)
                if (place >= program.insns.size()) std::abort();
        for (const CoreRelocation &relocation : program.core_relocations)
            if (relocation.insn >= program.insns.size()) std::abort();
        for (const FuncInfo &info : program.func_info)
            if (info.insn >= program.insns.size()) std::abort();
        for (const LineInfo &info : program.line_info)
            if (info.insn >= program.insns.size()) std::abort();
        program.autoload = true;
        if (program.type == 0 && explain_unknown_section(program.section).empty()) std::abort();
    }
    for (const MapSpec &map : spec.maps)
        if (!map.contents.empty() && map.contents.size() != map.value_size) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    auto spec = parse_object(std::as_bytes(std::span(data, size)), "fuzz.o");
    if (!spec) {
        if (spec.error().context.empty()) std::abort();
        return 0;
    }
    check(*spec);
    for (std::string_view name : {"seed", "limit", "ticks", "counter"}) {
        if (const MapSpec *bss = spec->find_map(".bss"); bss && bss->value_size > 1 << 20) break; // as large as it says
        const std::span<std::byte> bytes = spec->find_global(name);
        for (std::byte &byte : bytes.first(std::min<size_t>(bytes.size(), 8))) byte = std::byte{1};
    }
    if (print_spec(*spec).empty()) std::abort();
    const btf::Btf *targets[] = {&kernel()};
    auto report = relocate_core(*spec, targets, {.details = true});
    if (!report && report.error().context.empty()) std::abort();
    return 0;
}
