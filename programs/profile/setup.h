// What follows from the options before anything is loaded: whether they go together, how large maps are, what the program
// filters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "programs/processes/advice.h"
#include "programs/profile/event.h"
#include "programs/profile/profiler.h"
#include "programs/profile/program.h"

namespace rawbpf::inline v0::profile {

/// A profile that is about to be taken.
struct Setup {
    const ProfileOptions &options;
    Event event;
    uint64_t period = 0;     ///< a sample at each so many-th event; 0: by frequency
    std::vector<int> online; ///< CPUs

    /// CPUs that are sampled.
    [[nodiscard]] const std::vector<int> &cpus() const { return options.cpus.empty() ? online : options.cpus; }
    /// Whether a sample is wanted depends on whose child its process is: a clock's program can't tell. See left_out.cpp.
    [[nodiscard]] bool by_descent() const { return !options.workload.empty() || (!options.pids.empty() && options.children); }
};

/// Errors: as run_profile() has them of its options.
[[nodiscard]] Result<Setup> set_up(const ProfileOptions &options);

/// Bytes for the ring of all CPUs together, a power of two that holds two seconds of samples; with copies of stacks one second of
/// these and as much again, as far as the machine's memory allows.
[[nodiscard]] uint32_t ring_bytes(const Setup &setup, bool copies);

/// What the program does with these options, without what of it depends on the kernel: unwinding and counting.
[[nodiscard]] Result<ProgramOptions> program_options(const Setup &setup);

/// What would have the stacks walked by tables that weren't to be.
[[nodiscard]] processes::Remedy remedy(const ProfileOptions &options);

/// What the head of a capture, of JSON and of the ledger says of it. `start_ns`: CLOCK_MONOTONIC.
[[nodiscard]] RunInfo describe(const Setup &setup, uint64_t start_ns);

} // namespace rawbpf::inline v0::profile
