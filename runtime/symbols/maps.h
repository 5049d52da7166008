// SPDX-License-Identifier: MIT
// /proc/PID/maps: which file, and which part of it, lies at an address of a process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::symbols {

/// What stands behind a mapping, which decides where its names come from.
enum class RegionKind {
    file,      ///< a file with a path
    deleted,   ///< a file whose path is gone; /proc/PID/map_files still reaches it
    memfd,     ///< "/memfd:NAME (deleted)", SysV and other memory that only looks like a file
    vdso,      ///< the kernel's code for user space: Vdso names it
    vsyscall,  ///< x86_64's older one, at a fixed address, without an image to read
    anonymous, ///< no name, "//anon", "[anon:...]", "[heap]", "[stack]": a JIT's code, named by PerfMap if at all
};

/// One executable mapping of a process.
struct Region {
    uint64_t start = 0,       ///< address of the first byte
        end = 0;              ///< address behind the last byte
    uint64_t file_offset = 0; ///< of `start`
    std::string path;         ///< as the kernel prints it; "[vdso]", "//anon", "/x (deleted)" ...
    uint64_t device = 0,      ///< as st_dev, except on overlayfs and btrfs, which show another one
        inode = 0;            ///< as st_ino; 0: no file is behind it

    /// Told by the path alone.
    [[nodiscard]] RegionKind kind() const;
    /// The path to open: without " (deleted)", and with the kernel's \012 turned back into a newline. Empty where no file is
    /// behind the mapping.
    [[nodiscard]] std::string file() const;
    /// The offset in the file of an address in this region.
    [[nodiscard]] uint64_t offset_of(uint64_t address) const { return address - start + file_offset; }
};

/// A process's executable regions, sorted by start.
struct ProcessMaps {
    int pid = 0;                 ///< as given
    std::vector<Region> regions; ///< they don't overlap
    /// The region an address lies in, or nullptr.
    [[nodiscard]] const Region *find(uint64_t address) const;
};

/// Parses the text of /proc/PID/maps (PURE). Only executable regions are kept; lines that aren't of the kernel's form are passed
/// over.
[[nodiscard]] ProcessMaps parse_maps(int pid, std::string_view text);

/// Reads /proc/PID/maps; not_found when the process is gone. A kernel thread or a zombie has no regions, which is no error.
[[nodiscard]] Result<ProcessMaps> read_maps(int pid);
/// What the kernel shows of the caller's own mapping at `address`, code or not. Errors: not_found, and those of reading /proc.
[[nodiscard]] Result<Region> own_region(const void *address);

} // namespace rawbpf::inline v0::symbols
