// struct_ops: a struct of functions that the kernel will call, such as a congestion control or a scheduler.
//
//      SEC(".struct_ops.link")                       one map: type STRUCT_OPS, named after the variable
//      struct tcp_congestion_ops mine = {              contents: the bytes of the struct, as compiled
//          .init     = (void *)on_init,                slots: member 3 -> program on_init     (from .rel.struct_ops.link)
//          .name     = "mine",
//      };
//
// The struct is the object's own version of a kernel type. The loader finds out which of its members exist in the running
// kernel, and at which offsets (runtime/kernel/struct_ops.cpp), so the values may be changed until then (libbpf calls that
// shadow types). ".link": the map becomes active by a link; without it, by an update. "?" in front: made only on request.
// Source: Documentation/bpf/libbpf/program_types.rst, libbpf 1.8.
#include <elf.h>
#include <linux/bpf.h>

#include <algorithm>

#include "asm/kinds.h"
#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"
#include "runtime/object/image.h"

namespace rawbpf::inline v0::object {

namespace {

constexpr uint32_t kLink = 1u << 13;          // BPF_F_LINK, 6.4
constexpr uint64_t kLargestStruct = 64 << 10; // sched_ext_ops, the largest yet, has 600 bytes
constexpr uint32_t kMostMembers = 1024, kKey = 4;

Result<MapSpec> read_map(const Image &image, const elf::Section &section, const btf::VarSecinfo &place) {
    const btf::Type variable = TRY(image.types->type(place.type));
    if (variable.kind != btf::Kind::var || variable.name.empty() || variable.name.size() > Image::kLongestName)
        return image.bad(section, place.offset, "the name of a struct_ops map has {} characters, and 1 to {} are possible",
                         variable.name.size(), Image::kLongestName);
    const btf::Type type = TRY(image.types->resolve(variable.size_or_type));
    if (type.kind != btf::Kind::struct_ || type.name.empty())
        return image.bad(section, place.offset, "struct_ops map {} isn't a struct with a name", variable.name);
    const uint64_t size = type.size_or_type;
    if (size == 0 || size > kLargestStruct || type.vlen > kMostMembers)
        return image.bad(section, place.offset, "struct_ops map {}: rawbpf can't read a struct of {} bytes and {} members",
                         variable.name, size, type.vlen);
    if (place.offset > section.size || size > section.size - place.offset)
        return image.bad(section, place.offset, "struct_ops map {} of {} bytes is past the section's end", variable.name, size);
    MapSpec map;
    map.name = variable.name;
    map.type = static_cast<uint32_t>(MapType::STRUCT_OPS);
    map.key_size = kKey;
    map.value_size = static_cast<uint32_t>(size);
    map.max_entries = 1;
    map.flags = section.name.ends_with(".link") ? kLink : 0;
    map.value_type = type.id;
    map.autocreate = !section.name.starts_with('?');
    const Bytes bytes = image.elf.contents(section).subspan(place.offset, size);
    map.contents.assign(bytes.begin(), bytes.end());
    return map;
}

/// The member of a struct that starts at that byte and points to functions; kNone.
Result<uint32_t> function_member(const Image &image, btf::TypeId id, uint64_t offset) {
    const btf::Type type = TRY(image.types->type(id));
    for (uint32_t i = 0; i < type.vlen; ++i) {
        const btf::Member member = TRY(image.types->member(type, i));
        if (member.bit_size != 0 || member.bit_offset != offset * 8) continue;
        const btf::Type pointer = TRY(image.types->resolve(member.type));
        if (pointer.kind != btf::Kind::ptr) continue;
        if (TRY(image.types->resolve(pointer.size_or_type)).kind == btf::Kind::func_proto) return i;
    }
    return Image::kNone;
}

Result<void> read_struct_ops_maps(Image &image, ObjectSpec &spec) {
    for (const elf::Section &section : image.elf.sections()) {
        if (image.roles[section.index] != Role::struct_ops) continue;
        const Image::Datasec *datasec = image.find_datasec(section.name);
        if (!datasec) return image.bad(section, 0, "the section has no types in .BTF; was the object compiled with -g?");
        const btf::Type types = TRY(image.types->type(datasec->id));
        uint64_t end = 0;
        for (uint32_t i = 0; i < types.vlen; ++i) {
            const btf::VarSecinfo place = TRY(image.types->secinfo(types, i));
            if (place.offset < end) return image.bad(section, place.offset, "struct_ops maps overlap");
            MapSpec map = TRY(read_map(image, section, place));
            end = uint64_t{place.offset} + map.value_size;
            image.struct_ops.push_back({section.index, place.offset, map.value_size, static_cast<uint32_t>(spec.maps.size())});
            spec.maps.push_back(std::move(map));
        }
    }
    return {};
}

Result<void> read_struct_ops_programs(Image &image, ObjectSpec &spec) {
    constexpr uint64_t kPointer = 8; // in BPF, whatever the host
    for (const elf::Section *table : image.relocations) {
        if (table->info >= image.roles.size() || image.roles[table->info] != Role::struct_ops) continue;
        const elf::Section &section = image.section(table->info);
        for (const elf::Relocation &relocation : TRY(image.elf.relocations(*table))) {
            const auto place = std::find_if(image.struct_ops.begin(), image.struct_ops.end(), [&](const auto &candidate) {
                return candidate.section == section.index && relocation.offset >= candidate.offset &&
                       relocation.offset - candidate.offset < candidate.size;
            });
            if (place == image.struct_ops.end() || relocation.symbol >= image.symbols.size())
                return image.bad(section, relocation.offset, "a relocation is outside of all struct_ops maps, or has no symbol");
            const elf::Symbol &symbol = image.symbols[relocation.symbol];
            MapSpec &map = spec.maps[place->map];
            const uint64_t at = relocation.offset - place->offset;
            const uint32_t member = TRY(function_member(image, map.value_type, at));
            if (member == Image::kNone || map.contents.size() - at < kPointer)
                return image.bad(section, relocation.offset, "struct_ops map {}: byte {} isn't a pointer to a function", map.name,
                                 at);
            const Code *code = find_code(image.functions, symbol.section, symbol.value / sizeof(Insn));
            if (!code || code->start * sizeof(Insn) != symbol.value ||
                image.uses[code - image.functions.data()] == Image::Use::callable)
                return image.bad(section, relocation.offset, "struct_ops map {}: {} isn't a program", map.name, symbol.name);
            std::fill_n(map.contents.begin() + static_cast<std::ptrdiff_t>(at), kPointer, std::byte{0});
            map.slots.push_back({member, std::string(code->name)});
        }
    }
    for (const Image::StructOpsPlace &place : image.struct_ops)
        stable_sort(spec.maps[place.map].slots, [](const MapSpec::Slot &a, const MapSpec::Slot &b) { return a.index < b.index; });
    return {};
}

} // namespace

Result<void> read_struct_ops(Image &image, ObjectSpec &spec) {
    TRY(read_struct_ops_maps(image, spec));
    return read_struct_ops_programs(image, spec);
}

} // namespace rawbpf::inline v0::object
