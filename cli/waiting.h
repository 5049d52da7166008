// Waits until a time, or until a signal ends the command; calls a function at an interval until then.
#pragma once

#include <cstdint>
#include <utility>

#include "cli/options.h"
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

/// How often, and for how long, in nanoseconds; a duration of UINT64_MAX ends by a signal.
struct LooksAsked {
    uint64_t every_ns = 0, duration_ns = UINT64_MAX;
};
/// What --every and --duration ask for. Errors: invalid_argument where --every is less than `least_ms`.
[[nodiscard]] Result<LooksAsked> looks_asked(const Arguments &a, Id every, Id duration, uint64_t least_ms);

/// What a command that looks again and again does between its looks: the first one begins, the last one is at the end.
///
///     Looks looks = TRY(Looks::begin(asked));
///     while (TRY(looks.next())) look();
class Looks {
  public:
    /// Errors: those of Waiting.
    [[nodiscard]] static Result<Looks> begin(const LooksAsked &asked);
    /// Waits until it is time for the next look; false where the one before was the last. A signal makes a last look due at once.
    /// Where a look takes longer than it is to the next one, the next one waits for its whole time again.
    [[nodiscard]] Result<bool> next();
    /// Nanoseconds since begin().
    [[nodiscard]] uint64_t elapsed_ns() const;

  private:
    Looks(Waiting waiting, uint64_t every_ns, uint64_t started_ns, uint64_t end_ns)
        : waiting_(std::move(waiting)), every_ns_(every_ns), started_ns_(started_ns), due_ns_(started_ns), end_ns_(end_ns) {}
    Waiting waiting_;
    uint64_t every_ns_, started_ns_, due_ns_, end_ns_;
    bool waited_ = false, stopped_ = false;
};

} // namespace rawbpf::inline v0::cli
