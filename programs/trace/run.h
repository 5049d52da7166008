// A whole run: calls, with their arguments, from options to a written output, as custom's run_custom() is.
//
//      RunOptions --> run_trace() --> a writer: text, JSON, what other tools read
//                                 --> RunNews: what happens meanwhile
//
//      the command is forked, and waits; places are found, programs are made and loaded     RunNews::opened()
//      names and unwind tables of its processes are prepared; programs are attached         attached(), note()
//      the command begins: events are read, named and written, until it ends
//      no program runs any more: events that still wait are written                         over(), go_on()
//      counters are read: the ledger                                                        RunEnd
//
// It prints nothing by itself and installs no signal handler: Observed::stop ends it. No program runs any more when it returns;
// some may be attached still, until RunEnd::tracer is dropped.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "programs/processes/scripts.h"
#include "programs/render/writer.h"
#include "programs/session/run_report.h"
#include "programs/session/session.h"
#include "programs/trace/group_run.h"
#include "programs/trace/tracer.h"
#include "programs/trace/view.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::trace {

struct RunOptions {
    TraceOptions tracer;        ///< `workload` and `languages` are found out, from `observed` and `language_view`. With
                                ///< Filters::most_events it ends after so many
    session::Observed observed; ///< Filters::pids has the same processes
    processes::ScriptView language_view = processes::ScriptView::both; ///< of stacks: of interpreters' functions or native ones
    ViewOptions view;                 ///< `count`, `calls`, `returns`, `stack`, `threads_apart` and `group_stacks` are found out
    GroupsShown groups;               ///< with ProgramOptions::aggregate; `terminal` is found out
    std::string title;                ///< of pictures that a report makes of a recording
    int record_fd = -1;               ///< a recording is written here, and the writer gets nothing; not with groups and spans
    int terminal = -1;                ///< what the writer writes to, where that is a terminal: counts and groups are drawn on it
    std::vector<std::string> command; ///< rawbpf's own command line, and its version: for RunInfo
    std::string version;
};

class RunNews : public session::RunNews {
  public:
    /// Once: places are found and programs loaded, nothing is attached, the command waits. An error ends the run.
    virtual Result<void> opened(const Tracer &) { return {}; }
    /// Once: everything is attached, nothing has been written, the command waits still. An error ends the run.
    virtual Result<void> attached() { return {}; }
};

struct RunEnd : session::RunEnd {
    std::string places;             ///< places_ledger()
    uint64_t counted = 0;           ///< events whose stacks were counted in the kernel
    std::unique_ptr<Tracer> tracer; ///< to detach what is still attached may take the kernel seconds: Tracer::detach()
};

/// Errors: not_found (no such thread of Filters::tids, which is named), Tracer's, Session's, those of who follows processes, the
/// writer's and those of `news`.
[[nodiscard]] Result<RunEnd> run_trace(RunOptions options, render::Writer &writer, RunNews &news);

} // namespace rawbpf::inline v0::trace
