// The recording side of custom traces: their stacks as numbers, no names.
//
//      CustomTracer --CustomTrace--> Recorder: Places --LocatedTrace--> TraceWriter --> file
#pragma once

#include <cstdint>
#include <string>

#include "programs/custom/located.h"
#include "programs/custom/recording.h"
#include "programs/custom/tally.h"
#include "programs/processes/namer.h"
#include "programs/recording/recording.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::custom {

class Recorder {
  public:
    /// `fd` is borrowed; -1: take() has the bytes.
    Recorder(int fd, const Settings &settings, Places &places);
    [[nodiscard]] Result<void> start(const RunInfo &run, uint64_t start_ns);
    void trace(const LocatedTrace &trace);
    /// Writes what has been gathered, once there is enough of it or a second is over. To be called often.
    [[nodiscard]] Result<void> flush(uint64_t now_ns);
    /// The names that no report can find, and what the run's end knows.
    [[nodiscard]] Result<void> finish(const recording::End &end);
    /// What was written.
    [[nodiscard]] const Tally &tally() const { return tally_; }
    [[nodiscard]] std::string take() { return writer_.take(); }

  private:
    void write_names();

    Settings settings_;
    Places &places_;
    processes::Namer namer_; ///< for names that only this machine knows
    recording::Writer writer_;
    TraceWriter traces_{writer_};
    Tally tally_;
};

} // namespace rawbpf::inline v0::custom
