// Pointers in maps' values (kptr): fields that hold a pointer to an object, tagged as such in the program's types.
//
//      struct v { struct task_struct __kptr *task; };
//
//      r1 = v->task                       may be NULL; another program may take it at any time: it can be read, in an RCU section
//                                         more, if its objects are freed only after one
//      r0 = bpf_kptr_xchg(&v->task, p)    p, which the program owned, is the map's; what was there is the program's: it has to be
//                                         given back
//
// A program may store any pointer in a field with the tag __kptr_untrusted; what it loads from there it can only read.
// (map_kptr_match_type(), btf_ld_kptr_type() of kernel/bpf/verifier.c.)
#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

namespace {

// Objects that are freed after a grace period only (rcu_protected_types of the kernel).
bool lives_for_rcu(std::string_view name) {
    for (std::string_view one : {"task_struct", "cgroup", "bpf_cpumask", "bpf_crypto_ctx", "prog_test_ref_kfunc"})
        if (name == one) return true;
    return false;
}

} // namespace

bool Engine::pointer_type(const KernelPart &part, btf::TypeId &type, bool &own) {
    if (!options_.kernel_types || !types_.own()) return undecided("types of the kernel, which aren't at hand");
    const std::string_view name = type_name(*types_.own(), part.target);
    const std::optional<btf::TypeId> id = options_.kernel_types->find(btf::essential_name(name), btf::Kind::struct_);
    own = !id;
    type = id ? *id : part.target;
    if (own) {
        // As it stands there, without modifiers.
        const Result<btf::Type> found = types_.own()->resolve(part.target);
        if (found) type = found->id;
        if (found && found->kind == btf::Kind::fwd) return undecided(format("a pointer to struct {}, which is unknown", name));
    }
    return true;
}

// An access of a value that hits such a field.
bool Engine::pointer_field(const Value &base, const KernelPart &part, int64_t off, int64_t size, By by) {
    if (by == By::helper) return refuse("kptr cannot be accessed indirectly by helper");
    if (!base.bounds.is_known()) return refuse("kptr access cannot have variable offset");
    const int64_t at = base.off + off + static_cast<int64_t>(base.bounds.number());
    if (at != part.offset) return refuse("kptr access misaligned expected={} off={}", part.offset, at);
    if (size != 8) return refuse("kptr access size must be BPF_DW");
    return true;
}

bool Engine::pointer_load(const KernelPart &part, Value &loaded) {
    btf::TypeId type = 0;
    bool own = false;
    if (part.name == "uptr") return undecided("pointers to memory of user space in maps (uptr)");
    if (!pointer_type(part, type, own)) return false;
    loaded = pointer(Sort::object, node());
    loaded.type = type;
    loaded.maybe_null = true;
    loaded.id = new_id();
    const std::string_view name = type_name(own ? *types_.own() : *options_.kernel_types, type);
    const bool rcu = part.name == "percpu_kptr" || (part.name == "kptr" && (own || lives_for_rcu(name)));
    if (rcu && in_rcu()) {
        loaded.trust = Trust::rcu;
        loaded.owned = own;
        loaded.per_cpu = part.name == "percpu_kptr";
        loaded.shared = own && (types_.has_part(type, "bpf_list_node") || types_.has_part(type, "bpf_rb_node"));
    } else {
        loaded.trust = Trust::untrusted;
        loaded.owned = own;
    }
    return true;
}

bool Engine::pointer_matches(unsigned reg, const Value &value, const KernelPart &part) {
    btf::TypeId type = 0;
    bool own = false;
    if (!pointer_type(part, type, own)) return false;
    const std::string wanted = std::string(type_name(own ? *types_.own() : *options_.kernel_types, type));
    const bool weak = part.name == "kptr_untrusted";
    auto bad = [&] {
        return refuse("invalid kptr access, R{} type={}{} expected=ptr_{}{}", reg, type_word(value),
                      value.sort == Sort::object ? object_name(value) : std::string(), wanted,
                      weak ? " or untrusted_ptr_" + wanted : "");
    };
    if (value.sort != Sort::object || value.shared || value.user) return bad();
    if (value.trust == Trust::untrusted && !weak) return bad();
    if (!value.bounds.is_known() || value.bounds.number() != 0)
        return refuse("variable {} access var_off={} disallowed", type_word(value), bits_text(value.bounds.bits));
    if (value.per_cpu != (part.name == "percpu_kptr") || value.owned != own) return bad();
    const btf::Btf &types = own ? *types_.own() : *options_.kernel_types;
    if (!is_a(types, value.type, value.off, wanted, !weak)) return bad();
    return true;
}

bool Engine::pointer_store(unsigned reg, const Value &stored, const KernelPart &part, bool by_register) {
    if (part.name == "kptr" || part.name == "percpu_kptr") return refuse("store to referenced kptr disallowed");
    if (part.name == "uptr") return refuse("store to uptr disallowed");
    if (stored.is_zero()) {
        walk_.need(stored.node);
        return true;
    }
    if (!by_register) return refuse("BPF_ST imm must be 0 when storing to kptr at off={}", part.offset);
    return pointer_matches(reg, stored, part);
}

// bpf_kptr_xchg(): the place in a value, and the pointer that goes there.
bool Engine::pointer_argument(unsigned reg, const Value &value, Argument wanted, Called &called) {
    if (wanted == Argument::pointer_place) {
        const bool own = value.sort == Sort::object && value.owned;
        if ((value.sort != Sort::map_value && !own) || value.maybe_null || value.shared)
            return refuse("R{} type={} expected=map_value, ptr_", reg, type_word(value));
        if (!value.bounds.is_known())
            return refuse("R{} doesn't have constant offset. kptr has to be at the constant offset", reg);
        parts_ = own ? types_.parts_of_type(value.type) : types_.parts[value.map];
        std::erase_if(parts_,
                      [](const KernelPart &part) { return !part.name.ends_with("ptr") && part.name != "kptr_untrusted"; });
        constexpr size_t kMostFields = 11; // BTF_FIELDS_MAX: of a type with more the kernel knows none
        if (parts_.empty() || parts_.size() > kMostFields) return refuse("R{} has no valid kptr", reg);
        const int64_t off = value.off + static_cast<int64_t>(value.bounds.number());
        for (const KernelPart &part : parts_) {
            if (part.offset != off) continue;
            if (part.name == "kptr_untrusted" || part.name == "uptr") return refuse("off={} kptr isn't referenced kptr", off);
            called.part = part;
            return true;
        }
        return refuse("off={} doesn't point to kptr", off);
    }
    if (value.sort != Sort::object || value.user || value.trust == Trust::untrusted || value.maybe_null)
        return refuse("R{} type={} expected=ptr_", reg, type_word(value));
    if (!pointer_matches(reg, value, called.part)) return false;
    if (value.off != 0) return refuse("R{} must have zero offset when passed to release func or trusted arg to kfunc", reg);
    if (!value.ref) return refuse("R{} must be referenced when passed to release function", reg);
    called.released = value.ref;
    return true;
}

// What was there before.
bool Engine::pointer_answer(const Called &called) {
    Value value = pointer(Sort::object, node());
    bool own = false;
    if (!pointer_type(called.part, value.type, own)) return false;
    value.owned = own;
    value.per_cpu = called.part.name == "percpu_kptr";
    value.maybe_null = true;
    value.id = value.ref = new_id();
    state_.references.push_back({value.ref, state_.insn});
    set(0, std::move(value));
    return true;
}

} // namespace rawbpf::inline v0::verifier
