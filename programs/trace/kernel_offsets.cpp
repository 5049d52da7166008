// The kernel's structures differ from version to version and with its configuration; BTF says how this one has them. What is read
// here becomes plain numbers in the programs.
#include "programs/trace/kernel_offsets.h"

#include <algorithm>
#include <vector>

namespace rawbpf::inline v0::trace {

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

Result<PathOffsets> path_offsets(const btf::Btf &kernel) {
    PathOffsets out;
    out.file_path = TRY(member_offset(kernel, "file", "f_path"));
    out.path_mnt = TRY(member_offset(kernel, "path", "mnt"));
    out.path_dentry = TRY(member_offset(kernel, "path", "dentry"));
    out.d_parent = TRY(member_offset(kernel, "dentry", "d_parent"));
    out.d_name = TRY(member_offset(kernel, "dentry", "d_name")) + TRY(member_offset(kernel, "qstr", "name"));
    out.d_sb = TRY(member_offset(kernel, "dentry", "d_sb"));
    out.mnt_root = TRY(member_offset(kernel, "vfsmount", "mnt_root"));
    out.mount_mnt = TRY(member_offset(kernel, "mount", "mnt"));
    out.mnt_parent = TRY(member_offset(kernel, "mount", "mnt_parent"));
    out.mnt_mountpoint = TRY(member_offset(kernel, "mount", "mnt_mountpoint"));
    out.s_type = TRY(member_offset(kernel, "super_block", "s_type"));
    out.task_fs = TRY(member_offset(kernel, "task_struct", "fs"));
    out.fs_root = TRY(member_offset(kernel, "fs_struct", "root"));
    out.type_name = TRY(member_offset(kernel, "file_system_type", "name"));
    return out;
}

Result<FileOffsets> file_offsets(const btf::Btf &kernel) {
    FileOffsets out;
    out.task_files = TRY(member_offset(kernel, "task_struct", "files"));
    out.files_table = TRY(member_offset(kernel, "files_struct", "fdt"));
    out.table_fd = TRY(member_offset(kernel, "fdtable", "fd"));
    out.most_fd = TRY(member_offset(kernel, "fdtable", "max_fds"));
    return out;
}

Result<NamespaceOffsets> namespace_offsets(const btf::Btf &kernel) {
    NamespaceOffsets out;
    out.task_nsproxy = TRY(member_offset(kernel, "task_struct", "nsproxy"));
    out.mount = TRY(member_offset(kernel, "nsproxy", "mnt_ns"));
    out.number = TRY(member_offset(kernel, "mnt_namespace", "ns")) + TRY(member_offset(kernel, "ns_common", "inum"));
    return out;
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

} // namespace rawbpf::inline v0::trace
