// What a run waits for, and when it is over: the command has ended, all processes given have, the time is up, somebody says stop.
//
//      loop.open(); loop.add(ring); loop.watch(child); loop.watch(targets);
//      loop.begin(now, duration, stop);
//      for (;;) {
//          if (!TRY(loop.wait(100))) break;     // the time is up, or stop
//          ...                                  // read what has come
//          if (TRY(loop.over())) break;         // who was looked at has ended, and what it did has been read
//      }
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/sys/epoll.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::session {

/// Milliseconds to wait at `now_ns`: `usual`, less where a run of `duration_ns` (0: without end) that began at `begin_ns` ends
/// before. 0: its time is up. PURE.
[[nodiscard]] int wait_ms(int usual, uint64_t now_ns, uint64_t begin_ns, uint64_t duration_ns);

class RunLoop {
  public:
    [[nodiscard]] Result<void> open();
    /// For who adds more: what these say is not told, they only wake.
    [[nodiscard]] int epoll() const { return epoll_.get(); }
    /// Wakes when it becomes readable, once (edge-triggered): a ring has something to read nearly always; what is wanted is the
    /// wake-up of one that fills.
    [[nodiscard]] Result<void> add(int fd);
    /// The run is over when it ends. It must outlive this.
    [[nodiscard]] Result<void> watch(sys::Child &child);
    /// pidfds; the run is over when all of them have ended.
    [[nodiscard]] Result<void> watch(std::vector<Fd> targets);

    /// `duration_s` 0: without end. `stop`: ends it when it isn't zero; may be nullptr.
    void begin(uint64_t now_ns, double duration_s, const volatile std::sig_atomic_t *stop);
    /// Waits for something, `most_ms` at most. False: the time is up, or somebody said stop, and it hasn't waited.
    [[nodiscard]] Result<bool> wait(int most_ms);
    /// Which targets have ended while it waited, by their numbers.
    [[nodiscard]] std::span<const size_t> ended() const { return ended_; }
    /// Whether the child or all targets have ended.
    [[nodiscard]] Result<bool> over();
    [[nodiscard]] bool told_to_stop() const { return stop_ && *stop_ != 0; }
    [[nodiscard]] size_t targets() const { return targets_.size(); }
    [[nodiscard]] bool targets_ended() const { return !targets_.empty() && alive_ == 0; } ///< all of them

  private:
    void target_ended(size_t target);
    Fd epoll_;
    sys::Child *child_ = nullptr;
    std::vector<Fd> targets_;
    std::vector<size_t> ended_;
    size_t alive_ = 0;
    uint64_t begin_ns_ = 0, duration_ns_ = 0;
    const volatile std::sig_atomic_t *stop_ = nullptr;
    std::vector<epoll_event> ready_ = std::vector<epoll_event>(16);
};

} // namespace rawbpf::inline v0::session
