// Pruning: a path that comes to where another one was, and knows as much as that one did, need not be followed.
//
//      first path:    r1: 0 to 100 at instruction 7      all that follows was found to be good
//      second path:   r1: 5 to 10 at instruction 7       each of its numbers is one of the first path's: good, too
//
// States are kept where paths may meet (Flow::meets), and compared: the old state must allow everything that the new one allows.
// What makes this useful is knowing what doesn't matter:
//
//      a register that nobody reads afterwards        (Flow::needed)
//      a number that decided nothing                  on no path from the old state did it choose a branch, a size or a place in
//                                                     memory, so that any other number had led to the same verdict
//
// For the second, every value has a node, which knows the values it was made of. When a number is used to decide something, its
// node and all before it are marked (Walk::need). The kernel finds the same numbers by going back through the instructions of
// the path (mark_chain_precision()); a graph of values has the answer at hand.
//
// An old state from which a path is still being walked is this path's own past. If nothing at all is different now, the loop will
// never end, and the program is refused.
#include <algorithm>

#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

bool Engine::same_id(ValueId old, ValueId now) {
    if (!old != !now) return false;
    if (!old) return true;
    for (auto [a, b] : ids_) {
        if (a == old) return b == now;
        if (b == now) return false;
    }
    ids_.emplace_back(old, now);
    return true;
}

bool Engine::covers_value(const Value &old, const Value &now, bool exact) {
    if (old.sort == Sort::unset) return !exact || now.sort == Sort::unset;
    if (old.sort != now.sort || old.maybe_null != now.maybe_null) return false;
    if (old.is_number()) {
        if (exact)
            return old.bounds == now.bounds && old.sum == now.sum && (!old.sum || old.off == now.off) && same_id(old.id, now.id);
        if (old.node != kNoNode && !walk_.nodes[old.node].precise) return true;
        if (!old.bounds.contains(now.bounds)) return false;
        if (old.id == 0) return true;
        return old.sum == now.sum && (!old.sum || old.off == now.off) && same_id(old.id, now.id);
    }
    if (old.off != now.off || old.map != now.map || old.size != now.size || old.type != now.type || old.frame != now.frame ||
        old.read_only != now.read_only || old.ring_record != now.ring_record)
        return false;
    if (exact) return old.bounds == now.bounds && old.range == now.range && same_id(old.id, now.id) && same_id(old.ref, now.ref);
    switch (old.sort) {
    case Sort::packet:
    case Sort::packet_meta:
        // More of the packet may be known to be there, not less.
        if (old.range < 0 || now.range < 0 ? old.range != now.range : old.range > now.range) return false;
        break;
    default: break;
    }
    return old.bounds.contains(now.bounds) && same_id(old.id, now.id) && same_id(old.ref, now.ref);
}

bool Engine::covers_slot(const Slot *old, const Slot *now, bool exact) {
    if (!old) return !exact || !now || std::all_of(now->bytes.begin(), now->bytes.end(), [](Byte b) { return b == Byte::unset; });
    static const Slot kNothing;
    if (!now) now = &kNothing;
    if (exact) {
        if (old->bytes != now->bytes) return false;
        return !old->holds_value() || covers_value(old->value, now->value, true);
    }
    const bool unset_is_fine = rule(Rule::unset_stack);
    const bool old_value = old->holds_value(), now_value = now->holds_value();
    if (old_value && now_value && old->value_bytes() == now->value_bytes()) {
        if (!covers_value(old->value, now->value, false)) return false;
    } else if (old_value) {
        // A number that decided nothing might as well have been something.
        if (!old->value.is_number() || old->value.node == kNoNode || walk_.nodes[old->value.node].precise) return false;
        if (now_value && now->value.is_pointer()) return false;
    }
    for (size_t i = 0; i < 8; ++i) {
        const Byte was = old->bytes[i], is = now->bytes[i];
        switch (was) {
        case Byte::unset: continue;
        case Byte::spill:
            if (is == Byte::spill) continue;
            if (is == Byte::unset && !unset_is_fine) return false;
            continue; // an imprecise number: see above
        case Byte::zero:
            if (is == Byte::zero || (is == Byte::spill && now->value.is_zero())) continue;
            return false;
        case Byte::some:
            if (is == Byte::unset && !unset_is_fine) return false;
            if (is == Byte::spill && now->value.is_pointer()) return false;
            continue;
        }
    }
    return true;
}

bool Engine::covers(const State &old, const State &now, bool exact) {
    if (old.frames.size() != now.frames.size() || old.references.size() != now.references.size()) return false;
    ids_.clear();
    if (!old.lock != !now.lock || old.lock_map != now.lock_map || !same_id(old.lock, now.lock)) return false;
    for (size_t i = 0; i < old.references.size(); ++i)
        if (!same_id(old.references[i].id, now.references[i].id)) return false;
    for (size_t f = 0; f < old.frames.size(); ++f) {
        const Frame &a = old.frames[f], &b = now.frames[f];
        if (a.call != b.call || a.function != b.function || a.kind != b.kind) return false;
        const bool top = f + 1 == old.frames.size();
        const uint32_t next = top ? now.insn : old.frames[f + 1].call + 1;
        for (unsigned reg = 0; reg < 10; ++reg) {
            // What the call returns into is set by the return.
            if (!exact && (!(flow_.needed[next] >> reg & 1) || (!top && reg == 0))) continue;
            if (!covers_value(a.regs[reg], b.regs[reg], exact)) return false;
        }
        for (size_t s = 0; s < std::max(a.stack.size(), b.stack.size()); ++s)
            if (!covers_slot(s < a.stack.size() ? &a.stack[s] : nullptr, s < b.stack.size() ? &b.stack[s] : nullptr, exact))
                return false;
    }
    return true;
}

// The new state takes over what was found to matter in the old one.
void Engine::need_as(const State &old, const State &now) {
    auto take = [this](const Value &a, const Value &b) {
        if (a.is_number() && b.is_number() && (a.node == kNoNode || walk_.nodes[a.node].precise)) walk_.need(b.node);
    };
    for (size_t f = 0; f < old.frames.size(); ++f) {
        for (unsigned reg = 0; reg < 10; ++reg) take(old.frames[f].regs[reg], now.frames[f].regs[reg]);
        const size_t slots = std::min(old.frames[f].stack.size(), now.frames[f].stack.size());
        for (size_t s = 0; s < slots; ++s) {
            const Slot &a = old.frames[f].stack[s], &b = now.frames[f].stack[s];
            if (a.holds_value() && b.holds_value()) take(a.value, b.value);
            if (!a.holds_value() && b.holds_value() && b.value.is_number() &&
                std::find(a.bytes.begin(), a.bytes.end(), Byte::zero) != a.bytes.end())
                walk_.need(b.value.node);
        }
    }
}

bool Engine::known_before(bool &pruned) {
    const uint32_t at = state_.insn;
    std::vector<Kept> &kept = at_insn_[at];
    bool add = jumps_ - jumps_then_ >= 2 && verdict_.processed - insns_then_ >= 8;
    for (size_t i = 0; i < kept.size();) {
        Checkpoint &old = checkpoints_[kept[i].number - 1];
        if (old.open) {
            if (covers(old.state, state_, true)) return refuse("infinite loop detected at insn {}", at);
            // Rounds of a loop differ: keeping each would help none.
            if (jumps_ - jumps_then_ < 20 && verdict_.processed - insns_then_ < 100) add = false;
        } else if (covers(old.state, state_, false)) {
            ++kept[i].hits;
            need_as(old.state, state_);
            if (state_.step) walk_.steps[state_.step].other = old.state.step;
            pruned = true;
            return true;
        }
        // States that never help only cost time.
        if (add) ++kept[i].misses;
        if (kept[i].misses > kept[i].hits * 3 + 3) {
            old.state = {};
            kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
            continue;
        }
        ++i;
    }
    if (!add) return true;
    jumps_then_ = jumps_;
    insns_then_ = verdict_.processed;
    checkpoints_.push_back({state_, state_.checkpoint});
    ++verdict_.states;
    state_.checkpoint = static_cast<uint32_t>(checkpoints_.size());
    kept.push_back({state_.checkpoint});
    return true;
}

} // namespace rawbpf::inline v0::verifier
