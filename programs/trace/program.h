// The BPF side of a trace, made for exactly what was asked. PURE: places and options in, a Unit out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "asm/unit.h"
#include "programs/capture/counting.h"
#include "programs/labels/read_dsl.h"
#include "programs/trace/aggregate.h"
#include "programs/trace/expression.h"
#include "programs/trace/probe.h"
#include "programs/trace/record.h"
#include "programs/trace/system_calls.h"
#include "programs/unwind/program.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::trace {

/// What is let through; all of it is decided in the kernel.
struct Filters {
    uint32_t own_pid = 0; ///< our own events are filtered; 0: none are ours
    std::vector<uint32_t> pids, tids, uids;
    bool children = false;         ///< and what the processes in `pids`, or the workload, start
    std::string comm;              ///< a whole name; empty: any
    bool cgroup = false;           ///< tasks in the cgroup in map trace_cgroup, slot 0
    uint32_t workload = 0;         ///< this process; 0: any
    uint16_t child_tid_offset = 0; ///< with follows(): in the record of sched:sched_process_fork
    std::optional<Expression> expression;
    bool errors = false;                         ///< results: negative ones only
    uint64_t min_duration = 0;                   ///< ns; results: only after so long, with ProgramOptions::pair
    uint64_t one_in = 1;                         ///< of what is left, each N-th
    uint64_t most_events = 0;                    ///< then no more, but for what other CPUs are writing just then; 0: any number
    uint64_t pidns_dev = 0, pidns_ino = 0;       ///< where ids count in; 0: the initial pid namespace
    uint64_t in_pidns_dev = 0, in_pidns_ino = 0; ///< only tasks of this pid namespace (5.7); 0: any
    uint32_t mntns = 0;                          ///< only tasks of this mount namespace, by its inode number; 0: any

    /// Whether it depends on its ancestors that a process is let through.
    [[nodiscard]] bool follows() const { return children && (workload != 0 || !pids.empty()); }
};

enum class Mode : uint8_t { events, count };

struct ProgramOptions {
    Mode mode = Mode::events;
    Filters filters;
    bool calls = true, results = false; ///< which ends of a function send a record
    bool pair = false;                  ///< one record at the return, with the call's arguments and how long it took
    bool stack = false;                 ///< both stacks with each record
    /// The user's by tables (Unwinder), into maps that are then there. Else by frame pointers.
    std::optional<UnwindProgramOptions> unwind;
    bool languages = false;           ///< and interpreters' frames; needs `unwind`
    std::optional<LabelParts> labels; ///< the running request's labels with each record
    /// With `stack`: events are only counted, by their stacks. The first of each kind is sent, into maps that are then there
    /// (session::StackCounts) how many followed; no record has values.
    std::optional<StackCountingOptions> counting;
    /// With Mode::count: events are put into groups, which the map trace_groups then has.
    std::optional<AggregateOptions> aggregate;
    bool execs = false;            ///< with calls and results of programs' functions that aren't paired: What::exec, too
    bool goroutines = false;       ///< a column more for Go's USDT probes: which goroutine it is
    std::vector<Expression> shows; ///< more columns; where a place has no such thing, it has no such column
    bool cookies = true;           ///< the kernel has bpf_get_attach_cookie here: many places share a program
    bool sleepable = false;        ///< uprobes may wait for a page (6.0): texts on pages that aren't there yet
    bool multi = true;             ///< kprobe.multi and uprobe.multi
    bool bpf_loop = false;         ///< the kernel has that helper (5.17)
    /// The kernel has one stack a CPU for large programs (Feature::private_stack): those at uprobes must not get it.
    bool private_stack = false;
    /// fentry, fexit: values by bpf_probe_read_kernel() from the context. Until 5.16 the verifier refuses to load pointers to
    /// anything but structures.
    bool by_helper = false;
    uint32_t ring_bytes = 8 << 20; ///< what comes in 50 ms at full speed, or 7,000 events with stacks
    uint16_t text_bytes = 128;     ///< of each text
};

/// Some places with one program.
struct Group {
    std::string program; ///< its name in the unit
    std::string section;
    ProbeKind kind = ProbeKind::kprobe;
    bool is_result = false;
    bool keeps = false;           ///< sends nothing: keeps the call until it returns
    bool jumped_to = false;       ///< from one of TraceUnit::jumpers: isn't attached itself
    std::vector<uint32_t> places; ///< indexes
    Layout layout;
};

struct TraceUnit {
    Unit unit;
    std::vector<std::string> notes; ///< what some places don't have
    std::vector<Group> groups;
    /// System calls by number: programs that go on in that of the call's group (slots of the prog array trace_programs are
    /// indexes of groups), and what the map trace_system_calls is to have.
    std::vector<std::string> jumpers;
    std::vector<std::pair<uint32_t, SystemCall>> system_calls;
    std::optional<GroupLayout> group_layout; ///< with ProgramOptions::aggregate
};

/// Whether the kernel has to pair calls with their returns for these options.
[[nodiscard]] bool needs_pairs(const ProgramOptions &options);
/// Errors: invalid_argument (a filter or what is shown, with a caret; nothing to probe, as the returns of tracepoints).
[[nodiscard]] Result<TraceUnit> trace_unit(const std::vector<ProbeSite> &places, const ProgramOptions &options,
                                           const btf::Btf *kernel);

} // namespace rawbpf::inline v0::trace
