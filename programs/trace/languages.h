// Interpreters' frames, which come in front of an event's record as one of their own, back to their event.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "programs/trace/tracer.h"
#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::trace {

class Languages {
  public:
    std::function<void(Bytes)> codes; ///< takes what frames are called; may be empty
    /// Takes a record that tells of interpreters; false: it is none.
    bool take(Bytes record);
    /// What came in front of that event; good until the next record. Empty: nothing did.
    [[nodiscard]] std::span<const uint64_t> of(const Event &event) const;

  private:
    std::unordered_map<uint32_t, std::vector<uint64_t>> frames_; // by thread: of its next event, their number first
};

} // namespace rawbpf::inline v0::trace
