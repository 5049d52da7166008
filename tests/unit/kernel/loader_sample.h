// An object for the tests of the loader, and its parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <linux/bpf.h>

#include "runtime/btf/btf.h"
#include "runtime/kernel/loader.h"

namespace rawbpf::test {

inline MapSpec map_spec(std::string name, uint32_t type, uint32_t key, uint32_t value, uint32_t entries) {
    MapSpec spec;
    spec.name = std::move(name);
    spec.type = type;
    spec.key_size = key;
    spec.value_size = value;
    spec.max_entries = entries;
    return spec;
}

inline Fixup fixup(uint32_t insn, Fixup::Kind kind, uint32_t map, uint32_t offset = 0) {
    Fixup out;
    out.insn = insn;
    out.kind = kind;
    out.map = map;
    out.offset = offset;
    return out;
}

/// Two programs; a ring, a hash, constants and a prog array; BTF.
inline ObjectSpec example() {
    ObjectSpec spec;
    spec.name = "example.bpf.o";
    spec.license = "Dual MIT/GPL";
    spec.maps.push_back(map_spec("events", BPF_MAP_TYPE_RINGBUF, 0, 0, 4096));
    spec.maps.push_back(map_spec("unused", BPF_MAP_TYPE_HASH, 4, 4, 16));
    spec.maps.push_back(map_spec("counts", BPF_MAP_TYPE_HASH, 4, 8, 16));
    MapSpec constants = map_spec("example.rodata", BPF_MAP_TYPE_ARRAY, 4, 8, 1);
    constants.data_section = ".rodata";
    constants.contents = {std::byte{1}, std::byte{2}};
    constants.freeze = true;
    spec.maps.push_back(constants);
    MapSpec programs = map_spec("programs", BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 2);
    programs.slots = {{0, "second"}};
    spec.maps.push_back(programs);

    ProgramSpec first;
    first.name = "first";
    first.section = "perf_event";
    first.type = BPF_PROG_TYPE_PERF_EVENT;
    first.insns = {{0x18, 1, 0, 0, 0}, {}, {0x18, 2, 0, 0, 0}, {},
                   {0x18, 3, 0, 0, 0}, {}, {0xb7, 0, 0, 0, 0}, {0x95, 0, 0, 0, 0}};
    first.fixups = {fixup(0, Fixup::Kind::map_fd, 0), fixup(2, Fixup::Kind::map_value, 3, 4), fixup(4, Fixup::Kind::map_fd, 4)};
    ProgramSpec second = first;
    second.name = "second";
    second.fixups = {fixup(0, Fixup::Kind::map_fd, 2)};
    spec.programs = {first, second};

    btf::Writer w;
    btf::TypeId n = w.add_int("int", 4, true);
    btf::TypeId f = w.add_func("first", w.add_func_proto(n, {}), 1);
    (void)f;
    spec.btf = w.finish();
    spec.programs[0].func_info = {{0, f}};
    return spec;
}

} // namespace rawbpf::test
