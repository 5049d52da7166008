// Where the running kernel has the members that a trace reads on its own account. PURE.
#pragma once

#include <cstdint>

#include "programs/unwind/kernel_members.h"
#include "runtime/base/result.h"
#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::trace {

/// From a file to its path.
struct PathOffsets {
    uint32_t file_path = 0;                                                   ///< struct file: f_path
    uint32_t path_mnt = 0, path_dentry = 0;                                   ///< struct path
    uint32_t d_parent = 0, d_name = 0, d_sb = 0;                              ///< struct dentry; d_name: of the name's pointer
    uint32_t mnt_root = 0, mount_mnt = 0, mnt_parent = 0, mnt_mountpoint = 0; ///< struct vfsmount, struct mount
    uint32_t task_fs = 0, fs_root = 0;                                        ///< struct task_struct, struct fs_struct
    uint32_t s_type = 0, type_name = 0;                                       ///< struct super_block, struct file_system_type
};
/// Errors: not_found when this kernel's BTF lacks one of them.
[[nodiscard]] Result<PathOffsets> path_offsets(const btf::Btf &kernel);

/// From a task to the file behind a descriptor.
struct FileOffsets {
    uint32_t task_files = 0;            ///< struct task_struct
    uint32_t files_table = 0;           ///< struct files_struct: fdt
    uint32_t table_fd = 0, most_fd = 0; ///< struct fdtable: fd, max_fds
};
[[nodiscard]] Result<FileOffsets> file_offsets(const btf::Btf &kernel);

/// From a task to the number of its mount namespace.
struct NamespaceOffsets {
    uint32_t task_nsproxy = 0; ///< struct task_struct
    uint32_t mount = 0;        ///< struct nsproxy: mnt_ns
    uint32_t number = 0;       ///< struct mnt_namespace: ns.inum
};
[[nodiscard]] Result<NamespaceOffsets> namespace_offsets(const btf::Btf &kernel);

} // namespace rawbpf::inline v0::trace
