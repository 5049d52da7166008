// The loader's maps: which are needed, where their contents come from, and the four kinds that need special treatment.
//
//      .rodata .data .bss     created, updated once, .rodata frozen
//      .kconfig               the same, with values from the kernel's configuration (kconfig.cpp)
//      arena                  mapped before anything refers to it (the verifier wants to know its address), and the object's
//                             variables copied in: to its end where the kernel takes such an offset in an instruction, else to
//                             its start, as libbpf has it
//      struct_ops             created with the kernel's type; becomes active only when somebody updates it (runtime/link)
//
// A map that is pinned by name is shared by all loaders that use that name. If it exists already, it is used if its definition
// is the one that the programs were compiled for; otherwise that is an error. It is never replaced.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <sys/mman.h>

#include "asm/map_types.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/load_parts.h"
#include "runtime/kernel/loading.h"
#include "runtime/kernel/probes.h"
#include "runtime/kernel/tail_call.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/names.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0 {
namespace {

std::string purpose(const MapSpec &spec) {
    if (!spec.data_section.empty()) return format("map {}: the global variables of section {}", spec.name, spec.data_section);
    const std::string_view known = map_type_row(spec.type).purpose;
    return format("map {}: {}", spec.name, known.empty() ? "memory that the programs and this process share" : known);
}

// A map of somebody else's must be what the programs were compiled for: the verifier has no other idea of it, but the loader's
// caller has. All that differs is said at once.
Result<Map> adopt(const MapSpec &spec, Fd fd) {
    Map map = TRY_IN(Map::from_fd(std::move(fd)), "map {}", spec.name);
    std::string theirs, ours;
    const auto differ = [&](std::string there, std::string here) {
        append(theirs, "{}{}", theirs.empty() ? "" : ", ", there);
        append(ours, "{}{}", ours.empty() ? "" : ", ", here);
    };
    const auto compare = [&](uint32_t there, uint32_t here, auto &&words) {
        if (there != here) differ(words(there), words(here));
    };
    // Rings for CPUs have keys and values of 4 bytes, whether or not the definition says so.
    const bool rings = spec.type == BPF_MAP_TYPE_PERF_EVENT_ARRAY;
    compare(map.type(), spec.type, [](uint32_t type) { return sys::map_type_name(type); });
    compare(map.key_size(), rings ? 4 : spec.key_size, [](uint32_t n) { return format("keys of {} bytes", n); });
    compare(map.value_size(), rings ? 4 : spec.value_size, [](uint32_t n) { return format("values of {} bytes", n); });
    // The kernel adds a flag of its own to these; a ring's size was rounded up when it was made.
    const bool device = spec.type == BPF_MAP_TYPE_DEVMAP || spec.type == BPF_MAP_TYPE_DEVMAP_HASH;
    const bool ring = is_ring_buffer(spec.type);
    const bool open_size = ring || (rings && spec.max_entries == 0);
    if (!open_size) compare(map.max_entries(), spec.max_entries, [](uint32_t n) { return format("{} entries", n); });
    compare(map.flags() & ~(device ? uint32_t{BPF_F_RDONLY_PROG} : 0u), spec.flags,
            [](uint32_t flags) { return format("flags {:#x}", flags); });
    if (!theirs.empty())
        return fail(Errc::invalid_argument, "map {}: the given map has {}, the programs were compiled for {}", spec.name, theirs,
                    ours);
    return map;
}

// BPF_MAP_UPDATE_ELEM of the only entry; all zeros are what a new map holds anyway.
Result<void> fill(const MapSpec &spec, const Map &map) {
    const bool zeros = std::all_of(spec.contents.begin(), spec.contents.end(), [](std::byte b) { return b == std::byte{0}; });
    if (!zeros) {
        if (spec.contents.size() > spec.value_size)
            return fail(Errc::bad_input, "map {}: its contents have {} bytes, and its value has {}", spec.name,
                        spec.contents.size(), spec.value_size);
        std::vector<std::byte> value(spec.contents);
        value.resize(map.lookup_size());
        Why why(format("the initial values of {}", spec.name));
        uint32_t key = 0;
        TRY_IN(map.update(&key, value.data()), "filling");
    }
    if (spec.freeze) {
        Why why(format("{} is constant from now on, so the verifier may take its values as known", spec.name));
        TRY_IN(map.freeze(), "freezing");
    }
    return {};
}

// An ld_imm64 may point anywhere into an arena since Linux 7.1; before, the verifier stops at 512 MiB whatever the map. Asked
// with a plain array, where either kernel refuses, but for different reasons.
bool far_offsets() {
    static const bool answer = [] {
        sys::Because why("a probe: may an instruction point far into a map?");
        sys::MapCreateAttr array;
        array.map_type = BPF_MAP_TYPE_ARRAY;
        array.key_size = 4;
        array.value_size = array.max_entries = 1;
        Result<Fd> map = sys::map_create(array);
        if (!map) return false;
        constexpr int32_t kFar = 1 << 30;
        const Insn insns[] = {{0x18, 1, BPF_PSEUDO_MAP_VALUE, 0, map->get()}, {0, 0, 0, 0, kFar}, {0x95, 0, 0, 0, 0}};
        sys::ProgLoadAttr attr;
        attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
        attr.insns = sys::reg(insns);
        attr.insn_cnt = 3;
        attr.license = sys::reg("GPL");
        std::string log;
        (void)sys::prog_load(attr, uapi::BPF_LOG_LEVEL1, log);
        return !log.empty() && log.find("direct value offset of") == std::string::npos;
    }();
    return answer;
}

Result<void> map_arena(Loading &loading, const MapSpec &spec, const Map &map) {
    const size_t page = sys::page_size(), size = size_t{map.max_entries()} * page;
    const size_t used = (spec.contents.size() + page - 1) / page * page;
    if (used > size)
        return fail(Errc::bad_input, "map {}: {} bytes of variables in an arena of {}", spec.name, spec.contents.size(), size);
    if (!spec.contents.empty() && far_offsets()) loading.arena_offset = static_cast<uint32_t>(size - used);
    Why why(format("{}: the programs and this process see it at the same address", spec.name));
    void *const wanted = reinterpret_cast<void *>(static_cast<uintptr_t>(spec.map_extra));
    loading.object.arena = TRY_IN(sys::map_at(wanted, map.fd(), size), "map {}", spec.name);
    std::copy(spec.contents.begin(), spec.contents.end(), loading.object.arena.data() + loading.arena_offset);
    return {};
}

// The name of a file for it: bpffs takes no dots.
std::string pin_path(const Loading &loading, const MapSpec &spec) {
    std::string name = spec.name;
    std::replace(name.begin(), name.end(), '.', '_');
    return loading.options.pin_directory + "/" + name;
}

Result<std::optional<Map>> pinned_map(const MapSpec &spec, const std::string &path) {
    Result<Fd> pinned = sys::obj_get(path);
    if (pinned) return TRY_IN(adopt(spec, std::move(*pinned)), "{}", path);
    if (pinned.error().os == ENOENT) return std::optional<Map>();
    return Unexpected(std::move(pinned).error());
}

Result<Map> create(Loading &loading, size_t index) {
    const MapSpec &spec = loading.spec.maps[index];
    Map::KernelValue kernel;
    const auto ops = loading.struct_ops.find(index);
    if (ops != loading.struct_ops.end()) {
        kernel = {ops->second.value_type, static_cast<uint32_t>(ops->second.value.size())};
        if (ops->second.module) kernel.module_btf = TRY(TRY(loading.symbols())->module_fd(*ops->second.module));
    }
    Why why(purpose(spec));
    Result<Map> made = Map::create(spec, loading.object.btf.get(), ops != loading.struct_ops.end() ? &kernel : nullptr);
    if (made) return made;
    Error error = std::move(made).error();
    if (!spec.data_section.empty() && error.os == EINVAL && probe_feature(Feature::global_data).support == Support::no) {
        error.kind = Errc::unsupported;
        error.hint = format("needs {}", feature_name(Feature::global_data));
    }
    return Unexpected(std::move(error));
}

Result<Map> make_map(Loading &loading, size_t index) {
    MapSpec &spec = loading.spec.maps[index];
    for (const auto &[name, fd] : loading.options.replace_maps)
        if (name == spec.name) return adopt(spec, TRY_IN(sys::duplicate(fd), "map {}", spec.name));
    const bool pin = spec.pin_by_name && loading.options.pin_by_name;
    const std::string path = pin ? pin_path(loading, spec) : std::string();
    if (pin)
        if (std::optional<Map> found = TRY(pinned_map(spec, path))) return std::move(*found);
    if (spec.data_section == ".kconfig") spec.contents = TRY(kernel_config_part(loading.spec));
    Map map = TRY(create(loading, index));
    if (spec.type == uapi::BPF_MAP_TYPE_ARENA)
        TRY(map_arena(loading, spec, map));
    else if (!spec.data_section.empty() || spec.type != BPF_MAP_TYPE_STRUCT_OPS)
        TRY(fill(spec, map));
    if (!pin) return map;
    Result<void> pinned = map.pin(path);
    if (pinned) {
        loading.pins.add(path);
        return map;
    }
    if (pinned.error().os == EEXIST) // somebody was quicker: then theirs
        if (std::optional<Map> found = TRY(pinned_map(spec, path))) return std::move(*found);
    return Unexpected(std::move(pinned).error());
}

bool is_chosen(const Loading &loading, const std::vector<size_t> &chosen, std::string_view program) {
    return std::any_of(chosen.begin(), chosen.end(), [&](size_t i) { return loading.spec.programs[i].name == program; });
}

// A map that no program refers to may be for whoever loads the object: to put into a map of maps, say.
bool is_for_others(const Loading &loading, const MapSpec &map) {
    return !loading.by_name && map.data_section.empty() && map.type != BPF_MAP_TYPE_STRUCT_OPS;
}

bool is_unmade_map(const Loading &loading, std::string_view name) {
    for (size_t i = 0; i < loading.spec.maps.size(); ++i)
        if (loading.spec.maps[i].name == name) return loading.place[i] == Loading::kNotLoaded;
    return false;
}

bool is_program(const ObjectSpec &spec, std::string_view name) {
    return std::any_of(spec.programs.begin(), spec.programs.end(), [&](const ProgramSpec &p) { return p.name == name; });
}

} // namespace

Result<void> prepare_struct_ops(Loading &loading, std::vector<size_t> &chosen) {
    std::vector<std::string> without_place;
    // A map that is made only when asked for (it may have what this kernel hasn't) says where a program belongs if no other does.
    auto in_another = [&](const std::string &program) {
        for (const MapSpec &map : loading.spec.maps)
            if (map.type == BPF_MAP_TYPE_STRUCT_OPS && map.autocreate)
                for (const MapSpec::Slot &slot : map.slots)
                    if (slot.target == program) return true;
        return false;
    };
    for (size_t i = 0; i < loading.spec.maps.size(); ++i) {
        const MapSpec &map = loading.spec.maps[i];
        if (map.type != BPF_MAP_TYPE_STRUCT_OPS) continue;
        const bool matters =
            !loading.by_name ? map.autocreate : std::any_of(map.slots.begin(), map.slots.end(), [&](const MapSpec::Slot &slot) {
                return is_chosen(loading, chosen, slot.target) && (map.autocreate || !in_another(slot.target));
            });
        if (!matters) continue;
        KernelStructOps ops = TRY(find_struct_ops(*TRY(loading.symbols()), map));
        without_place.insert(without_place.end(), ops.without_place.begin(), ops.without_place.end());
        loading.struct_ops.emplace(i, std::move(ops));
    }
    if (loading.by_name) return {};
    // A program is loaded for the maps that are made and have a place for it, and only for them.
    auto wanted = [&](const std::string &program) {
        bool named = false, placed = false;
        for (size_t i = 0; i < loading.spec.maps.size(); ++i) {
            const MapSpec &map = loading.spec.maps[i];
            if (map.type != BPF_MAP_TYPE_STRUCT_OPS) continue;
            for (const MapSpec::Slot &slot : map.slots) named |= slot.target == program;
            if (const auto ops = loading.struct_ops.find(i); ops != loading.struct_ops.end())
                for (const KernelStructOps::Member &member : ops->second.members) placed |= member.program == program;
        }
        return !named || placed;
    };
    std::vector<size_t> kept;
    for (size_t i = 0; i < loading.spec.programs.size(); ++i) {
        const ProgramSpec &program = loading.spec.programs[i];
        const bool asked = std::find(chosen.begin(), chosen.end(), i) != chosen.end();
        if (program.type != BPF_PROG_TYPE_STRUCT_OPS) {
            if (asked) kept.push_back(i);
            continue;
        }
        if (asked && wanted(program.name)) kept.push_back(i);
        if (asked && !wanted(program.name))
            loading.object.notes.push_back(
                format("program {}: not loaded, because no struct_ops map has a member for it", program.name));
    }
    chosen = std::move(kept);
    return {};
}

Result<std::vector<bool>> needed_maps(const Loading &loading, const std::vector<size_t> &chosen) {
    const ObjectSpec &spec = loading.spec;
    std::vector<bool> needed(spec.maps.size(), spec.programs.empty());
    for (size_t index : chosen)
        for (const Fixup &fixup : spec.programs[index].fixups) {
            if (fixup.kind != Fixup::Kind::map_fd && fixup.kind != Fixup::Kind::map_value) continue;
            if (fixup.map >= spec.maps.size())
                return fail(Errc::bad_input, "program {}: refers to map number {} of {}", spec.programs[index].name, fixup.map,
                            spec.maps.size());
            needed[fixup.map] = true;
        }
    for (size_t i = 0; i < spec.maps.size() && !loading.by_name; ++i)
        if (spec.maps[i].pin_by_name || (spec.maps[i].type == BPF_MAP_TYPE_STRUCT_OPS && spec.maps[i].autocreate))
            needed[i] = true;
    for (size_t i = 0; i < spec.maps.size(); ++i)
        if (spec.maps[i].type == BPF_MAP_TYPE_STRUCT_OPS && !loading.struct_ops.contains(i)) needed[i] = false;
    for (bool again = true; again;) { // a map in a slot of a map in a slot ...
        again = false;
        for (size_t i = 0; i < spec.maps.size(); ++i) {
            if (!needed[i]) continue;
            for (const MapSpec::Slot &slot : spec.maps[i].slots)
                for (size_t j = 0; j < spec.maps.size(); ++j)
                    if (!needed[j] && spec.maps[j].name == slot.target) needed[j] = again = true;
        }
    }
    return needed;
}

Result<void> make_maps(Loading &loading, const std::vector<bool> &needed) {
    for (const auto &[name, fd] : loading.options.replace_maps) {
        const auto same = [&name = name](const MapSpec &map) { return map.name == name; };
        if (std::any_of(loading.spec.maps.begin(), loading.spec.maps.end(), same)) continue;
        std::string names;
        for (const MapSpec &map : loading.spec.maps) append(names, "{}{}", names.empty() ? "" : ", ", map.name);
        return fail(Errc::not_found, "no map {} to replace; there {}: {}", name, loading.spec.maps.size() == 1 ? "is" : "are",
                    names.empty() ? "none" : names);
    }
    loading.place.assign(loading.spec.maps.size(), Loading::kNotLoaded);
    for (size_t i = 0; i < loading.spec.maps.size(); ++i) {
        const MapSpec &spec = loading.spec.maps[i];
        if (!needed[i] && !is_for_others(loading, spec)) continue;
        Result<Map> made = make_map(loading, i);
        if (!made) {
            if (needed[i]) return Unexpected(std::move(made).error());
            loading.object.notes.push_back(
                format("map {}: not made, and no program refers to it: {}", spec.name, made.error().message()));
            continue;
        }
        loading.place[i] = static_cast<int>(loading.object.maps.size());
        loading.object.maps.push_back(std::move(*made));
    }
    return {};
}

Result<void> fill_slots(Loading &loading) {
    for (size_t i = 0; i < loading.spec.maps.size(); ++i) {
        if (loading.place[i] == Loading::kNotLoaded) continue;
        const MapSpec &spec = loading.spec.maps[i];
        if (const auto ops = loading.struct_ops.find(i); ops != loading.struct_ops.end()) {
            LoadedObject::StructOps out{spec.name, ops->second.value};
            for (const KernelStructOps::Member &member : ops->second.members) {
                const Program *program = loading.object.find_program(member.program);
                const uint64_t fd = program ? static_cast<uint64_t>(program->fd.get()) : 0;
                std::memcpy(out.value.data() + member.offset, &fd, sizeof fd);
            }
            loading.object.struct_ops.push_back(std::move(out));
            continue;
        }
        for (const MapSpec::Slot &slot : spec.slots) {
            uint32_t fd = 0;
            if (const Program *program = loading.object.find_program(slot.target))
                fd = static_cast<uint32_t>(program->fd.get());
            else if (const Map *map = loading.object.find_map(slot.target))
                fd = static_cast<uint32_t>(map->fd());
            else if (is_program(loading.spec, slot.target) || is_unmade_map(loading, slot.target))
                continue; // not asked for, or told to be missing: its slot stays empty
            else
                return fail(Errc::bad_input, "map {}: slot {} refers to {}, which doesn't exist", spec.name, slot.index,
                            slot.target);
            Why why(format("slot {} of {}: {}", slot.index, spec.name, slot.target));
            const Map &map = loading.object.maps[static_cast<size_t>(loading.place[i])];
            if (spec.type == BPF_MAP_TYPE_PROG_ARRAY) {
                TRY_IN(put_program(map, slot.index, static_cast<int>(fd), nullptr, loading.object.find_program(slot.target)),
                       "slot {}, {}", slot.index, slot.target);
                continue;
            }
            Result<void> done = map.update(&slot.index, &fd);
            if (done) continue;
            Error error = in_context(std::move(done).error(), format("slot {}, {}", slot.index, slot.target));
            if (error.os == EINVAL) error.hint = "its type, sizes and flags must be those of the inner map in the definition";
            return Unexpected(std::move(error));
        }
    }
    return {};
}

} // namespace rawbpf::inline v0
