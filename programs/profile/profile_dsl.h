// The profile program written with the instruction builder: the twin of profile.bpf.c, for builds without clang and for reading
// side by side. Same maps (names, sizes), same records, same counters; what `config` switches off isn't generated at all, where
// the C program leaves it to the verifier to remove.
#pragma once

#include "asm/unit.h"
#include "programs/profile/record.h"

namespace rawbpf::inline v0 {

/// One function "profile" in section "perf_event" and the maps that it uses: profile_events (a ring of 1 MiB; the controller
/// changes max_entries), profile_counts, profile_scratch, and profile_pids and profile_cgroup where config filters by them.
[[nodiscard]] Unit profile_unit(const ProfileConfig &config);

} // namespace rawbpf::inline v0
