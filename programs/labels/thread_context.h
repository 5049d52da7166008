// A thread's context, as the program sent it. PURE.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::labels {

inline constexpr std::string_view kTraceId = "trace_id", kSpanId = "span_id"; ///< keys that need no attribute

/// Views of a record; valid as long as its bytes are.
struct ThreadContext {
    Bytes trace_id, span_id;                                      ///< of zeros: none
    std::vector<std::pair<uint8_t, std::string_view>> attributes; ///< a key's number and its value, in their order
    bool cut = false;                                             ///< the record has more attributes than were sent
    bool goroutine = false;    ///< it is a goroutine's: keys count what was asked for, and there are no ids, but
    uint64_t goroutine_id = 0; ///< its number; 0: not known, or not asked for

    /// The last attribute of that number; nullopt: there is none.
    [[nodiscard]] std::optional<std::string_view> find(size_t key) const;
    /// Whether some key's number is this or more.
    [[nodiscard]] bool has_above(size_t key) const;
};

/// `record`: its words (layout.h). nullopt: too short, or marked neither valid nor a goroutine's.
[[nodiscard]] std::optional<ThreadContext> parse_thread_context(Bytes record);

/// An id in hex; empty for zeros.
[[nodiscard]] std::string hex_id(Bytes id);

} // namespace rawbpf::inline v0::labels
