// Locks and critical sections: spin locks, RCU sections, sections without preemption or interrupts.
//
//      bpf_spin_lock(&v->lock)      v: a value of a map, or an object of the program's own, that has one lock, at a known offset
//      v->n += 1;                   no other function may be called
//      bpf_spin_unlock(&v->lock)    must be of the same value: all pointers to a value have the same id
//
// A program may hold one lock at a time. It must release the lock and leave all sections before it ends or makes a tail call, and
// it can't call a global function while it holds a lock.
#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

bool Engine::take_lock(unsigned reg, bool unlock) {
    const Value value = state_.reg(reg);
    if (in_tree_callback()) return refuse("can't spin_{{lock,unlock}} in rbtree cb");
    if (!value.bounds.is_known())
        return refuse("R{} doesn't have constant offset. bpf_spin_lock has to be at the constant offset", reg);
    const bool local = value.sort == Sort::object;
    const int at = local ? types_.lock_of_type(value.type) : types_.lock_of(value.map);
    if (at < 0)
        return refuse("{} '{}' has no valid bpf_spin_lock", local ? "local" : "map",
                      local ? std::string("kptr") : map_at(spec_, value.map).name);
    const int64_t off = value.off + static_cast<int64_t>(value.bounds.number());
    if (off != at) return refuse("off {} doesn't point to 'struct bpf_spin_lock' that is at {}", off, at);
    const uint32_t owner = local ? UINT32_MAX : value.map;
    if (!unlock) {
        if (state_.lock) return refuse("Locking two bpf_spin_locks are not allowed");
        state_.lock = value.id;
        state_.lock_map = owner;
        return true;
    }
    if (!state_.lock) return refuse("bpf_spin_unlock without taking a lock");
    if (state_.lock != value.id || state_.lock_map != owner) return refuse("bpf_spin_unlock of different lock");
    lose_shared();
    state_.lock = 0;
    return true;
}

// Pointers into lists and trees are good while the lock is held.
void Engine::lose_shared() {
    state_.each_value([this](Value &value) {
        if (value.sort == Sort::object && value.shared) value = any_number(node());
    });
}

// Whether pointers that RCU protects are good here: in programs that can't sleep all of the program is such a section.
bool Engine::in_rcu() const { return state_.rcu > 0 || state_.lock != 0 || !may_sleep(); }

bool Engine::may_sleep() const {
    return program_.sleepable && state_.rcu == 0 && state_.no_preempt == 0 && state_.no_irq == 0 && state_.lock == 0;
}

// What is still held where nothing may be: at the end, in a tail call, in LD_ABS.
bool Engine::nothing_held(std::string_view where) {
    if (state_.lock) return refuse("{} cannot be used inside bpf_spin_lock-ed region", where);
    if (!references_left(where)) return false;
    if (state_.no_irq) return refuse("{} cannot be used inside bpf_local_irq_save-ed region", where);
    if (state_.rcu) return refuse("{} cannot be used inside bpf_rcu_read_lock-ed region", where);
    if (state_.no_preempt) return refuse("{} cannot be used inside bpf_preempt_disable-ed region", where);
    return true;
}

} // namespace rawbpf::inline v0::verifier
