// A recording's chunks of custom traces (programs/recording/chunks.h has the others):
//
//     32 settings   what was asked for                            once, before all of these
//     33 trace      flags, time since the last, cpu, thread's name, pid, tid, context or time off the CPU, stacks, why the user's ended
//     34 waits      what the ledger says of waits                 at the end, if there is anything to say
//
// pid, tid and context are the difference from the trace before (of the same origin, the context). A trace whose stacks were seen
// before takes about 15 bytes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "programs/custom/located.h"
#include "programs/recording/recording.h"
#include "programs/unwind/choice.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::custom {

/// What a recording says of itself.
struct Settings {
    bool samples = false; ///< beside traces there are samples
    bool off_cpu = false; ///< and waits
    bool guarded = true;  ///< contexts by way of the per-CPU map are checked to be their thread's
    UnwindBy unwind = UnwindBy::automatic;
};

/// What traces are told from: of the last one.
struct Before {
    uint32_t pid = 0, tid = 0;
    std::array<uint64_t, 4> contexts{}; ///< by origin
};

/// Writes the chunks.
class TraceWriter {
  public:
    explicit TraceWriter(recording::Writer &writer) : writer_(writer) {}
    void settings(const Settings &settings);
    void trace(const LocatedTrace &trace);
    void waits(const recording::Counted &waits);

  private:
    recording::Writer &writer_;
    Before before_;
};

/// Reads them. What is in them may be anything.
class TraceReader : public recording::Reader::Visitor {
  public:
    using See = std::function<Result<void>(LocatedTrace &)>;
    /// Both must outlive this; `see` may be empty.
    TraceReader(recording::Reader &reader, See see) : reader_(reader), see_(std::move(see)) {}
    [[nodiscard]] const Settings &settings() const { return settings_; }
    [[nodiscard]] const recording::Counted &waits() const { return waits_; }

    Result<bool> chunk(uint8_t type, recording::Cursor &in) override;

  private:
    Result<void> read_settings(recording::Cursor &in);
    Result<void> read_trace(recording::Cursor &in);

    recording::Reader &reader_;
    See see_;
    bool begun_ = false;
    Settings settings_;
    recording::Counted waits_;
    Before before_;
};

} // namespace rawbpf::inline v0::custom
