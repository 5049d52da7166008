// Waits until everything that was running on the CPUs has ended.
#pragma once

namespace rawbpf::inline v0::sys {

/// Returns when no CPU runs any more what it ran without a break at the time of the call: a grace period of RCU, some ten
/// milliseconds (membarrier(2), 4.3). So a program that was detached before has made its last run, though others may still hold
/// its tracepoint. Where the kernel refuses (nohz_full=), it returns at once.
void wait_for_programs();

} // namespace rawbpf::inline v0::sys
