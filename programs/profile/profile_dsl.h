// The profile program written with the instruction builder. profile.bpf.c is the same in C, a lesson to read beside it: same maps
// (names, sizes), same records, same counters. What `config` switches off isn't generated at all; the C program leaves it to the
// verifier to remove.
#pragma once

#include "asm/builder.h"
#include "programs/capture/counting.h"
#include "programs/labels/read_dsl.h"
#include "programs/profile/record.h"
#include "programs/unwind/program.h"

namespace rawbpf::inline v0 {

/// One function "profile" in section "perf_event" and the maps that it uses: profile_ring_0 to profile_ring_7 (the controller
/// changes their max_entries), profile_counts, and profile_pids and profile_cgroup where config filters by them.
/// With `unwind`, user stacks are walked by tables (programs/unwind), which the C program can't: then also unwind_pools (to be
/// completed in the spec), unwind_rules and unwind_processes, and RecordHead::ending says how each walk ended.
/// With `languages` (and `unwind`), the frames of interpreters follow the stacks (programs/languages): then also
/// language_processes, language_codes and language_state.
/// With `labels`, the running request's follow (programs/labels): then also label_processes.
/// With `counting`, samples whose stacks were sent before are only counted (counting_dsl.h): then also profile_stacks (to be
/// completed in the spec), and ProfileRecord::key.
[[nodiscard]] Unit profile_unit(const ProfileConfig &config, const UnwindProgramOptions *unwind = nullptr,
                                const StackCountingOptions *counting = nullptr, bool languages = false,
                                const LabelParts *labels = nullptr);

/// To `other` where the current thread doesn't have the name that `config` asks for. r0 to r5 are gone.
void jump_unless_named(Code &f, const ProfileConfig &config, Label other);

} // namespace rawbpf::inline v0
