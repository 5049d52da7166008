// Waits until a time, or until somebody ends the command.
#pragma once

#include <cstdint>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::cli {

/// Signals that would end the program are kept for it from open() on, so that what was attached is taken away as it should be.
class Waiting {
  public:
    [[nodiscard]] static Result<Waiting> open();
    /// Until `end_ns`, by sys::monotonic_ns(); UINT64_MAX: without end. True: a signal came before. Errors: the kernel's.
    [[nodiscard]] Result<bool> stopped_before(uint64_t end_ns) const;

  private:
    Waiting(sys::SignalFd signals, Fd epoll) : signals_(std::move(signals)), epoll_(std::move(epoll)) {}
    sys::SignalFd signals_;
    Fd epoll_;
};

} // namespace rawbpf::inline v0::cli
