// Every way in which the profile program can be configured, for tests that build or load them all.
#pragma once

#include "programs/profile/record.h"

namespace rawbpf::test {

/// Calls `body(const ProfileConfig &, unsigned number)` for each of the 104.
template <class Body> void each_profile_config(Body &&body) {
    unsigned number = 0;
    for (__u32 pids : {PROFILE_PIDS_ANY, PROFILE_PIDS_WANTED, PROFILE_PIDS_LEFT_OUT}) {
        for (unsigned bits = 0; bits < (pids == PROFILE_PIDS_ANY ? 40 : 32); ++bits) {
            ProfileConfig config{};
            if (bits >= 32) { // events, and a tracepoint's every fourth
                config.every = bits & 4 ? 4 : 1;
                config.tracepoint = bits >> 2 & 1;
            }
            config.want_kernel = bits & 1;
            config.want_user = bits >> 1 & 1;
            config.skip_idle = bits >> 2 & 1;
            config.filter_pid = pids;
            config.filter_cgroup = bits >> 3 & 1;
            config.pidns_ino = bits & 16 ? 4026531836 : 0;
            config.pidns_dev = 4;
            config.wakeup_bytes = bits & 1 ? 0xffffffff : 4096; // one that no comparison takes as a number
            body(config, number++);
        }
    }
}

} // namespace rawbpf::test
