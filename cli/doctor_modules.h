// `rawbpf doctor PATH` and `-p PID`: what a profile will show. It reads unwind tables, symbols and notes of
// probes.
#pragma once

#include "cli/commands.h"
#include "cli/options.h"

namespace rawbpf::inline v0::cli {

/// The options' places in doctor's table.
struct DoctorModuleIds {
    Id pid, format, output;
};
/// The exit status: 0, 1 where something can't be read, 3 where privileges are missing. What was wrong has been said.
[[nodiscard]] int examine_modules(const Arguments &a, const DoctorModuleIds &ids);

} // namespace rawbpf::inline v0::cli
