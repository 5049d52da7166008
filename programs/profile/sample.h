// One record of the ring, taken apart.
#pragma once

#include <optional>
#include <span>

#include "programs/capture/parse_record.h"
#include "programs/languages/layout.h"
#include "programs/profile/record.h"
#include "programs/unwind/walk.h"
#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::profile {

/// A view of a record; valid as long as the bytes are.
struct RawSample {
    RecordHead head{};
    uint64_t key = 0;                                      ///< ProfileRecord's
    std::span<const uint64_t> kernel, user;                ///< addresses, leaf first
    std::optional<unwind::StackCopy> copy;                 ///< to make the user stack of
    std::span<const uint64_t> language = {};               ///< an interpreter's frames
    Bytes labels = {};                                     ///< the running request's
    uint64_t taken_ns = 0;                                 ///< as in processes::UserStack
    bool made_here = false;                                ///< likewise
    std::span<const unwind::FrameFunction> functions = {}; ///< likewise
};

/// nullopt when the sizes in the record don't fit its bytes. `record` must be aligned to 8 (the ring's records are).
[[nodiscard]] inline std::optional<RawSample> parse_record(Bytes record) {
    if (record.size() < sizeof(ProfileRecord)) return std::nullopt;
    RawSample out;
    const auto fixed = load<ProfileRecord>(record.data());
    out.head = fixed.head;
    out.key = fixed.key;
    out.head.comm[sizeof out.head.comm - 1] = '\0';
    const std::optional<RecordStacks> stacks = stacks_of(out.head, record, sizeof(ProfileRecord));
    if (!stacks) return std::nullopt;
    out.kernel = stacks->kernel;
    out.user = stacks->user;
    out.language = stacks->language;
    out.labels = stacks->labels;
    out.head.ending &= 0xffff & ~LANGUAGE_UNPROVEN;
    if (out.head.ending & UNWIND_COPIED) {
        out.copy = unwind::read_copy(stacks->rest);
        if (!out.copy) return std::nullopt;
    }
    return out;
}

} // namespace rawbpf::inline v0::profile
