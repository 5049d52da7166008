// Reads of members of kernel structs, by the kernel's BTF.
//
//      task + 1512, 8 bytes     task_struct.mm: a pointer to mm_struct       the load gives such a pointer
//      task + 1176, 4 bytes     task_struct.pid: a number
//      task + 1514, 8 bytes     neither the pointer nor anything else        refused
//
// The kernel lets a program read all of an object: it catches a fault there, and the load gives 0. The types only decide what the
// load gives. Most loaded pointers may only be read. Those that a trusted object surely keeps alive may be used for more:
// kInherited lists them, because BTF can't express this yet (BTF_TYPE_SAFE_* of kernel/bpf/verifier.c; btf_struct_walk() of
// kernel/bpf/btf.c).
#include "runtime/verifier/kernel_walk.h"

#include "runtime/base/format.h"

namespace rawbpf::inline v0::verifier {

namespace {

using btf::Kind;
using btf::Type;

bool is_composite(const Type &type) { return type.kind == Kind::struct_ || type.kind == Kind::union_; }

Walked refused(std::string why) {
    Walked out;
    out.refusal = std::move(why);
    return out;
}

// The element of an array, of several dimensions too.
btf::TypeId element_of(const btf::Btf &types, btf::TypeId id) {
    for (int depth = 0; depth < 16; ++depth) {
        const Result<Type> type = types.resolve(id);
        if (!type || type->kind != Kind::array) return id;
        id = types.array(*type).element;
    }
    return id;
}

struct Row {
    std::string_view parent, field;
    Inherits what;
};
constexpr Row kInherited[] = {
    {"task_struct", "cpus_ptr", Inherits::rcu},
    {"task_struct", "cgroups", Inherits::rcu},
    {"task_struct", "real_parent", Inherits::rcu},
    {"task_struct", "group_leader", Inherits::rcu},
    {"cgroup", "kn", Inherits::rcu},
    {"css_set", "dfl_cgrp", Inherits::rcu},
    {"cgroup_subsys_state", "cgroup", Inherits::rcu},
    {"mm_struct", "exe_file", Inherits::rcu_or_null},
    {"sk_buff", "sk", Inherits::rcu_or_null},
    {"request_sock", "sk", Inherits::rcu_or_null},
    {"bpf_iter_meta", "seq", Inherits::trusted},
    {"bpf_iter__task", "meta", Inherits::trusted},
    {"bpf_iter__task", "task", Inherits::trusted},
    {"linux_binprm", "file", Inherits::trusted},
    {"file", "f_inode", Inherits::trusted},
    {"dentry", "d_inode", Inherits::trusted_or_null},
    {"socket", "sk", Inherits::trusted_or_null},
    {"vm_area_struct", "vm_mm", Inherits::trusted_or_null},
    {"vm_area_struct", "vm_file", Inherits::trusted_or_null},
};

} // namespace

Inherits inherited(std::string_view parent, std::string_view field) {
    for (const Row &row : kInherited)
        if (row.parent == parent && row.field == field) return row.what;
    return Inherits::nothing;
}

std::string_view type_name(const btf::Btf &types, btf::TypeId type) {
    const Result<Type> found = types.resolve(type);
    return found ? found->name : std::string_view();
}

Walked walk_struct(const btf::Btf &types, btf::TypeId id, int64_t off, unsigned size, bool flexible) {
    Walked out;
    for (int depth = 0; depth < 64; ++depth) {
        const Result<Type> type = types.resolve(id);
        if (!type || !is_composite(*type))
            return refused(format("Type '{}' is not a struct", type ? type->name : std::string_view("?")));
        if (type->kind == Kind::union_ && type->vlen != 1) out.in_union = true;
        if (off + size > type->size_or_type) {
            const std::string beyond = format("access beyond struct {} at off {} size {}", type->name, off, size);
            if (!flexible || type->vlen == 0) return refused(beyond);
            const Result<btf::Member> last = types.member(*type, type->vlen - 1);
            const Result<Type> array = last ? types.resolve(last->type) : types.type(0);
            if (!last || !array || array->kind != Kind::array || types.array(*array).count != 0 || off < last->bit_offset / 8)
                return refused(beyond);
            const Result<Type> element = types.resolve(types.array(*array).element);
            if (element && element->kind == Kind::int_) {
                out.what = Walked::What::number;
                return out;
            }
            if (!element || !is_composite(*element) || element->size_or_type == 0) return refused(beyond);
            off = (off - last->bit_offset / 8) % element->size_or_type;
            id = element->id;
            continue;
        }
        bool deeper = false;
        for (uint32_t i = 0; i < type->vlen && !deeper; ++i) {
            const Result<btf::Member> member = types.member(*type, i);
            if (!member) return refused(format("field {} doesn't have size", i));
            int64_t begin = member->bit_offset / 8;
            if (off + size <= begin) break;
            if (member->bit_size != 0) {
                if (off <= begin && (member->bit_offset + member->bit_size + 7) / 8 <= off + size) {
                    out.what = Walked::What::number;
                    return out;
                }
                continue;
            }
            if (off < begin) break;
            const Result<uint64_t> bytes = types.size_of(member->type);
            if (!bytes) return refused(format("field {} doesn't have size", member->name));
            const int64_t end = begin + static_cast<int64_t>(*bytes);
            if (off >= end) continue;
            btf::TypeId of = member->type;
            if (const btf::TypeId element = element_of(types, of); element != of) {
                const Result<uint64_t> one = types.size_of(element);
                if (!one || *one == 0) continue;
                begin += (off - begin) / static_cast<int64_t>(*one) * static_cast<int64_t>(*one);
                of = element;
            }
            const Result<Type> what = types.resolve(of);
            if (!what) return refused(format("field {} doesn't have size", member->name));
            if (is_composite(*what)) {
                off -= begin;
                id = what->id;
                deeper = true;
                continue;
            }
            if (what->kind == Kind::ptr) {
                if (size != 8 || off != begin)
                    return refused(format("cannot access ptr member {} with moff {} in struct {} with off {} size {}",
                                          member->name, begin, type->name, off, size));
                const Result<Type> tag = types.type(what->size_or_type);
                const Result<Type> to = types.resolve(what->size_or_type);
                if (to && is_composite(*to)) {
                    out.what = Walked::What::pointer;
                    out.type = to->id;
                    out.parent = type->name;
                    out.field = member->name;
                    if (tag && tag->kind == Kind::type_tag) {
                        out.rcu = tag->name == "rcu";
                        out.user = tag->name == "user";
                        out.per_cpu = tag->name == "percpu";
                    }
                    return out;
                }
            }
            if (off + size > end && !out.in_union)
                return refused(format("access beyond the end of member {} (mend:{}) in struct {} with off {} size {}",
                                      member->name, end, type->name, off, size));
            out.what = Walked::What::number;
            return out;
        }
        if (!deeper) return refused(format("struct {} doesn't have field at offset {}", type->name, off));
    }
    return refused("types nested too deep");
}

bool is_a(const btf::Btf &types, btf::TypeId id, int64_t off, std::string_view wanted, bool strict) {
    for (int depth = 0; depth < 32; ++depth) {
        const Result<Type> type = types.resolve(id);
        if (!type) return false;
        if (off == 0 && type->name == wanted) return true;
        if (strict || !is_composite(*type) || off >= type->size_or_type) return false;
        bool found = false;
        for (uint32_t i = 0; i < type->vlen && !found; ++i) {
            const Result<btf::Member> member = types.member(*type, i);
            if (!member || member->bit_size) continue;
            const int64_t begin = member->bit_offset / 8;
            if (off < begin) continue;
            const Result<uint64_t> bytes = types.size_of(member->type);
            if (!bytes || off >= begin + static_cast<int64_t>(*bytes)) continue;
            const btf::TypeId element = element_of(types, member->type);
            const Result<uint64_t> one = types.size_of(element);
            const Result<Type> what = types.resolve(element);
            if (!one || *one == 0 || !what || !is_composite(*what)) return false;
            off = (off - begin) % static_cast<int64_t>(*one);
            id = what->id;
            found = true;
        }
        if (!found) return false;
    }
    return false;
}

} // namespace rawbpf::inline v0::verifier
