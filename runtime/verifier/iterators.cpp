// Open-coded iterators: 8 or more bytes of the stack that only kernel functions may access.
//
//      bpf_iter_num_new(&it, 0, 10)
//      l: r0 = bpf_iter_num_next(&it)     two paths: r0 is NULL, and the iterator stays at its end;
//         if r0 == 0 goto out                        r0 is another element
//         ...                                        goes back to l, again and again
//         goto l
//      out: bpf_iter_num_destroy(&it)     every path must call it
//
// The verifier doesn't need to know how many rounds the loop has: it stops when a round adds nothing new to what it knows at l
// (prune.cpp compares such a state with the earlier ones on the same path). To get there soon, it forgets numbers that have
// decided nothing after each round (widen()); otherwise a counter would make each round a new state.
#include <algorithm>

#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

bool Engine::make_iterator(unsigned reg, uint32_t type, unsigned slots, bool in_rcu_only, std::string_view name) {
    const Value base = state_.reg(reg);
    const std::optional<int> off = slots_at(reg, "iter", slots, true);
    bool taken = !off;
    for (unsigned i = 0; off && i < slots; ++i) {
        const Frame &frame = state_.frames[base.frame];
        const int at = *off + 8 * static_cast<int>(i);
        taken |= frame.byte_at(at) == Byte::special && state_.frames[base.frame].slot(at).value.sort == Sort::iterator;
    }
    if (taken) return refuse("expected uninitialized iter_{} as arg #{}", name, reg - 1);
    for (unsigned i = 0; i < slots; ++i)
        if (!stack_bounds(reg, base, 8 * int64_t(i), 8, true, By::instruction)) return false;
    Frame &frame = state_.frames[base.frame];
    Value value = pointer(Sort::iterator, node());
    value.type = type;
    value.ref = new_id();
    value.maybe_null = true; // more may come
    value.trust = !in_rcu_only ? Trust::trusted : in_rcu() ? Trust::rcu : Trust::untrusted;
    state_.references.push_back({value.ref, state_.insn});
    for (unsigned i = 0; i < slots; ++i) {
        const int at = *off + 8 * static_cast<int>(i);
        if (!overwrite(frame, at)) return false;
        Slot &slot = frame.slot(at);
        slot = Slot();
        slot.bytes.fill(Byte::special);
        slot.value = value;
        slot.value.first = i == 0;
        if (i != 0) slot.value.ref = 0;
        slot.node = value.node;
        touch(base.frame, at);
    }
    return true;
}

// The iterator that an argument is; nullptr: none of that type.
Value *Engine::iterator_in(unsigned reg, uint32_t type, unsigned slots) {
    const Value &base = state_.reg(reg);
    if (base.sort != Sort::stack) return nullptr;
    const std::optional<int> off = slots_at(reg, "iter", slots, true);
    if (!off) return nullptr;
    Frame &frame = state_.frames[base.frame];
    for (unsigned i = 0; i < slots; ++i) {
        const int at = *off + 8 * static_cast<int>(i);
        if (frame.byte_at(at) != Byte::special) return nullptr;
        const Value &value = frame.slot(at).value;
        if (value.sort != Sort::iterator || value.type != type || value.first != (i == 0)) return nullptr;
    }
    return &frame.slot(*off).value;
}

// The rest of a call of ..._next(), of which r0 is set to an element: one path has it, the other one is at the end.
bool Engine::iterate(unsigned reg, uint32_t type, unsigned slots, const Value &element) {
    Value *iterator = iterator_in(reg, type, slots);
    if (iterator->maybe_null) {
        State other = state_;
        const Value base = state_.reg(reg);
        const int off = *slots_at(reg, "iter", slots, true);
        ++other.frames[base.frame].slot(off).value.size;
        for (unsigned n = 0; n <= 5; ++n) other.reg(n) = Value();
        other.reg(0) = element;
        other.reg(0).maybe_null = false;
        other.reg(0).id = 0;
        other.insn = state_.insn + 1;
        widen(other, true);
        walk_.steps.push_back({walk_.steps[step_].insn, walk_.steps[step_].parent});
        walk_.steps.back().end = StepEnd::split;
        walk_.steps.back().other = 1;
        walk_.steps.back().frame = walk_.steps[step_].frame;
        other.step = static_cast<uint32_t>(walk_.steps.size() - 1);
        walk_.steps[other.step].changes = walk_.change_end();
        walk_.add_change({0, static_cast<uint8_t>(other.frames.size() - 1), other.reg(0)});
        walk_.steps[other.step].change_count = 1;
        walk_.steps[step_].end = StepEnd::split;
        if (other.checkpoint) ++checkpoints_[other.checkpoint - 1].open;
        if (pending_.size() >= 8192) return refuse("The sequence of {} jumps is too complex.", pending_.size() + 1);
        pending_.push_back(std::move(other));
    }
    iterator = iterator_in(reg, type, slots);
    iterator->maybe_null = false; // at its end
    forget_caller_saved();
    set(0, known_number(0, node()));
    return true;
}

bool Engine::destroy_iterator(unsigned reg, uint32_t type, unsigned slots) {
    const Value *iterator = iterator_in(reg, type, slots);
    const ValueId ref = iterator->ref;
    const Value base = state_.reg(reg);
    const int off = *slots_at(reg, "iter", slots, true);
    if (!release(ref)) return false;
    for (unsigned i = 0; i < slots; ++i) {
        state_.frames[base.frame].slot(off + 8 * static_cast<int>(i)) = Slot();
        touch(base.frame, off + 8 * static_cast<int>(i));
    }
    return true;
}

// The checkpoint of the same instruction, called from the same places, that the path went through last. `own`: but its newest.
const State *Engine::before(const State &state, bool own) const {
    uint32_t n = state.checkpoint;
    if (own && n != 0) n = checkpoints_[n - 1].parent;
    for (; n != 0; n = checkpoints_[n - 1].parent) {
        const State &old = checkpoints_[n - 1].state;
        if (old.insn != state.insn || old.frames.size() != state.frames.size()) continue;
        bool same = true;
        for (size_t f = 0; f < old.frames.size(); ++f) same &= old.frames[f].call == state.frames[f].call;
        if (same) return &old;
    }
    return nullptr;
}

void Engine::widen_values(const State &old, State &state) {
    ids_.clear();
    auto forget = [this](const Value &was, Value &is) {
        if (!was.is_number() || !is.is_number()) return;
        if ((was.node != kNoNode && walk_.nodes[was.node].precise) || (is.node != kNoNode && walk_.nodes[is.node].precise))
            return;
        if (covers_value(was, is, Compared::exact)) return;
        is = any_number(node(is.node));
    };
    for (size_t f = 0; f < old.frames.size() && f < state.frames.size(); ++f) {
        for (unsigned reg = 0; reg < 10; ++reg) forget(old.frames[f].regs[reg], state.frames[f].regs[reg]);
        const size_t slots = std::min(old.frames[f].stack.size(), state.frames[f].stack.size());
        for (size_t s = 0; s < slots; ++s) {
            const Slot &was = old.frames[f].stack[s];
            Slot &is = state.frames[f].stack[s];
            if (was.holds_value() && is.holds_value()) forget(was.value, is.value);
        }
    }
}

// What the path to an element forgets: `state` is behind the call, where the one before it was at the call.
void Engine::widen(State &state, bool own) {
    const uint32_t behind = state.insn;
    state.insn = state_.insn;
    if (const State *old = before(state, own)) widen_values(*old, state);
    state.insn = behind;
}

// The same at a callback's end, where the path is back at the call.
void Engine::widen_from_before() {
    if (const State *old = before(state_, false)) widen_values(*old, state_);
}

} // namespace rawbpf::inline v0::verifier
