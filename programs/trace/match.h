// From what the user asked to the places that this machine has.
#pragma once

#include <string>
#include <vector>

#include "programs/trace/known_probes.h"
#include "programs/trace/probe.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::trace {

struct Matched {
    std::vector<ProbeSite> places;
    std::vector<std::string> notes; ///< what was passed over and why; by which way a bare glob is traced
};

struct MatchOptions {
    bool signatures = true;             ///< names and types are wanted: events, filters
    int pid = -1;                       ///< libraries by name as this process has mapped them
    bool results = false;               ///< returns are wanted too
    bool allow_unwind_risk = false;     ///< return probes also where an exception may cross the frame
    std::string signature = {};         ///< --sig, for functions of programs
    const KnownProbes *known = nullptr; ///< names and types for USDT probes' arguments; nullptr: those built in
};

/// Kernel functions by ftrace's list and kallsyms, functions of programs by their symbols, tracepoints and system calls by
/// tracefs. Errors: not_found with the nearest names; unsupported (no tracefs); permission.
[[nodiscard]] Result<Matched> match_probe(const ProbeSpec &spec, const MatchOptions &options);

/// USDT probes: FILE[:PROVIDER[:NAME]], or with options.pid [FILE][:PROVIDER[:NAME]] of what that process has mapped.
[[nodiscard]] Result<Matched> match_usdt(const ProbeSpec &spec, const MatchOptions &options);

} // namespace rawbpf::inline v0::trace
