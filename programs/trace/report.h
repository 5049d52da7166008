// A recorded trace, shown as the live run would have shown it: the same View, fed from a file.
#pragma once

#include <memory>
#include <string>

#include "programs/processes/source_lines.h"
#include "programs/recording/recording.h"
#include "programs/render/writer.h"
#include "programs/session/run_report.h"
#include "programs/trace/event_reader.h"
#include "programs/trace/sink.h"
#include "runtime/base/bytes.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::trace {

struct ReportEnd : session::RunEnd {
    std::string places; ///< places_ledger()
    bool unread =
        false; ///< it isn't whole: names are missing as a file that is here couldn't be read, or the recording ends early
};

class Report {
  public:
    /// Reads all of it, and so knows that it can be read. `name` is for messages; the bytes must outlive this. Errors: bad_input,
    /// with the offset.
    [[nodiscard]] static Result<std::unique_ptr<Report>> open(Bytes recording, const std::string &name);
    [[nodiscard]] const Settings &settings() const { return first_.settings(); }
    /// How it is shown: of ViewOptions what isn't in settings(), and `graph` and `latency`, which settings() has as they were
    /// asked for. `symfs`: see FileSymbols. Errors: the writer's.
    [[nodiscard]] Result<ReportEnd> show(ViewOptions view, const std::string &symfs, render::Writer &writer);

  private:
    class Collect;
    class Show;
    explicit Report(Bytes recording, const std::string &name) : reader_(recording, name), first_(reader_, {}) {}
    recording::Reader reader_;
    recording::BroughtNames names_;
    EventReader first_; ///< what the first reading knows: all places, types and counts
};

} // namespace rawbpf::inline v0::trace
