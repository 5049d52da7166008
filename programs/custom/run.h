// A whole run: other programs' contexts with their stacks, from options to a written output, as profile's run_profile() is.
//
//      RunOptions --> run_custom() --> a writer: text, JSON, what other tools read
//                                  --> RunNews: what happens meanwhile
//
// It prints nothing by itself and installs no signal handler: Observed::stop ends it. Everything is detached when it returns.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "programs/custom/tracer.h"
#include "programs/custom/view.h"
#include "programs/processes/scripts.h"
#include "programs/processes/source_lines.h"
#include "programs/render/writer.h"
#include "programs/session/run_report.h"
#include "programs/session/session.h"
#include "runtime/base/result.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::custom {

struct RunOptions {
    CustomOptions tracer;             ///< `kinds`: those of `object` or `pin`, if there is one; `languages` is found out
    std::string target;               ///< "./prog:function"; empty: none
    int argument = 0;                 ///< which of the function's is the context, 0 to 7
    std::optional<ObjectSpec> object; ///< programs of one's own, in place of the built-in one
    std::string pin;                  ///< a directory on a bpf file system: for programs of another loader; empty: none
    session::Observed observed;       ///< a command: only what it starts is traced
    bool children = true;             ///< of Observed::pids: and what they have started, or start
    processes::ScriptView language_view = processes::ScriptView::both; ///< of interpreters' functions or native ones
    ViewOptions view;                                                  ///< `guarded`, `origins` and `off_cpu` are found out
    processes::SourceDetail detail;                                    ///< lines, and inlined functions as frames of their own
    processes::DebugInfo *debug_info = nullptr;
    int record_fd = -1;               ///< a recording is written here, and the writer gets nothing
    std::vector<std::string> command; ///< rawbpf's own command line, and its version: for RunInfo
    std::string version;
};

class RunNews : public session::RunNews {
  public:
    /// Once: everything is attached, nothing has been written, the command waits. An error ends the run.
    virtual Result<void> attached(const CustomTracer &) { return {}; }
    /// About every 50 ms.
    virtual void progress(const Tally &) {}
};

struct RunEnd : session::RunEnd {
    std::string totals;    ///< Tally::totals()
    Result<void> finished; ///< an error that came so late that what was traced is shown all the same
};

/// Errors: CustomTracer's, Session's, those of who follows processes, the writer's and those of `news`.
[[nodiscard]] Result<RunEnd> run_custom(RunOptions options, render::Writer &writer, RunNews &news);

} // namespace rawbpf::inline v0::custom
