// bpf_timer (kernel/bpf/helpers.c, 5.15), without a clock: a program ends, then its timers run.
//
//      run()   [ program ............ exit ]  [ the callback that is due first ]  [ the next ] ...      r0 is the program's
//
// A machine has one thread, so a callback can't run while the program runs; and real waiting would make a run slow and every
// run different. So the time between is skipped: when the program has ended, the timers' own clock jumps from one started
// timer to the next. They run in the order of their times, each once. A timer that starts itself again runs after the next
// run, since otherwise the run might never end. bpf_ktime_get_ns() doesn't use this clock.
//
// The state of a timer is stored here and not in its sixteen bytes of a map's value, which stay zero, as user space sees them
// in a kernel. If a value is deleted or replaced, its timers are deleted too.
#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "runtime/base/format.h"
#include "runtime/emulator/machine.h"
#include "runtime/sys/clock.h"

namespace rawbpf::inline v0::emulator {

namespace {

constexpr uint64_t kTimerBytes = 16;           // struct bpf_timer
constexpr uint64_t kClocks = 16;               // MAX_CLOCKS
constexpr uint64_t kAbsolute = 1, kPinned = 2; // BPF_F_TIMER_ABS (6.4), BPF_F_TIMER_CPU_PIN (6.7)

uint64_t errno_of(int64_t result) { return static_cast<uint64_t>(result); }

} // namespace

/// After a step back, and when a run begins.
void Machine::index_timers() {
    if (timers_indexed_) return;
    timers_indexed_ = true;
    timer_places_.clear();
    timers_due_.clear();
    timers_free_.clear();
    for (uint32_t n = 0; n < timers_.size(); ++n) {
        const Timer &timer = timers_[n];
        if (!timer.address)
            timers_free_.push_back(n);
        else
            timer_places_.emplace(timer.address, n);
        if (timer.address && timer.armed && !timer.fired) timers_due_.emplace(timer.due, n);
    }
}

Timer *Machine::timer_at(uint64_t address) {
    index_timers();
    const auto at = timer_places_.find(address);
    return at == timer_places_.end() ? nullptr : &timers_[at->second];
}

bool Machine::arm_timer(Timer &timer, bool armed, uint64_t due) {
    index_timers();
    journal_.note(&timer, sizeof timer);
    const uint32_t place = timer_places_[timer.address];
    timers_due_.erase({timer.due, place});
    timer.due = due;
    if (armed && !timer.fired) timers_due_.emplace(due, place);
    return std::exchange(timer.armed, armed);
}

Timer *Machine::make_timer(uint64_t address, const EmulatedMap &map) {
    if ((map.kind() != MapEngine::array && map.kind() != MapEngine::hash) || map.per_cpu() ||
        map.place_of(address, kTimerBytes) == map.max_entries()) {
        fault(format("r1 = {:#x} isn't in a value of map {}", address, map.name()));
        return nullptr;
    }
    index_timers();
    if (timers_free_.empty()) {
        timers_free_.push_back(static_cast<uint32_t>(timers_.size()));
        timers_.emplace_back();
    }
    const uint32_t place = timers_free_.back();
    timers_free_.pop_back();
    timer_places_.emplace(address, place);
    Timer *timer = &timers_[place];
    journal_.note(timer, sizeof *timer);
    *timer = Timer{};
    timer->address = address;
    for (uint32_t n = 0; n < maps_.size(); ++n)
        if (maps_[n].get() == &map) timer->map = n;
    return timer;
}

uint64_t Machine::set_timer(Timer &timer, int function_register) {
    const Op *function = function_at(cpu_.r[function_register]);
    if (!function)
        return fault(
            format("r{} = {:#x} isn't the address of a function of the program", function_register, cpu_.r[function_register]));
    journal_.note(&timer, sizeof timer);
    timer.callback = function;
    timer.program = cpu_.frames[cpu_.depth].program;
    return 0;
}

void Machine::forget_timers(uint64_t address, uint64_t size) {
    if (timers_.empty()) return;
    index_timers();
    for (auto at = timer_places_.lower_bound(address); at != timer_places_.end() && at->first - address < size;) {
        Timer &timer = timers_[at->second];
        journal_.note(&timer, sizeof timer);
        timers_due_.erase({timer.due, at->second});
        timers_free_.push_back(at->second);
        timer.address = 0;
        timer.armed = false;
        at = timer_places_.erase(at);
    }
}

/// The program, or a timer's callback, has ended: makes the machine ready for the next timer. False: there is none, and r0 is
/// the program's; or, with signal_ set, the callback gave a result that isn't 0.
bool Machine::next_timer() {
    if (!cpu_.in_timer) {
        cpu_.result = cpu_.r[0];
    } else if (cpu_.r[0] != 0) {
        fault(format("a timer's callback returned {}; it may only return 0", static_cast<int64_t>(cpu_.r[0])));
        return false;
    }
    index_timers();
    if (timers_due_.empty()) {
        cpu_.running_timer = 0;
        cpu_.r[0] = cpu_.result;
        return false;
    }
    Timer *next = &timers_[timers_due_.begin()->second];
    timers_due_.erase(timers_due_.begin());
    EmulatedMap &map = *maps_[next->map];
    const uint32_t place = map.place_of(next->address, kTimerBytes);
    journal_.note(next, sizeof *next);
    next->armed = false;
    next->fired = true;
    cpu_.in_timer = true;
    cpu_.running_timer = next->address;
    cpu_.timer_now = std::max(cpu_.timer_now, next->due);
    for (int n = 0; n < 10; ++n) cpu_.r[n] = 0;
    cpu_.r[1] = map_address(next->map);
    cpu_.r[2] = map.key_address(place);
    cpu_.r[3] = map.value_address(place);
    journal_.note(&cpu_.frames[0], sizeof(Frame));
    cpu_.frames[0] = Frame{};
    cpu_.frames[0].program = next->program;
    cpu_.op = next->callback;
    return true;
}

// ---- helpers. What the verifier would have refused is a fault.

namespace {

/// The timer in r1; nullptr: a fault, or not initialised.
Timer *timer_in(Machine &m) {
    const uint8_t *at = m.memory().find(m.register_value(1), kTimerBytes, true);
    if (at) return m.timer_at(m.register_value(1));
    m.fault(format("r1 = {:#x} isn't the address of a timer: {}", m.register_value(1),
                   m.memory().miss(m.register_value(1), kTimerBytes, true)));
    return nullptr;
}

} // namespace

uint64_t timer_init(Machine &m, const uint64_t *r) {
    const EmulatedMap *map = m.map_in(2);
    if (!map) return 0;
    const uint64_t clock = r[3];
    if (clock >= kClocks || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME))
        return errno_of(-EINVAL);
    if (m.timer_at(r[1])) return errno_of(-EBUSY);
    if (m.timers_full()) return errno_of(-ENOMEM);
    (void)m.make_timer(r[1], *map);
    return 0;
}

uint64_t timer_set_callback(Machine &m, const uint64_t *) {
    Timer *timer = timer_in(m);
    return timer ? m.set_timer(*timer, 2) : errno_of(-EINVAL);
}

uint64_t timer_start(Machine &m, const uint64_t *r) {
    if (r[3] & ~(kAbsolute | kPinned)) return errno_of(-EINVAL);
    Timer *timer = timer_in(m);
    if (!timer || !timer->callback) return errno_of(-EINVAL);
    const uint64_t now = sys::monotonic_ns();
    const uint64_t wait = !(r[3] & kAbsolute) ? r[2] : r[2] > now ? r[2] - now : 0;
    m.arm_timer(*timer, true, m.timer_now() + std::min(wait, UINT64_MAX - m.timer_now()));
    return 0;
}

uint64_t timer_cancel(Machine &m, const uint64_t *r) {
    Timer *timer = timer_in(m);
    if (!timer) return errno_of(-EINVAL);
    if (m.in_callback_of(r[1])) return errno_of(-EDEADLK); // it would wait for itself
    return m.arm_timer(*timer, false, timer->due);
}

} // namespace rawbpf::inline v0::emulator
