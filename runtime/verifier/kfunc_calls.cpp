// Calls of kernel functions (kfuncs): the program has the name, the kernel's BTF has the types.
//
//      r1 = task; r0 = bpf_task_acquire(r1)      arguments: kfunc_arguments.cpp     r0: a task_struct, to be released, or NULL
//      bpf_rcu_read_lock()                       the path is in an RCU section now
//      r0 = bpf_obj_new_impl(type, 0)            an object of the program's own
//
// kfuncs.def has what the types can't express: whether a function acquires or releases something, or may sleep.
#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

// Which function it is; nullptr: the verdict is made.
bool Engine::find_call(KernelCall &call) {
    const Fixup *fixup = nullptr;
    for (const Fixup &each : program_.fixups)
        if (each.insn == state_.insn && each.kind == Fixup::Kind::kfunc) fixup = &each;
    if (!fixup) return undecided("a call of a kernel function by number");
    call.name = fixup->symbol;
    if (!options_.kernel_types) return undecided("types of the kernel, which aren't at hand");
    const btf::Btf &types = *options_.kernel_types;
    std::string_view name = call.name;
    std::optional<btf::TypeId> id = types.find(name, btf::Kind::func);
    if (const size_t flavour = name.find("___"); !id && flavour != std::string_view::npos) {
        name = name.substr(0, flavour);
        id = types.find(name, btf::Kind::func);
    }
    call.row = find_kernel_function(name);
    const bool too_old = call.row && !at_least(options_.kernel, call.row->since);
    if (!id || too_old) {
        if (fixup->weak) return refuse("invalid func unknown#{}", fixup->insn);
        // Known to no kernel of the table: no loader finds it. Others may be a module's, whose types aren't these.
        if (!call.row) return refuse("kernel function {}: not in {}", call.name, types.name());
        return undecided(format("kernel function {}, which isn't in {}", call.name, types.name()));
    }
    if (!call.row) return undecided(format("kernel function {}", call.name));
    call.name = std::string(name);
    const Result<btf::Type> function = types.type(*id);
    const Result<btf::Type> prototype = function ? types.type(function->size_or_type) : types.type(0);
    if (!prototype || prototype->kind != btf::Kind::func_proto) return undecided(format("the prototype of {}", call.name));
    call.prototype = *prototype;
    return true;
}

bool Engine::kernel_call(bool &ended) {
    KernelCall call;
    if (!find_call(call)) return false;
    const KernelFunction &row = *call.row;
    if (!row.for_set(helper_set(program_))) return refuse("calling kernel function {} is not allowed", call.name);
    if (state_.lock && !call.name.starts_with("bpf_iter_num_") && !call.name.starts_with("bpf_list_") &&
        !call.name.starts_with("bpf_rbtree_") && call.name != "bpf_refcount_acquire_impl")
        return refuse("function calls are not allowed while holding a lock");
    if (call.name.starts_with("bpf_xdp_metadata_rx_")) return refuse("metadata kfuncs require device-bound program");
    if (call.prototype.vlen > 5) return refuse("Function {} has {} > 5 args", call.name, call.prototype.vlen);
    if (!gpl_) return refuse("cannot call kernel function from non-GPL compatible program");
    if (row.has(kfunc::sleeps) && !program_sleeps())
        return refuse("program must be sleepable to call sleepable kfunc {}", call.name);
    call.iterator_slots = row.has(kfunc::iter_new | kfunc::iter_next | kfunc::iter_destroy);
    for (uint32_t i = 0; i < call.prototype.vlen; ++i) {
        bool takes_two = false;
        if (!kernel_argument(call, i, takes_two)) return false;
        i += takes_two;
    }
    if (row.has(kfunc::releases) && !call.released)
        return refuse("release kernel function {} expects refcounted PTR_TO_BTF_ID", call.name);
    if (!kernel_sections(call)) return false;
    if (row.has(kfunc::iter_destroy) && !destroy_iterator(1, call.iterator_type, iterator_slots(call.iterator_type)))
        return false;
    if (call.released && !release(call.released)) return false;
    if (call.name == "bpf_wq_set_callback_impl") {
        std::array<Value, 6> arguments;
        auto of_map = [&](Sort sort) {
            Value value = pointer(sort, node());
            value.map = static_cast<uint32_t>(call.map);
            return value;
        };
        arguments[1] = of_map(Sort::map);
        arguments[2] = of_map(Sort::map_key);
        arguments[3] = of_map(Sort::map_value);
        if (types_.lock_of(static_cast<size_t>(call.map)) >= 0) arguments[3].id = new_id();
        if (!call_later(call.callback, arguments, true)) return false;
    } else if (call.name == "bpf_rbtree_add_impl") {
        if (!compare_nodes(call)) return false;
    } else if (call.callback) {
        return undecided(format("callbacks of {}", call.name));
    }
    if (call.given) give_away(call.given);
    if (call.name == "__bpf_trap") return undecided("__bpf_trap()");
    if (call.name == "bpf_throw") {
        ended = true;
        return throw_exception();
    }
    Value answer;
    bool has_answer = false;
    if (!kernel_answer(call, answer, has_answer)) return false;
    if (row.has(kfunc::iter_next)) {
        if (!iterate(1, call.iterator_type, iterator_slots(call.iterator_type), answer)) return false;
    } else {
        forget_caller_saved();
        if (call.name == "bpf_xdp_pull_data") lose_packets();
        if (has_answer) set(0, std::move(answer));
    }
    ++state_.insn;
    end_step();
    return true;
}

unsigned Engine::iterator_slots(uint32_t type) const {
    const Result<btf::Type> found = options_.kernel_types->type(type);
    return found ? found->size_or_type / 8 : 1;
}

// RCU, preemption, interrupts: what a call begins or ends, and what may not be called inside.
bool Engine::kernel_sections(const KernelCall &call) {
    if (state_.rcu) {
        if (call.name == "bpf_rcu_read_lock") {
            if (!rule(Rule::nested_rcu)) return refuse("nested rcu read lock (kernel function {})", call.name);
            ++state_.rcu;
        } else if (call.name == "bpf_rcu_read_unlock") {
            if (--state_.rcu == 0)
                state_.each_value([](Value &value) {
                    if (value.sort == Sort::object && value.trust == Trust::rcu) {
                        value.trust = Trust::untrusted;
                        value.maybe_null = false;
                    }
                });
        } else if (call.row->has(kfunc::sleeps)) {
            return refuse("kernel func {} is sleepable within rcu_read_lock region", call.name);
        }
    } else if (call.name == "bpf_rcu_read_lock") {
        state_.rcu = 1;
    } else if (call.name == "bpf_rcu_read_unlock") {
        return refuse("unmatched rcu read unlock (kernel function {})", call.name);
    }
    if (state_.no_preempt) {
        if (call.name == "bpf_preempt_disable")
            ++state_.no_preempt;
        else if (call.name == "bpf_preempt_enable")
            --state_.no_preempt;
        else if (call.row->has(kfunc::sleeps))
            return refuse("kernel func {} is sleepable within non-preemptible region", call.name);
    } else if (call.name == "bpf_preempt_disable") {
        state_.no_preempt = 1;
    } else if (call.name == "bpf_preempt_enable") {
        return refuse("unmatched attempt to enable preemption (kernel function {})", call.name);
    }
    if (state_.no_irq && call.row->has(kfunc::sleeps))
        return refuse("kernel func {} is sleepable within IRQ-disabled region", call.name);
    return true;
}

// What r0 is.
bool Engine::kernel_answer(KernelCall &call, Value &answer, bool &has_answer) {
    const btf::Btf &types = *options_.kernel_types;
    const Result<btf::Type> type = types.resolve(call.prototype.size_or_type);
    if (!type) return undecided(format("the prototype of {}", call.name));
    if (type->kind == btf::Kind::void_) return true;
    has_answer = true;
    if (type->kind != btf::Kind::ptr) {
        answer = any_number(node());
        return true;
    }
    const Result<btf::Type> to = types.resolve(type->size_or_type);
    if (!to) return undecided(format("the prototype of {}", call.name));
    answer = pointer(Sort::object, node());
    const bool takes_out =
        call.name == "bpf_list_pop_front" || call.name == "bpf_list_pop_back" || call.name == "bpf_rbtree_remove";
    const bool looks = call.name == "bpf_rbtree_first" || call.name == "bpf_rbtree_root" || call.name == "bpf_rbtree_left" ||
                       call.name == "bpf_rbtree_right" || call.name == "bpf_list_front" || call.name == "bpf_list_back";
    if (takes_out || looks) {
        answer = graph_answer(call, looks);
    } else if (call.name == "bpf_obj_new_impl" || call.name == "bpf_percpu_obj_new_impl") {
        const btf::Btf *own = types_.own();
        const Result<btf::Type> made = own ? own->resolve(static_cast<btf::TypeId>(call.constant)) : types.type(0);
        if (!own) return refuse("bpf_obj_new/bpf_percpu_obj_new requires prog BTF");
        if (call.constant > UINT32_MAX) return refuse("local type ID argument must be in range [0, U32_MAX]");
        const Result<btf::Type> exact = own->type(static_cast<btf::TypeId>(call.constant));
        if (!exact || exact->kind != btf::Kind::struct_)
            return refuse("bpf_obj_new/bpf_percpu_obj_new type ID argument must be of a struct");
        answer.type = exact->id;
        answer.owned = true;
        answer.per_cpu = call.name == "bpf_percpu_obj_new_impl";
        if (answer.per_cpu) {
            if (exact->size_or_type > 512)
                return refuse("bpf_percpu_obj_new type size ({}) is greater than 512", exact->size_or_type);
            if (!types_.parts_of_type(exact->id).empty())
                return refuse("bpf_percpu_obj_new type ID argument must not contain special fields");
        }
    } else if (call.name == "bpf_refcount_acquire_impl") {
        answer.type = call.object;
        answer.owned = true;
    } else if (call.name == "bpf_cast_to_kern_ctx") {
        const ProgramRow *row = program_row(program_.type);
        if (!row || row->kernels.empty() || row->kernels == "u64")
            return undecided("the kernel's context of this type of programs");
        std::optional<Value> made = object(row->kernels, Trust::trusted, false);
        if (!made) return false;
        answer = *made;
    } else if (call.name == "bpf_rdonly_cast") {
        const Result<btf::Type> cast = types.type(static_cast<btf::TypeId>(call.constant));
        if (call.constant == 0 && at_least(options_.kernel, {6, 17})) {
            answer = any_number(node());
            return undecided("bpf_rdonly_cast to void");
        }
        if (!cast || (cast->kind != btf::Kind::struct_ && cast->kind != btf::Kind::union_))
            return refuse("kfunc bpf_rdonly_cast type ID argument must be of a struct");
        answer.type = cast->id;
        answer.trust = Trust::untrusted;
    } else if (call.name == "bpf_dynptr_slice" || call.name == "bpf_dynptr_slice_rdwr") {
        answer = pointer(Sort::memory, node());
        answer.size = static_cast<uint32_t>(call.constant);
        answer.parent = call.dynptr.id;
        answer.dynptr = call.dynptr.dynptr;
        if (call.name == "bpf_dynptr_slice")
            answer.read_only = true;
        else if (!may_use_packet(true))
            return refuse("the prog does not allow writes to packet data");
    } else if (to->kind == btf::Kind::void_) {
        answer = any_number(node());
        return true;
    } else if (to->kind != btf::Kind::struct_ && to->kind != btf::Kind::union_) {
        if (!call.answer_size) {
            const Result<uint64_t> bytes = types.size_of(to->id);
            if (!bytes || *bytes == 0)
                return refuse("kernel function {} returns pointer type {} {} is not supported", call.name, kind_name(to->kind),
                              to->name);
            call.answer_size = static_cast<uint32_t>(*bytes);
            call.answer_read_only = call.name != "bpf_session_cookie";
        }
        answer = pointer(Sort::memory, node());
        answer.size = call.answer_size;
        answer.read_only = call.answer_read_only;
        if (call.ref) answer.ref = call.ref;
    } else {
        answer.type = to->id;
        if (call.row->has(kfunc::iter_next)) answer.trust = call.iterator_trust == Trust::rcu ? Trust::rcu : Trust::trusted;
    }
    const bool sure = call.name == "bpf_refcount_acquire_impl" && call.owning;
    if (call.row->has(kfunc::or_null) && !sure) {
        answer.maybe_null = true;
        answer.id = new_id();
    }
    if (call.row->has(kfunc::acquires)) {
        answer.ref = new_id();
        if (answer.maybe_null) answer.id = answer.ref;
        state_.references.push_back({answer.ref, state_.insn});
    }
    if (answer.owned && types_.lock_of_type(answer.type) >= 0 && !answer.id) answer.id = new_id();
    return true;
}

// Saved interrupt flags: 8 bytes of the stack.
bool Engine::irq_argument(KernelCall &call, uint32_t number) {
    const unsigned reg = number + 1;
    const Value base = state_.reg(reg);
    if (base.sort != Sort::stack) return refuse("arg#{} doesn't point to an irq flag on stack", number);
    const std::optional<int> off = slots_at(reg, "irq_flag", 1, true);
    if (!off) return refuse("arg#{} doesn't point to an irq flag on stack", number);
    Frame &frame = state_.frames[base.frame];
    const bool there = frame.byte_at(*off) == Byte::special && frame.slot(*off).value.sort == Sort::irq_flag;
    if (call.name == "bpf_local_irq_save") {
        if (there) return refuse("expected uninitialized irq flag as arg#{}", number);
        if (!stack_bounds(reg, base, 0, 8, true, By::instruction) || !overwrite(frame, *off)) return false;
        Slot &slot = frame.slot(*off);
        slot = Slot();
        slot.bytes.fill(Byte::special);
        slot.value = pointer(Sort::irq_flag, node());
        slot.value.ref = new_id();
        state_.irqs.push_back({slot.value.ref, state_.insn});
        ++state_.no_irq;
        touch(base.frame, *off);
        return true;
    }
    if (!there) return refuse("expected an initialized irq flag as arg#{}", number);
    if (state_.irqs.empty() || state_.irqs.back().id != frame.slot(*off).value.ref)
        return refuse("cannot restore irq state out of order, expected id={} acquired at insn_idx={}",
                      state_.irqs.empty() ? 0 : state_.irqs.back().id, state_.irqs.empty() ? 0 : state_.irqs.back().insn);
    state_.irqs.pop_back();
    --state_.no_irq;
    frame.slot(*off) = Slot();
    touch(base.frame, *off);
    return true;
}

} // namespace rawbpf::inline v0::verifier
