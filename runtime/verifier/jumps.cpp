// Conditional jumps: where a path splits, and what the verifier learns on either side.
//
//      if r0 == 0 goto out          r0: map_value_or_null        out: r0 is 0          here: r0 is map_value
//      if r4 > r3 goto out          r4: packet + 14, r3: its end out: nothing          here: 14 bytes are inside of the packet
//      if r1 > 7 goto out           r1: 0 to 100                 out: 8 to 100         here: 0 to 7
//
// What the verifier learns about a register holds for its copies, too: the registers with the same id. If the comparison can go
// only one way, the verifier never follows the other side; then the numbers that decided this matter (Walk::need), because with
// other numbers the program might go there.
#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

namespace {

// Pointers that surely aren't 0, for comparisons with it.
bool surely_set(const Value &value) {
    if (value.maybe_null) return false;
    return value.sort == Sort::map_value || value.sort == Sort::socket || value.sort == Sort::flow_keys ||
           (value.sort == Sort::object && value.trust != Trust::untrusted && (value.trust == Trust::trusted || value.ref)) ||
           value.sort == Sort::map_key || value.sort == Sort::memory || value.sort == Sort::map;
}

} // namespace

std::optional<bool> Engine::which_way(Compare op, bool half, const Value &a, const Value &b) {
    if (a.is_number() && b.is_number()) return decide(op, half, a.bounds, b.bounds, rules_);
    if (a.is_pointer() && b.is_number() && !half) {
        if (!b.is_zero() || !surely_set(a)) return {};
        if (a.sort == Sort::map && !at_least(options_.kernel, {6, 14})) return {};
        if (op == Compare::eq) return false;
        if (op == Compare::ne) return true;
        return {};
    }
    if (half) return {};
    // A packet's place that was compared with the end before.
    const Value *place = nullptr;
    bool swapped = false;
    if (a.sort == Sort::packet && b.sort == Sort::packet_end) place = &a;
    if (a.sort == Sort::packet_end && b.sort == Sort::packet) place = &b, swapped = true;
    if (!place || place->range >= 0) return {};
    if (swapped) {
        switch (op) {
        case Compare::gt: op = Compare::lt; break;
        case Compare::lt: op = Compare::gt; break;
        case Compare::ge: op = Compare::le; break;
        case Compare::le: op = Compare::ge; break;
        default: return {};
        }
    }
    switch (op) {
    case Compare::le: // not behind the end?
        if (place->range == kBehindEnd) return false;
        return {};
    case Compare::gt:
        if (place->range == kBehindEnd) return true;
        return {};
    case Compare::lt: return false; // at the end or behind it
    case Compare::ge: return true;
    default: return {};
    }
}

// All copies of a number that was compared learn what it did.
void Engine::learn_linked(State &state, const Value &known, bool other) {
    if (!known.id) return;
    for (size_t f = 0; f < state.frames.size(); ++f) {
        auto learn = [&](Value &value, int place) {
            if (&value == &known || !value.is_number() || value.id != known.id) return;
            const int32_t away = (value.sum ? value.off : 0) - (known.sum ? known.off : 0);
            if (away == 0) {
                if (value.bounds == known.bounds) return;
                value.bounds = known.bounds;
            } else {
                value.bounds = compute(Op::add, false, known.bounds, Bounds::of(static_cast<uint64_t>(int64_t(away))), rules_);
            }
            value.node = node(value.node, known.node);
            if (!other) touch(static_cast<uint8_t>(f), place);
        };
        for (unsigned n = 0; n < 11; ++n) learn(state.frames[f].regs[n], static_cast<int>(n));
        for (size_t s = 0; s < state.frames[f].stack.size(); ++s)
            if (state.frames[f].stack[s].holds_value()) learn(state.frames[f].stack[s].value, -8 * static_cast<int>(s + 1));
    }
}

void Engine::refine_values(State &state, Compare op, bool half, bool truth, unsigned dst, int src, const Value &constant,
                           bool other) {
    Value &a = state.reg(dst);
    Value copy = constant;
    Value &b = src >= 0 ? state.reg(static_cast<unsigned>(src)) : copy;
    if (!a.is_number() || !b.is_number()) return;
    if (&a == &b) {
        // Narrowed against itself it has no numbers left where no run comes; the kernel sees that and forgets the ranges (6.8).
        const std::optional<bool> always = decide_with_itself(op, half, a.bounds);
        if (!rules_.shared_refine || !always || *always == truth) return;
        a.bounds.forget64();
        a.bounds.forget32();
        a.node = node(a.node);
        if (!other) touch(static_cast<int>(dst));
        learn_linked(state, a, other);
        return;
    }
    const Bounds before_a = a.bounds, before_b = b.bounds;
    const uint32_t node_a = a.node, node_b = b.node;
    refine(op, half, truth, a.bounds, b.bounds, rules_);
    if (a.bounds != before_a) {
        a.node = node(node_a, node_b);
        if (!other) touch(static_cast<int>(dst));
    }
    if (src >= 0 && b.bounds != before_b) {
        b.node = node(node_a, node_b);
        if (!other) touch(src);
    }
    if (src >= 0) learn_linked(state, b, other);
    learn_linked(state, a, other);
}

// Every copy of a pointer that may be NULL is NULL, or isn't.
void Engine::settle_null(State &state, const Value &pointer, bool null, bool other) {
    const ValueId id = pointer.id, ref = pointer.ref;
    for (size_t f = 0; f < state.frames.size(); ++f) {
        auto settle = [&](Value &value, int place) {
            if (!value.maybe_null || value.id != id) return;
            const uint32_t from = value.node;
            if (null) {
                value = known_number(0, node(from));
            } else {
                value.maybe_null = false;
                if (ref != id && !(value.sort == Sort::map_value && types_.lock_of(value.map) >= 0)) value.id = 0;
            }
            if (!other) touch(static_cast<uint8_t>(f), place);
        };
        for (unsigned n = 0; n < 11; ++n) settle(state.frames[f].regs[n], static_cast<int>(n));
        for (size_t s = 0; s < state.frames[f].stack.size(); ++s)
            if (state.frames[f].stack[s].holds_value()) settle(state.frames[f].stack[s].value, -8 * static_cast<int>(s + 1));
    }
    if (null && ref && ref == id) std::erase_if(state.references, [ref](const Reference &r) { return r.id == ref; });
}

// So many bytes, up to this pointer, are inside of the packet. `exclusive`: and the one it points to.
void Engine::good_packet(State &state, const Value &pointer, bool exclusive, bool other) {
    constexpr uint64_t kMostPacket = 0xffff; // MAX_PACKET_OFF
    if (pointer.off < 0 || (pointer.off == 0 && exclusive)) return;
    if (pointer.bounds.u64.most > kMostPacket || static_cast<uint64_t>(pointer.off) + pointer.bounds.u64.most > kMostPacket)
        return;
    const int32_t range = pointer.off + (exclusive ? 1 : 0);
    const Sort sort = pointer.sort;
    const ValueId id = pointer.id;
    for (size_t f = 0; f < state.frames.size(); ++f) {
        auto learn = [&](Value &value, int place) {
            if (value.sort != sort || value.id != id || value.range >= range) return;
            value.range = range;
            if (!other) touch(static_cast<uint8_t>(f), place);
        };
        for (unsigned n = 0; n < 11; ++n) learn(state.frames[f].regs[n], static_cast<int>(n));
        for (size_t s = 0; s < state.frames[f].stack.size(); ++s)
            if (state.frames[f].stack[s].holds_value()) learn(state.frames[f].stack[s].value, -8 * static_cast<int>(s + 1));
    }
}

// A place in the packet and its end, in either order; or its metadata and its beginning.
void Engine::compare_packets(const Insn &insn, Compare op, State &taken, State &falls, const Value &a, const Value &b) {
    auto start = [](const Value &v) {
        return v.sort == Sort::packet && v.off == 0 && v.bounds.is_known() && v.bounds.number() == 0;
    };
    const bool first = (a.sort == Sort::packet && b.sort == Sort::packet_end) || (a.sort == Sort::packet_meta && start(b));
    const bool second = (a.sort == Sort::packet_end && b.sort == Sort::packet) || (start(a) && b.sort == Sort::packet_meta);
    if (!first && !second) return;
    const unsigned reg = first ? insn.dst : insn.src;
    const Value place = first ? a : b;
    // As "place OP end".
    if (second) {
        switch (op) {
        case Compare::gt: op = Compare::lt; break;
        case Compare::lt: op = Compare::gt; break;
        case Compare::ge: op = Compare::le; break;
        case Compare::le: op = Compare::ge; break;
        default: return;
        }
    }
    auto mark = [&](State &state, bool behind) {
        Value &value = state.reg(reg);
        if (value.sort == Sort::packet) value.range = behind ? kBehindEnd : kAtEnd;
        if (&state == &falls) touch(static_cast<int>(reg));
    };
    switch (op) {
    case Compare::gt:
        good_packet(falls, place, false, false);
        mark(taken, true);
        break;
    case Compare::lt:
        good_packet(taken, place, true, true);
        mark(falls, false);
        break;
    case Compare::ge:
        good_packet(falls, place, true, false);
        mark(taken, false);
        break;
    case Compare::le:
        good_packet(taken, place, false, true);
        mark(falls, true);
        break;
    default: break;
    }
}

bool Engine::jump(const Insn &insn, const Form &form) {
    const auto op = static_cast<Compare>(insn.code & 0xf0);
    const bool half = form.register_bits == 32, by_register = form.shape == Shape::branch_reg;
    if (by_register && !readable(insn.src)) return false;
    if (!readable(insn.dst)) return false;
    const Value constant = known_number(static_cast<uint64_t>(int64_t(insn.imm)), kNoNode);
    const Value a = state_.reg(insn.dst), b = by_register ? state_.reg(insn.src) : constant;
    const auto target = static_cast<uint32_t>(ways_of(insns_, state_.insn).target);
    const uint32_t next = state_.insn + 1;

    const bool itself = by_register && insn.src == insn.dst && a.is_number() && rule(Rule::with_itself);
    if (const std::optional<bool> way = itself ? decide_with_itself(op, half, a.bounds) : which_way(op, half, a, b)) {
        if (a.is_number()) walk_.need(a.node);
        if (by_register && b.is_number()) walk_.need(b.node);
        walk_.steps[step_].end = StepEnd::decided;
        walk_.steps[step_].other = *way;
        state_.insn = *way ? target : next;
        end_step();
        return true;
    }

    State other = state_; // where the jump is taken
    other.insn = target;
    state_.insn = next;
    walk_.steps[step_].end = StepEnd::split;
    walk_.steps.push_back({walk_.steps[step_].insn, walk_.steps[step_].parent});
    Step &second = walk_.steps.back();
    second.end = StepEnd::split;
    second.other = 1;
    second.frame = walk_.steps[step_].frame;
    other.step = static_cast<uint32_t>(walk_.steps.size() - 1);

    auto each = [&](bool taken) {
        State &state = taken ? other : state_;
        touched_.clear();
        if (taken) step_ = other.step;
        const int src = by_register ? insn.src : -1;
        if (a.is_number() && b.is_number()) {
            refine_values(state, op, half, taken, insn.dst, src, constant, false);
        } else if (!half && (op == Compare::eq || op == Compare::ne)) {
            const bool equal = taken == (op == Compare::eq);
            if (a.maybe_null && !by_register && insn.imm == 0) {
                settle_null(state, a, equal, false);
            } else if (by_register && equal && a.is_pointer() && b.is_pointer() && a.maybe_null != b.maybe_null) {
                // Equal to a pointer that isn't NULL.
                const Value &maybe = a.maybe_null ? a : b, &sure = a.maybe_null ? b : a;
                if (sure.sort != Sort::object) settle_null(state, maybe, false, false);
            }
        }
    };
    const uint32_t here = step_;
    each(false);
    std::vector<std::pair<uint8_t, int16_t>> touched_here = touched_;
    each(true);
    std::vector<std::pair<uint8_t, int16_t>> touched_there = touched_;
    if (by_register && !half && a.is_pointer() && b.is_pointer()) {
        compare_packets(insn, op, other, state_, a, b);
        touched_there.emplace_back(static_cast<uint8_t>(state_.frames.size() - 1), static_cast<int16_t>(insn.dst));
        touched_there.emplace_back(static_cast<uint8_t>(state_.frames.size() - 1), static_cast<int16_t>(insn.src));
        touched_here = touched_there;
    }
    touched_ = std::move(touched_there);
    record(other);
    step_ = here;
    touched_ = std::move(touched_here);
    record(state_);
    if (other.checkpoint) ++checkpoints_[other.checkpoint - 1].open;
    if (pending_.size() >= 8192) return refuse("The sequence of {} jumps is too complex.", pending_.size() + 1);
    pending_.push_back(std::move(other));
    return true;
}

} // namespace rawbpf::inline v0::verifier
