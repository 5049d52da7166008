// What a run tells who started it. A tool's run is one call, which prints nothing: custom::run_custom(), trace::run_trace().
//
//      RunOptions --run_...()--> a writer: the output
//                            --> RunNews: what happens meanwhile      notes; the end has come, and what waits is written
//                            --> RunEnd: what came of it              a ledger, what it cost, warnings
//
// A tool's own RunNews and RunEnd are made of these two: each adds what only that tool has to say.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "programs/processes/following.h"
#include "programs/recording/recording.h"
#include "programs/render/frame.h"
#include "programs/render/run_cost.h"
#include "programs/session/session.h"
#include "runtime/kernel/stats.h"

namespace rawbpf::inline v0::session {

/// What happens while it runs, for who shows it.
class RunNews {
  public:
    virtual ~RunNews() = default;
    virtual void note(std::string_view) {}
    /// The run is over; what still waits is written now.
    virtual void over() {}
    /// Meanwhile: so many records wait, go on?
    virtual bool go_on(uint64_t /*waiting*/) { return true; }
};

/// How it went. The ledger is exact (Ledger::adds_up()).
struct RunEnd {
    RunInfo run;
    Ledger ledger;
    render::RunCost cost;
    std::string ending;                 ///< Session::end()
    std::vector<std::string> warnings;  ///< sentences
    std::vector<std::string> languages; ///< of interpreters: what was learnt of each build, or why nothing was; for -v

    /// Fills `cost`, and puts it into the ledger. `programs`: what the BPF programs cost. `table_bytes`: of unwind tables.
    void set_cost(const Session &session, const RunCost &programs, uint64_t table_bytes, std::vector<render::StackAdvice> advice);
    /// Fills `languages`, and the ledger's. `why_not`: why their frames weren't walked; empty: they were.
    void set_languages(processes::Following &following, const std::string &why_not);
    /// What a recording keeps of it, and a report reads again.
    ///@{
    [[nodiscard]] recording::End recorded() const;
    void set_recorded(const recording::End &end, std::vector<render::StackAdvice> advice);
    ///@}
    /// A warning where the kernel skipped programs, as one ran on that CPU already.
    void warn_of_skipped(const RunCost &programs);
};

} // namespace rawbpf::inline v0::session
