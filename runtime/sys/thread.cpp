// pthread_create(3) with a small stack. A child inherits the mask of signals, so they are blocked while it is made.
#include "runtime/sys/thread.h"

#include <csignal>

namespace rawbpf::inline v0::sys {

std::optional<pthread_t> start_thread(void *(*body)(void *), void *argument, size_t stack_bytes) {
    pthread_attr_t small;
    if (pthread_attr_init(&small) != 0) return std::nullopt;
    (void)pthread_attr_setstacksize(&small, stack_bytes); // refused below the machine's least: then it is the usual one
    sigset_t all, before;
    sigfillset(&all);
    const bool blocked = pthread_sigmask(SIG_SETMASK, &all, &before) == 0;
    pthread_t thread;
    const bool made = pthread_create(&thread, &small, body, argument) == 0;
    if (blocked) (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
    (void)pthread_attr_destroy(&small);
    if (!made) return std::nullopt;
    return thread;
}

} // namespace rawbpf::inline v0::sys
