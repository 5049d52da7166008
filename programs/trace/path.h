// A struct path as text, worked out in BPF from any probe. Private to the room.
#pragma once

#include <string>

#include "asm/builder.h"
#include "runtime/base/bytes.h"
#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::trace {

inline constexpr uint16_t kPathBytes = 256;      ///< of names, before the last one that fits
inline constexpr uint16_t kComponentBytes = 128; ///< of each name
inline constexpr uint16_t kPathCapacity = kPathBytes + kComponentBytes;

/// Where the members are that the walk needs, in this kernel.
struct PathOffsets {
    uint32_t file_path = 0;                                                   ///< struct file: f_path
    uint32_t path_mnt = 0, path_dentry = 0;                                   ///< struct path
    uint32_t d_parent = 0, d_name = 0, d_sb = 0;                              ///< struct dentry; d_name: of the name's pointer
    uint32_t mnt_root = 0, mount_mnt = 0, mnt_parent = 0, mnt_mountpoint = 0; ///< struct vfsmount, struct mount
    uint32_t s_type = 0, type_name = 0;                                       ///< struct super_block, struct file_system_type
};
/// Errors: not_found when this kernel's BTF lacks one of them.
[[nodiscard]] Result<PathOffsets> path_offsets(const btf::Btf &kernel);

/// The function walk(dentry, vfsmount or 0, where to write): r0 = bytes written, with kDetached where the walk ended at something
/// that no path leads to (a pipe, a socket), kLonger where there was more; negative where memory couldn't be read.
/// `where` must have kPathCapacity bytes. The names stand leaf first, each with its zero.
[[nodiscard]] Code &path_walk(Builder &builder, const PathOffsets &offsets);

inline constexpr int32_t kDetached = 1 << 29, kLonger = 1 << 28;
/// What walk() wrote as a path: "/etc/passwd", "pipefs:", ".../lib/x". `length` is its result.
[[nodiscard]] std::string path_text(Bytes names, int32_t length);

} // namespace rawbpf::inline v0::trace
