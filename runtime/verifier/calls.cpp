// Calls and returns.
//
//      a helper             arguments are checked; r0 is what it gives; r1 to r5 are lost
//      a static function    a new frame: its r1 to r5 are the caller's; walked anew at every call
//      a global function    arguments are checked against its types; it was walked once, by itself, with any arguments
//
// Some helpers give something that has to be given back (a ring buffer's record): every path has to do so before it ends. Some
// move the packet: then no pointer into it is good any more.
#include <algorithm>

#include "asm/kinds.h"
#include "asm/map_types.h"
#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

namespace {

// As license_is_gpl_compatible() of the kernel.
bool gpl_compatible(std::string_view license) {
    for (std::string_view good : {"GPL", "GPL v2", "GPL and additional rights", "Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL"})
        if (license == good) return true;
    return false;
}

// The number that a key in the stack is; nothing: it isn't known. The slot it is in must be that number's alone.
std::optional<uint64_t> key_in_stack(Walk &walk, State &state, const Value &key, uint32_t size) {
    if (key.sort != Sort::stack || !key.bounds.is_known()) return {};
    const int off = key.off + static_cast<int>(key.bounds.number());
    if (off >= 0 || off < -kStackSize) return {};
    Slot &slot = state.frames[key.frame].slot(off);
    const unsigned first = Frame::byte(off);
    unsigned zeros = 0, spilled = 0;
    while (first + zeros < 8 && slot.bytes[first + zeros] == Byte::zero) ++zeros;
    if (zeros >= size) return 0;
    if (!slot.holds_value() || !slot.value.is_number()) return {};
    while (first + spilled < 8 && slot.bytes[first + spilled] == Byte::spill) ++spilled;
    if (spilled != size || !slot.value.bounds.is_known()) return {};
    walk.need(slot.value.node);
    return slot.value.bounds.number();
}

} // namespace

void Engine::forget_caller_saved() {
    for (unsigned reg = 0; reg <= 5; ++reg) set(reg, Value());
}

void Engine::lose_packets() {
    state_.each_value([this](Value &value) {
        if (value.is_packet() || value.sort == Sort::packet_end) value = any_number(node());
    });
}

bool Engine::release(ValueId ref) {
    const auto held =
        std::find_if(state_.references.begin(), state_.references.end(), [ref](const Reference &r) { return r.id == ref; });
    if (held == state_.references.end()) return refuse("R1 must be referenced when passed to release function");
    state_.references.erase(held);
    state_.each_value([this, ref](Value &value) {
        if (value.ref == ref) value = any_number(node(value.node));
    });
    return true;
}

bool Engine::references_left(std::string_view where) {
    if (state_.references.empty()) return true;
    std::string reason;
    for (const Reference &reference : state_.references)
        append(reason, "Unreleased reference id={} alloc_insn={}; ", reference.id, reference.insn);
    return refuse("{}{} would lead to reference leak", reason, where);
}

bool Engine::helper_call(const Insn &insn) {
    const HelperInfo *helper = find_helper(insn.imm);
    if (state_.lock && insn.imm != helper::spin_unlock.id) {
        if (insn.imm == helper::spin_lock.id) return refuse("Locking two bpf_spin_locks are not allowed");
        return refuse("function calls are not allowed while holding a lock");
    }
    if (!helper || !at_least(options_.kernel, helper->since)) return refuse("invalid func unknown#{}", insn.imm);
    if (!has_prototype(helper->name)) return undecided(format("helper bpf_{}", helper->name));
    const Prototype *prototype = find_prototype(helper->name, helper_set(program_.type));
    if (!prototype)
        return refuse("{} bpf_{}#{}",
                      at_least(options_.kernel, {6, 9}) ? "program of this type cannot use helper" : "unknown func", helper->name,
                      helper->id);
    if (helper->gpl_only && !gpl_compatible(spec_.license))
        return refuse("cannot call GPL-restricted function from non-GPL compatible program");
    if (prototype->trait == Trait::sleeps && !program_.sleepable)
        return refuse("helper call might sleep in a non-sleepable prog");
    Called called;
    const bool lookup = helper->name == "map_lookup_elem";
    std::optional<uint64_t> key;
    for (unsigned i = 0; i < 5 && prototype->arguments[i] != Argument::none; ++i) {
        if (!argument(*helper, *prototype, i, called)) return false;
        if (lookup && i == 1 && rule(Rule::known_key)) {
            const MapSpec &map = spec_.maps[static_cast<size_t>(called.map)];
            if (map.type == uint32_t(MapType::ARRAY) || map.type == uint32_t(MapType::PERCPU_ARRAY))
                key = key_in_stack(walk_, state_, state_.reg(2), map.key_size);
        }
    }
    if (!fits_map(*helper, called)) return false;
    for (const Called::Room &room : called.rooms) {
        const Value base = state_.reg(room.reg);
        const int64_t fixed = base.off;
        const int64_t least =
            fixed + (base.bounds.is_known() ? static_cast<int64_t>(base.bounds.number()) : base.bounds.s64.least);
        const int64_t end =
            fixed + (base.bounds.is_known() ? static_cast<int64_t>(base.bounds.number()) : base.bounds.s64.most) + room.size;
        fill_bytes(state_.frames[base.frame], least, end, Byte::some);
    }
    if (called.released && !release(called.released)) return false;
    if (helper->id == helper::tail_call.id) {
        if (state_.lock) return refuse("tail_call cannot be used inside bpf_spin_lock-ed region");
        if (!references_left("tail_call")) return false;
    }
    // r0's node remembers the key or the map, so that the chain of causes goes on from there.
    forget_caller_saved();
    if (prototype->trait == Trait::moves) lose_packets();
    switch (prototype->answer) {
    case Answer::nothing: break;
    case Answer::number: set(0, any_number(node())); break;
    case Answer::error: {
        Value value = any_number(node());
        constexpr int32_t kMostErrno = 4095;
        value.bounds.s64 = {-kMostErrno, static_cast<int64_t>(called.most)};
        value.bounds.s32 = {-kMostErrno, static_cast<int32_t>(called.most)};
        value.bounds.settle(rules_);
        set(0, std::move(value));
        break;
    }
    case Answer::processor: {
        Value value = any_number(node());
        constexpr uint32_t kMostCpus = 8191; // NR_CPUS of the largest configuration; the kernel knows its own number
        value.bounds.u64 = {0, kMostCpus};
        value.bounds.s64 = {0, kMostCpus};
        value.bounds.u32 = {0, kMostCpus};
        value.bounds.s32 = {0, kMostCpus};
        value.bounds.settle(rules_);
        set(0, std::move(value));
        break;
    }
    case Answer::value: {
        const auto map = static_cast<uint32_t>(called.map);
        const MapSpec &spec = spec_.maps[map];
        const MapEngine engine = map_type_row(spec.type).engine;
        if (engine == MapEngine::maps || engine == MapEngine::map_set) return undecided("maps of maps");
        if (map_type_row(spec.type).values == MapValues::reference || map_type_row(spec.type).values == MapValues::none)
            return undecided(format("lookups in maps of type {}", map_type_row(spec.type).name));
        Value value = pointer(Sort::map_value, node());
        value.map = map;
        value.id = new_id();
        value.maybe_null = !key || *key >= spec.max_entries;
        if (!value.maybe_null && types_.lock_of(map) < 0) value.id = 0;
        set(0, std::move(value));
        break;
    }
    case Answer::record: {
        Value value = pointer(Sort::memory, node());
        value.ring_record = true;
        value.size = static_cast<uint32_t>(called.fixed);
        value.maybe_null = true;
        value.id = value.ref = new_id();
        state_.references.push_back({value.ref, state_.insn});
        set(0, std::move(value));
        break;
    }
    }
    return true;
}

// A function of the kernel: whether there is one of that name is all that is known.
bool Engine::kernel_call() {
    for (const Fixup &fixup : program_.fixups) {
        if (fixup.insn != state_.insn || fixup.kind != Fixup::Kind::kfunc) continue;
        if (options_.kernel_types && !fixup.weak && !options_.kernel_types->find(fixup.symbol, btf::Kind::func))
            return refuse("kernel function {}: not in {}", fixup.symbol, options_.kernel_types->name());
    }
    return undecided("calls of kernel functions");
}

bool Engine::global_call(uint32_t, const GlobalFunction &function) {
    if (state_.lock) return refuse("global function calls are not allowed while holding a lock, use static function instead");
    for (size_t i = 0; i < function.parameters.size() && i < 5; ++i) {
        const auto reg = static_cast<unsigned>(i + 1);
        const Value &value = state_.reg(reg);
        switch (function.parameters[i]) {
        case GlobalFunction::Parameter::number:
            if (!value.is_number())
                return refuse("R{} is not a scalar; Caller passes invalid args into func '{}'", reg, function.name);
            break;
        case GlobalFunction::Parameter::context:
            if (value.sort != Sort::context)
                return refuse("R{} type={} expected=ctx; Caller passes invalid args into func '{}'", reg, type_word(value),
                              function.name);
            break;
        case GlobalFunction::Parameter::other: return undecided(format("arguments of the global function {}", function.name));
        }
    }
    forget_caller_saved();
    if (!function.returns_nothing || !at_least(options_.kernel, {6, 8})) set(0, any_number(node()));
    ++state_.insn;
    return true;
}

bool Engine::function_call(const Insn &insn) {
    (void)insn;
    const auto target = static_cast<uint32_t>(ways_of(insns_, state_.insn).target);
    if (const GlobalFunction *global = types_.find_global(target)) return global_call(target, *global);
    if (state_.frames.size() >= kMostFrames) return refuse("the call stack of {} frames is too deep", state_.frames.size() + 1);
    Frame callee;
    callee.call = state_.insn;
    callee.function = flow_.function_of(target);
    callee.kind = CallKind::call;
    for (unsigned reg = 1; reg <= 5; ++reg) callee.regs[reg] = state_.reg(reg);
    forget_caller_saved();
    callee.regs[10] = pointer(Sort::stack, kNoNode);
    callee.regs[10].frame = static_cast<uint8_t>(state_.frames.size());
    state_.frames.push_back(std::move(callee));
    for (int reg = 1; reg <= 5; ++reg) touch(reg);
    state_.insn = target;
    return true;
}

bool Engine::function_return() {
    const Value r0 = state_.reg(0);
    if (r0.sort == Sort::stack) return refuse("cannot return stack pointer to the caller");
    const uint32_t back = state_.frame().call + 1;
    const auto gone = static_cast<uint8_t>(state_.frames.size() - 1);
    state_.frames.pop_back();
    std::erase_if(touched_, [gone](const auto &place) { return place.first >= gone; });
    // Pointers into the frame that is gone can't be anywhere: they can be stored only in younger frames.
    set(0, r0);
    state_.insn = back;
    return true;
}

} // namespace rawbpf::inline v0::verifier
