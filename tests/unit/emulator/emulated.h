// Programs for the emulator in a line each: `run({i("mov", {.dst = 0, .imm = 5}), i("exit", {})})`.
#pragma once

#include "asm/encode.h"
#include "runtime/base/fail.h"
#include "runtime/emulator/machine.h"
#include "runtime/sys/uapi.h"
#include "tests/support/test.h"

namespace rawbpf::test {

inline Insn i(std::string_view name, Operands operands = {}) {
    const Encoded encoded = encode(name, operands);
    REQUIRE_MESSAGE(encoded.problem == Problem::none, name);
    return encoded.insn;
}
/// An instruction that the encoder refuses, bit by bit.
inline Insn raw(uint8_t code, uint8_t dst, uint8_t src, int16_t off, int32_t imm) {
    Insn insn;
    insn.code = code;
    insn.dst = dst & 15;
    insn.src = src & 15;
    insn.off = off;
    insn.imm = imm;
    return insn;
}
inline ObjectSpec spec_of(std::vector<Insn> insns) {
    ObjectSpec spec;
    spec.name = "test";
    ProgramSpec &program = spec.programs.emplace_back();
    program.name = "main";
    program.type = BPF_PROG_TYPE_SOCKET_FILTER;
    program.insns = std::move(insns);
    return spec;
}
inline uint32_t add_map(ObjectSpec &spec, std::string name, uint32_t type, uint32_t key, uint32_t value, uint32_t entries) {
    MapSpec &map = spec.maps.emplace_back();
    map.name = std::move(name);
    map.type = type;
    map.key_size = key;
    map.value_size = value;
    map.max_entries = entries;
    return static_cast<uint32_t>(spec.maps.size() - 1);
}
/// `rDST = map ll`, appended to the first program.
inline void load_map(ObjectSpec &spec, int dst, uint32_t map) {
    ProgramSpec &program = spec.programs[0];
    Fixup &fixup = program.fixups.emplace_back();
    fixup.insn = static_cast<uint32_t>(program.insns.size());
    fixup.map = map;
    program.insns.push_back(i("lddw_map", {.dst = dst}));
    program.insns.emplace_back();
}
inline Result<uint64_t> run(const ObjectSpec &spec, std::span<std::byte> memory = {}, emulator::MachineOptions options = {}) {
    std::unique_ptr<emulator::Machine> machine = TRY(emulator::Machine::create(spec, options));
    TRY(machine->set_memory(memory));
    TRY(machine->enter(0));
    return machine->run();
}
inline Result<uint64_t> run(std::vector<Insn> insns, std::span<std::byte> memory = {}) {
    return run(spec_of(std::move(insns)), memory);
}
/// What went wrong; empty when nothing did.
inline std::string fault(std::vector<Insn> insns, std::span<std::byte> memory = {}) {
    Result<uint64_t> r0 = run(std::move(insns), memory);
    return r0 ? std::string() : r0.error().message();
}

} // namespace rawbpf::test
