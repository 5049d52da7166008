// Converts the object's version of a struct of functions to the running kernel's, member by member and by name:
//
//      object:  struct tcp_congestion_ops          kernel:  struct bpf_struct_ops_tcp_congestion_ops {
//                 init      -> program              refcount, state
//                 flags     = 2            -->      data: struct tcp_congestion_ops
//                 name      = "mine"                          { ..., flags, ..., init, ..., name }
//
// Members that are zero and unknown to the kernel are skipped, so that one object works on old and new kernels; a member that
// is set and unknown is an error. The program of a member is verified against the kernel's struct (attach_btf_id) as that
// member (expected_attach_type = its number). Source: kernel/bpf/bpf_struct_ops.c (5.6); of modules since 6.9.
#include "runtime/kernel/struct_ops.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0 {
namespace {

using btf::Kind;

bool zeros(Bytes bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

class Translation {
  public:
    Translation(const MapSpec &map, const btf::Btf &local, const btf::Btf &kernel, KernelStructOps &out)
        : map_(map), local_(local), kernel_(kernel), out_(out) {}

    /// `data`: where the struct lies in the value.
    Result<void> run(const btf::Type &from, const btf::Type &to, uint64_t data) {
        for (uint32_t i = 0; i < from.vlen; ++i) {
            const btf::Member member = TRY(local_.member(from, i));
            const uint64_t size = TRY(local_.size_of(member.type)), at = member.bit_offset / 8;
            if (at > map_.contents.size() || size > map_.contents.size() - at)
                return problem(member.name, "lies outside of the struct");
            const Bytes bytes = Bytes(map_.contents).subspan(at, size);
            const auto slot = std::find_if(map_.slots.begin(), map_.slots.end(), [&](const auto &s) { return s.index == i; });
            const bool has_program = slot != map_.slots.end();

            const uint32_t index = TRY(index_of(to, member.name));
            if (index == to.vlen) {
                if (!zeros(bytes)) return problem(member.name, "is set, but this kernel's struct has no such member");
                if (has_program) out_.without_place.push_back(slot->target);
                continue;
            }
            const btf::Member theirs = TRY(kernel_.member(to, index));
            if (member.bit_size || theirs.bit_size) return problem(member.name, "is a bitfield");
            const btf::Type type = TRY(local_.resolve(member.type)), other = TRY(kernel_.resolve(theirs.type));
            if (type.kind != other.kind) return problem(member.name, "has another type in this kernel");
            const uint64_t place = data + theirs.bit_offset / 8;
            if (type.kind == Kind::ptr) {
                TRY(pointer(member.name, bytes, other, has_program ? &slot->target : nullptr, index, place));
                continue;
            }
            if (TRY(kernel_.size_of(theirs.type)) != size) return problem(member.name, "has another size in this kernel");
            if (place > out_.value.size() || size > out_.value.size() - place)
                return problem(member.name, "lies outside of the kernel's struct");
            std::memcpy(out_.value.data() + place, bytes.data(), size);
        }
        return {};
    }

  private:
    Unexpected problem(std::string_view member, std::string_view what) const {
        return fail(Errc::unsupported, "struct_ops map {}: member {} {}", map_.name, member, what);
    }
    /// vlen: there is none.
    Result<uint32_t> index_of(const btf::Type &type, std::string_view name) const {
        for (uint32_t i = 0; i < type.vlen; ++i)
            if (TRY(kernel_.member(type, i)).name == name) return i;
        return type.vlen;
    }
    Result<void> pointer(std::string_view member, Bytes bytes, const btf::Type &type, const std::string *program, uint32_t index,
                         uint64_t place) {
        if (!zeros(bytes)) return problem(member, "is a pointer, and is set to something that is no program");
        if (!program) return {};
        if (TRY(kernel_.resolve(type.size_or_type)).kind != Kind::func_proto)
            return problem(member, "is no pointer to a function in this kernel");
        if (place > out_.value.size() || out_.value.size() - place < sizeof(uint64_t))
            return problem(member, "lies outside of the kernel's struct");
        out_.members.push_back({index, static_cast<uint32_t>(place), *program});
        return {};
    }

    const MapSpec &map_;
    const btf::Btf &local_, &kernel_;
    KernelStructOps &out_;
};

} // namespace

Result<KernelStructOps> find_struct_ops(KernelSymbols &symbols, const MapSpec &map) {
    constexpr uint64_t kMost = 1 << 20; // of a value; a kernel of another file's BTF is input like any other
    const btf::Btf *local = TRY(symbols.local());
    if (!local) return fail(Errc::bad_input, "struct_ops map {}: the object has no types", map.name);
    const btf::Type from = TRY(local->resolve(map.value_type));
    const std::string_view name = btf::essential_name(from.name);
    const std::string holder = format("bpf_struct_ops_{}", name);
    const std::optional<KernelType> value = TRY_IN(symbols.find(holder, Kind::struct_), "struct_ops map {}", map.name);
    if (!value)
        return Unexpected(make_error(Errc::not_found, format("struct_ops map {}: this kernel has no struct {}", map.name, holder),
                                     format("no struct_ops of this kernel uses struct {}, or its module isn't loaded", name)));
    const btf::Btf &kernel = *value->btf;
    const btf::Type outer = TRY(kernel.type(value->id));

    KernelStructOps out;
    out.value_type = value->id;
    out.module = value->module;
    uint64_t data = UINT64_MAX;
    btf::Type to;
    for (uint32_t i = 0; i < outer.vlen && data == UINT64_MAX; ++i) {
        const btf::Member member = TRY(kernel.member(outer, i));
        to = TRY(kernel.type(member.type));
        if (to.kind == Kind::struct_ && to.name == name) data = member.bit_offset / 8;
    }
    if (data == UINT64_MAX)
        return fail(Errc::not_found, "struct_ops map {}: struct {} holds no struct {}", map.name, holder, name);
    if (outer.size_or_type > kMost)
        return fail(Errc::bad_input, "struct_ops map {}: struct {} has {} bytes", map.name, holder, outer.size_or_type);
    out.type = to.id;
    out.value.resize(outer.size_or_type);
    TRY(Translation(map, *local, kernel, out).run(from, to, data));
    return out;
}

} // namespace rawbpf::inline v0
