// What this kernel and these privileges allow, as a list of checks; and that list as text or JSON lines.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "programs/render/frame.h"

namespace rawbpf::inline v0::doctor {

/// One line. `ok` is empty where it couldn't be found out.
struct Check {
    std::string_view group; ///< "privileges", "policies", "kernel", "features", "program types" ...
    std::string name;
    std::optional<bool> ok = {};
    std::string detail = {}; ///< what was found, or why not
    std::string since = {};  ///< the Linux version that brought it
    std::string fix = {};    ///< what would help; only where ok isn't true
    bool listed = false;     ///< one of a long list, of which the short text shows the count
};

/// Asks everything: about a thousand system calls, some tenths of a second. Never fails: what can't be asked is a check without
/// `ok`.
[[nodiscard]] std::vector<Check> examine();

/// Grouped and aligned; `all`: also each type and helper, else their counts.
[[nodiscard]] std::string as_text(std::span<const Check> checks, const RunInfo &run, bool all);
/// NDJSON: header, one object a check, a summary {"type":"summary","yes","no","unknown"}.
[[nodiscard]] std::string as_json(std::span<const Check> checks, const RunInfo &run);
/// Kernel, machine and CPUs, also without /proc and /sys.
[[nodiscard]] RunInfo describe_run();

// Parts, each a file's.
void examine_policies(std::vector<Check> &checks);

} // namespace rawbpf::inline v0::doctor
