// What the BPF program writes into the ring buffer, and user space reads out of it: one description for both sides, so that they
// can't disagree. The program's stores take their distances from offsetof().
//
//      0         8         16                          64          80        84      88
//      | time    | ids     | args[0] ... args[5]       | comm      | function| kind  |
//
//      ids: process id in the upper half, thread id in the lower, as bpf_get_current_pid_tgid() has them
#pragma once

#include <cstdint>

namespace lab {

enum EventKind : uint32_t { kCall = 0, kReturn = 1 };

struct Event {
    uint64_t time;     ///< CLOCK_MONOTONIC, ns: since the machine was started, not since 1970
    uint64_t ids;      ///< process id << 32 | thread id
    uint64_t args[6];  ///< of a return: args[0] is what the function returned
    char comm[16];     ///< the thread's name
    uint32_t function; ///< which of the traced functions
    uint32_t kind;     ///< EventKind
};
static_assert(sizeof(Event) == 88);

/// With a text behind it (experiment 3).
inline constexpr uint32_t kTextBytes = 128;
struct EventWithText {
    Event event;
    int64_t text_length; ///< with its zero; or a negative errno: the memory couldn't be read
    char text[kTextBytes];
};
static_assert(sizeof(EventWithText) == 88 + 8 + 128);

} // namespace lab
