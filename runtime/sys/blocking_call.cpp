// A copy of the process instead of a thread, for two reasons: this code isn't made for two threads (invoke(), the narrator),
// and a copy's descriptors are closed while it ends, for which nobody waits.
//
//      parent                         copy
//      clone() ---------------------> prctl(PR_SET_PDEATHSIG): never without its parent
//      goes on                        close_range(): no pipe stays open for its sake
//      ...                            the call
//      end(): SIGKILL --------------> pause()
//
// The copy makes raw system calls only, which the observer doesn't see. Its exit status is collected when the next copy begins
// or ends, or by init.
#include "runtime/sys/blocking_call.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <linux/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <vector>

#include "runtime/base/fail.h"
#include "runtime/base/remembering.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::sys {
namespace {

#ifndef __NR_close_range
#define __NR_close_range 436 // 5.9
#endif

std::vector<int> ending; // copies that were told to

void reap() {
    const Remembering lock;
    std::erase_if(ending, [](int pid) { return invoke(__NR_wait4, static_cast<uint64_t>(pid), 0, WNOHANG) != 0; });
}

[[noreturn]] void copy_main(long number, const std::array<uint64_t, 6> &args, uint64_t keep, uint64_t also, int parent) {
    uint64_t all = ~uint64_t{0};
    direct(__NR_rt_sigprocmask, SIG_SETMASK, reg(&all), 0, 8); // a terminal's Ctrl-C is the parent's
    direct(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL);
    if (direct(__NR_getppid) == parent) { // else it died before it could be said
        if (keep > 0) direct(__NR_close_range, 0, keep - 1);
        if (also > keep + 1) direct(__NR_close_range, keep + 1, also - 1);
        direct(__NR_close_range, also + 1, UINT32_MAX);
        direct(number, args[0], args[1], args[2], args[3], args[4], args[5]);
        uint64_t none = 0;
        for (;;) direct(__NR_ppoll, 0, 0, 0, reg(&all), sizeof none);
    }
    for (;;) direct(__NR_exit_group, 0);
}

} // namespace

Result<BlockingCall> BlockingCall::call(long number, const std::array<uint64_t, 6> &args, int keep, int also) {
    reap();
    BlockingCall made;
    const int parent = own_pid();
    const long pid = invoke(__NR_clone, SIGCHLD);
    if (pid < 0) return fail_os(static_cast<int>(-pid), "making a copy of this process for a system call that blocks");
    if (also < 0) also = keep;
    if (pid == 0)
        copy_main(number, args, static_cast<uint64_t>(std::min(keep, also)), static_cast<uint64_t>(std::max(keep, also)), parent);
    made.pid_ = static_cast<int>(pid);
    return made;
}

BlockingCall &BlockingCall::operator=(BlockingCall &&other) noexcept {
    if (this != &other) {
        end();
        pid_ = other.pid_;
        other.pid_ = -1;
    }
    return *this;
}

void BlockingCall::end() noexcept {
    if (pid_ < 0) return;
    (void)invoke(__NR_kill, static_cast<uint64_t>(pid_), SIGKILL);
    const Remembering lock;
    ending.push_back(pid_);
    pid_ = -1;
    reap();
}

} // namespace rawbpf::inline v0::sys
