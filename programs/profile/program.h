// The BPF side of the profiler, configured and ready to load.
#pragma once

#include <optional>

#include "programs/capture/counting.h"
#include "programs/labels/read_dsl.h"
#include "programs/profile/profiler.h"
#include "programs/profile/record.h"
#include "programs/unwind/program.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::profile {

/// What the program is specialised to, and how large its maps are.
struct ProgramOptions {
    ProfileConfig config{};
    uint32_t threads = 4096;                      ///< off-CPU: that wait and live
    uint32_t ring_bytes = 1 << 20;                ///< a power of two of pages, for all CPUs together
    uint32_t cpus = 1;                            ///< possible CPUs
    uint32_t pids = 1;                            ///< room in the map of processes
    std::optional<UnwindProgramOptions> unwind;   ///< user stacks by tables; only the DSL's program can
    bool languages = false;                       ///< and interpreters' frames; needs `unwind`
    std::optional<LabelParts> labels;             ///< and the running request's labels
    std::optional<StackCountingOptions> counting; ///< stacks that were sent before are only counted; likewise
};

/// The spec of program "profile" with maps profile_ring_0 to profile_ring_7, profile_counts, profile_pids and profile_cgroup (the
/// DSL twin leaves out the last two where they aren't used); with unwinding also unwind_pools, unwind_rules, unwind_processes,
/// with counting profile_stacks.
[[nodiscard]] Result<ObjectSpec> program_spec(const ProgramOptions &options);
/// The same from an object that was compiled from C as profile.bpf.c is. `options.unwind` and `counting` must be empty: only the
/// DSL's program can. Errors: bad_input, where the object lacks something that the controller needs, or has it in another size.
[[nodiscard]] Result<ObjectSpec> program_spec(const ObjectSpec &own, const ProgramOptions &options);

/// Of ProgramOptions::ring_bytes what one ring gets: a power of two.
[[nodiscard]] uint32_t ring_share(const ProgramOptions &options);
/// Gives the rings and profile_pids of a spec their sizes.
[[nodiscard]] Result<void> size_maps(ObjectSpec &spec, const ProgramOptions &options);

} // namespace rawbpf::inline v0::profile
