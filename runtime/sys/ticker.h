// A thread that repeats a small task while it is needed, and the lock that protects the task's data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace rawbpf::inline v0::sys {

/// A mutex; nothing at all in builds of one thread (RAWBPF_ONE_THREAD). Who holds it while a thread that goes first waits for it
/// goes first, too.
class Lock {
  public:
    Lock();
    ~Lock();
    Lock(const Lock &) = delete;
    Lock &operator=(const Lock &) = delete;
    void take();
    void give();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Holds a lock for a scope.
class Locked {
  public:
    explicit Locked(Lock &lock) : lock_(lock) { lock_.take(); }
    ~Locked() { lock_.give(); }
    Locked(const Locked &) = delete;
    Locked &operator=(const Locked &) = delete;

  private:
    Lock &lock_;
};

/// The thread. Signals are for others.
class Ticker {
  public:
    /// first: it runs before ordinary threads where it may (RealtimePriority), so what it does has to be short.
    enum class Turn : uint8_t { ordinary, first };
    /// `tick` says after how many nanoseconds it wants to be called again; 0: not before wake(). But one that goes first
    /// rests for 10 ms at most: who would wake it may itself wait for its turn. nullptr where there can be no thread: in builds
    /// of one thread, where somebody watches the system calls (is_watched()), when the machine has no room.
    [[nodiscard]] static std::unique_ptr<Ticker> start(std::function<uint64_t()> tick, Turn turn);
    /// Ends the thread and waits for it.
    ~Ticker();
    Ticker(const Ticker &) = delete;
    Ticker &operator=(const Ticker &) = delete;
    /// There is cause to tick again. Costs nothing while it does.
    void wake();

  private:
    struct State;
    explicit Ticker(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

} // namespace rawbpf::inline v0::sys
