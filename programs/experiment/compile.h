// Probes of an experiment -> programs and maps, with views of what these will hold. PURE but for what it asks its surroundings.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "asm/unit.h"
#include "programs/experiment/experiment.h"
#include "programs/experiment/views.h"
#include "programs/trace/match.h"
#include "runtime/base/result.h"
#include "runtime/btf/btf.h"
#include "runtime/sys/namespaces.h"

namespace rawbpf::inline v0::experiment {

/// What it takes to follow what a command starts.
struct Forks {
    uint16_t child_at = 0;                       ///< where sched_process_fork's record has the new thread's number
    std::optional<sys::Namespace> pid_namespace; ///< rawbpf's, where it isn't the first one
};

/// What the machine says: on which places a probe stands, and whether it has such probes at all.
struct Surroundings {
    const btf::Btf *kernel = nullptr; ///< the running kernel's types; nullptr: none are known
    std::function<Result<trace::Matched>(const trace::ProbeSpec &)> match;
    /// Why there can be no probe of that kind here; empty: there can.
    std::function<std::string(trace::ProbeKind)> lacks;
    /// Asked where a probe says `workload`.
    std::function<Result<Forks>()> forks;
    /// C to an object's bytes: the text, and what it is called; or no text, and a path.
    std::function<Result<std::string>(std::string_view text, std::string_view name)> compile_c;
};

/// Where a compiled program goes, where its section doesn't say it.
struct Placed {
    std::string program;
    uint64_t frequency = 0; ///< of `on profile:HZ`
    std::string target;     ///< of USDT probes: FILE:OFFSET
    uint64_t semaphore = 0; ///< of USDT probes
};

struct Compiled {
    Unit unit; ///< with the functions, maps and types of the assembly
    std::vector<MapView> maps;
    std::vector<EventView> events;
    std::vector<Placed> places;
    std::vector<std::string> notes; ///< which alternative was taken, and why
};

/// The name of the ring that `emit` writes to, and of the map that counts what was lost: element 0 events for which the ring had
/// no room, 1 changes for which a map had no room.
inline constexpr std::string_view kEventRing = "events", kLostMap = "experiment_lost";
/// Of compile_workload.cpp.
inline constexpr std::string_view kRootsMap = "experiment_roots", kThreadsMap = "experiment_threads",
                                  kExecProgram = "experiment_exec";
/// Whether rawbpf has made it for itself: people aren't shown it.
[[nodiscard]] constexpr bool is_own_map(std::string_view name) {
    return name == kLostMap || name == kRootsMap || name == kThreadsMap;
}

/// Whether probes have a function of this name that reads or shows something: str, kstr, comm ...
[[nodiscard]] bool is_probe_function(std::string_view name);

/// Compiles the probes and joins them with the assembly's unit. What is wrong goes to `mistakes`.
[[nodiscard]] Compiled compile(const Experiment &experiment, Unit assembly, const Surroundings &surroundings, Mistakes &mistakes);

} // namespace rawbpf::inline v0::experiment
