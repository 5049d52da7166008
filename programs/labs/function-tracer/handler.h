// The BPF side of the lab: one small program for each traced function.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/result.h"
#include "runtime/object/spec.h"

namespace lab {

inline constexpr uint32_t kRingBytes = 1 << 20;
inline constexpr uint32_t kMostFunctions = 100;

/// What is asked of one handler. What isn't asked for isn't in the program.
struct HandlerOptions {
    std::string section;      ///< what it attaches to: "kprobe/vfs_read", "uretprobe//proc/self/exe:user_read"
    uint32_t function_id = 0; ///< goes into the events, and is the key of its counter
    bool at_return = false;   ///< experiment 1: the result instead of the arguments
    uint32_t only_pid = 0;    ///< experiment 2: this process; 0: all but our own
    uint32_t own_pid = 0;
    int text_argument = -1; ///< experiment 3: this argument is the address of a text; -1: none is
    /// Process ids are counted in this namespace (device and inode of /proc/self/ns/pid); inode 0: in the machine's own.
    uint64_t pidns_device = 0, pidns_inode = 0;
};

/// Errors: what the builder complains of.
[[nodiscard]] rawbpf::Result<rawbpf::ObjectSpec> create_trace_handler(const HandlerOptions &options);

} // namespace lab
