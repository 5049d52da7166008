// What a sample has from an event's header: when, who, where. Its stacks come from elsewhere: located, or read from a recording.
#pragma once

#include <cstring>

#include "programs/processes/stacks.h"
#include "programs/trace/record.h"

namespace rawbpf::inline v0::trace {

[[nodiscard]] inline processes::InternedSample sample_of(const Header &header) {
    processes::InternedSample out;
    out.t_ns = header.time;
    out.pid = header.pid;
    out.tid = header.tid;
    out.cpu = header.cpu;
    out.origin = header.place;
    std::memcpy(out.comm, header.comm, sizeof out.comm);
    return out;
}

} // namespace rawbpf::inline v0::trace
