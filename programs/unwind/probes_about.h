// Whether anybody has probes in programs (uprobes), so that threads may be found in what the kernel puts there for them.
#pragma once

namespace rawbpf::inline v0 {

/// Whether there may be some: a BPF program of the kind that stands at them is loaded, or tracefs lists some. False where nobody
/// has any, but for those of perf_event_open(2) alone. Costs three system calls for each program that is loaded. True where these
/// privileges don't suffice to tell.
[[nodiscard]] bool probes_may_be_about();

} // namespace rawbpf::inline v0
