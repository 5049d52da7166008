// The programs of custom traces, made with the DSL: the generic ones that others jump to, the sampler, the guard of the per-CPU
// map, and rawbpf's own external program.
#pragma once

#include <cstdint>
#include <optional>

#include "asm/unit.h"
#include "programs/custom/record.h"
#include "programs/labels/read_dsl.h"
#include "programs/unwind/program.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::custom {

struct UnitOptions {
    uint32_t ring_bytes = 8 << 20;
    bool exchange = true; ///< atomic exchange (5.12); without it a scratch can be used twice where programs interrupt each other
    uint64_t pidns_dev = 0, pidns_ino = 0; ///< rawbpf's pid namespace, 0, 0 in the initial one
    bool off_cpu = false;
    bool wide_state = false;     ///< off_cpu: has_wide_state() of the kernel
    uint32_t off_threads = 4096; ///< whose stacks are kept: all that ever left a CPU, and live: 2.1 KB each, by tables 2.6, with
                                 ///< a --depth of 255 3.6
    /// User stacks by tables, with `copies` of those of processes that nothing is known of yet; else by frame pointers.
    std::optional<UnwindProgramOptions> unwind;
    bool languages = false;           ///< and interpreters' frames; needs `unwind`
    std::optional<LabelParts> labels; ///< and the running request's labels
    bool private_stack = false; ///< with `labels`: the kernel has one stack a CPU for large programs (Feature::private_stack)
    /// Off-CPU times only of threads in the map custom_wanted and of what they start: where tracepoint sched_process_fork has the
    /// child's number. 0: of all threads.
    uint16_t forked_child = 0;
};

/// Programs custom__generic (kprobes and uprobes), custom__generic_perf_event, custom__generic_tracepoint, custom_sample and
/// custom_guard, with `off_cpu` custom_off_cpu, with `forked_child` custom_fork and custom_exit; maps custom_context_map,
/// custom_context_by_thread, custom_counts, custom_traces; with
/// `unwind` also unwind_pools, unwind_rules, unwind_processes, for complete_unwind_maps(); with `languages` what LanguageWalk
/// declares; with `labels` what LabelReading does.
[[nodiscard]] Unit generic_unit(const UnitOptions &options);

/// The external program that rawbpf brings along, custom_external: stores the traced function's argument `argument` (0 is the
/// first) by thread and jumps through custom_programs[0]. Its maps of the names above are to be replaced by the generic unit's.
/// Errors: invalid_argument where that argument isn't in a register.
[[nodiscard]] Result<Unit> external_unit(int argument);

} // namespace rawbpf::inline v0::custom
