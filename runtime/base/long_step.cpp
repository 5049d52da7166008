#include "runtime/base/long_step.h"

#include <atomic>

namespace rawbpf::inline v0 {
namespace {

std::atomic<const char *> doing{nullptr}, of{""};
std::atomic<uint32_t> done{0}, total{0};
std::atomic<void (*)()> heard{nullptr};

void set(const LongStep::State &state) {
    of.store(state.of, std::memory_order_relaxed);
    done.store(state.done, std::memory_order_relaxed);
    total.store(state.total, std::memory_order_relaxed);
    doing.store(state.doing, std::memory_order_release);
}

void tell() {
    if (void (*const listener)() = heard.load(std::memory_order_relaxed)) listener();
}

} // namespace

LongStep::LongStep(const char *what, const char *of_what, size_t how_many) : outer_(now()) {
    set({what, of_what, 0, static_cast<uint32_t>(how_many)});
    tell();
}

LongStep::~LongStep() { set(outer_); }

void LongStep::advance(size_t more) {
    done.fetch_add(static_cast<uint32_t>(more), std::memory_order_relaxed);
    tell();
}

LongStep::State LongStep::now() {
    State out;
    out.doing = doing.load(std::memory_order_acquire);
    out.of = of.load(std::memory_order_relaxed);
    out.done = done.load(std::memory_order_relaxed);
    out.total = total.load(std::memory_order_relaxed);
    return out;
}

void (*LongStep::listen(void (*listener)()))() { return heard.exchange(listener); }

} // namespace rawbpf::inline v0
