// Callbacks: functions of the program that a helper calls.
//
//      bpf_loop(n, f, ctx, 0)
//
//      path 1    the helper has returned: f wasn't called, or not again          goes on behind the call
//      path 2    the helper calls f, in a frame of its own, with its arguments   at f's exit: back to the call itself
//
// At f's exit, the path is at the call again, with the same registers and with the changes that f made to the stack, and splits
// again. It ends when an earlier state at the call covers this one (prune.cpp). Before the comparison, the verifier forgets
// numbers that decided nothing (widen()); otherwise a counter that f keeps on the stack would make each round a new state.
// Kernels before 6.7 verified f once.
//
// The helper doesn't call a timer's function; the kernel calls it later. So the verifier treats it as a separate program, which
// holds no locks or references.
#include "asm/kinds.h"
#include "asm/map_types.h"
#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

// A frame for the function at `insn`, on top of this path's; false: the verdict is made.
bool Engine::push_frame(State &state, uint32_t insn, CallKind kind, const std::array<Value, 6> &arguments) {
    if (state.frames.size() >= kMostFrames) return refuse("the call stack of {} frames is too deep", state.frames.size() + 1);
    Frame callee;
    callee.call = state.insn;
    callee.function = flow_.function_of(insn);
    callee.kind = kind;
    for (unsigned reg = 1; reg <= 5; ++reg) callee.regs[reg] = arguments[reg];
    callee.regs[10] = pointer(Sort::stack, kNoNode);
    callee.regs[10].frame = static_cast<uint8_t>(state.frames.size());
    state.frames.push_back(std::move(callee));
    state.insn = insn;
    return true;
}

// Another path, on which a helper calls a function.
bool Engine::call_back(uint32_t insn, const std::array<Value, 6> &arguments) {
    flow_.functions[flow_.function_of(insn)].callback = true;
    State other = state_;
    if (!push_frame(other, insn, CallKind::callback, arguments)) return false;
    other.frames.back().held = other.references.size();
    if (other.checkpoint) ++checkpoints_[other.checkpoint - 1].open;
    if (pending_.size() >= 8192) return refuse("The sequence of {} jumps is too complex.", pending_.size() + 1);
    pending_.push_back(std::move(other));
    return true;
}

// A program of its own, which somebody calls later: a timer, a work queue.
bool Engine::call_later(uint32_t insn, const std::array<Value, 6> &arguments, bool may_sleep) {
    flow_.functions[flow_.function_of(insn)].later = true;
    State other;
    other.insn = state_.insn;
    other.sleeps = may_sleep;
    Frame callee;
    callee.call = state_.insn;
    callee.function = flow_.function_of(insn);
    callee.kind = CallKind::later;
    for (unsigned reg = 1; reg <= 5; ++reg) callee.regs[reg] = arguments[reg];
    callee.regs[10] = pointer(Sort::stack, kNoNode);
    other.frames.push_back(std::move(callee));
    other.insn = insn;
    other.step = state_.step;
    other.later = state_.later + 1;
    if (other.later > 8) return true; // as the kernel, which looks at a function of the same kind only so often
    if (pending_.size() >= 8192) return refuse("The sequence of {} jumps is too complex.", pending_.size() + 1);
    pending_.push_back(std::move(other));
    return true;
}

// What a helper that takes a function calls it with.
bool Engine::helper_calls(const HelperInfo &helper, const Called &called) {
    std::array<Value, 6> arguments;
    const auto map = static_cast<uint32_t>(called.map);
    auto of_map = [&](Sort sort) {
        Value value = pointer(sort, node());
        value.map = map;
        return value;
    };
    if (!rule(Rule::open_callbacks)) return undecided("callbacks, as kernels before 6.7 looked at them");
    if (helper.name == "loop") {
        walk_.need(state_.reg(1).node);
        size_t round = state_.frame().rounds;
        if (round >= state_.reg(1).bounds.u64.most) {
            state_.frame().rounds = 0;
            return true;
        }
        arguments[1] = any_number(node());
        arguments[2] = state_.reg(3);
        ++state_.frame().rounds;
        const bool good = call_back(called.callback, arguments);
        state_.frame().rounds = 0;
        (void)round;
        return good;
    }
    if (helper.name == "for_each_map_elem") {
        const MapEngine engine = map_type_row(map_at(spec_, map).type).engine;
        const MapValues values = map_type_row(map_at(spec_, map).type).values;
        const bool known = (engine == MapEngine::array || engine == MapEngine::hash) &&
                           (values == MapValues::typed || values == MapValues::per_cpu);
        if (!known) return refuse("callback function not allowed for map");
        arguments[1] = of_map(Sort::map);
        arguments[2] = of_map(Sort::map_key);
        arguments[3] = of_map(Sort::map_value);
        if (types_.lock_of(map) >= 0) arguments[3].id = new_id();
        arguments[4] = state_.reg(3);
        return call_back(called.callback, arguments);
    }
    if (helper.name == "find_vma") {
        const std::optional<Value> area = object("vm_area_struct", Trust::plain, false);
        if (!area) return false;
        arguments[1] = state_.reg(1);
        arguments[2] = *area;
        arguments[3] = state_.reg(4);
        return call_back(called.callback, arguments);
    }
    if (helper.name == "user_ringbuf_drain") {
        arguments[1] = pointer(Sort::dynptr, node());
        arguments[1].dynptr = DynptrKind::memory;
        arguments[1].first = true;
        arguments[1].id = new_id();
        arguments[2] = state_.reg(3);
        return call_back(called.callback, arguments);
    }
    if (helper.name == "timer_set_callback") {
        arguments[1] = of_map(Sort::map);
        arguments[2] = of_map(Sort::map_key);
        arguments[3] = of_map(Sort::map_value);
        if (types_.lock_of(map) >= 0) arguments[3].id = new_id();
        return call_later(called.callback, arguments, false);
    }
    return undecided(format("callbacks of bpf_{}", helper.name));
}

// bpf_throw(): all of the program ends here, whatever called what. Its argument is what the program returns, unless the program
// has a function of its own for that.
bool Engine::throw_exception() {
    if (!references_left("bpf_throw")) return false;
    if (state_.lock) return refuse("bpf_throw cannot be used inside bpf_spin_lock-ed region");
    if (state_.no_irq) return refuse("bpf_throw cannot be used inside bpf_local_irq_save-ed region");
    if (state_.rcu) return refuse("bpf_throw cannot be used inside bpf_rcu_read_lock-ed region");
    if (state_.no_preempt) return refuse("bpf_throw cannot be used inside bpf_preempt_disable-ed region");
    if (types_.catches) return true;
    const Value &cookie = state_.reg(1);
    if (!cookie.is_number()) return refuse("At program exit the register R1 is not a known value ({})", type_word(cookie));
    const std::optional<Range<int32_t>> wanted = returns_of(program_);
    if (state_.frame().function != 0 || !wanted) return true;
    walk_.need(cookie.node);
    if (cookie.bounds.s32.least >= wanted->least && cookie.bounds.s32.most <= wanted->most) return true;
    return wrong_return("At program exit", "R1", cookie, {wanted->least, wanted->most});
}

// The end of a function that a helper called: back to the call, which may call it again.
bool Engine::callback_return() {
    const Value r0 = state_.reg(0);
    if (!r0.is_number()) return refuse("R0 not a scalar value");
    walk_.need(r0.node);
    const Range<int64_t> wanted = {state_.frame().least, state_.frame().most};
    if (r0.bounds.s64.least < wanted.least || r0.bounds.s64.most > wanted.most)
        return wrong_return("At callback return", "R0", r0, wanted);
    if (state_.references.size() > state_.frame().held) return references_left("BPF_EXIT instruction in callback");
    const uint32_t back = state_.frame().call;
    const auto gone = static_cast<uint8_t>(state_.frames.size() - 1);
    state_.frames.pop_back();
    std::erase_if(touched_, [gone](const auto &place) { return place.first >= gone; });
    state_.insn = back;
    widen_from_before();
    return true;
}

bool Engine::wrong_return(std::string_view where, std::string_view reg, const Value &r0, Range<int64_t> wanted) {
    std::string known;
    if (r0.bounds.s64.least > INT64_MIN) append(known, "smin={} ", r0.bounds.s64.least);
    if (r0.bounds.s64.most < INT64_MAX) append(known, "smax={} ", r0.bounds.s64.most);
    return refuse("{} the register {} has {}should have been in [{}, {}]", where, reg,
                  known.empty() ? "unknown scalar value " : known, wanted.least, wanted.most);
}

} // namespace rawbpf::inline v0::verifier
