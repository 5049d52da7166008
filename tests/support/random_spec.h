// Random programs as objects: those that a verifier takes, those at the edge, and altered ones.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "asm/assemble.h"
#include "runtime/object/harness.h"
#include "runtime/object/unit_object.h"
#include "tests/support/edge_program.h"
#include "tests/support/random_program.h"

namespace rawbpf::test {

/// The program of a seed: of four, one that the kernel takes mostly, with maps or without, the others at the edge; half of all
/// altered. Nothing: the assembler has something against it.
inline std::optional<ObjectSpec> random_spec(uint64_t seed) {
    ObjectSpec spec;
    EdgeProgram edge(seed);
    if (seed % 4 == 0) {
        const bool maps = seed % 8 == 0;
        RandomProgram random(seed, 48, true, maps);
        spec.name = "random";
        ProgramSpec &program = spec.programs.emplace_back();
        program.name = "main";
        program.type = BPF_PROG_TYPE_SCHED_CLS; // a socket's filter may use no lock
        program.insns = random.make();
        program.fixups = random.fixups();
        if (maps) spec.maps = RandomProgram::maps();
        if (maps) spec.btf = RandomProgram::btf();
        const std::vector<std::byte> memory(48);
        Result<ObjectSpec> wrapped = harness(spec, 0, {.memory = true, .contents = memory});
        if (!wrapped) return {};
        spec = std::move(*wrapped);
    } else {
        const Assembled made = assemble(edge.make());
        if (!made) return {};
        Result<ObjectSpec> made_spec = object_of(made.unit);
        if (!made_spec) return {};
        spec = std::move(*made_spec);
    }
    if (edge.below(2)) edge.change(spec.programs[0], 1 + edge.below(2));
    return spec;
}

/// Bytes for it to read.
inline std::vector<std::byte> random_bytes(uint64_t seed, size_t count) {
    EdgeProgram random(seed ^ 0x5555);
    std::vector<std::byte> out(count);
    for (std::byte &byte : out) byte = static_cast<std::byte>(random.below(4) ? random.below(256) : 255 * random.below(2));
    return out;
}

} // namespace rawbpf::test
