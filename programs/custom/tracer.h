// SPDX-License-Identifier: MIT
// Custom traces, as the command line (or any other program) uses them: other people's BPF programs jump to a generic one, which
// captures the stack and sends it with the context that they stored.
//
//      CustomOptions --> CustomTracer::open()      generic programs verified, the ring mapped; nothing runs yet
//                        load_external()           an object whose programs jump to them: maps shared, prog arrays filled
//                        pin()                     or by names, for programs of another loader
//                        attach()                  from here on traces come
//                        poll()                    to a function of the caller's
//                        finish()                  detached, the rest of the traces; then the counters are final
//
// It prints nothing, starts no thread, and leaves nothing behind: dropping it detaches, and takes its pins away.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "programs/custom/record.h"
#include "programs/unwind/choice.h"
#include "runtime/base/result.h"
#include "runtime/kernel/stats.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {
struct LoadedObject;
struct UnwindProgramOptions;
} // namespace rawbpf::inline v0

namespace rawbpf::inline v0::custom {

/// What jumps: programs that jump to each other are of one type, so each type has its own generic program and places to work in.
enum class ProgramKind : uint8_t {
    probe,      ///< kprobes and uprobes: custom__generic
    perf_event, ///< custom__generic_perf_event
    tracepoint, ///< custom__generic_tracepoint
};

/// What CustomTracer::open() sets up.
struct CustomOptions {
    uint32_t ring_bytes = 8 << 20;                         ///< rounded up to a power of two of pages
    std::vector<ProgramKind> kinds = {ProgramKind::probe}; ///< generic programs to load; empty: the same as this
    uint64_t sample_hz = 0;                                ///< beside them every CPU is sampled so often; 0: not
    bool off_cpu = false;                                  ///< and what threads waited for, when they come back to a CPU
    bool follow_only = false;                              ///< off_cpu: only the process given to follow(), and what it starts
    /// How user stacks are walked; where the kernel doesn't take the walk by unwind tables (.eh_frame), `automatic` goes without,
    /// and notes() says so. Whoever chooses tables has to put those of the processes into the maps of generic_object(), as
    /// rawbpf's command does (programs/processes/following.h, which is no part of this library): until then, and of processes
    /// without, stacks are walked by frame pointers.
    UnwindChoice unwind = {UnwindBy::fp};
    /// Interpreters' frames, too: CustomTrace::language and CustomTracer::tell_codes(), of processes that are put into maps of
    /// generic_object(), as with tables.
    bool languages = false;
    /// Keys of the running request's labels: CustomTrace::labels, of processes that are put into maps of generic_object(), as
    /// with tables.
    std::vector<std::string> labels = {};
    bool copies = false; ///< of processes without tables the stack's bytes come with the trace: CustomTrace::copy
    uint64_t backlog = uint64_t{64} << 20; ///< bytes at most of traces that came and haven't been handed over yet
    bool thread = false; ///< one may move traces out of the ring while the caller is busy; else poll() alone does
};

/// One record of the ring, taken apart; its addresses are gone when the function that it was given to returns.
struct CustomTrace {
    Record head;                        ///< a copy
    std::span<const uint64_t> kernel,   ///< addresses, leaf first; empty: none were had
        user;                           ///< the same; UNWIND_EXACT_PC may be set in them where tables were used
    std::span<const std::byte> copy;    ///< the leaf's UnwindRegisters, and the stack's bytes from their sp on; often empty
    std::span<const uint64_t> language; ///< an interpreter's frames, two words each; often empty
    std::span<const std::byte> labels;  ///< the running request's, as the program read them; often empty
};
/// nullopt where its sizes don't fit its bytes. `record` must be aligned to 8 bytes.
[[nodiscard]] std::optional<CustomTrace> parse_trace(std::span<const std::byte> record);

/// How an external object is taken in.
struct ExternalOptions {
    /// FILE:FUNCTION for uprobe and uretprobe programs, FUNCTION for kprobes, whose sections don't say where; empty: there must
    /// be none of those.
    std::string target;
};

/// Custom traces of one user of them, from open() to finish(). One thread at a time.
class CustomTracer {
  public:
    /// Called for each trace, which is gone when it returns.
    using Reporter = std::function<void(const CustomTrace &)>;

    /// Errors: permission, unsupported (ring buffers, 5.8), rejected.
    [[nodiscard]] static Result<std::unique_ptr<CustomTracer>> open(const CustomOptions &options);
    ~CustomTracer();
    CustomTracer(const CustomTracer &) = delete;
    CustomTracer &operator=(const CustomTracer &) = delete;

    /// The program to jump to; -1 where its kind wasn't asked for. To be put into a prog array of your own, at any slot, by
    /// put_program or BPF_MAP_UPDATE_ELEM. Borrowed, as all descriptors here.
    [[nodiscard]] int generic_program_fd(ProgramKind kind = ProgramKind::probe) const;
    /// The generic programs with their maps.
    [[nodiscard]] LoadedObject &generic_object();
    /// Where they walk by what is in unwind_processes and its like, so that whole stacks can be had: what they were made with;
    /// else nullptr.
    [[nodiscard]] const UnwindProgramOptions *unwinds() const;
    /// Who takes what interpreters' frames are called: records of their own. And who is told of those that were lost, in
    /// whichever thread moves traces.
    void tell_codes(std::function<void(std::span<const std::byte>)> take, std::function<void(std::span<const std::byte>)> lost);
    /// Why their frames aren't walked, though CustomOptions::languages asks for it: a sentence; empty: they are.
    [[nodiscard]] const std::string &no_languages() const;
    /// Per-CPU array, [0] = u64: the context, stored right before the jump. What the OpenTelemetry profiler's examples use.
    /// Asked for before attach(), which then also attaches what keeps each thread from another's context.
    [[nodiscard]] int context_map_fd() const;
    /// Hash, pid_tgid (as bpf_get_current_pid_tgid has it) -> u64: the same by thread, which no preemption disturbs. Prefer it.
    [[nodiscard]] int thread_context_map_fd() const;

    /// Loads an object with external programs: its maps custom_context_map and custom_context_by_thread, where it has them,
    /// become the tracer's; each of its prog arrays that is empty gets, in slot 0, the generic program of the kind that jumps
    /// through it. (An object that captures by itself has custom_traces and custom_counts instead: example/custom_trace.h.)
    /// Errors: invalid_argument when it has no such array, a definition differs (which says in what), a program is of a type
    /// without generic program or its place isn't said; those of load().
    [[nodiscard]] Result<void> load_external(ObjectSpec object, const ExternalOptions &options = {});
    /// The external program that rawbpf has: `target` (FILE:FUNCTION, with + and an offset if need be) is traced with its
    /// argument number `argument` (0 is the first) as context.
    [[nodiscard]] Result<void> add_function(const std::string &target, int argument = 0);
    /// DIRECTORY/custom__generic, custom__generic_perf_event ..., custom_context_map, custom_context_by_thread: on a bpf file
    /// system, until the tracer is dropped. The directory is made when it isn't there. Errors: busy when a name is taken,
    /// invalid_argument.
    [[nodiscard]] Result<void> pin(const std::string &directory);

    /// The process whose waits are wanted, before attach().
    [[nodiscard]] Result<void> follow(int pid);
    /// Errors: those of attach_program().
    [[nodiscard]] Result<void> attach();
    /// Becomes readable when a megabyte of traces waits; so look every 100 ms or so, too.
    [[nodiscard]] int poll_fd() const;
    /// Asks for that. False: there is something already.
    [[nodiscard]] bool may_sleep();
    /// Hands over what there is, up to `limit` records. Returns how many.
    size_t poll(const Reporter &report, size_t limit = SIZE_MAX);
    /// Traces that wait in the backlog.
    [[nodiscard]] uint64_t waiting() const;
    /// The time of the oldest of them; 0: none waits.
    [[nodiscard]] uint64_t oldest_ns() const;
    /// Detaches, hands over the rest. `go_on` is asked after each few thousand: false leaves the others out. Errors: the
    /// kernel's, the first one, of a clock that couldn't be stopped; all of this is done then, too.
    [[nodiscard]] Result<void> finish(const Reporter &report, const std::function<bool()> &go_on = {});
    /// Traces that were sent, but CustomOptions::backlog had no room.
    [[nodiscard]] uint64_t backlog_full() const;
    /// Traces that waited when finish() was told not to go on.
    [[nodiscard]] uint64_t left_out() const;

    /// Sums over all CPUs: live, or final after finish().
    [[nodiscard]] Result<Counts> counts() const;
    /// Whether all that jumps to the generic programs is add_function's, so that Counts::external are all that fired.
    [[nodiscard]] bool only_own() const;
    /// Whether contexts in custom_context_map are guarded, so that each is its thread's.
    [[nodiscard]] bool guarded() const;
    /// Records that parse_trace() couldn't take apart: of external programs that capture by themselves, and wrongly.
    [[nodiscard]] uint64_t malformed() const;
    /// What the programs at probes cost, external and generic one together: runs of external programs, and time
    /// (BPF_ENABLE_STATS).
    [[nodiscard]] const RunCost &cost() const;
    /// What was set up, a line each: programs and descriptors, maps shared, arrays filled, probes attached.
    [[nodiscard]] const std::vector<std::string> &steps() const;
    /// What works less well than it could, sentences.
    [[nodiscard]] const std::vector<std::string> &notes() const;

  private:
    struct State;
    explicit CustomTracer(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

/// Which generic programs an object needs.
[[nodiscard]] std::vector<ProgramKind> kinds_of(const ObjectSpec &object);

} // namespace rawbpf::inline v0::custom
