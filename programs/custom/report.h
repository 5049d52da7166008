// Recorded custom traces, shown as the live run would have shown them: the same View, fed from a file.
#pragma once

#include <memory>
#include <string>

#include "programs/custom/recording.h"
#include "programs/custom/view.h"
#include "programs/processes/source_lines.h"
#include "programs/recording/names.h"
#include "programs/recording/recording.h"
#include "programs/render/writer.h"
#include "programs/session/run_report.h"
#include "runtime/base/bytes.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::custom {

struct ReportEnd : session::RunEnd {
    std::string totals; ///< Tally::totals()
    bool unread =
        false; ///< it isn't whole: names are missing as a file that is here couldn't be read, or the recording ends early
};

/// Where a report finds names.
struct ReportNames {
    std::string symfs = {}; ///< see FileSymbols
    processes::SourceDetail detail = {};
    processes::DebugInfo *debug_info = nullptr;
};

class Report {
  public:
    /// Reads all of it, and so knows that it can be read. `name` is for messages; the bytes must outlive this. Errors: bad_input,
    /// with the offset.
    [[nodiscard]] static Result<std::unique_ptr<Report>> open(Bytes recording, const std::string &name);
    [[nodiscard]] const Settings &settings() const { return first_.settings(); }
    /// Of `view` what settings() has is found out. Once. Errors: the writer's.
    [[nodiscard]] Result<ReportEnd> show(ViewOptions view, const ReportNames &names, render::Writer &writer);

  private:
    class Collect;
    class Show;
    explicit Report(Bytes recording, const std::string &name) : reader_(recording, name), first_(reader_, {}) {}
    recording::Reader reader_;
    recording::BroughtNames names_;
    TraceReader first_; ///< what the first reading knows
};

} // namespace rawbpf::inline v0::custom
