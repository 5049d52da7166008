// Pruning: when a path comes to an instruction where an earlier path was, and its state is covered by that path's state, the
// verifier need not follow it any further.
//
//      first path:    r1: 0 to 100 at instruction 7      all that follows was found to be good
//      second path:   r1: 5 to 10 at instruction 7       each of its numbers is one of the first path's: good, too
//
// The verifier keeps states where paths may meet (Flow::meets), and compares: the old state must allow everything that the new
// one allows. To find more matches, it ignores what doesn't matter:
//
//      a register that nobody reads afterwards        (Flow::needed)
//      a number that decided nothing                  on no path from the old state did it choose a branch, a size or a place in
//                                                     memory, so that any other number had led to the same verdict
//
// For the second, every value has a node, which refers to the values that it was computed from. When a number decides something,
// the verifier marks its node and all nodes before it (Walk::need). The kernel finds the same numbers by going back through the
// instructions of the path (mark_chain_precision()).
//
// An old state whose paths haven't all ended is on the current path itself. If nothing at all has changed since that state, the
// loop never ends, and the verifier refuses the program.
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

bool Engine::covers_value(const Value &old, const Value &now, Compared how) {
    const bool exact = how == Compared::exact;
    if (old.sort == Sort::unset) return !exact || now.sort == Sort::unset;
    if (old.sort != now.sort || old.maybe_null != now.maybe_null) return false;
    if (old.is_number()) {
        if (exact)
            return old.bounds == now.bounds && old.sum == now.sum && (!old.sum || old.off == now.off) && same_id(old.id, now.id);
        if (how == Compared::useful && old.node != kNoNode && !walk_.nodes[old.node].precise) return true;
        if (!old.bounds.contains(now.bounds)) return false;
        if (old.id == 0) return true;
        return old.sum == now.sum && (!old.sum || old.off == now.off) && same_id(old.id, now.id);
    }
    const bool same_size = old.size == now.size || old.sort == Sort::iterator; // which is its rounds
    if (old.off != now.off || old.map != now.map || !same_size || old.type != now.type || old.frame != now.frame ||
        old.read_only != now.read_only || old.ring_record != now.ring_record || old.owned != now.owned ||
        old.shared != now.shared || old.per_cpu != now.per_cpu || old.user != now.user || old.first != now.first ||
        old.trust != now.trust || old.socket != now.socket || old.dynptr != now.dynptr || !same_id(old.parent, now.parent))
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

bool Engine::covers_slot(const Slot *old, const Slot *now, Compared how) {
    const bool exact = how == Compared::exact;
    if (!old) return !exact || !now || std::all_of(now->bytes.begin(), now->bytes.end(), [](Byte b) { return b == Byte::unset; });
    static const Slot kNothing;
    if (!now) now = &kNothing;
    if (old->bytes[0] == Byte::special || now->bytes[0] == Byte::special) {
        if (old->bytes[0] == Byte::unset && !exact) return true;
        return old->bytes[0] == now->bytes[0] && covers_value(old->value, now->value, how);
    }
    if (exact) {
        if (old->bytes != now->bytes) return false;
        return !old->holds_value() || covers_value(old->value, now->value, how);
    }
    const bool unset_is_fine = rule(Rule::unset_stack);
    const bool old_value = old->holds_value(), now_value = now->holds_value();
    if (old_value && now_value && old->value_bytes() == now->value_bytes()) {
        if (!covers_value(old->value, now->value, how)) return false;
    } else if (old_value) {
        // A number that decided nothing might as well have been something.
        if (how == Compared::within || !old->value.is_number() || old->value.node == kNoNode ||
            walk_.nodes[old->value.node].precise)
            return false;
        if (now_value && now->value.is_pointer()) return false;
    }
    for (size_t i = 0; i < 8; ++i) {
        const Byte was = old->bytes[i], is = now->bytes[i];
        switch (was) {
        case Byte::unset: continue;
        case Byte::special: return false;
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

bool Engine::covers(const State &old, const State &now, Compared how) {
    const bool exact = how == Compared::exact;
    if (old.frames.size() != now.frames.size() || old.references.size() != now.references.size()) return false;
    ids_.clear();
    if (!old.lock != !now.lock || old.lock_map != now.lock_map || !same_id(old.lock, now.lock)) return false;
    if (old.rcu != now.rcu || old.no_preempt != now.no_preempt || old.irqs.size() != now.irqs.size() || old.sleeps != now.sleeps)
        return false;
    if (exact && old.later != now.later) return false;
    for (size_t i = 0; i < old.irqs.size(); ++i)
        if (!same_id(old.irqs[i].id, now.irqs[i].id)) return false;
    for (size_t i = 0; i < old.references.size(); ++i)
        if (!same_id(old.references[i].id, now.references[i].id)) return false;
    for (size_t f = 0; f < old.frames.size(); ++f) {
        const Frame &a = old.frames[f], &b = now.frames[f];
        if (a.call != b.call || a.function != b.function || a.kind != b.kind) return false;
        // One that may be called again more often gets further than the old one got.
        if (exact ? a.rounds != b.rounds : a.rounds > b.rounds) return false;
        const bool top = f + 1 == old.frames.size();
        const uint32_t next = top ? now.insn : old.frames[f + 1].call + 1;
        for (unsigned reg = 0; reg < 10; ++reg) {
            // What the call returns into is set by the return.
            // A callback ends at the call that is made again: all that it reads is needed there.
            const bool again = !top && old.frames[f + 1].kind == CallKind::callback;
            const uint32_t at = again ? old.frames[f + 1].call : next;
            if (!exact && (!(flow_.needed[at] >> reg & 1) || (!top && !again && reg == 0))) continue;
            if (!covers_value(a.regs[reg], b.regs[reg], how)) return false;
        }
        for (size_t s = 0; s < std::max(a.stack.size(), b.stack.size()); ++s)
            if (!covers_slot(s < a.stack.size() ? &a.stack[s] : nullptr, s < b.stack.size() ? &b.stack[s] : nullptr, how))
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

// Calls that a path comes to again and again until nothing new is known: of helpers that call back, of iterators.
bool Engine::calls_back(uint32_t insn) const {
    const Insn &at = insns_[insn];
    if (at.code == 0x85 && at.src == 2)
        for (const Fixup &fixup : program_.fixups)
            if (fixup.insn == insn && fixup.kind == Fixup::Kind::kfunc && fixup.symbol == "bpf_rbtree_add_impl") return true;
    if (at.code != 0x85 || at.src != 0) return false;
    const HelperInfo *helper = find_helper(at.imm);
    return helper && (helper->name == "loop" || helper->name == "for_each_map_elem" || helper->name == "find_vma" ||
                      helper->name == "user_ringbuf_drain");
}

bool Engine::goes_on(uint32_t insn) const {
    if (insns_[insn].code != 0x85 || insns_[insn].src != 2) return false;
    for (const Fixup &fixup : program_.fixups)
        if (fixup.insn == insn && fixup.kind == Fixup::Kind::kfunc) {
            const KernelFunction *row = find_kernel_function(fixup.symbol);
            return row && row->has(kfunc::iter_next);
        }
    return false;
}

// This path has come back to the checkpoint `entry`: what lies between is a loop, of which nobody knows yet what matters.
void Engine::join_loop(uint32_t entry) {
    for (uint32_t n = state_.checkpoint; n != 0 && n != entry; n = checkpoints_[n - 1].parent) {
        Checkpoint &at = checkpoints_[n - 1];
        const bool outer = at.loop == 0 || !checkpoints_[at.loop - 1].open || entry < at.loop;
        if (!outer) break;
        at.loop = entry;
    }
}

bool Engine::known_before(bool &pruned) {
    const uint32_t at = state_.insn;
    std::vector<Kept> &kept = at_insn_[at];
    const bool back = calls_back(at), next = goes_on(at), may = insns_[at].code == 0xe5;
    const bool always = back || next || may;
    bool add = always || (jumps_ - jumps_then_ >= 2 && verdict_.processed - insns_then_ >= 8);
    auto prune = [&](Kept &hit, const Checkpoint &old) {
        ++hit.hits;
        need_as(old.state, state_);
        if (state_.step) walk_.steps[state_.step].other = old.state.step;
        pruned = true;
        return true;
    };
    for (size_t i = 0; i < kept.size();) {
        Checkpoint &old = checkpoints_[kept[i].number - 1];
        if (old.open) {
            if (back || next || may) {
                const bool more = !may || old.state.loops != state_.loops;
                if (more && covers(old.state, state_, Compared::within)) {
                    const Value *iterator = nullptr;
                    if (next && state_.reg(1).sort == Sort::stack) {
                        Frame &frame = state_.frames[state_.reg(1).frame];
                        const int64_t off = state_.reg(1).off + static_cast<int64_t>(state_.reg(1).bounds.number());
                        if (off < 0 && off >= -kStackSize && frame.byte_at(static_cast<int>(off)) == Byte::special)
                            iterator = &frame.slot(static_cast<int>(off)).value;
                    }
                    if (!next || (iterator && iterator->maybe_null)) {
                        join_loop(kept[i].number);
                        return prune(kept[i], old);
                    }
                }
            }
            bool rounds_differ = old.state.loops != state_.loops || old.state.later != state_.later;
            for (size_t f = 0; f < std::min(old.state.frames.size(), state_.frames.size()); ++f) {
                rounds_differ |= old.state.frames[f].rounds != state_.frames[f].rounds;
                const std::vector<Slot> &was = old.state.frames[f].stack, &is = state_.frames[f].stack;
                for (size_t s = 0; s < std::min(was.size(), is.size()); ++s)
                    rounds_differ |= was[s].bytes[0] == Byte::special && was[s].value.sort == Sort::iterator &&
                                     was[s].value.maybe_null && was[s].value.size != is[s].value.size;
            }
            for (const Frame &frame : state_.frames) rounds_differ |= frame.kind == CallKind::callback;
            if (!back && !next && !rounds_differ && covers(old.state, state_, Compared::exact))
                return refuse("infinite loop detected at insn {}", at);
            // Rounds of a loop differ: keeping each would help none.
            if (!always && jumps_ - jumps_then_ < 20 && verdict_.processed - insns_then_ < 100) add = false;
        } else {
            const bool in_loop = old.loop != 0 && checkpoints_[old.loop - 1].open;
            if (covers(old.state, state_, in_loop ? Compared::within : Compared::useful)) {
                if (in_loop) join_loop(old.loop);
                return prune(kept[i], old);
            }
        }
        // States that never help only cost time.
        if (add) ++kept[i].misses;
        if (!always && kept[i].misses > kept[i].hits * 3 + 3) {
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
