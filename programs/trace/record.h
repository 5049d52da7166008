// What the programs send: a header, the values of the arguments, and what was copied for them.
//
//      | Header, 48 bytes | value 0 | value 1 | ...  8 bytes each | blob 0 | blob 1 | ... |
//
//      blob: | s32 length, or a negative errno | bytes ... |    of fixed size, so that a record's size is known when it is
//      reserved
//
// All in the machine's byte order: this is memory shared with the kernel, not a file format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "programs/trace/probe.h"

namespace rawbpf::inline v0::trace {

struct Header {
    uint64_t time = 0; ///< CLOCK_MONOTONIC, ns
    uint32_t tid = 0, pid = 0;
    uint32_t place = 0; ///< index among the places
    uint32_t cpu = 0;
    uint32_t what = 0; ///< What
    uint32_t pad = 0;
    char comm[16] = {};
};
static_assert(sizeof(Header) == 48);

enum What : uint32_t { call = 0, result = 1 };

/// The counters of a place, for each CPU; the ledger is made of them.
struct Counts {
    uint64_t fired = 0, filtered = 0, sampled_out = 0, lost = 0;
};

/// What is copied while the probe runs, for one argument.
struct Blob {
    uint32_t argument = 0; ///< in Layout::values
    Show show = Show::text;
    uint16_t offset = 0;   ///< of the length, in the record
    uint16_t capacity = 0; ///< bytes behind it
};

/// How a record of one kind of place looks.
struct Layout {
    uint32_t values = 0; ///< arguments; for a result: 1
    bool is_result = false;
    std::vector<Blob> blobs;
    uint32_t size = sizeof(Header);
};

inline constexpr uint16_t kSockaddrBytes = 28; // sockaddr_in6; longer ones (AF_UNIX) are cut: their path is capacity's

} // namespace rawbpf::inline v0::trace
