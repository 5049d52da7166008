// Equal stacks counted in the kernel: what the program's stage (counting_dsl.h) and user space
// (programs/session/stack_counting.h) agree on.
#pragma once

#include <cstdint>

#include <linux/types.h>

namespace rawbpf::inline v0 {

/// The value in the map of counts; the key is the record's.
struct StackCount {
    __u64 count; ///< samples beside those that were sent
    __u64 sent;  ///< 1: a record with this key is in a ring
};

/// What the stage of the program is specialised to.
struct StackCountingOptions {
    uint64_t seed = 0;      ///< of the keys: a new one for each run
    uint32_t stacks = 8192; ///< room for so many
    bool by_thread = false; ///< threads of a process are told apart
};

} // namespace rawbpf::inline v0
