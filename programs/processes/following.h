// Processes followed, for every tool that takes stacks: what they map, so that addresses have names, and their unwind tables,
// so that stacks are whole.
//
//      Following following;
//      following.unwind(object, memory, how); // where the object's programs walk by tables
//      following.watch(workload);             // before the workload starts; -1: all processes
//      following.add_to(epoll, ...);
//      for (;;) {
//          epoll_wait(..., following.wait_ms(50));
//          following.tick([&] {               // records are read in here, and of each:
//              following.apply(record.t_ns);          what happened before it
//              following.wanted(record.pid, ...);     is it the workload's?
//              following.walk(stack);                 where it came with a copy of its stack
//              following.table().locate(...);         where its addresses are
//              following.sampled(record.pid, ...);    its next stack is walked by tables
//          });
//      }
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "programs/processes/java_code.h"
#include "programs/processes/js_functions.h"
#include "programs/processes/live_symbols.h"
#include "programs/processes/process_events.h"
#include "programs/processes/process_table.h"
#include "programs/processes/request_labels.h"
#include "programs/processes/unwinding.h"
#include "runtime/base/fail.h"
#include "runtime/sys/realtime_priority.h"

namespace rawbpf::inline v0::processes {

class Following {
  public:
    /// `build_ids`: read each module's build-id when it is met.
    explicit Following(bool build_ids = false) : symbols_(build_ids) {
        java_.start();
        symbols_.set_java(java_);
    }

    /// From here on the object's programs walk by what is put into its maps (unwind_processes and its like), and it must outlive
    /// this. Before watch(). `memory`: bytes for tables; `program`: what they were made with, for walk(). Errors: those of maps
    /// that can't be mapped.
    [[nodiscard]] Result<void> unwind(LoadedObject &object, uint64_t memory, const UnwindProgramOptions &program) {
        copies_ = program.copies;
        if (copies_) {
            unwinding_.tell(java_);
            unwinding_.tell(symbols_);
        }
        return unwinding_.start(object, memory, program);
    }
    [[nodiscard]] bool unwinds() const { return unwinding_.on(); }

    /// From here on the kernel tells what processes map. `workload`: only that process, from its next exec on, and what it
    /// starts, and only these are wanted(); -1: all. Errors: permission; without it /proc is all there is.
    [[nodiscard]] Result<void> watch(int workload);
    /// The same of processes that run already, and with `children` what they have started and start: only these are wanted().
    /// `at_once`: each mapping of any process wakes whoever waits for it, so that the tables of a child are there before its
    /// first record; for records that are of such use only with them.
    [[nodiscard]] Result<void> watch(const std::vector<int> &pids, bool children, bool at_once = true);
    [[nodiscard]] bool watching() const { return watching_; }
    /// A process that runs already: what it has mapped is read at once, and its first stack is walked by tables.
    [[nodiscard]] Result<void> want(uint32_t pid);
    /// Of a whole machine: makes the tables of what runs in this moment, for so long at most. Unlike those of what is sampled
    /// later they are made while nobody waits for records to be read; a compiler's takes as long as several ticks of a clock,
    /// longer where compilers have all CPUs. What isn't done in time is done later.
    [[nodiscard]] Result<void> want_running(uint64_t most_ns);
    /// Makes the tables of what a command will run: before it is let go. After unwind().
    void prepare(const std::vector<std::string> &command) { unwinding_.prepare(command); }
    /// The command is about to be let go. In its first steps (its exec, its libraries) news is acted upon the moment it comes,
    /// not a millisecond later; and where stacks are walked by tables this thread goes before others, for until its mappings are
    /// known they go by frame pointers.
    void first_steps();
    /// They are over: where the caller stops ticking before tick() has noticed.
    void end_first_steps() { urgent_.reset(); }

    /// Adds what becomes readable with news to an epoll set, edge-triggered. Where chosen processes' stacks are walked by tables,
    /// that is with each mapping; else when a ring is half full.
    [[nodiscard]] Result<void> add_to(int epoll, uint64_t data) const;
    /// How long to wait for more: `usual` milliseconds, less when news that is too fresh waits to be acted upon.
    [[nodiscard]] int wait_ms(int usual) const;

    /// Takes the news there is, lets `read` take the records of the programs, and brings tables up to date; where making them
    /// took some time, all of it again. To be called often. Errors: those of updating maps.
    template <class Read> [[nodiscard]] Result<void> tick(Read &&read) {
        TRY(pace());
        for (int round = 0; round < kRounds; ++round) {
            const uint64_t until_ns = gather();
            read();
            if (TRY(settle(until_ns))) break;
        }
        return end_tick();
    }
    [[nodiscard]] Result<void> tick() {
        return tick([] {});
    }
    /// The same without tables: for what is left to read when no program runs any more.
    template <class Read> void read_rest(Read &&read) {
        const uint64_t until_ns = gather();
        read();
        apply_news(until_ns);
    }

    /// Records from that time on haven't been read yet: news that came after it waits for them, lest they are taken for what
    /// their process did later. 0: all have been. To be said within tick()'s `read`.
    void behind(uint64_t t_ns) { behind_ns_ = t_ns; }
    /// Everything that happened up to then, before a record of that time is looked at.
    void apply(uint64_t t_ns);
    /// How often something happened that may change what an address is.
    [[nodiscard]] uint64_t changes() const { return changes_; }
    /// Whether a process was the workload's, or of the family, then; without either all are.
    [[nodiscard]] bool wanted(uint32_t pid, uint64_t t_ns) { return !chooses_ || table_.find_wanted(pid, t_ns); }
    /// A record with a user stack of that process came: from now on its stacks are walked by tables.
    void sampled(uint32_t pid, uint64_t t_ns) { unwinding_.sampled(pid, t_ns); }
    /// Makes the frames of a stack that came with a copy of it, after apply() and wanted(). They are good until the next call.
    /// False: it stays as it is.
    bool walk(UserStack &stack) { return unwinding_.walk(stack); }
    /// Whether they are already.
    [[nodiscard]] bool published(uint32_t pid) const { return unwinding_.published(pid); }
    /// One of its frames lies in that module: its table is of use.
    void used(uint32_t pid, uint32_t module, uint64_t t_ns) { unwinding_.used(pid, module, t_ns); }
    /// A stack that was located before came again, only counted.
    void seen_again(const StackTree &tree, uint32_t node, uint32_t pid, uint64_t now_ns) {
        unwinding_.seen_again(tree, node, pid, now_ns);
    }

    /// After unwind(): the object's programs walk interpreters' frames, too, where they have the maps for it.
    [[nodiscard]] Result<void> walk_scripts(LoadedObject &object, ScriptView view) {
        if (copies_ && view != ScriptView::native) {
            js_.start(view);
            unwinding_.tell(js_);
            symbols_.set_js(js_);
        }
        if (!scripts_.start(object)) return {};
        scripts_.show(view);
        unwinding_.tell(scripts_);
        symbols_.set_scripts(scripts_);
        return {};
    }
    /// The running request's: RequestLabels::start() before watch().
    [[nodiscard]] RequestLabels &labels() { return labels_; }
    [[nodiscard]] Scripts &scripts() { return scripts_; }
    [[nodiscard]] JavaCode &java() { return java_; }
    [[nodiscard]] JsFunctions &js() { return js_; }
    [[nodiscard]] LiveSymbols &symbols() { return symbols_; }
    [[nodiscard]] ProcessTable &table() { return table_; }
    [[nodiscard]] uint64_t events_lost() const { return events_.lost(); }
    /// Memory of the rings of news.
    [[nodiscard]] size_t ring_bytes() const { return events_.bytes(); }
    [[nodiscard]] unwind::LiveTables::Stats stats() const { return unwinding_.stats(); }
    /// What whoever locates addresses tells of them.
    [[nodiscard]] Unwinding &unwinding() { return unwinding_; }
    /// What couldn't be unwound, learnt, named or labelled, and why; one sentence each.
    [[nodiscard]] std::vector<std::string> warnings() const;

  private:
    static constexpr int kRounds = 8; // of making tables, before anything else is done
    [[nodiscard]] Result<void> open(int workload, bool at_once);
    [[nodiscard]] Result<void> pace();
    /// Up to when all news was taken.
    uint64_t gather();
    /// What happened up to then, unless records from before that wait. Not what apply() has gathered since: records of that time
    /// may wait in the ring.
    void apply_news(uint64_t until_ns);
    [[nodiscard]] Result<bool> settle(uint64_t until_ns);
    [[nodiscard]] Result<void> end_tick();
    [[nodiscard]] uint64_t in_flight_ns(uint64_t now_ns) const;

    LiveSymbols symbols_;
    ProcessTable table_{symbols_};
    Unwinding unwinding_{table_};
    FileReader reader_{table_};
    Scripts scripts_{table_, reader_};
    JavaCode java_{table_, reader_};
    JsFunctions js_{table_, reader_};
    RequestLabels labels_{table_, reader_};
    ProcessEvents events_;
    bool watching_ = false, copies_ = false;
    bool chooses_ = false;
    uint64_t read_ns_ = 0; // records from before that have been read
    uint64_t changes_ = 0, behind_ns_ = 0, hurry_until_ns_ = 0, swept_ns_ = 0, ticked_ns_ = 0;
    std::optional<sys::RealtimePriority> urgent_; // in a command's first steps
    Fd pause_;                                    // an epoll set with nothing in it: to wait a moment
};

} // namespace rawbpf::inline v0::processes
