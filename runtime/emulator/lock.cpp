// The kernel's rule (btf_parse_fields in kernel/bpf/btf.c): the lock is a variable, a member, or a member of a struct member,
// of type struct bpf_spin_lock; at most four levels deep.
#include "runtime/emulator/lock.h"

namespace rawbpf::inline v0::emulator {
namespace {

constexpr int kDeepest = 4;

std::optional<uint32_t> find(const btf::Btf &types, btf::TypeId id, int depth) {
    const auto type = types.resolve(id);
    if (!type || depth > kDeepest) return std::nullopt;
    if (type->kind == btf::Kind::struct_) {
        if (type->name == "bpf_spin_lock") return 0;
        for (uint32_t n = 0; n < type->vlen; ++n) {
            const auto member = types.member(*type, n);
            if (!member) return std::nullopt;
            if (const auto at = find(types, member->type, depth + 1)) return member->bit_offset / 8 + *at;
        }
    } else if (type->kind == btf::Kind::datasec) {
        for (uint32_t n = 0; n < type->vlen; ++n) {
            const auto place = types.secinfo(*type, n);
            if (!place) return std::nullopt;
            const auto variable = types.type(place->type);
            if (!variable) return std::nullopt;
            if (variable->kind != btf::Kind::var) continue;
            if (const auto at = find(types, variable->size_or_type, depth + 1)) return place->offset + *at;
        }
    }
    return std::nullopt;
}

} // namespace

std::optional<uint32_t> lock_in(const btf::Btf &types, btf::TypeId value) { return value ? find(types, value, 0) : std::nullopt; }

} // namespace rawbpf::inline v0::emulator
