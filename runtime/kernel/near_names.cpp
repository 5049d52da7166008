// Near names from the kernel's own types. A mistyped member is looked for among those of the struct, members of anonymous structs
// and unions in it included; a mistyped kernel function among all FUNCs, of which a kernel has some 60,000: a name whose length
// alone puts it out of reach isn't compared (asm/nearest.h), so that takes milliseconds, and only when a load has failed.
#include "runtime/kernel/near_names.h"

#include "asm/nearest.h"

namespace rawbpf::inline v0 {
namespace {

using btf::Kind;

constexpr int kDeepest = 8;

void offer_members(Nearest &near, const btf::Btf &kernel, btf::TypeId id, int depth) {
    const Result<btf::Type> type = kernel.resolve(id);
    if (!type || depth > kDeepest) return;
    const bool aggregate = type->kind == Kind::struct_ || type->kind == Kind::union_;
    const bool enumeration = type->kind == Kind::enum_ || type->kind == Kind::enum64;
    for (uint32_t i = 0; i < type->vlen && (aggregate || enumeration); ++i) {
        if (enumeration) {
            if (const auto value = kernel.enum_value(*type, i)) near.offer(value->name);
            continue;
        }
        const auto member = kernel.member(*type, i);
        if (!member) return;
        if (member->name.empty())
            offer_members(near, kernel, member->type, depth + 1);
        else
            near.offer(member->name);
    }
}

} // namespace

std::string near_kernel_function(const btf::Btf &kernel, std::string_view name) {
    Nearest near(name);
    const bool of_bpf = name.starts_with("bpf_");
    for (btf::TypeId id = kernel.first_id(); id < kernel.end_id(); ++id) {
        const auto type = kernel.type(id);
        if (!type) break;
        if (type->kind == Kind::func && (!of_bpf || type->name.starts_with("bpf_"))) near.offer(type->name);
    }
    return near.hint();
}

std::string near_member(const btf::Btf &kernel, std::string_view why) {
    constexpr std::string_view kWords[] = {" has no field ", " has no value "};
    for (std::string_view words : kWords) {
        const size_t at = why.find(words);
        if (at == std::string_view::npos) continue;
        const std::string_view owner = why.substr(0, at), name = why.substr(at + words.size());
        const size_t blank = owner.find(' ');
        if (blank == std::string_view::npos) return {};
        const std::string_view kind = owner.substr(0, blank), of = owner.substr(blank + 1);
        Nearest near(name);
        for (const Kind which : {Kind::struct_, Kind::union_, Kind::enum_, Kind::enum64})
            if (btf::kind_name(which) == kind || (which == Kind::enum64 && kind == "enum"))
                if (const std::optional<btf::TypeId> id = kernel.find(of, which)) offer_members(near, kernel, *id, 0);
        return near.hint();
    }
    return {};
}

} // namespace rawbpf::inline v0
