// From either source to the same spec: the DSL's instructions, made here and now, or an object that somebody compiled from C
// (--object FILE; the lesson is profile.bpf.c). What differs is when the configuration takes effect. In the DSL it is an `if` in
// C++. In the object it is a read-only global, written into the initial contents of .rodata before loading: the kernel freezes
// that map, so the verifier knows its values and drops the branches that they close.
//
// An object is anybody's: all that the controller will read from it is compared first, so that a mistake is named before the
// kernel is asked.
#include "programs/profile/program.h"

#include <algorithm>
#include <cstring>
#include <span>

#include <linux/bpf.h>

#include "asm/print.h"
#include "asm/program_types.h"
#include "programs/capture/counting_dsl.h"
#include "programs/profile/profile_dsl.h"
#include "runtime/base/fail.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0 {

namespace profile {

namespace {

Unexpected unlike(const ObjectSpec &own, std::string_view what) {
    return Unexpected(
        make_error(Errc::bad_input, format("{}: {}", own.name, what),
                   "--object takes an object compiled from programs/profile/profile.bpf.c, or from a changed copy of it "
                   "with the same maps, record and profile_config"));
}

// The maps that the controller fills and reads.
Result<void> check_maps(ObjectSpec &own, const ProfileConfig &config) {
    struct Row {
        std::string_view name;
        uint32_t type, key_size, value_size;
        bool needed;
    };
    const Row rows[] = {
        {"profile_counts", BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(ProfileCpu), true},
        {"profile_pids", BPF_MAP_TYPE_HASH, 4, 1, config.filter_pid != PROFILE_PIDS_ANY},
        {"profile_cgroup", BPF_MAP_TYPE_CGROUP_ARRAY, 4, 4, config.filter_cgroup != 0},
    };
    for (const Row &row : rows) {
        const MapSpec *map = own.find_map(row.name);
        if (!map && row.needed) return unlike(own, format("there is no map {}", row.name));
        if (map && (map->type != row.type || map->key_size != row.key_size || map->value_size != row.value_size))
            return unlike(own, format("map {} has type {}, keys of {} bytes and values of {}; it needs type {}, {} and {}",
                                      row.name, map_kind_name(map->type), map->key_size, map->value_size, map_kind_name(row.type),
                                      row.key_size, row.value_size));
    }
    for (uint32_t i = 0; i < PROFILE_RINGS; ++i) {
        const std::string name = format("profile_ring_{}", i);
        const MapSpec *ring = own.find_map(name);
        if (!ring) return unlike(own, format("there is no map {}", name));
        if (ring->type != BPF_MAP_TYPE_RINGBUF)
            return unlike(own, format("map {} has type {}; it needs ringbuf", name, map_kind_name(ring->type)));
    }
    return {};
}

Result<ObjectSpec> from_dsl(const ProfileConfig &config, const ProgramOptions &options) {
    const UnwindProgramOptions *unwind = options.unwind ? &*options.unwind : nullptr;
    const StackCountingOptions *counting = options.counting ? &*options.counting : nullptr;
    const LabelParts *labels = options.labels ? &*options.labels : nullptr;
    ObjectSpec spec = TRY(object_of(profile_unit(config, unwind, counting, options.languages, labels)));
    complete_unwind_maps(spec);
    if (counting) complete_counting_maps(spec, counting->stacks);
    return spec;
}

} // namespace

namespace {

uint32_t used_rings(const ProgramOptions &options) { return std::min<uint32_t>(options.cpus, PROFILE_RINGS); }

} // namespace

uint32_t ring_share(const ProgramOptions &options) {
    uint32_t share = options.ring_bytes;
    while (share > sys::page_size() && share > options.ring_bytes / used_rings(options)) share /= 2;
    return share;
}

Result<void> size_maps(ObjectSpec &spec, const ProgramOptions &options) {
    for (uint32_t i = 0; i < PROFILE_RINGS; ++i) {
        MapSpec *ring = spec.find_map(format("profile_ring_{}", i));
        if (!ring) return fail(Errc::internal, "{}: no map profile_ring_{}", spec.name, i);
        ring->max_entries = i < used_rings(options) ? ring_share(options) : static_cast<uint32_t>(sys::page_size());
    }
    if (MapSpec *pids = spec.find_map("profile_pids")) pids->max_entries = options.pids;
    return {};
}

namespace {

ProfileConfig configured(const ProgramOptions &options) {
    ProfileConfig config = options.config;
    config.wakeup_bytes = ring_share(options) / 4;
    return config;
}

} // namespace

Result<ObjectSpec> program_spec(const ProgramOptions &options) {
    ObjectSpec spec = TRY(from_dsl(configured(options), options));
    TRY(size_maps(spec, options));
    return spec;
}

Result<ObjectSpec> program_spec(const ObjectSpec &own, const ProgramOptions &options) {
    const ProfileConfig config = configured(options);
    ObjectSpec spec = own;
    ProgramSpec *program = spec.find_program("profile");
    if (!program) return unlike(own, "there is no program profile");
    if (ProgramType{program->type} != ProgramType::PERF_EVENT)
        return unlike(own, format("program profile is in section \"{}\"; it has to be in \"perf_event\"", program->section));
    TRY(check_maps(spec, config));
    const std::span<std::byte> global = spec.find_global("profile_config");
    if (global.empty()) return unlike(own, "there is no global variable profile_config");
    if (global.size() != sizeof config)
        return unlike(own, format("profile_config has {} bytes; it has to have {}", global.size(), sizeof config));
    std::memcpy(global.data(), &config, sizeof config);
    // Its section says perf_event; what it may not touch at a tracepoint is switched off by `config`.
    if (config.tracepoint) program->type = static_cast<uint32_t>(ProgramType::TRACEPOINT);
    TRY(size_maps(spec, options));
    return spec;
}

} // namespace profile
} // namespace rawbpf::inline v0
