// Calls and returns.
//
//      a helper             arguments are checked; r0 is the result; r1 to r5 are lost
//      a static function    a new frame: its r1 to r5 are the caller's; walked anew at every call
//      a global function    arguments are checked against its types; it was walked once, by itself, with any arguments
//
// Some helpers acquire something (a ring buffer's record) that every path must release before it ends. Some move the packet:
// after such a call, no older pointer into the packet is valid.
#include <algorithm>

#include "asm/attach_types.h"
#include "asm/kinds.h"
#include "asm/map_types.h"
#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

namespace {

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

bool Engine::is_gpl(std::string_view license) {
    for (std::string_view good : {"GPL", "GPL v2", "GPL and additional rights", "Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL"})
        if (license == good) return true;
    return false;
}

void Engine::forget_caller_saved() {
    for (unsigned reg = 0; reg <= 5; ++reg) set(reg, Value());
}

void Engine::lose_packets() {
    state_.each_value([this](Value &value) {
        if (value.is_packet() || value.sort == Sort::packet_end) value = any_number(node());
    });
    lose_packet_slices();
}

bool Engine::release(ValueId ref) {
    const auto held =
        std::find_if(state_.references.begin(), state_.references.end(), [ref](const Reference &r) { return r.id == ref; });
    if (held == state_.references.end()) return refuse("R1 must be referenced when passed to release function");
    state_.references.erase(held);
    state_.each_value([this, ref](Value &value) {
        if (value.ref == ref) value = any_number(node(value.node));
    });
    // The slices of what is given back, and sockets found through it, go with it: they have its reference.
    return true;
}

bool Engine::references_left(std::string_view where) {
    if (state_.references.empty()) return true;
    std::string reason;
    for (const Reference &reference : state_.references)
        append(reason, "Unreleased reference id={} alloc_insn={}; ", reference.id, reference.insn);
    return refuse("{}{} would lead to reference leak", reason, where);
}

// Helpers that depend on more of a program than its type.
bool Engine::fits_program(const HelperInfo &helper) {
    auto no = [&] {
        return refuse("{} bpf_{}#{}",
                      at_least(options_.kernel, {6, 9}) ? "program of this type cannot use helper" : "unknown func", helper.name,
                      helper.id);
    };
    const auto type = static_cast<ProgramType>(program_.type);
    const bool options = helper.name == "setsockopt" || helper.name == "getsockopt";
    if (type == ProgramType::STRUCT_OPS &&
        (options || helper.name == "tcp_send_ack" || helper.name == "sk_storage_get" || helper.name == "sk_storage_delete")) {
        if (!attached_.name.starts_with("tcp_congestion_ops.")) return no();
        if (options && attached_.name == "tcp_congestion_ops.release") return no();
    }
    if (type == ProgramType::TRACING && options && attached_.name != "tcp" && attached_.name != "unix") return no();
    if (helper.name == "override_return") return undecided("bpf_override_return(), which not every kernel is built with");
    if (helper.name == "probe_write_user")
        return undecided("bpf_probe_write_user(), which a kernel that is locked down doesn't have");
    if (helper.name != "get_retval" && helper.name != "set_retval") return true;
    switch (static_cast<AttachType>(program_.expected_attach_type)) {
    case AttachType::CGROUP_UDP4_RECVMSG:
    case AttachType::CGROUP_UDP6_RECVMSG:
    case AttachType::CGROUP_UNIX_RECVMSG:
    case AttachType::CGROUP_INET4_GETPEERNAME:
    case AttachType::CGROUP_INET6_GETPEERNAME:
    case AttachType::CGROUP_UNIX_GETPEERNAME:
    case AttachType::CGROUP_INET4_GETSOCKNAME:
    case AttachType::CGROUP_INET6_GETSOCKNAME:
    case AttachType::CGROUP_UNIX_GETSOCKNAME: return no();
    default: return true;
    }
}

// Whether a function, or one that it calls, may move the packet: then pointers into it aren't good behind a call of it.
bool Engine::moves_packet(uint32_t insn) const {
    if (!rule(Rule::global_moves)) return false;
    std::vector<uint32_t> todo = {flow_.function_of(insn)}, seen = todo;
    while (!todo.empty()) {
        const FunctionRange &function = flow_.functions[todo.back()];
        todo.pop_back();
        for (uint32_t i = function.begin; i < function.end; i += is_wide(insns_[i]) ? 2 : 1) {
            const Insn &at = insns_[i];
            if (at.code == 0x85 && at.src == 0) {
                const HelperInfo *helper = find_helper(at.imm);
                const Prototype *prototype = helper ? find_prototype(helper->name, helper_set(program_)) : nullptr;
                if (prototype && (prototype->trait == Trait::moves || helper->id == helper::tail_call.id)) return true;
            }
            const Ways ways = ways_of(insns_, i);
            if (!ways.calls) continue;
            const uint32_t callee = flow_.function_of(static_cast<uint32_t>(ways.target));
            if (std::find(seen.begin(), seen.end(), callee) != seen.end()) continue;
            seen.push_back(callee);
            todo.push_back(callee);
        }
    }
    return false;
}

bool Engine::helper_call(const Insn &insn) {
    const HelperInfo *helper = find_helper(insn.imm);
    if (state_.lock && insn.imm != helper::spin_unlock.id && insn.imm != helper::kptr_xchg.id) {
        if (insn.imm == helper::spin_lock.id) return refuse("Locking two bpf_spin_locks are not allowed");
        return refuse("function calls are not allowed while holding a lock");
    }
    if (!helper || !at_least(options_.kernel, helper->since)) return refuse("invalid func unknown#{}", insn.imm);
    if (!has_prototype(helper->name)) return undecided(format("helper bpf_{}", helper->name));
    const Prototype *prototype = find_prototype(helper->name, helper_set(program_));
    const Access access = access_to(helper->name, helper_set(program_), options_.kernel);
    if (access == Access::unknown)
        return undecided(format("whether {}.{} lets programs of this type call bpf_{}",
                                static_cast<unsigned>(options_.kernel.major), static_cast<unsigned>(options_.kernel.minor),
                                helper->name));
    if (!prototype || access == Access::no)
        return refuse("{} bpf_{}#{}",
                      at_least(options_.kernel, {6, 9}) ? "program of this type cannot use helper" : "unknown func", helper->name,
                      helper->id);
    if (helper->gpl_only && !gpl_) return refuse("cannot call GPL-restricted function from non-GPL compatible program");
    if (!fits_program(*helper)) return false;
    if (prototype->trait == Trait::sleeps) {
        if (!program_sleeps()) return refuse("helper call might sleep in a non-sleepable prog");
        if (state_.rcu) return refuse("sleepable helper bpf_{}#{} in rcu_read_lock region", helper->name, helper->id);
        if (state_.no_preempt) return refuse("sleepable helper bpf_{}#{} in non-preemptible region", helper->name, helper->id);
        if (state_.no_irq) return refuse("sleepable helper bpf_{}#{} in IRQ-disabled region", helper->name, helper->id);
    }
    Called called;
    const bool lookup = helper->name == "map_lookup_elem";
    std::optional<uint64_t> key;
    for (unsigned i = 0; i < 5 && prototype->arguments[i] != Argument::none; ++i) {
        if (!argument(*helper, *prototype, i, called)) return false;
        if (lookup && i == 1 && rule(Rule::known_key)) {
            const MapSpec &map = map_at(spec_, static_cast<uint32_t>(called.map));
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
    if (called.released_dynptr && !release_dynptr(called.released_dynptr)) return false;
    if (called.released && !release(called.released)) return false;
    if (helper->id == helper::tail_call.id && !nothing_held("tail_call")) return false;
    if (helper->name == "get_local_storage" && !state_.reg(2).is_zero())
        return refuse("get_local_storage() doesn't support non-zero flags");
    if (helper->name == "dynptr_from_mem") {
        if (state_.reg(1).sort != Sort::map_value)
            return refuse("Unsupported reg type {} for bpf_dynptr_from_mem data", type_word(state_.reg(1)));
    }
    if (called.callback && !helper_calls(*helper, called)) return false;
    const bool slices_go = helper->name == "dynptr_write" && called.subject.dynptr == DynptrKind::packet;
    // r0's node remembers the key or the map, so that the chain of causes goes on from there.
    forget_caller_saved();
    const bool tail_call_moves = helper->id == helper::tail_call.id && rule(Rule::global_moves);
    if (prototype->trait == Trait::moves || slices_go || tail_call_moves) lose_packets();
    return helper_answer(*helper, *prototype, called, key);
}

// What r0 is.
bool Engine::helper_answer(const HelperInfo &helper, const Prototype &prototype, const Called &called,
                           std::optional<uint64_t> key) {
    (void)helper;
    switch (prototype.answer) {
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
    case Answer::value:
    case Answer::local: {
        const auto map = static_cast<uint32_t>(called.map);
        const MapSpec &spec = map_at(spec_, map);
        const MapEngine engine = map_type_row(spec.type).engine;
        if (engine == MapEngine::maps || engine == MapEngine::map_set) {
            if (map >= spec_.maps.size() || !spec.inner) return undecided("maps of maps without a template");
            Value value = pointer(Sort::map, node());
            value.map = static_cast<uint32_t>(spec_.maps.size()) + map;
            for (const KernelPart &part : types_.parts[value.map])
                if (part.name == "bpf_timer" || part.name == "bpf_wq")
                    return undecided("maps of maps with timers or work queues");
            value.maybe_null = !key || *key >= spec.max_entries;
            if (value.maybe_null) value.id = new_id();
            set(0, std::move(value));
            break;
        }
        if (spec.type == uint32_t(MapType::SOCKMAP) || spec.type == uint32_t(MapType::SOCKHASH) ||
            spec.type == uint32_t(MapType::XSKMAP)) {
            Value value = pointer(Sort::socket, node());
            value.socket = spec.type == uint32_t(MapType::XSKMAP) ? SocketKind::xdp : SocketKind::full;
            value.maybe_null = true;
            value.id = new_id();
            if (value.socket == SocketKind::full) {
                value.ref = value.id;
                state_.references.push_back({value.ref, state_.insn});
            }
            set(0, std::move(value));
            break;
        }
        if (map_type_row(spec.type).values == MapValues::reference || map_type_row(spec.type).values == MapValues::none)
            return undecided(format("lookups in maps of type {}", map_type_row(spec.type).name));
        Value value = pointer(Sort::map_value, node());
        value.map = map;
        value.id = new_id();
        value.maybe_null = prototype.answer == Answer::value && (!key || *key >= spec.max_entries);
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
    case Answer::socket:
    case Answer::sock_common:
    case Answer::same_socket:
    case Answer::same_tcp_sock: {
        Value value = pointer(Sort::socket, node());
        value.socket = prototype.answer == Answer::sock_common     ? SocketKind::common
                       : prototype.answer == Answer::same_tcp_sock ? SocketKind::tcp
                                                                   : SocketKind::full;
        value.maybe_null = true;
        value.id = new_id();
        if (prototype.answer == Answer::socket || prototype.answer == Answer::sock_common) {
            value.ref = value.id;
            state_.references.push_back({value.ref, state_.insn});
        } else {
            value.ref = called.ref;
        }
        set(0, std::move(value));
        break;
    }
    case Answer::slice: {
        Value value = pointer(Sort::memory, node());
        value.size = static_cast<uint32_t>(called.fixed);
        value.maybe_null = true;
        value.id = new_id();
        value.parent = called.subject.id;
        value.ref = called.subject.ref;
        value.dynptr = called.subject.dynptr;
        set(0, std::move(value));
        break;
    }
    case Answer::of_cpu:
    case Answer::of_cpu_or_null: {
        Value value = called.subject;
        value.node = node();
        value.per_cpu = false;
        value.maybe_null = prototype.answer == Answer::of_cpu_or_null;
        value.id = value.maybe_null ? new_id() : 0;
        if (value.owned) {
            value.trust = Trust::rcu;
        } else {
            if (!options_.kernel_types) return undecided("types of the kernel, which aren't at hand");
            const Result<btf::Type> type = options_.kernel_types->resolve(value.type);
            if (!type) return undecided("the type of a variable");
            if (type->kind != btf::Kind::struct_ && type->kind != btf::Kind::union_) {
                const Result<uint64_t> bytes = options_.kernel_types->size_of(value.type);
                if (!bytes) return refuse("unable to resolve the size of type '{}'", type->name);
                value.sort = Sort::memory;
                value.size = static_cast<uint32_t>(*bytes);
                value.read_only = true;
                value.type = 0;
            }
            value.trust = Trust::plain;
        }
        value.ref = 0;
        set(0, std::move(value));
        break;
    }
    case Answer::kernel_pointer: return pointer_answer(called);
    default: {
        const ObjectWord word = object_of_answer(prototype.answer);
        std::optional<Value> value = object(word.type, word.trusted ? Trust::trusted : Trust::plain, word.or_null);
        if (!value) return false;
        if (called.subject.sort == Sort::socket || called.subject.ref) value->ref = called.ref;
        set(0, std::move(*value));
        break;
    }
    }
    return true;
}

bool Engine::global_call(uint32_t target, const GlobalFunction &function) {
    if (state_.lock) return refuse("global function calls are not allowed while holding a lock, use static function instead");
    const std::string caller =
        format("; Caller passes invalid args into func#{} ('{}')", flow_.function_of(target), function.name);
    if (!function.returns_number && !(function.returns_nothing && rule(Rule::void_functions)))
        return refuse("Global function {}() doesn't return scalar. Only those are supported.{}", function.name, caller);
    for (size_t i = 0; i < function.parameters.size() && i < 5; ++i) {
        const auto reg = static_cast<unsigned>(i + 1);
        const Value &value = state_.reg(reg);
        switch (function.parameters[i]) {
        case GlobalFunction::Parameter::number:
            if (!value.is_number()) return refuse("R{} is not a scalar{}", reg, caller);
            break;
        case GlobalFunction::Parameter::context:
            if (value.sort != Sort::context) return refuse("arg#{} expects pointer to ctx{}", i, caller);
            if (value.off != 0) return refuse("{}{}", moved_pointer("ctx", reg, value.off), caller);
            if (!value.bounds.is_known() || value.bounds.number() != 0)
                return refuse("variable ctx access var_off={} disallowed{}", bits_text(value.bounds.bits), caller);
            break;
        case GlobalFunction::Parameter::memory:
        case GlobalFunction::Parameter::memory_not_null: {
            const bool not_null = function.parameters[i] == GlobalFunction::Parameter::memory_not_null;
            if (value.maybe_null && not_null) return refuse("arg#{} is expected to be non-NULL{}", i, caller);
            if (value.is_zero() && not_null) return refuse("arg#{} is expected to be non-NULL{}", i, caller);
            if (value.is_zero()) {
                walk_.need(value.node);
                break;
            }
            // What may be NULL is memory of that size all the same.
            Value &place = state_.reg(reg);
            const bool was = place.maybe_null;
            place.maybe_null = false;
            const bool good = readable(reg) && kernel_memory(reg, function.sizes[i]);
            state_.reg(reg).maybe_null = was;
            if (!good) {
                if (verdict_.outcome == Outcome::refused) verdict_.reason += caller;
                return false;
            }
            break;
        }
        case GlobalFunction::Parameter::arena:
            if (value.sort != Sort::arena && !value.is_number())
                return refuse("R{} is not a pointer to arena or scalar.{}", reg, caller);
            break;
        case GlobalFunction::Parameter::other: return undecided(format("arguments of the global function {}", function.name));
        }
    }
    forget_caller_saved();
    if (moves_packet(function.insn)) lose_packets();
    if (!function.returns_nothing) set(0, any_number(node()));
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
    if (state_.frame().kind == CallKind::callback) return callback_return();
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
