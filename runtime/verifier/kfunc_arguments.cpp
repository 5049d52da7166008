// The arguments of kernel functions (kfuncs). BTF has their types; suffixes of the parameters' names say more:
//
//      void *buf, u32 buf__sz       memory of so many bytes               u64 flags__k          a constant
//      struct foo *p__nullable      NULL will do                          const char *s__str    a constant string
//      struct foo *p__ign           never looked at                       void *p__uninit       made here
//      void *p__alloc               an object of the program's own        void *map__map        a map
//
// A pointer to a struct of numbers alone is memory of that size; to any other struct, an object (kernel/bpf/verifier.c,
// get_kfunc_ptr_arg_type(), check_kfunc_args()).
#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

namespace {

using btf::Kind;

bool is_scalar(const btf::Type &type) { return type.kind == Kind::int_ || type.kind == Kind::enum_ || type.kind == Kind::enum64; }

// Whether a struct has numbers alone, at any depth.
bool is_plain(const btf::Btf &types, btf::TypeId id, int depth = 0) {
    const Result<btf::Type> type = types.resolve(id);
    if (!type || (type->kind != Kind::struct_ && type->kind != Kind::union_) || depth > 3) return false;
    for (uint32_t i = 0; i < type->vlen; ++i) {
        const Result<btf::Member> member = types.member(*type, i);
        Result<btf::Type> of = member ? types.resolve(member->type) : types.type(0);
        if (of && of->kind == Kind::array) of = types.resolve(types.array(*of).element);
        if (!of) return false;
        if ((of->kind == Kind::struct_ || of->kind == Kind::union_) && is_plain(types, of->id, depth + 1)) continue;
        if (!is_scalar(*of)) return false;
    }
    return true;
}

// As the kernel's btf_kind_str[] has it.
std::string_view kernel_kind(Kind kind) {
    switch (kind) {
    case Kind::void_: return "UNKNOWN";
    case Kind::struct_: return "STRUCT";
    case Kind::union_: return "UNION";
    case Kind::enum_: return "ENUM";
    case Kind::fwd: return "FWD";
    case Kind::ptr: return "PTR";
    default: return kind_name(kind);
    }
}

} // namespace

bool Engine::is_trusted(const Value &value) const {
    if (value.ref) return true;
    if (value.sort == Sort::socket || value.sort == Sort::map) return true;
    return value.sort == Sort::object && value.trust == Trust::trusted;
}

// Memory that a function reads and writes.
bool Engine::kernel_memory(unsigned reg, int64_t size) {
    const Value base = state_.reg(reg);
    if (base.is_zero()) return true;
    Called called;
    if (base.maybe_null || (!base.is_pointer()))
        return refuse("R{} type={} expected={}", reg, type_word(base), "fp, pkt, pkt_meta, map_key, map_value, mem");
    if (!memory_argument(reg, size, false, true, true, called)) return false;
    return filled_argument(reg, size);
}

// As the last parameters of calls have it: a buffer and its size.
bool Engine::kernel_buffer(unsigned reg, const KernelCall &call) {
    Called called;
    if (sized_argument(reg, reg + 1, false, true, true, called) &&
        (state_.reg(reg).is_zero() || filled_argument(reg, static_cast<int64_t>(called.most))))
        return true;
    (void)call;
    if (verdict_.outcome == Outcome::refused)
        verdict_.reason += format("; arg#{} arg#{} memory, len pair leads to invalid memory access", reg - 1, reg);
    return false;
}

bool Engine::kernel_argument(KernelCall &call, uint32_t number, bool &takes_two) {
    const btf::Btf &types = *options_.kernel_types;
    const Result<btf::Param> param = types.param(call.prototype, number);
    if (!param) return undecided(format("the prototype of {}", call.name));
    const unsigned reg = number + 1;
    const std::string_view name = param->name;
    if (name.ends_with("__ign") || name.ends_with("__prog")) return true;
    if (!readable(reg)) return false;
    const Value value = state_.reg(reg);
    const Result<btf::Type> type = types.resolve(param->type);
    if (!type) return undecided(format("the prototype of {}", call.name));
    if (is_scalar(*type)) {
        if (!value.is_number()) return refuse("R{} is not a scalar", reg);
        const bool size = name == "rdonly_buf_size" || name == "rdwr_buf_size";
        if (!name.ends_with("__k") && !size) return true;
        if (!value.bounds.is_known()) return refuse("R{} {}", reg, size ? "is not a const" : "must be a known constant");
        walk_.need(value.node);
        if (size) {
            call.answer_size = static_cast<uint32_t>(value.bounds.number());
            call.answer_read_only = name == "rdonly_buf_size";
        } else {
            call.constant = value.bounds.number();
        }
        return true;
    }
    if (type->kind != Kind::ptr) return refuse("Unrecognized arg#{} type {}", number, kind_name(type->kind));
    const bool nullable = name.ends_with("__nullable") || name.ends_with("__opt");
    const bool trusted = call.row->has(kfunc::trusted | kfunc::releases), rcu = call.row->has(kfunc::rcu);
    if ((trusted || rcu) && (value.is_zero() || value.maybe_null) && !name.ends_with("__nullable"))
        return refuse("Possibly NULL pointer passed to trusted arg{}", number);
    if (value.ref && value.sort != Sort::stack) {
        call.ref = value.ref;
        if (call.row->has(kfunc::releases)) call.released = value.ref;
    }
    const Result<btf::Type> to = types.resolve(type->size_or_type);
    if (!to) return undecided(format("the prototype of {}", call.name));
    const auto placed = [&](bool fixed_is_good) {
        if ((call.released && call.released == value.ref && value.off != 0))
            return refuse("R{} must have zero offset when passed to release func or trusted arg to kfunc", reg);
        if (value.off != 0 && !fixed_is_good) return refuse("{}", moved_pointer(type_word(value), reg, value.off));
        if (!value.bounds.is_known() || value.bounds.number() != 0)
            return refuse("variable {} access var_off={} disallowed", type_word(value), bits_text(value.bounds.bits));
        return true;
    };
    const ProgramRow *program = program_row(program_.type);
    const bool is_context = call.name == "bpf_cast_to_kern_ctx" ||
                            (to->kind == Kind::struct_ && program && !program->context.empty() && to->name == program->context);
    if (is_context) {
        if (value.sort != Sort::context) return refuse("arg#{} expected pointer to ctx, but got {}", number, type_word(value));
        return placed(false);
    }
    if (name.ends_with("__alloc")) return own_argument(call, number, value);
    if (name.ends_with("__refcounted_kptr")) {
        if (value.sort != Sort::object || !value.owned || value.maybe_null)
            return refuse("arg#{} is neither owning or non-owning ref", number);
        if (!types_.has_part(value.type, "bpf_refcount"))
            return refuse("arg#{} doesn't point to a type with bpf_refcount field", number);
        call.owning = !value.shared && value.ref;
        call.object = value.type;
        return placed(true);
    }
    if (nullable && value.is_zero()) {
        walk_.need(value.node);
        if (name.ends_with("__nullable")) return true;
    }
    if (to->name == "bpf_dynptr" || to->name == "bpf_dynptr_kern") return kernel_dynptr(call, number, name.ends_with("__uninit"));
    if ((call.iterator_slots && number == 0) || name.ends_with("__iter")) return kernel_iterator(call, number, *to);
    if (to->name == "bpf_list_head" || to->name == "bpf_list_node" || to->name == "bpf_rb_root" || to->name == "bpf_rb_node") {
        const bool list = to->name.starts_with("bpf_list");
        if (to->name == "bpf_list_head" || to->name == "bpf_rb_root") return graph_root(call, number, list);
        return graph_node(call, number, list);
    }
    if (name.ends_with("__str")) {
        if (value.sort != Sort::map_value) return refuse("arg#{} doesn't point to a const string", number);
        return constant_string(reg, value);
    }
    if (name.ends_with("__map")) {
        if (value.sort != Sort::map) {
            // An iterator's struct bpf_map is one, too.
            if (value.sort == Sort::object && object_name(value) == "bpf_map") {
                if (!is_trusted(value)) return refuse("R{} must be referenced or trusted", reg);
                return true;
            }
            return refuse("pointer in R{} isn't map pointer", reg);
        }
        if (value.maybe_null) return refuse("pointer in R{} isn't map pointer", reg);
        if (call.map >= 0 && call.map != static_cast<int>(value.map))
            return refuse("workqueue pointer in R1 map_uid=0 doesn't match map pointer in R2 map_uid=0");
        call.map = static_cast<int>(value.map);
        return true;
    }
    if (to->name == "bpf_wq") {
        if (value.sort != Sort::map_value) return refuse("arg#{} doesn't point to a map value", number);
        Called called;
        if (!map_part(reg, value, "bpf_wq", called)) return false;
        call.map = called.map;
        return true;
    }
    if (to->name == "bpf_timer" || to->name == "bpf_res_spin_lock" || to->name == "bpf_task_work")
        return undecided(format("{} of {}", to->name, call.name));
    if (call.name.starts_with("bpf_local_irq_")) return irq_argument(call, number);
    const Result<btf::Param> next =
        number + 1 < call.prototype.vlen ? types.param(call.prototype, number + 1) : types.param(call.prototype, number);
    const bool sized =
        next && number + 1 < call.prototype.vlen && (next->name.ends_with("__sz") || next->name.ends_with("__szk"));
    if (value.sort == Sort::object || value.sort == Sort::socket) {
        if (to->kind != Kind::struct_ && to->kind != Kind::union_) {
            return refuse("kernel function {} args#{} pointer type {} {} is not supported", call.name, number,
                          kind_name(to->kind), to->name);
        }
        if (trusted || rcu) {
            if (!is_trusted(value)) {
                if (!rcu) return refuse("R{} must be referenced or trusted", reg);
                if (value.sort != Sort::object || value.trust != Trust::rcu) return refuse("R{} must be a rcu pointer", reg);
            }
        }
        if (!placed(value.sort == Sort::object)) return false;
        if (value.sort == Sort::object && (value.trust == Trust::untrusted || value.user || value.per_cpu || value.maybe_null))
            return refuse("arg#{} is {} expected ptr_ or socket", number, type_word(value));
        return same_struct(call, number, value, *to);
    }
    if (to->kind == Kind::func_proto) {
        if (value.sort != Sort::function) return refuse("arg{} expected pointer to func", number);
        call.callback = value.type;
        return true;
    }
    const bool void_is_good = sized && to->kind == Kind::void_;
    if (!is_scalar(*to) && !is_plain(types, to->id) && !void_is_good)
        return refuse("arg#{} pointer type {} {} must point to {}scalar, or struct with scalar", number, kernel_kind(to->kind),
                      to->name, sized ? "void, " : "");
    if (!sized) {
        const Result<uint64_t> bytes = types.size_of(to->id);
        if (!bytes) return refuse("arg#{} reference type size cannot be determined", number);
        return kernel_memory(reg, static_cast<int64_t>(*bytes));
    }
    takes_two = true;
    if (!readable(reg + 1)) return false;
    const Value size = state_.reg(reg + 1);
    if (!value.is_zero() || !name.ends_with("__opt")) {
        if (!kernel_buffer(reg, call)) return false;
    } else {
        walk_.need(value.node);
    }
    if (next->name.ends_with("__szk")) {
        if (!size.bounds.is_known()) return refuse("R{} must be a known constant", reg + 1);
        walk_.need(size.node);
        call.constant = size.bounds.number();
    }
    return true;
}

// An object that the program has made by bpf_obj_new().
bool Engine::own_argument(KernelCall &call, uint32_t number, const Value &value) {
    if (value.sort != Sort::object || !value.owned || value.maybe_null || value.shared || value.trust == Trust::rcu)
        return refuse("arg#{} expected pointer to allocated object", number);
    const bool per_cpu = call.name == "bpf_percpu_obj_drop_impl";
    if (value.per_cpu != per_cpu)
        return refuse("arg#{} expected for {}()", number, value.per_cpu ? "bpf_percpu_obj_drop_impl" : "bpf_obj_drop_impl");
    if (value.off != 0)
        return refuse("R{} must have zero offset when passed to release func or trusted arg to kfunc", number + 1);
    if (!value.ref) return refuse("allocated object must be referenced");
    call.object = value.type;
    return true;
}

// Whether an object is of the struct that is wanted: alike by name, or it begins with one.
bool Engine::same_struct(const KernelCall &call, uint32_t number, const Value &value, const btf::Type &wanted) {
    std::string_view have;
    bool good = false;
    if (value.sort == Sort::socket) {
        have = value.socket == SocketKind::common ? "sock_common"
               : value.socket == SocketKind::full ? "sock"
               : value.socket == SocketKind::tcp  ? "tcp_sock"
                                                  : "xdp_sock";
        const std::optional<btf::TypeId> id = options_.kernel_types->find(have, Kind::struct_);
        good = id && is_a(*options_.kernel_types, *id, 0, wanted.name, call.row->has(kfunc::releases) && value.ref);
    } else {
        const bool strict = call.row->has(kfunc::releases) && value.ref;
        // What programs see in place of a struct of the kernel stands for it.
        const std::string own = object_name(value);
        if (value.off == 0 &&
            ((own == "sk_buff" && wanted.name == "__sk_buff") || (own == "xdp_buff" && wanted.name == "xdp_md")))
            return true;
        good = !value.owned && is_a(*options_.kernel_types, value.type, value.off, wanted.name, strict);
        // nf_conn___init is one that isn't whole yet, and can't be passed for one.
        if (good && (wanted.name == "nf_conn" || wanted.name == "nf_conn___init")) good = object_name(value) == wanted.name;
    }
    if (good) return true;
    const std::string own = value.sort == Sort::socket ? std::string(have) : object_name(value);
    return refuse("kernel function {} args#{} expected pointer to STRUCT {} but R{} has a pointer to STRUCT {}", call.name,
                  number, wanted.name, number + 1, own);
}

bool Engine::kernel_dynptr(KernelCall &call, uint32_t number, bool made_here) {
    const unsigned reg = number + 1;
    const Value base = state_.reg(reg);
    if (base.sort != Sort::stack && base.sort != Sort::dynptr)
        return refuse("arg#{} expected pointer to stack or const struct bpf_dynptr", number);
    if (made_here) {
        if (base.sort == Sort::dynptr) return refuse("Dynptr has to be an uninitialized dynptr");
        if (call.name == "bpf_dynptr_from_skb" || call.name == "bpf_dynptr_from_skb_meta")
            return make_dynptr(reg, DynptrKind::packet, 0, !may_use_packet(true), {});
        if (call.name == "bpf_dynptr_from_xdp") return make_dynptr(reg, DynptrKind::xdp, 0, false, {});
        if (call.name == "bpf_dynptr_clone")
            return make_dynptr(reg, call.dynptr.dynptr, call.dynptr.ref, call.dynptr.read_only, {});
        return undecided(format("the dynptr that {} makes", call.name));
    }
    const Value *found = dynptr_in(reg);
    if (!found) return no_dynptr(reg, number);
    call.dynptr = *found;
    return true;
}

bool Engine::kernel_iterator(KernelCall &call, uint32_t number, const btf::Type &of) {
    const unsigned reg = number + 1;
    if (state_.reg(reg).sort != Sort::stack) return refuse("arg#{} expected pointer to an iterator on stack", number);
    const unsigned slots = of.size_or_type / 8;
    std::string_view name = of.name;
    if (name.starts_with("bpf_iter_")) name.remove_prefix(9);
    if (call.row->has(kfunc::iter_new)) return make_iterator(reg, of.id, slots, call.row->has(kfunc::in_rcu), name);
    const Value *found = iterator_in(reg, of.id, slots);
    if (!found) return refuse("expected an initialized iter_{} as arg #{}", name, number);
    if (found->trust == Trust::untrusted) return refuse("expected an RCU CS when using {}", call.name);
    call.iterator_type = of.id;
    call.iterator_trust = found->trust;
    return true;
}

} // namespace rawbpf::inline v0::verifier
