// The kernel's structures differ from version to version and with its configuration; its BTF says how they are in this one. A
// member may stand in an anonymous struct or union, so these are searched, too.
#include "programs/unwind/kernel_members.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0 {

Result<uint32_t> member_offset(const btf::Btf &kernel, std::string_view type_name, std::string_view member_name) {
    const auto id = kernel.find(type_name, btf::Kind::struct_);
    if (!id) return fail(Errc::not_found, "the kernel's BTF has no struct {}", type_name);
    // Depth first, through what is anonymous.
    std::vector<std::pair<btf::TypeId, uint32_t>> todo{{*id, 0}};
    for (size_t at = 0; at < todo.size() && at < 64; ++at) {
        const btf::Type type = TRY(kernel.resolve(todo[at].first));
        for (uint32_t i = 0; i < type.vlen; ++i) {
            const btf::Member member = TRY(kernel.member(type, i));
            if (member.name == member_name) return todo[at].second + member.bit_offset / 8;
            if (!member.name.empty()) continue;
            const btf::Type inner = TRY(kernel.resolve(member.type));
            if (inner.kind == btf::Kind::struct_ || inner.kind == btf::Kind::union_)
                todo.emplace_back(member.type, todo[at].second + member.bit_offset / 8);
        }
    }
    return fail(Errc::not_found, "the kernel's struct {} has no member {}", type_name, member_name);
}

bool has_return_instances(const btf::Btf &kernel) {
    constexpr std::pair<std::string_view, std::string_view> kMembers[] = {
        {"task_struct", "utask"},       {"uprobe_task", "return_instances"}, {"task_struct", "mm"},
        {"mm_struct", "uprobes_state"}, {"uprobes_state", "xol_area"},       {"xol_area", "vaddr"},
        {"return_instance", "stack"},   {"return_instance", "next"},         {"return_instance", "orig_ret_vaddr"},
    };
    return std::all_of(std::begin(kMembers), std::end(kMembers),
                       [&](const auto &one) { return member_offset(kernel, one.first, one.second).has_value(); });
}

bool has_probed_instructions(const btf::Btf &kernel) {
    constexpr std::pair<std::string_view, std::string_view> kMembers[] = {
        {"task_struct", "utask"}, {"uprobe_task", "active_uprobe"}, {"uprobe_task", "xol_vaddr"}, {"uprobe_task", "vaddr"}};
    return std::all_of(std::begin(kMembers), std::end(kMembers),
                       [&](const auto &one) { return member_offset(kernel, one.first, one.second).has_value(); });
}

} // namespace rawbpf::inline v0
