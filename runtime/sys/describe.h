// One system call as a line of text, for the narrator (--syscalls) and readable with the manual page open beside it:
//
//      bpf(BPF_MAP_CREATE, {map_type=BPF_MAP_TYPE_RINGBUF, key_size=0, value_size=0, max_entries=262144, map_name="events"}, 44)
//      = 5   # map events: the ring that records come out of
//      bpf(BPF_MAP_UPDATE_ELEM, {map_fd=6<wanted>, key=[0], value="\x01\x00\x10", flags=BPF_ANY}, 32) = 0
//
// The beginning of the data that a field points at is shown: instructions as LLVM writes them, numbers, text. Numbers of 1, 2,
// 4 and 8 bytes are [N], other bytes are quoted.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/sys/contents.h"
#include "runtime/sys/descriptors.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::sys {

/// True for the calls that the narrator shows: bpf(2), perf_event_open(2), mmap(2), and ioctl(2) but of terminals.
[[nodiscard]] bool is_narrated(const Call &call);

struct Detail {
    const Descriptors *fds = nullptr; ///< what descriptors are, and how large a map's keys and values
    Bounds bounds = kFew;
};

/// A call in its parts, for callers that print it in another form.
struct Described {
    /// One of its arguments, or a field of the struct that an argument points at.
    struct Argument {
        std::string name;     ///< "map_type"; empty: the struct's address, which couldn't be read
        std::string value;    ///< "BPF_MAP_TYPE_RINGBUF", "5<events>", a number
        bool is_named = true; ///< the line of text has its name, too
    };
    std::string_view call;           ///< "bpf"; empty: no call that is narrated
    std::string request;             ///< of bpf(2): "BPF_MAP_CREATE"
    std::vector<Argument> arguments; ///< the struct's first
    size_t in_struct = 0;            ///< how many of them are its fields
    long result = 0;                 ///< or -errno
    bool result_is_address = false;  ///< of mmap(2)
    int error = 0;                   ///< errno, or 0
    std::string error_name;          ///< "EINVAL"
    std::string why;                 ///< see Because
};
/// See describe(), which makes a line of it.
[[nodiscard]] Described describe_parts(const Call &call, long result, const Detail &detail = {});

/// The call with its attributes decoded by name, its result or errno, and why it was made. Follows the attribute pointers of
/// the call, so it belongs into Observer::after(), while they are alive; reads nothing else. Empty for other calls.
[[nodiscard]] std::string describe(const Call &call, long result, const Detail &detail = {});

} // namespace rawbpf::inline v0::sys
