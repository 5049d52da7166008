// Places in types, and the same place in another BTF.
//
// An access string is a list of numbers: "0:2:1:3" on struct task is &task[0].mm->...: element 0 of what the pointer points at,
// member 2 of the struct, member 1 of that one, element 3 of the array there. The numbers belong to the local types; what is
// looked for in the target are the names:
//
//      struct s { int a; struct { int b; int c[4]; }; };   "0:1:1:3"    steps:  [0]   (index)
//                                                                               c     (member; the anonymous struct leaves none)
//                                                                               [3]   (index)
//
// In the target a named member is searched through anonymous structs and unions, wherever they are; its type must be compatible
// (btf/compare.h). Array bounds hold, but a zero-length array at the end of a struct is a flexible one and has none.
//
// A hostile BTF can nest anonymous structs so that the search never ends (two members each, 64 deep); the members looked at
// are counted.
#include "runtime/object/core_path.h"

#include "runtime/base/fail.h"
#include "runtime/btf/compare.h"

namespace rawbpf::inline v0::object {

namespace {

using btf::Kind;

constexpr uint32_t kMostMembers = 1 << 20; // looked at for one relocation in one candidate

bool is_composite(const btf::Type &type) { return type.kind == Kind::struct_ || type.kind == Kind::union_; }
bool is_enum(const btf::Type &type) { return type.kind == Kind::enum_ || type.kind == Kind::enum64; }

/// Adds `index` elements of that type to the offset.
Result<void> advance(CorePath &path, btf::TypeId element, uint32_t index) {
    uint64_t bits;
    const uint64_t size = TRY(path.btf->size_of(element));
    if (__builtin_mul_overflow(size, uint64_t(index) * 8, &bits) ||
        __builtin_add_overflow(path.bit_offset, bits, &path.bit_offset) || path.bit_offset > UINT32_MAX)
        return fail(Errc::bad_input, "{}: BTF type {}: element {}, of {} bytes, is beyond the largest offset", path.btf->name(),
                    element, index, size);
    return {};
}

/// A zero-length array that is its struct's last member.
Result<bool> is_flexible(const btf::Btf &btf, const CorePath::Step *before, const btf::Array &array) {
    if (!before || before->name.empty() || array.count > 0) return false;
    return before->index + 1 == TRY(btf.type(before->type)).vlen;
}

/// "0:2:1" into numbers.
Result<size_t> parse_numbers(std::string_view text, uint32_t (&out)[CorePath::kMost]) {
    auto bad = [&] {
        return fail(Errc::bad_input, "access string \"{}\" isn't a list of at most {} numbers", text, CorePath::kMost);
    };
    size_t count = 0, at = 0;
    do {
        uint64_t value = 0;
        const size_t start = at;
        for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && value <= INT32_MAX; ++at)
            value = value * 10 + static_cast<uint64_t>(text[at] - '0');
        if (at == start || value > INT32_MAX || count == CorePath::kMost) return bad();
        out[count++] = static_cast<uint32_t>(value);
        if (at < text.size() && text[at] != ':') return bad();
    } while (at++ < text.size());
    return count;
}

/// One step of the local path: `id` is where it leads.
Result<void> local_step(CorePath &path, btf::TypeId &id, uint32_t index) {
    const btf::Btf &btf = *path.btf;
    const btf::Type type = TRY(btf.resolve(id));
    if (is_composite(type)) {
        const btf::Member member = TRY(btf.member(type, index));
        path.bit_offset += member.bit_offset;
        if (!member.name.empty()) path.steps[path.length++] = {type.id, index, member.name};
        id = member.type;
        return {};
    }
    if (type.kind != Kind::array)
        return fail(Errc::bad_input, "{}: BTF type {} ({}) has no parts", btf.name(), type.id, btf::kind_name(type.kind));
    const btf::Array array = btf.array(type);
    const bool flexible = TRY(is_flexible(btf, path.length ? &path.steps[path.length - 1] : nullptr, array));
    if (!flexible && index >= array.count)
        return fail(Errc::bad_input, "{}: BTF type {}: there is no element {} in an array of {}", btf.name(), type.id, index,
                    array.count);
    id = TRY(btf.resolve(array.element)).id;
    path.steps[path.length++] = {id, index, {}};
    return advance(path, id, index);
}

/// The search for one path in one candidate.
class Search {
  public:
    Search(const CorePath &local, CorePath &found, Mismatch &why) : local_(local), found_(found), why_(why) {}

    /// A named member of `id` or of its anonymous members; on success `id` becomes the member's type.
    Result<bool> member(const CorePath::Step &wanted, btf::TypeId &id) {
        const btf::Btf &target = *found_.btf;
        const btf::Type type = TRY(target.resolve(id));
        if (!is_composite(type)) return no({Mismatch::Reason::no_struct, type.id, wanted.name});
        for (uint32_t i = 0; i < type.vlen; ++i) {
            if (++looked_at_ > kMostMembers)
                return fail(Errc::bad_input, "{}: BTF type {}: rawbpf searched more than {} members for {}", target.name(),
                            type.id, kMostMembers, wanted.name);
            const btf::Member member = TRY(target.member(type, i));
            const bool anonymous = member.name.empty();
            if (!anonymous && member.name != wanted.name) continue;
            if (found_.depth == CorePath::kMost)
                return fail(Errc::bad_input, "{}: BTF type {}: it is nested more than {} deep", target.name(), type.id,
                            CorePath::kMost);
            found_.bit_offset += member.bit_offset;
            ++found_.depth;
            if (anonymous) {
                btf::TypeId inner = member.type;
                if (TRY(anonymous_member(wanted, inner))) {
                    id = inner;
                    return true;
                }
            } else {
                const btf::Type holder = TRY(local_.btf->type(wanted.type));
                const btf::TypeId local_type = TRY(local_.btf->member(holder, wanted.index)).type;
                if (!TRY(btf::fields_compatible(*local_.btf, local_type, target, member.type))) {
                    found_.bit_offset -= member.bit_offset; // a caller one anonymous struct further out goes on searching
                    --found_.depth;
                    return no({Mismatch::Reason::member_type, type.id, wanted.name});
                }
                found_.steps[found_.length++] = {type.id, i, member.name};
                id = member.type;
                return true;
            }
            found_.bit_offset -= member.bit_offset;
            --found_.depth;
        }
        return no({Mismatch::Reason::no_member, type.id, wanted.name});
    }

    Result<bool> element(const CorePath::Step &wanted, btf::TypeId &id, bool first) {
        const btf::Btf &target = *found_.btf;
        if (!first) {
            const btf::Type type = TRY(target.resolve(id));
            if (type.kind != Kind::array) return no({Mismatch::Reason::no_array, type.id, {}, wanted.index});
            const btf::Array array = target.array(type);
            const bool flexible = TRY(is_flexible(target, found_.length ? &found_.steps[found_.length - 1] : nullptr, array));
            if (!flexible && wanted.index >= array.count)
                return no({Mismatch::Reason::out_of_bounds, type.id, {}, wanted.index, array.count});
            id = array.element;
        }
        id = TRY(target.resolve(id)).id;
        if (found_.depth == CorePath::kMost)
            return fail(Errc::bad_input, "{}: BTF type {}: it is nested more than {} deep", target.name(), id, CorePath::kMost);
        found_.steps[found_.length++] = {id, wanted.index, {}};
        ++found_.depth;
        TRY(advance(found_, id, wanted.index));
        return true;
    }

    Result<bool> enumerator(std::string_view wanted, btf::TypeId id) {
        const btf::Btf &target = *found_.btf;
        const btf::Type type = TRY(target.resolve(id));
        if (!is_enum(type)) return no({Mismatch::Reason::no_enum, type.id, wanted});
        const std::string_view essential = btf::essential_name(wanted);
        for (uint32_t i = 0; i < type.vlen; ++i) {
            const btf::EnumValue value = TRY(target.enum_value(type, i));
            if (btf::essential_name(value.name) != essential) continue;
            found_.steps[found_.length++] = {type.id, i, value.name};
            ++found_.depth;
            return true;
        }
        return no({Mismatch::Reason::no_value, type.id, wanted});
    }

    bool no(const Mismatch &why) {
        why_ = why;
        return false;
    }

  private:
    /// An anonymous struct or union member that doesn't have it is no reason: the search goes on behind it.
    Result<bool> anonymous_member(const CorePath::Step &wanted, btf::TypeId &id) {
        const btf::Type type = TRY(found_.btf->resolve(id));
        if (!is_composite(type)) return false; // an unnamed bitfield, as padding
        return member(wanted, id);
    }

    const CorePath &local_;
    CorePath &found_;
    Mismatch &why_;
    uint32_t looked_at_ = 0;
};

} // namespace

bool is_field_kind(CoreKind kind) { return kind <= CoreKind::field_rshift; }
bool is_enum_kind(CoreKind kind) { return kind == CoreKind::enum_value_exists || kind == CoreKind::enum_value; }
bool is_type_kind(CoreKind kind) {
    return (kind >= CoreKind::type_id_local && kind <= CoreKind::type_size) || kind == CoreKind::type_matches;
}

Result<CorePath> parse_core_path(const btf::Btf &local, const CoreRelocation &relocation) {
    CorePath path;
    path.btf = &local;
    path.root = relocation.type;
    path.kind = static_cast<CoreKind>(relocation.kind);
    uint32_t numbers[CorePath::kMost];
    const size_t count = TRY(parse_numbers(relocation.access, numbers));
    if (is_type_kind(path.kind)) {
        if (count != 1 || numbers[0] != 0)
            return fail(Errc::bad_input, "access string \"{}\": the relocation is for a whole type, and must have 0",
                        relocation.access);
        return path;
    }
    const btf::Type type = TRY(local.resolve(relocation.type));
    path.depth = static_cast<uint32_t>(count);
    if (is_enum_kind(path.kind)) {
        if (count != 1 || !is_enum(type))
            return fail(Errc::bad_input, "access string \"{}\": the type is a {}, and should be an enum", relocation.access,
                        btf::kind_name(type.kind));
        path.steps[path.length++] = {type.id, numbers[0], TRY(local.enum_value(type, numbers[0])).name};
        return path;
    }
    if (!is_field_kind(path.kind)) return fail(Errc::bad_input, "rawbpf doesn't know relocation kind {}", relocation.kind);
    path.steps[path.length++] = {type.id, numbers[0], {}};
    TRY(advance(path, type.id, numbers[0]));
    btf::TypeId id = type.id;
    for (size_t i = 1; i < count; ++i) TRY_IN(local_step(path, id, numbers[i]), "access string \"{}\"", relocation.access);
    return path;
}

Result<bool> match_core_path(const CorePath &local, const btf::Btf &target, btf::TypeId id, CorePath &found, Mismatch &why) {
    found.btf = &target;
    found.root = id;
    found.kind = local.kind;
    found.length = found.depth = 0;
    found.bit_offset = 0;
    Search search(local, found, why);
    if (is_type_kind(local.kind)) {
        const bool fits = local.kind == CoreKind::type_matches ? TRY(btf::types_match(*local.btf, local.root, target, id))
                                                               : TRY(btf::types_compatible(*local.btf, local.root, target, id));
        return fits || search.no({Mismatch::Reason::type, id, {}});
    }
    if (is_enum_kind(local.kind)) return search.enumerator(local.steps[0].name, id);
    for (uint32_t i = 0; i < local.length; ++i) {
        const CorePath::Step &step = local.steps[i];
        const bool fits = step.name.empty() ? TRY(search.element(step, id, i == 0)) : TRY(search.member(step, id));
        if (!fits) return false;
    }
    return true;
}

std::string describe_type(const btf::Btf &btf, btf::TypeId id) {
    const auto type = btf.type(id);
    if (!type) return format("type {}", id);
    return format("{} {}", btf::kind_name(type->kind), type->name.empty() ? "(anonymous)" : type->name);
}

std::string describe(const CorePath &path) {
    std::string out = describe_type(*path.btf, path.root);
    for (uint32_t i = 0; i < path.length; ++i) {
        const CorePath::Step &step = path.steps[i];
        if (is_enum_kind(path.kind))
            append(out, "::{}", step.name);
        else if (!step.name.empty())
            append(out, ".{}", step.name);
        else if (i > 0 || step.index > 0)
            append(out, "[{}]", step.index);
    }
    return out;
}

std::string describe(const Mismatch &why, const btf::Btf &target) {
    const std::string type = describe_type(target, why.type);
    switch (why.reason) {
    case Mismatch::Reason::none: break;
    case Mismatch::Reason::no_member: return format("{} has no field {}", type, why.name);
    case Mismatch::Reason::member_type: return format("{} has a field {}, but of an incompatible type", type, why.name);
    case Mismatch::Reason::no_struct: return format("{} isn't a struct or union, so it has no field {}", type, why.name);
    case Mismatch::Reason::no_array: return format("{} isn't an array, so it has no element {}", type, why.index);
    case Mismatch::Reason::out_of_bounds:
        return format("the array has {} elements, so it has no element {}", why.count, why.index);
    case Mismatch::Reason::no_enum: return format("{} isn't an enum, so it has no value {}", type, why.name);
    case Mismatch::Reason::no_value: return format("{} has no value {}", type, why.name);
    case Mismatch::Reason::type: return format("{} differs", type);
    }
    return {};
}

} // namespace rawbpf::inline v0::object
