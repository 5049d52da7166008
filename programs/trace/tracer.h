// The tracer, as the command line (or any other program) uses it.
//
//      TraceOptions --> Tracer::open()   places found, programs made and verified, rings mapped; nothing runs yet
//                       attach()         from here on the kernel counts
//                       poll()           events, to a function of the caller's
//                       finish()         no program runs any more: the rest of the events, the ledger
//                       detach()         what takes the kernel its time, for many tracepoints
//
// It prints nothing and leaves nothing behind: dropping it detaches. Threads it has only while it does, and one while it is
// attached where TraceOptions::thread allows that.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "programs/render/frame.h"
#include "programs/trace/match.h"
#include "programs/trace/program.h"
#include "runtime/base/bytes.h"
#include "runtime/base/result.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/stats.h"

namespace rawbpf::inline v0::trace {

struct TraceOptions {
    std::vector<std::string> probes; ///< as the user wrote them
    ProgramOptions program;          ///< cookies, multi and sleepable are found out
    MatchOptions match;
    std::string filter;             ///< --filter; empty: none
    std::vector<std::string> shows; ///< --show
    std::string cgroup;             ///< path of a cgroup v2 directory
    int pidns = -1, mntns = -1;     ///< only tasks in this process's namespace; -1: any
    int workload = -1;              ///< only this process and what it starts
    UnwindChoice unwind;            ///< how user stacks are walked, with ProgramOptions::stack; `unwind` there is found out
    uint64_t backlog = uint64_t{64} << 20; ///< bytes at most of events that came and haven't been handed over yet
    bool thread = false; ///< one may move events out of the ring while the caller is busy; else poll() alone does. See RingReader
    /// With ProgramOptions::stack: nobody wants events, only how often each stack. Room for so many different ones that are
    /// counted in the kernel, where it can; 0: each event is sent.
    uint32_t stack_counts = 0;
    bool threads_apart = false;      ///< of them: stacks of different threads aren't equal
    std::vector<std::string> labels; ///< keys: Event::labels(); ProgramOptions::labels is found out
    bool languages = false;          ///< interpreters' frames, too: Event::language, and Tracer::tell_codes()
    bool copies = false;             ///< of processes without tables the stack's bytes come with the event: Event::copied_stack()
};

/// One record, as it comes; its bytes are gone when the function returns.
struct Event {
    Header header;
    const ProbeSite *place = nullptr; ///< of What::exec, which comes with ProgramOptions::execs alone, as the layout: none
    const Layout *layout = nullptr;
    Bytes record;
    /// Of a column, or with index = columns.size() of a result what was returned.
    /// Further events like this one are counted under it: for session::StackCounts; 0: none are.
    [[nodiscard]] uint64_t key() const { return layout->key == 0 ? 0 : load<uint64_t>(record.data() + layout->key); }
    [[nodiscard]] uint64_t value(size_t index) const { return load<uint64_t>(record.data() + sizeof(Header) + 8 * index); }
    [[nodiscard]] uint64_t result() const { return value(layout->columns.size()); }
    /// Who calls and returns: the thread, or of Go the goroutine, which runs in several.
    [[nodiscard]] uint64_t caller() const;
    /// The thread that a caller is, or the process that has the goroutine.
    [[nodiscard]] static uint32_t thread_of(uint64_t caller);
    [[nodiscard]] uint64_t goroutine() const { return value(layout->values() - 1); } ///< with Layout::goroutine
    [[nodiscard]] const Type &result_type() const;
    /// What was copied for a column; nullptr: nothing.
    [[nodiscard]] const Blob *blob(size_t index) const {
        const int32_t at = layout->columns[index].blob;
        return at < 0 ? nullptr : &layout->blobs[static_cast<size_t>(at)];
    }
    [[nodiscard]] bool unreadable(size_t index) const { return index < 32 && (header.unreadable >> index & 1); }
    [[nodiscard]] std::string name(size_t index) const; ///< "count", "arg2", "file->f_inode->i_size"
    [[nodiscard]] Type type(size_t index) const;
    /// Innermost first; empty where there is none. Of the user's: an error, as the kernel gives it, where it can't be walked.
    struct Stack {
        int32_t error = 0;            ///< negative errno
        uint32_t ending = 0;          ///< of the user's: StackHead::ending
        std::vector<uint64_t> frames; ///< of the user's, where it was walked by tables, perhaps with UNWIND_EXACT_PC
    };
    [[nodiscard]] Stack kernel_stack() const;
    [[nodiscard]] Stack user_stack() const;
    /// UnwindRegisters, and the stack's bytes from their sp on (unwind::read_copy()); empty: there is none.
    [[nodiscard]] Bytes copied_stack() const;
    /// The running request's, for processes::RequestLabels; empty: there are none.
    [[nodiscard]] Bytes labels() const;
    std::span<const uint64_t> language; ///< an interpreter's frames, as programs/languages/layout.h has them; often empty
    [[nodiscard]] uint64_t language_number() const; ///< 0: there are none
};

/// How a place's firings were spent.
struct PlaceCounts {
    Counts counts;
    uint64_t shown = 0;
    uint64_t backlog_full = 0; ///< sent, but TraceOptions::backlog had no room
    uint64_t left_out = 0;     ///< waited when finish() was told not to go on
    [[nodiscard]] uint64_t lost() const { return counts.lost + backlog_full + left_out; }
};

class Tracer {
  public:
    /// Errors: invalid_argument (probe, filter, signature), not_found (with the nearest names), unsupported, permission,
    /// rejected.
    [[nodiscard]] static Result<std::unique_ptr<Tracer>> open(const TraceOptions &options);
    ~Tracer();
    Tracer(const Tracer &) = delete;
    Tracer &operator=(const Tracer &) = delete;

    [[nodiscard]] const std::vector<ProbeSite> &places() const;
    /// The programs with their maps.
    [[nodiscard]] LoadedObject &object() const;
    /// Where they walk user stacks by tables, which processes::Following puts into the maps: what they were made with; else
    /// nullptr.
    [[nodiscard]] const UnwindProgramOptions *unwinds() const;
    /// Who takes what interpreters' frames are called: LanguageCode records. And who is told of those that were lost, in
    /// whichever thread moves events.
    void tell_codes(std::function<void(Bytes)> take, std::function<void(Bytes)> lost);
    /// Records that the backlog had no room for, so far.
    [[nodiscard]] uint64_t refused() const;
    /// Why interpreters' frames aren't walked, though they were wanted: a sentence for -v; empty: they are.
    [[nodiscard]] const std::string &no_languages() const;
    /// What counts equal stacks (TraceOptions::stack_counts): with StackCounts::start() it begins; else nullptr.
    [[nodiscard]] const StackCountingOptions *counting() const;
    /// So many events more at a place, which were counted.
    void counted(uint32_t place, uint64_t more);
    /// With ProgramOptions::aggregate; else nullptr.
    ///@{
    [[nodiscard]] const AggregateOptions *aggregate() const;
    [[nodiscard]] const GroupLayout *group_layout() const;
    ///@}
    /// What the groups have come to: live, or final after finish(). In no order.
    [[nodiscard]] Result<std::vector<GroupRow>> groups() const;
    [[nodiscard]] const Unit &unit() const; ///< the programs, for printing
    /// What was passed over and why, by which way places are traced.
    [[nodiscard]] const std::vector<std::string> &notes() const;
    /// Errors: those of attach_program(), when no place could be attached at all.
    [[nodiscard]] Result<void> attach();
    /// Readable when there are events; -1 where only counts are kept.
    [[nodiscard]] int poll_fd() const;
    /// Asks for poll_fd() to become readable with the next event. False: there is one already, which nobody would be woken for.
    [[nodiscard]] bool may_sleep();
    /// Hands over what there is, up to `limit` events. Returns how many.
    size_t poll(const std::function<void(const Event &)> &see, size_t limit = SIZE_MAX);
    /// Events that wait in the backlog.
    [[nodiscard]] uint64_t waiting() const;
    /// The time of the oldest of them; 0: none waits.
    [[nodiscard]] uint64_t oldest_ns() const;
    /// The programs run no more: hands over the rest, reads the counters. `go_on` is asked after each few thousand events (there
    /// may be many): false leaves the others out, which counts() tells.
    [[nodiscard]] Result<void> finish(const std::function<void(const Event &)> &see, const std::function<bool()> &go_on = {});
    /// What finish() has left attached, though nothing runs there: it may take seconds (LongStep). Dropping the tracer does it,
    /// too.
    void detach();
    /// For each place, in their order: live, or final after finish().
    [[nodiscard]] Result<std::vector<PlaceCounts>> counts() const;
    /// Of all programs together: of the first few thousand runs (BPF_ENABLE_STATS). Known after finish().
    [[nodiscard]] const RunCost &cost() const;
    [[nodiscard]] uint64_t malformed() const;

  private:
    struct State;
    explicit Tracer(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

} // namespace rawbpf::inline v0::trace
