// Random programs on both engines.
#pragma once

#include <string>

#include "asm/assemble.h"
#include "programs/exec/run.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/uapi.h"
#include "tests/support/random_program.h"
#include "tests/support/random_programs.h"

namespace rawbpf::test {

struct Compared {
    bool refused = false; ///< the kernel didn't take it: no comparison
    std::string why;      ///< the refusal, or the first difference; empty: they agree
    std::vector<Insn> insns;
    std::string text; ///< of several programs
};
/// Whether the kernel runs a program with this instruction, on a stack that is filled and r1 = memory; else its reason.
inline std::string refusal(std::string_view name, Operands operands) {
    ObjectSpec spec;
    spec.name = name;
    ProgramSpec &program = spec.programs.emplace_back();
    program.name = "main";
    program.type = BPF_PROG_TYPE_SOCKET_FILTER;
    program.insns = {encode("mov", {}).insn, encode("stdw", {.dst = 10, .off = -8}).insn, encode(name, operands).insn,
                     encode("exit", {}).insn};
    Result<exec::RunResult> ran = exec::run_in_kernel(spec, 0, {});
    return ran ? std::string() : ran.error().message();
}
inline std::string can_compare() { return refusal("movsx8", {.dst = 0, .src = 0}); }
inline bool has_newest() { return refusal("load_acquire64", {.dst = 0, .src = 10, .off = -8}).empty(); }

/// `maps`: with helpers and maps, whose contents are compared as well.
inline Compared compare_engines(uint64_t seed, bool newest, bool maps = false) {
    Compared out;
    constexpr int kMemory = 48;
    ObjectSpec spec;
    spec.name = "random";
    ProgramSpec &program = spec.programs.emplace_back();
    program.name = "main";
    program.type = maps ? BPF_PROG_TYPE_SCHED_CLS : BPF_PROG_TYPE_SOCKET_FILTER; // a socket's filter may use no lock
    RandomProgram random(seed, kMemory, newest, maps);
    program.insns = out.insns = random.make();
    program.fixups = random.fixups();
    if (maps) spec.maps = RandomProgram::maps();
    if (maps) spec.btf = RandomProgram::btf();
    exec::RunOptions options;
    options.contents = maps;
    options.memory.resize(kMemory);
    for (int n = 0; n < kMemory; ++n) options.memory[n] = static_cast<std::byte>(seed * 31 + static_cast<uint64_t>(n) * 7);
    options.limit = 1'000'000;
    Result<exec::RunResult> kernel = exec::run_in_kernel(spec, 0, options);
    if (!kernel) {
        out.refused = true;
        out.why = kernel.error().message();
        return out;
    }
    Result<exec::RunResult> emulated = exec::run_emulated(spec, 0, options);
    out.why = emulated ? exec::first_difference(*kernel, *emulated) : "the emulator: " + emulated.error().message();
    return out;
}

/// Several programs, from assembly text, and tail calls across them.
inline Compared compare_programs(uint64_t seed) {
    Compared out;
    out.text = RandomPrograms(seed).make();
    const Assembled made = assemble(out.text);
    if (!made) return out.why = "the assembler: " + made.report(), out;
    Result<ObjectSpec> spec = object_of(made.unit);
    if (!spec) return out.why = spec.error().message(), out;
    for (auto [index, target] : RandomPrograms::kSlots) spec->maps[0].slots.push_back({index, target});
    exec::RunOptions options;
    options.contents = true;
    options.packet = true;
    options.memory.resize(64);
    options.limit = 1'000'000;
    Result<exec::RunResult> kernel = exec::run_in_kernel(*spec, 0, options);
    if (!kernel) {
        out.refused = true;
        out.why = kernel.error().message();
        return out;
    }
    Result<exec::RunResult> emulated = exec::run_emulated(*spec, 0, options);
    out.why = emulated ? exec::first_difference(*kernel, *emulated) : "the emulator: " + emulated.error().message();
    return out;
}

} // namespace rawbpf::test
