// The kernel's structures differ from version to version and with its configuration; BTF says how this one has them. What is read
// here becomes plain numbers in the programs.
#include "programs/trace/kernel_offsets.h"

#include "runtime/base/fail.h"

namespace rawbpf::inline v0::trace {

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

} // namespace rawbpf::inline v0::trace
