// membarrier(2) has another purpose, but its oldest command is exactly synchronize_rcu(), and BPF programs at tracepoints run
// inside of an RCU section, for which it waits.
#include "runtime/sys/membarrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>

#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::sys {

void wait_for_programs() { (void)invoke(__NR_membarrier, MEMBARRIER_CMD_GLOBAL, 0); }

} // namespace rawbpf::inline v0::sys
