// SPDX-License-Identifier: MIT
// How a tool's user stacks are walked, as it is asked for.
#pragma once

#include <cstdint>

namespace rawbpf::inline v0 {

/// How user stacks are walked.
enum class UnwindBy : uint8_t {
    automatic, ///< by tables where the kernel can, else by frame pointers with a warning
    fp,        ///< by frame pointers, which the kernel does by itself
    tables,    ///< by unwind tables (.eh_frame), or not at all
};

/// How, and what it may take.
struct UnwindChoice {
    UnwindBy by = UnwindBy::automatic; ///< by what
    uint64_t memory = 64 << 20;        ///< bytes for tables, of all files together; 1 MiB at least
    uint32_t depth = 127;              ///< most frames of a user stack that is walked by tables, 1 to UNWIND_MAX_FRAMES (255)
};

} // namespace rawbpf::inline v0
