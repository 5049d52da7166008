// The capture file: a profile's samples with numbered stacks, as a recording (programs/recording).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "programs/processes/label_sets.h"
#include "programs/processes/stacks.h"
#include "programs/profile/profiler.h"
#include "programs/recording/recording.h"
#include "runtime/base/bytes.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::profile {

/// Writes a capture.
class CaptureWriter : public recording::Writer {
  public:
    using Writer::Writer;

    /// Writes the sample and whatever of its stacks and modules isn't in the file yet.
    void sample(const processes::InternedSample &sample, const processes::StackTree &tree, const processes::ModuleTable &modules,
                const processes::LabelSets &labels = {});
    void end(const Outcome &outcome);

  private:
    uint64_t weight_ = 1; // of the samples being written
};

/// Reads a capture that may be anything. The bytes must outlive it.
class CaptureReader : public recording::Reader {
  public:
    /// Receives what is in the file, in its order. An Error ends the reading.
    class Visitor {
      public:
        virtual ~Visitor() = default;
        virtual Result<void> sample(const processes::InternedSample &) { return {}; }
        /// A place's name; symbol, symbol_offset and module are set.
        virtual void name(uint32_t /*place*/, Frame &&) {}
        /// The tree is about to be cleared, or the end has come: names of this part are complete.
        virtual Result<void> part_ends() { return {}; }
    };
    using Reader::Reader;

    /// Reads it all from the beginning: see recording::Reader::read().
    [[nodiscard]] Result<void> read(Visitor &visitor);
    /// Ledger, cost and warnings as they were recorded; after read().
    [[nodiscard]] Outcome outcome() const;
};

} // namespace rawbpf::inline v0::profile
