// A prologue in front of the program, an epilogue behind its first function, and its exits become jumps there.
//
//      r1 = run.memory[0] ll          the verifier knows its size to the byte, so that what fits is accepted
//      r2 = 24
//      ... the main function          exit  -->  goto epilogue
//      r1 = run.result[0] ll          the epilogue
//      *(u64 *)(r1 + 0) = r0
//      r0 = 0                         only where memory stands for the context: any result is fine there
//      exit
//      ... its subprograms, as they were
//
// A call of the whole program as a subprogram would be less work, and would take a frame of the eight and some of the 512 bytes
// of stack away from it. Jumps within the main function keep their distances; calls across the epilogue get longer by it.
#include "runtime/object/harness.h"

#include <algorithm>
#include <iterator>

#include "asm/encode.h"
#include "asm/lookup.h"
#include "asm/print.h"
#include "asm/program_types.h"
#include "runtime/base/fail.h"
#include <linux/bpf.h>

namespace rawbpf::inline v0 {

namespace {

bool is_local_call(const Insn &insn) { return insn.code == (BPF_JMP | BPF_CALL) && insn.src == BPF_PSEUDO_CALL; }
bool is_function_address(const Insn &insn) { return is_wide(insn) && insn.src == static_cast<uint8_t>(Wide::function); }

/// Where the function ends that the program starts with.
size_t end_of_main(const ProgramSpec &program) {
    size_t end = program.insns.size();
    for (const ProgramSpec::Subprogram &sub : program.subprograms)
        if (sub.insn > 0) end = std::min<size_t>(end, sub.insn);
    for (size_t n = 0; n < program.insns.size(); n += is_wide(program.insns[n]) ? 2 : 1) {
        const Insn &insn = program.insns[n];
        if (!is_local_call(insn) && !is_function_address(insn)) continue;
        const int64_t target = static_cast<int64_t>(n) + 1 + insn.imm;
        if (target > 0) end = std::min(end, static_cast<size_t>(target));
    }
    return end;
}

void add(std::vector<Insn> &code, std::string_view name, Operands operands) {
    const Encoded encoded = encode(name, operands);
    code.push_back(encoded.insn);
    if (is_wide(encoded.insn)) code.push_back(encoded.second);
}

/// Nothing goes on behind it.
bool leaves(const Insn &insn) {
    const Form *form = find_form(insn);
    return form && (form->shape == Shape::exit || form->shape == Shape::jump || form->shape == Shape::jump_long ||
                    form->shape == Shape::jump_reg);
}

/// The kernel runs some types for us; the others only when something happens.
uint32_t type_to_run(uint32_t type) {
    if (ProgramType{type} == ProgramType::UNSPEC) return static_cast<uint32_t>(ProgramType::SOCKET_FILTER);
    return program_type_row(type).run == ProgramRun::as_raw_tracepoint ? static_cast<uint32_t>(ProgramType::RAW_TRACEPOINT)
                                                                       : type;
}

} // namespace

bool reads_packet(const ProgramSpec &program) {
    for (size_t n = 0; n < program.insns.size(); n += is_wide(program.insns[n]) ? 2 : 1) {
        const uint8_t code = program.insns[n].code;
        if (BPF_CLASS(code) == BPF_LD && (BPF_MODE(code) == BPF_ABS || BPF_MODE(code) == BPF_IND)) return true;
    }
    return false;
}

Result<ObjectSpec> harness(const ObjectSpec &spec, size_t index, const HarnessOptions &options) {
    if (index >= spec.programs.size() || spec.programs[index].insns.empty())
        return fail(Errc::invalid_argument, "{}: there is no program {} with instructions", spec.name, index);
    ObjectSpec out = spec;
    ProgramSpec &program = out.programs[index];
    auto add_map = [&](std::string_view name, size_t size) {
        MapSpec &map = out.maps.emplace_back();
        map.name = name;
        map.type = BPF_MAP_TYPE_ARRAY;
        map.key_size = 4;
        map.value_size = static_cast<uint32_t>(size);
        map.max_entries = 1;
        return static_cast<uint32_t>(out.maps.size() - 1);
    };
    const uint32_t result = add_map(kHarnessResult, 8);

    std::vector<Fixup> fixups; // of what is added
    auto value_of = [&](uint32_t map, uint32_t insn) {
        Fixup &fixup = fixups.emplace_back();
        fixup.insn = insn;
        fixup.kind = Fixup::Kind::map_value;
        fixup.map = map;
    };
    std::vector<Insn> code, epilogue;
    if (options.memory) {
        program.type = type_to_run(program.type);
        if (program.type == BPF_PROG_TYPE_RAW_TRACEPOINT) program.expected_attach_type = 0;
        if (reads_packet(program)) add(code, "mov_reg", {.dst = 6, .src = 1});
        if (!options.contents.empty()) {
            const uint32_t memory = add_map(kHarnessMemory, options.contents.size());
            out.maps[memory].contents.assign(options.contents.begin(), options.contents.end());
            value_of(memory, static_cast<uint32_t>(code.size()));
            add(code, "lddw_value", {.dst = 1});
        } else {
            add(code, "mov", {.dst = 1});
        }
        add(code, "mov", {.dst = 2, .imm = static_cast<int64_t>(options.contents.size())});
    }
    const size_t before = code.size(), end = end_of_main(program);
    // The epilogue would catch it, which the kernel doesn't have.
    if (const Insn &last = program.insns[end - 1]; !leaves(last) || (end > 1 && is_wide(program.insns[end - 2])))
        return fail(Errc::bad_input, "{}: instruction {} ({}): the program ends here without an exit or a jump", program.name,
                    end - 1, print(std::span(&last, 1)));
    value_of(result, static_cast<uint32_t>(before + end));
    add(epilogue, "lddw_value", {.dst = 1});
    add(epilogue, "stxdw", {.dst = 1, .src = 0});
    if (options.memory) add(epilogue, "mov", {});
    add(epilogue, "exit", {});
    const size_t behind = before + epilogue.size(); // what comes after the main function moves by this much

    std::vector<Insn> &insns = program.insns;
    for (size_t n = 0; n < insns.size(); n += is_wide(insns[n]) ? 2 : 1) {
        Insn &insn = insns[n];
        if (is_local_call(insn) || is_function_address(insn)) {
            const auto target = static_cast<int64_t>(n) + 1 + insn.imm;
            const bool crosses = (n < end) != (target < static_cast<int64_t>(end));
            if (crosses) insn.imm += static_cast<int32_t>(n < end ? epilogue.size() : -epilogue.size());
        }
        if (n < end && insn.code == (BPF_JMP | BPF_EXIT)) {
            const auto distance = static_cast<int64_t>(end - n - 1);
            insn = distance <= INT16_MAX ? encode("ja", {.off = distance}).insn : encode("ja32", {.imm = distance}).insn;
        }
    }
    code.insert(code.end(), insns.begin(), insns.begin() + static_cast<std::ptrdiff_t>(end));
    code.insert(code.end(), epilogue.begin(), epilogue.end());
    code.insert(code.end(), insns.begin() + static_cast<std::ptrdiff_t>(end), insns.end());
    insns = std::move(code);

    auto moved = [&](uint32_t insn) { return static_cast<uint32_t>(insn + (insn < end ? before : behind)); };
    for (Fixup &fixup : program.fixups) fixup.insn = moved(fixup.insn);
    program.fixups.insert(program.fixups.end(), std::make_move_iterator(fixups.begin()), std::make_move_iterator(fixups.end()));
    for (std::vector<uint32_t> &table : program.jump_tables)
        for (uint32_t &place : table) place = moved(place);
    for (ProgramSpec::Poison &poison : program.poisoned) poison.insn = moved(poison.insn);
    // The program begins where it did, for the kernel: with the prologue.
    for (LineInfo &line : program.line_info) line.insn = line.insn ? moved(line.insn) : 0;
    for (FuncInfo &function : program.func_info) function.insn = function.insn ? moved(function.insn) : 0;
    for (ProgramSpec::Subprogram &sub : program.subprograms) sub.insn = sub.insn ? moved(sub.insn) : 0;
    program.core_relocations.clear();
    program.field_references.clear();
    return out;
}

} // namespace rawbpf::inline v0
