// Waiting for several descriptors at once: epoll(7), through invoke().
#pragma once

#include <cstdint>
#include <span>

#include <sys/epoll.h>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::sys {

/// epoll_create1(2), close-on-exec.
Result<Fd> epoll_create();
/// epoll_ctl(2), EPOLL_CTL_ADD: `events` of EPOLLIN, EPOLLET ...; `data` comes back with each event.
Result<void> epoll_add(int epoll, int fd, uint32_t events, uint64_t data);
/// epoll_ctl(2), EPOLL_CTL_DEL.
Result<void> epoll_remove(int epoll, int fd);
/// epoll_pwait(2): how many of `into` were filled; 0 on time-out (milliseconds; -1: none) and when a signal came, so that the
/// caller gets to look at its own flags.
Result<size_t> epoll_wait(int epoll, std::span<epoll_event> into, int timeout_ms);

} // namespace rawbpf::inline v0::sys
