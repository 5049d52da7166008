// Interpreters' frames, which come in front of an event's record as one of their own, back to their event.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "programs/languages/records.h"
#include "programs/trace/tracer.h"
#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::trace {

class Languages {
  public:
    /// Who takes what frames are called, and who is told of such records that were lost.
    void tell(std::function<void(Bytes)> codes, std::function<void(Bytes)> lost) {
        codes_ = std::move(codes);
        lost_ = std::move(lost);
    }
    /// Takes a record that tells of interpreters; false: it is none.
    bool take(Bytes record);
    /// The same of one that was lost, in any thread.
    bool take_lost(Bytes record) const;
    /// What came in front of that event; good until the next record. Empty: nothing did.
    [[nodiscard]] std::span<const uint64_t> of(const Event &event) const;

  private:
    std::function<void(Bytes)> codes_, lost_;                    // may be empty
    std::unordered_map<uint32_t, std::vector<uint64_t>> frames_; // by thread: of its next event, their number first
};

} // namespace rawbpf::inline v0::trace
