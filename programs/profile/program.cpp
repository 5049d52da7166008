// From either source to the same spec: an ELF object that clang made when rawbpf was built, embedded in this binary as bytes, or
// the DSL's instructions made here and now. What differs is when the configuration takes effect. In the object it is a read-only
// global, written into the initial contents of .rodata before loading: the kernel freezes that map, so the verifier knows its
// values and drops the branches that they close. In the DSL twin it is an `if` in C++.
#include "programs/profile/program.h"

#include <algorithm>
#include <cstring>
#include <span>

#include <linux/bpf.h>

#include "programs/capture/counting_dsl.h"
#include "programs/profile/profile_dsl.h"
#include "runtime/base/fail.h"
#include "runtime/object/elf_object.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0 {

#ifdef RAWBPF_BPF_CLANG
extern const std::span<const std::byte> profile_object; // programs/embed.py
#endif

namespace profile {

BpfSource default_source() {
#ifdef RAWBPF_BPF_CLANG
    return BpfSource::clang;
#else
    return BpfSource::dsl;
#endif
}

namespace {

Result<ObjectSpec> from_clang([[maybe_unused]] const ProfileConfig &config) {
#ifdef RAWBPF_BPF_CLANG
    ObjectSpec spec = TRY(parse_object(profile_object, "profile.bpf.o"));
    const std::span<std::byte> global = spec.find_global("profile_config");
    if (global.size() != sizeof config) return fail(Errc::internal, "profile.bpf.o: profile_config has {} bytes", global.size());
    std::memcpy(global.data(), &config, sizeof config);
    return spec;
#else
    return fail(Errc::unsupported, "this rawbpf was built without clang: it has only the DSL's profile program");
#endif
}

Result<ObjectSpec> from_dsl(const ProfileConfig &config, const UnwindProgramOptions *unwind,
                            const StackCountingOptions *counting) {
    ObjectSpec spec = TRY(object_of(profile_unit(config, unwind, counting)));
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

Result<ObjectSpec> program_spec(BpfSource source, const ProgramOptions &options) {
    const UnwindProgramOptions *unwind = options.unwind ? &*options.unwind : nullptr;
    const StackCountingOptions *counting = options.counting ? &*options.counting : nullptr;
    if (unwind || counting) source = BpfSource::dsl; // clang's has no unwinder, and sends everything
    if (source == BpfSource::automatic) source = default_source();
    ProfileConfig config = options.config;
    config.wakeup_bytes = ring_share(options) / 4;
    ObjectSpec spec = TRY(source == BpfSource::clang ? from_clang(config) : from_dsl(config, unwind, counting));
    if (config.tracepoint) // clang's section says perf_event; what it may not touch at a tracepoint is switched off by `config`
        for (ProgramSpec &program : spec.programs) program.type = BPF_PROG_TYPE_TRACEPOINT;
    TRY(size_maps(spec, options));
    return spec;
}

} // namespace profile
} // namespace rawbpf::inline v0
