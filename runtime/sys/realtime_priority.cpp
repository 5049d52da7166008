// sched_setscheduler(2) for this thread. Without CAP_SYS_NICE it fails, and nothing changes: it is an optimisation, not a
// requirement. A thread that already has a special scheduling policy keeps it. Processes that are forked meanwhile have the
// ordinary policy.
#include "runtime/sys/realtime_priority.h"

#include <sched.h>
#include <sys/syscall.h>

#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::sys {

RealtimePriority::RealtimePriority(std::string_view reason) {
    Because why(reason);
    const long policy = invoke(__NR_sched_getscheduler, 0);
    if (policy != SCHED_OTHER && policy != SCHED_BATCH) return;
    struct sched_param lowest {};
    lowest.sched_priority = 1;
    if (invoke(__NR_sched_setscheduler, 0, SCHED_RR | SCHED_RESET_ON_FORK, reg(&lowest)) == 0) before_ = policy;
}

RealtimePriority::~RealtimePriority() {
    if (before_ < 0) return;
    struct sched_param none {};
    (void)invoke(__NR_sched_setscheduler, 0, static_cast<uint64_t>(before_), reg(&none));
}

} // namespace rawbpf::inline v0::sys
