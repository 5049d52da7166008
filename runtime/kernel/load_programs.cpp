// The loader's programs: the last patches, and BPF_PROG_LOAD.
//
// An ld_imm64 that refers to a map, before and after (Documentation/bpf/instruction-set, "map by fd", "map value"):
//
//      18 | src=0, dst | off 0 | imm 0        18 | src=1 BPF_PSEUDO_MAP_FD    | off 0 | imm fd
//       0 |     0      |   0   | imm 0         0 |     0                      |   0   | imm 0, or offset into the value (src=2)
//
// A jump table becomes a map that only its program has: an instruction array (6.19), filled with instruction numbers and
// frozen, to which ld_imm64 refers as to any map's value. The verifier writes into it where these instructions ended up.
//
// A program is first loaded without a log, which is faster and can't fail because the log has too little room. Only a refused
// program is loaded again with a log, whose buffer is large enough for all of it at once, because the verifier takes seconds
// for a long loop each time. Descriptors differ from run to run, so the hash of the instructions is taken over a copy in which
// maps are numbered.
#include <algorithm>
#include <cerrno>
#include <optional>

#include "runtime/base/fail.h"
#include "runtime/base/long_step.h"
#include "runtime/kernel/btf_load.h"
#include "runtime/kernel/context_arguments.h"
#include "runtime/kernel/loading.h"
#include "runtime/kernel/probes.h"
#include "runtime/kernel/program_error.h"
#include "runtime/kernel/target_program.h"
#include "runtime/object/sections.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0 {
namespace {

// struct bpf_insn_array_value: the caller says orig_off, the kernel the others.
struct JumpTableEntry {
    uint32_t original = 0, translated = 0, jitted = 0, reserved = 0;
};
static_assert(sizeof(JumpTableEntry) == 16);

Result<std::vector<Map>> make_jump_tables(const ProgramSpec &program) {
    std::vector<Map> out;
    for (const std::vector<uint32_t> &places : program.jump_tables) {
        MapSpec spec;
        spec.name = ".jumptables"; // as libbpf has it
        spec.type = uapi::BPF_MAP_TYPE_INSN_ARRAY;
        spec.key_size = sizeof(uint32_t);
        spec.value_size = sizeof(JumpTableEntry);
        spec.max_entries = static_cast<uint32_t>(places.size());
        Why why(format("program {}: the jump table of a switch statement", program.name));
        Result<Map> made = Map::create(spec);
        if (!made) {
            Error error = in_context(std::move(made).error(), format("program {}: a switch by jump table", program.name));
            if (error.kind == Errc::unsupported) error.hint += ", or an object compiled with -fno-jump-tables";
            return Unexpected(std::move(error));
        }
        for (uint32_t i = 0; i < places.size(); ++i) {
            const JumpTableEntry place{.original = places[i]};
            TRY_IN(made->update(&i, &place), "program {}: jump table entry {}", program.name, i);
        }
        TRY_IN(made->freeze(), "program {}: jump table", program.name);
        out.push_back(std::move(*made));
    }
    return out;
}

Result<void> patch(Loading &loading, ProgramSpec &program, const std::vector<Map> &tables) {
    for (const Fixup &fixup : program.fixups) {
        const bool wide = fixup.kind != Fixup::Kind::kfunc;
        if (fixup.insn >= program.insns.size() || (wide && fixup.insn + 1 >= program.insns.size()) ||
            (wide && !is_wide(program.insns[fixup.insn])))
            return fail(Errc::bad_input, "program {}: instruction {} can't be patched: no ld_imm64 there", program.name,
                        fixup.insn);
        Insn &insn = program.insns[fixup.insn];
        switch (fixup.kind) {
        case Fixup::Kind::map_fd:
        case Fixup::Kind::map_value: {
            const bool value = fixup.kind == Fixup::Kind::map_value;
            const size_t place = static_cast<size_t>(loading.place[fixup.map]);
            const bool arena = loading.spec.maps[fixup.map].type == uapi::BPF_MAP_TYPE_ARENA;
            insn.src = value ? BPF_PSEUDO_MAP_VALUE : BPF_PSEUDO_MAP_FD;
            insn.imm = loading.object.maps[place].fd();
            program.insns[fixup.insn + 1].imm =
                value ? static_cast<int32_t>(fixup.offset + (arena ? loading.arena_offset : 0)) : 0;
            break;
        }
        case Fixup::Kind::jump_table:
            if (fixup.map >= tables.size())
                return fail(Errc::bad_input, "program {}: refers to jump table {} of {}", program.name, fixup.map, tables.size());
            insn.src = BPF_PSEUDO_MAP_VALUE;
            insn.imm = tables[fixup.map].fd();
            program.insns[fixup.insn + 1].imm = static_cast<int32_t>(fixup.offset);
            break;
        case Fixup::Kind::kfunc:
        case Fixup::Kind::ksym: {
            KernelSymbols *symbols = TRY_IN(loading.symbols(), "program {}", program.name);
            Result<void> done = fixup.kind == Fixup::Kind::kfunc
                                    ? symbols->patch_call(program, fixup)
                                    : symbols->patch_address(insn, program.insns[fixup.insn + 1], fixup);
            if (!done)
                return Unexpected(explain_missing(loading.spec, program, fixup.insn, fixup.symbol, std::move(done).error()));
            break;
        }
        }
    }
    return {};
}

// A struct_ops program is verified against the kernel's struct, as one of its members; the same one in all maps that hold it.
Result<void> place_in_struct_ops(Loading &loading, const ProgramSpec &program, sys::ProgLoadAttr &attr) {
    const KernelStructOps *place = nullptr;
    bool named = false;
    for (const auto &[index, ops] : loading.struct_ops) {
        for (const std::string &name : ops.without_place) named |= name == program.name;
        for (const KernelStructOps::Member &member : ops.members) {
            if (member.program != program.name) continue;
            if (place && (place->type != ops.type || attr.expected_attach_type != member.index))
                return fail(Errc::bad_input, "program {}: stands for two different members of struct_ops maps", program.name);
            place = &ops;
            attr.attach_btf_id = ops.type;
            attr.expected_attach_type = member.index;
            if (ops.module) attr.attach_prog_fd = static_cast<uint32_t>(TRY(TRY(loading.symbols())->module_fd(*ops.module)));
        }
    }
    if (place) return {};
    if (named) return fail(Errc::unsupported, "program {}: this kernel's struct has no member for it", program.name);
    return fail(Errc::bad_input, "program {}: a struct_ops program that no struct_ops map refers to", program.name);
}

bool takes_target_program(const ProgramSpec &program) {
    return program.type == BPF_PROG_TYPE_EXT ||
           (program.type == BPF_PROG_TYPE_TRACING &&
            (program.expected_attach_type == BPF_TRACE_FENTRY || program.expected_attach_type == BPF_TRACE_FEXIT));
}

bool for_many_functions(const ProgramSpec &program) {
    return program.type == BPF_PROG_TYPE_TRACING && (program.expected_attach_type == uapi::BPF_TRACE_FENTRY_MULTI ||
                                                     program.expected_attach_type == uapi::BPF_TRACE_FEXIT_MULTI ||
                                                     program.expected_attach_type == uapi::BPF_TRACE_FSESSION_MULTI);
}

Result<sys::ProgLoadAttr> attributes(Loading &loading, const ProgramSpec &program, int btf_fd) {
    sys::ProgLoadAttr attr;
    attr.prog_type = program.type;
    attr.expected_attach_type = program.expected_attach_type;
    attr.insns = sys::reg(program.insns.data());
    attr.insn_cnt = static_cast<uint32_t>(program.insns.size());
    attr.license = sys::reg(loading.spec.license.c_str());
    attr.kern_version = loading.spec.kernel_version;
    attr.prog_flags = program.flags | (program.sleepable ? BPF_F_SLEEPABLE : 0);
    sys::legal_name(program.name, attr.prog_name);
    if (btf_fd >= 0 && !program.func_info.empty()) {
        static_assert(sizeof(FuncInfo) == 8 && sizeof(LineInfo) == 16); // struct bpf_func_info and bpf_line_info
        attr.prog_btf_fd = static_cast<uint32_t>(btf_fd);
        attr.func_info = sys::reg(program.func_info.data());
        attr.func_info_cnt = static_cast<uint32_t>(program.func_info.size());
        attr.func_info_rec_size = sizeof(FuncInfo);
        if (!program.line_info.empty()) {
            attr.line_info = sys::reg(program.line_info.data());
            attr.line_info_cnt = static_cast<uint32_t>(program.line_info.size());
            attr.line_info_rec_size = sizeof(LineInfo);
        }
    }
    if (loading.names && !loading.names->fd_array().empty()) attr.fd_array = sys::reg(loading.names->fd_array().data());
    if (program.type == BPF_PROG_TYPE_STRUCT_OPS) {
        TRY(place_in_struct_ops(loading, program, attr));
    } else if (program.needs_attach_btf && takes_target_program(program) && loading.options.target_program >= 0) {
        attr.attach_btf_id = TRY_IN(function_in_program(loading.options.target_program, program.attach_target),
                                    "loading program {}", program.name);
        attr.attach_prog_fd = static_cast<uint32_t>(loading.options.target_program);
    } else if (program.needs_attach_btf) {
        KernelSymbols *symbols = TRY_IN(loading.symbols(), "loading program {}", program.name);
        const AttachTarget target = TRY_IN(symbols->attach_target(program), "loading program {}", program.name);
        attr.attach_btf_id = target.id;
        attr.attach_prog_fd = target.btf_fd;
    } else if (for_many_functions(program)) {
        KernelSymbols *symbols = TRY_IN(loading.symbols(), "loading program {}", program.name);
        attr.attach_prog_fd = TRY_IN(symbols->attach_module(program), "loading program {}", program.name);
    }
    return attr;
}

// A program for many functions that this kernel can only attach one by one (kprobe.multi 5.18, uprobe.multi 6.6) is loaded as an
// ordinary probe: else its helpers would look for their cookie and address in a link that isn't there.
bool as_single_probe(const ProgramSpec &program) {
    if (program.type != BPF_PROG_TYPE_KPROBE) return false;
    if (program.expected_attach_type != uapi::BPF_TRACE_KPROBE_MULTI &&
        program.expected_attach_type != uapi::BPF_TRACE_UPROBE_MULTI)
        return false;
    return probe_attach_type(program.expected_attach_type).support == Support::no;
}

// Where the kernel can, all sites of a USDT probe are one link, and libbpf loads such programs for it.
bool as_multi_probe(const ProgramSpec &program) {
    const SectionKind *kind = find_section_kind(program.section);
    return kind && kind->attachment == Attachment::usdt && program.expected_attach_type == 0 &&
           probe_attach_type(uapi::BPF_TRACE_UPROBE_MULTI).support == Support::yes && uprobe_multi_takes_processes();
}

// Before 6.8 only the type of a global function's parameter says that it is the context. nullopt: nothing to try.
Result<std::optional<Fd>> retry_with_context_types(Loading &loading, ProgramSpec &program, std::string &log) {
    if (!loading.object.btf) return std::optional<Fd>();
    std::optional<ContextArguments> typed = TRY(type_context_arguments(loading.spec.btf, program));
    if (!typed) return std::optional<Fd>();
    sys::Because why("once more, with the types of contexts that kernels before 6.8 expect");
    std::vector<std::string> notes; // said already of the object's own
    const Fd types = load_btf(typed->btf, notes);
    if (!types) return std::optional<Fd>();
    program.func_info = std::move(typed->func_info);
    std::string new_log;
    const sys::ProgLoadAttr attr = TRY(attributes(loading, program, types.get()));
    Result<Fd> again = sys::prog_load(attr);
    if (!again) again = sys::prog_load_refused(attr, uapi::BPF_LOG_LEVEL1, new_log);
    if (again) return std::optional(std::move(*again));
    log = std::move(new_log);
    return std::optional<Fd>();
}

Result<Program> load_program(Loading &loading, ProgramSpec &program) {
    if (program.type == BPF_PROG_TYPE_UNSPEC)
        return fail(Errc::bad_input, "program {}: {}", program.name, explain_unknown_section(program.section));
    const std::vector<Map> tables = TRY(make_jump_tables(program)); // the program keeps them
    TRY(patch(loading, program, tables));
    if (loading.options.single_probes && as_single_probe(program)) {
        loading.object.notes.push_back(
            format("program {}: this kernel attaches to one function at a time; loaded as an ordinary probe", program.name));
        program.expected_attach_type = 0;
    }
    if (as_multi_probe(program)) program.expected_attach_type = uapi::BPF_TRACE_UPROBE_MULTI;
    Program out;
    out.name = program.name;
    out.section = program.section;
    out.type = program.type;
    out.expected_attach_type = program.expected_attach_type;
    out.attach_target = program.attach_target;

    const sys::ProgLoadAttr attr = TRY(attributes(loading, program, loading.object.btf.get()));
    if (loading.options.attempts)
        loading.options.attempts->push_back(
            {program.name, static_cast<uint32_t>(program.insns.size()), insn_hash(program, loading.spec.maps.size())});
    const uint32_t level = loading.options.log_level;
    Result<Fd> fd = [&] {
        Why why(format("program {}: the verifier checks it, the JIT compiles it", program.name));
        return level == 0 ? sys::prog_load(attr) : sys::prog_load(attr, level, out.log);
    }();
    if (!fd) {
        Why why(format("program {} once more, with a log: why was it refused?", program.name));
        std::string log;
        Result<Fd> again = sys::prog_load_refused(attr, uapi::BPF_LOG_LEVEL1 | level, log);
        if (again && level != 0) out.log = log; // refused for another reason than the program: want of memory
        // Function and line information must match in every detail; without them a program still runs.
        if (!again && attr.prog_btf_fd != 0 && complains_of_btf(log)) {
            sys::Because because("once more without its line information, which seems to be the reason");
            again = sys::prog_load(TRY(attributes(loading, program, -1)));
            if (again)
                loading.object.notes.push_back(format("program {}: loaded without line information: {}", program.name, log));
        }
        if (!again && again.error().os != EPERM)
            if (std::optional<Fd> typed = TRY(retry_with_context_types(loading, program, log))) again = std::move(*typed);
        if (!again) {
            const Result<KernelSymbols *> symbols = loading.symbols(); // types say more, where they can be had
            const Result<const btf::Btf *> types = symbols ? (*symbols)->kernel() : nullptr;
            return Unexpected(
                explain_refusal(loading.spec, program, types ? *types : nullptr, std::move(fd).error(), std::move(log)));
        }
        fd = std::move(again);
    }
    out.fd = std::move(*fd);
    return out;
}

} // namespace

uint64_t insn_hash(const ProgramSpec &program, size_t maps) {
    constexpr uint64_t kBasis = 0xcbf29ce484222325, kPrime = 0x100000001b3;
    std::vector<Insn> insns = program.insns;
    for (const Fixup &fixup : program.fixups) {
        Insn &insn = insns[fixup.insn];
        if (fixup.kind == Fixup::Kind::map_fd || fixup.kind == Fixup::Kind::map_value)
            insn.imm = static_cast<int32_t>(fixup.map);
        else if (fixup.kind == Fixup::Kind::jump_table)
            insn.imm = static_cast<int32_t>(maps + fixup.map);
        else if (fixup.kind == Fixup::Kind::kfunc)
            insn.off = 0;
        else if (insn.src == BPF_PSEUDO_BTF_ID)
            insns[fixup.insn + 1].imm = 0;
    }
    uint64_t hash = kBasis;
    for (const std::byte byte : std::as_bytes(std::span(insns))) hash = (hash ^ static_cast<uint64_t>(byte)) * kPrime;
    return hash;
}

Result<void> load_programs(Loading &loading, const std::vector<size_t> &chosen) {
    LongStep step("loading", "programs", chosen.size());
    for (size_t index : chosen) {
        loading.object.programs.push_back(TRY(load_program(loading, loading.spec.programs[index])));
        step.advance();
    }
    return {};
}

} // namespace rawbpf::inline v0
