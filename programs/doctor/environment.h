// The machine that a run was made on, for the header of JSON output.
#pragma once

#include "programs/render/run_facts.h"

namespace rawbpf::inline v0::doctor {

/// From /proc and /sys; what can't be read stays unknown, and `unread` says why. Some thirty small files.
[[nodiscard]] render::Environment read_environment();

} // namespace rawbpf::inline v0::doctor
