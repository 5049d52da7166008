// Who is sampled: there is always one clock a CPU, and what isn't wanted is filtered and counted. A clock on a thread, or one
// inherited by what it starts, would look simpler, but each starts with a whole period to wait: a thousand threads that work for
// a millisecond each would never be seen. With --pid --no-children the program looks for the process in a map. For a workload, or
// --pid and what it starts, it can't: when we hear of a child it may be gone. So all processes are sent but those in a map, and
// the kernel's news of forks, merged with the samples by time, say whose a sample is; a process that isn't of the family goes
// into the map with its first sample, and the others are dropped in the kernel. Not a tick later: a sample of a process without
// tables has 8 KB of its stack, and a machine's worth of these, 3,000 times a second, is more than half a CPU can read.
#include "programs/profile/left_out.h"

#include "runtime/base/fail.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::profile {

namespace {

Result<void> take_out(Map &pids, uint32_t pid) {
    sys::Because why("this number belongs to the command now");
    return pids.erase(&pid);
}

} // namespace

void LeftOut::met(Map &pids, uint32_t pid) {
    if (failed_) return;
    if (auto left = leave_out(pids, pid); !left) failed_ = std::move(left).error();
}

Result<void> LeftOut::leave_out(Map &pids, uint32_t pid) {
    if (left_out_.count(pid) != 0) return {};
    if (left_out_.size() == kMostLeftOut) {
        for (uint32_t old : left_out_) TRY(take_out(pids, old));
        left_out_.clear();
    }
    sys::Because why("a process that isn't the command's: no more samples of it");
    TRY(pids.put(pid, uint8_t{1}));
    left_out_.insert(pid);
    return {};
}

Result<void> LeftOut::update(Map &pids, const std::function<bool(uint32_t)> &wanted) {
    if (failed_) return Unexpected(*failed_);
    for (auto at = left_out_.begin(); at != left_out_.end();) {
        if (!wanted(*at)) {
            ++at;
            continue;
        }
        TRY(take_out(pids, *at));
        at = left_out_.erase(at);
    }
    return {};
}

} // namespace rawbpf::inline v0::profile
