// The rules of CO-RE type comparison, as libbpf and the kernel document them (Documentation/bpf/llvm_reloc.rst; the comments on
// bpf_core_types_are_compat() and bpf_core_types_match(), since Linux 5.10 and 6.0), written anew.
//
// Both sides are walked in step. Types refer to types, so the walk is limited twice: 32 levels deep, as in the kernel, and a
// number of steps in all, because 32 levels of prototypes with many parameters each could otherwise go on for centuries.
#include "runtime/btf/compare.h"

#include "runtime/base/fail.h"

namespace rawbpf::inline v0::btf {

namespace {

constexpr int kMaxDepth = 32;
constexpr uint32_t kMaxSteps = 1'000'000;

bool is_composite(Kind kind) { return kind == Kind::struct_ || kind == Kind::union_; }
bool is_enum(Kind kind) { return kind == Kind::enum_ || kind == Kind::enum64; }
bool same_kind(Kind a, Kind b) { return a == b || (is_enum(a) && is_enum(b)); }

/// A forward declaration of a struct (kind_flag 0) or union (1) like this one.
bool declares(const Type &fwd, const Type &type) {
    return fwd.kind == Kind::fwd && is_composite(type.kind) && fwd.kind_flag == (type.kind == Kind::union_);
}

/// An anonymous type matches only an anonymous one.
bool same_name(std::string_view local, std::string_view target) { return essential_name(local) == essential_name(target); }

class Comparison {
  public:
    Comparison(const Btf &local, const Btf &target) : local_(local), target_(target) {}

    Result<bool> fields(TypeId l, TypeId t) {
        for (int depth = kMaxDepth;; --depth) {
            TRY(step(depth, l, t));
            Type a = TRY(local_.resolve(l)), b = TRY(target_.resolve(t));
            if (is_composite(a.kind) && is_composite(b.kind)) return true;
            if (!same_kind(a.kind, b.kind)) return false;
            switch (a.kind) {
            case Kind::ptr:
            case Kind::float_: return true;
            case Kind::fwd:
            case Kind::enum_:
            case Kind::enum64: return a.name.empty() || b.name.empty() || same_name(a.name, b.name);
            case Kind::int_: return plain_int(a, b);
            case Kind::array:
                l = local_.array(a).element;
                t = target_.array(b).element;
                break;
            default: return false;
            }
        }
    }

    Result<bool> compatible(TypeId l, TypeId t, int depth) {
        for (;; --depth) {
            TRY(step(depth, l, t));
            Type a = TRY(local_.resolve(l)), b = TRY(target_.resolve(t));
            if (!same_kind(a.kind, b.kind)) return false;
            switch (a.kind) {
            case Kind::void_:
            case Kind::struct_:
            case Kind::union_:
            case Kind::enum_:
            case Kind::enum64:
            case Kind::fwd: return true;
            case Kind::int_: return plain_int(a, b);
            case Kind::ptr:
                l = a.size_or_type;
                t = b.size_or_type;
                break;
            case Kind::array:
                l = local_.array(a).element;
                t = target_.array(b).element;
                break;
            case Kind::func_proto:
                if (!TRY(parameters(a, b, [&](TypeId p, TypeId q) { return compatible(p, q, depth - 1); }))) return false;
                l = a.size_or_type;
                t = b.size_or_type;
                break;
            default: return false;
            }
        }
    }

    Result<bool> match(TypeId l, TypeId t, bool behind_pointer, int depth) {
        for (;; --depth) {
            TRY(step(depth, l, t));
            Type a = TRY(local_.resolve(l)), b = TRY(target_.resolve(t));
            if (!same_name(a.name, b.name)) return false;
            // Behind a pointer a forward declaration stands for the struct or union itself.
            if (behind_pointer && (declares(a, b) || declares(b, a))) return true;
            if (!same_kind(a.kind, b.kind)) return false;
            switch (a.kind) {
            case Kind::void_: return true;
            case Kind::fwd: return a.kind_flag == b.kind_flag;
            case Kind::enum_:
            case Kind::enum64: return match_enums(a, b);
            case Kind::struct_:
            case Kind::union_: return behind_pointer ? Result<bool>(true) : match_members(a, b, depth);
            case Kind::int_:
                return a.size_or_type == b.size_or_type && local_.int_encoding(a).is_signed == target_.int_encoding(b).is_signed;
            case Kind::ptr:
                behind_pointer = true;
                l = a.size_or_type;
                t = b.size_or_type;
                break;
            case Kind::array: {
                Array x = local_.array(a), y = target_.array(b);
                if (x.count != y.count) return false;
                l = x.element;
                t = y.element;
                break;
            }
            case Kind::func_proto:
                if (!TRY(parameters(a, b, [&](TypeId p, TypeId q) { return match(p, q, behind_pointer, depth - 1); })))
                    return false;
                l = a.size_or_type;
                t = b.size_or_type;
                break;
            default: return false;
            }
        }
    }

    Result<bool> declarations(TypeId l, TypeId t, bool behind_pointer, int depth) {
        for (;; --depth) {
            TRY(step(depth, l, t));
            Type a = TRY(local_.resolve(l)), b = TRY(target_.resolve(t));
            const bool named = is_composite(a.kind) || is_enum(a.kind) || a.kind == Kind::fwd;
            if (named && a.name != b.name) return false;
            if (declares(a, b) || declares(b, a)) return true;
            if (a.kind != b.kind) return false;
            switch (a.kind) {
            case Kind::void_: return true;
            case Kind::fwd: return a.kind_flag == b.kind_flag;
            case Kind::int_:
            case Kind::float_:
            case Kind::enum_:
            case Kind::enum64: return a.size_or_type == b.size_or_type;
            case Kind::struct_:
            case Kind::union_: return behind_pointer ? Result<bool>(true) : declared_members(a, b, depth);
            case Kind::ptr:
                behind_pointer = true;
                l = a.size_or_type;
                t = b.size_or_type;
                break;
            case Kind::array:
                l = local_.array(a).element;
                t = target_.array(b).element;
                break;
            case Kind::func_proto:
                if (!TRY(parameters(a, b, [&](TypeId p, TypeId q) { return declarations(p, q, behind_pointer, depth - 1); })))
                    return false;
                l = a.size_or_type;
                t = b.size_or_type;
                break;
            default: return false;
            }
        }
    }

  private:
    Result<void> step(int depth, TypeId l, TypeId t) {
        if (depth <= 0)
            return fail(Errc::bad_input, "comparing type {} of {} with type {} of {}: they are nested more than {} deep", l,
                        local_.name(), t, target_.name(), kMaxDepth);
        return count_step();
    }
    Result<void> count_step() {
        if (++steps_ > kMaxSteps)
            return fail(Errc::bad_input, "comparing types of {} with those of {}: the comparison has no end after {} steps",
                        local_.name(), target_.name(), kMaxSteps);
        return {};
    }

    /// Whether two prototypes have as many parameters, and `agree` says of the types of each two that they do.
    template <class F> Result<bool> parameters(const Type &a, const Type &b, F agree) {
        if (a.vlen != b.vlen) return false;
        for (uint32_t i = 0; i < a.vlen; ++i) {
            Param p = TRY(local_.param(a, i)), q = TRY(target_.param(b, i));
            if (!TRY(agree(p.type, q.type))) return false;
        }
        return true;
    }

    /// Not a bitfield of the old style, which was an int that begins inside its bytes.
    bool plain_int(const Type &a, const Type &b) const {
        return local_.int_encoding(a).bit_offset == 0 && target_.int_encoding(b).bit_offset == 0;
    }

    Result<bool> match_enums(const Type &a, const Type &b) {
        if (a.size_or_type != b.size_or_type || a.vlen > b.vlen) return false;
        for (uint32_t i = 0; i < a.vlen; ++i) {
            std::string_view wanted = TRY(local_.enum_value(a, i)).name;
            bool found = false;
            for (uint32_t j = 0; j < b.vlen && !found; ++j) {
                TRY(count_step());
                found = same_name(wanted, TRY(target_.enum_value(b, j)).name);
            }
            if (!found) return false;
        }
        return true;
    }

    Result<bool> match_members(const Type &a, const Type &b, int depth) {
        if (a.vlen > b.vlen) return false;
        for (uint32_t i = 0; i < a.vlen; ++i) {
            Member wanted = TRY(local_.member(a, i));
            bool found = false; // several anonymous members may share a name
            for (uint32_t j = 0; j < b.vlen && !found; ++j) {
                TRY(count_step());
                Member m = TRY(target_.member(b, j));
                if (same_name(wanted.name, m.name)) found = TRY(match(wanted.type, m.type, false, depth - 1));
            }
            if (!found) return false;
        }
        return true;
    }

    Result<bool> declared_members(const Type &a, const Type &b, int depth) {
        if (a.vlen != b.vlen) return false;
        for (uint32_t i = 0; i < a.vlen; ++i) {
            Member m = TRY(local_.member(a, i)), n = TRY(target_.member(b, i));
            if (m.name != n.name || m.bit_offset != n.bit_offset || m.bit_size != n.bit_size) return false;
            if (!TRY(declarations(m.type, n.type, false, depth - 1))) return false;
        }
        return true;
    }

    const Btf &local_;
    const Btf &target_;
    uint32_t steps_ = 0;
};

} // namespace

Result<bool> fields_compatible(const Btf &local, TypeId l, const Btf &target, TypeId t) {
    return Comparison(local, target).fields(l, t);
}

Result<bool> types_compatible(const Btf &local, TypeId l, const Btf &target, TypeId t) {
    // At the root a typedef is compared with a typedef; below it they are seen through.
    if (!same_kind(TRY(local.type(l)).kind, TRY(target.type(t)).kind)) return false;
    return Comparison(local, target).compatible(l, t, kMaxDepth);
}

Result<bool> types_match(const Btf &local, TypeId l, const Btf &target, TypeId t) {
    return Comparison(local, target).match(l, t, false, kMaxDepth);
}

Result<bool> declarations_match(const Btf &one, TypeId a, const Btf &other, TypeId b) {
    return Comparison(one, other).declarations(a, b, false, kMaxDepth);
}

} // namespace rawbpf::inline v0::btf
