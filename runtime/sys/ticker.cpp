// pthread_create(3), with a condition variable on which the thread sleeps between two ticks. Only the user of the library
// starts one; no folder of the library does so by itself.
//
//      thread   tick() -> 2 ms   sleep   tick() -> 2 ms   sleep   tick() -> 0   parked ................ tick() ...
//      others                                                                          wake(): signalled
//
// wake() is called for every batch of work, so it must not cost a system call while the thread ticks anyway. It stores a flag and
// then asks whether the thread is parked; the thread says that it is parked and then asks for the flag. In sequential order one
// of them sees the other.
#include "runtime/sys/ticker.h"

#ifndef RAWBPF_ONE_THREAD
#include <atomic>
#include <ctime>
#include <optional>
#include <pthread.h>

#include "runtime/sys/close_together.h"
#include "runtime/sys/realtime_priority.h"
#include "runtime/sys/thread.h"
#endif

namespace rawbpf::inline v0::sys {

#ifdef RAWBPF_ONE_THREAD

struct Lock::State {};
Lock::Lock() = default;
Lock::~Lock() = default;
void Lock::take() {}
void Lock::give() {}

struct Ticker::State {};
Ticker::Ticker(std::unique_ptr<State> state) : state_(std::move(state)) {}
Ticker::~Ticker() = default;
std::unique_ptr<Ticker> Ticker::start(std::function<uint64_t()>, Turn) { return nullptr; }
void Ticker::wake() {}

#else

// Beside thousands of threads that want to run an ordinary one is stopped for seconds, in the middle of what it holds the lock
// for.
struct Lock::State {
    pthread_mutex_t mutex{};
    State() {
        pthread_mutexattr_t inherits;
        pthread_mutexattr_init(&inherits);
        (void)pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT);
        if (pthread_mutex_init(&mutex, &inherits) != 0) pthread_mutex_init(&mutex, nullptr);
        pthread_mutexattr_destroy(&inherits);
    }
};
Lock::Lock() : state_(std::make_unique<State>()) {}
Lock::~Lock() { pthread_mutex_destroy(&state_->mutex); }
void Lock::take() { pthread_mutex_lock(&state_->mutex); }
void Lock::give() { pthread_mutex_unlock(&state_->mutex); }

constexpr uint64_t kRestNs = 10'000'000;  // Turn::first
constexpr size_t kStackBytes = 512 << 10; // a tick drains rings and counts; sanitizers' frames are several times as large

struct Ticker::State {
    std::function<uint64_t()> tick;
    Turn turn = Turn::ordinary;
    pthread_t thread{};
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed{};
    std::atomic<bool> woken{true}, parked{false};
    bool ends = false; ///< under the mutex

    State() {
        pthread_condattr_t monotonic;
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_cond_init(&changed, &monotonic);
        pthread_condattr_destroy(&monotonic);
    }
    ~State() {
        pthread_cond_destroy(&changed);
        pthread_mutex_destroy(&mutex);
    }

    static timespec after(uint64_t wait_ns) {
        timespec until{};
        clock_gettime(CLOCK_MONOTONIC, &until);
        const uint64_t ns = static_cast<uint64_t>(until.tv_nsec) + wait_ns;
        until.tv_sec += static_cast<time_t>(ns / 1'000'000'000);
        until.tv_nsec = static_cast<long>(ns % 1'000'000'000);
        return until;
    }

    void run() {
        std::optional<RealtimePriority> urgent;
        if (turn == Turn::first) urgent.emplace("what has come is moved out of the way before others have their turn");
        pthread_mutex_lock(&mutex);
        while (!ends) {
            woken = false;
            pthread_mutex_unlock(&mutex);
            const uint64_t wait_ns = tick();
            pthread_mutex_lock(&mutex);
            const timespec until = after(wait_ns ? wait_ns : kRestNs);
            if (wait_ns == 0) {
                parked = true;
                const auto sleep = [&] {
                    return turn == Turn::first ? pthread_cond_timedwait(&changed, &mutex, &until)
                                               : pthread_cond_wait(&changed, &mutex);
                };
                while (!woken && !ends && sleep() == 0) {
                }
                parked = false;
                continue;
            }
            while (!ends && pthread_cond_timedwait(&changed, &mutex, &until) == 0) {
            }
        }
        pthread_mutex_unlock(&mutex);
    }
};

Ticker::Ticker(std::unique_ptr<State> state) : state_(std::move(state)) {}

std::unique_ptr<Ticker> Ticker::start(std::function<uint64_t()> tick, Turn turn) {
    if (is_watched()) return nullptr;
    auto state = std::make_unique<State>();
    state->tick = std::move(tick);
    state->turn = turn;
    const auto body = [](void *argument) -> void * {
        static_cast<State *>(argument)->run();
        return nullptr;
    };
    const std::optional<pthread_t> thread = start_thread(body, state.get(), kStackBytes);
    if (!thread) return nullptr;
    state->thread = *thread;
    return std::unique_ptr<Ticker>(new Ticker(std::move(state)));
}

Ticker::~Ticker() {
    pthread_mutex_lock(&state_->mutex);
    state_->ends = true;
    pthread_cond_signal(&state_->changed);
    pthread_mutex_unlock(&state_->mutex);
    (void)pthread_join(state_->thread, nullptr);
}

void Ticker::wake() {
    State &s = *state_;
    s.woken = true;
    if (!s.parked) return;
    pthread_mutex_lock(&s.mutex);
    pthread_cond_signal(&s.changed);
    pthread_mutex_unlock(&s.mutex);
}

#endif

} // namespace rawbpf::inline v0::sys
