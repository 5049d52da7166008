// SPDX-License-Identifier: MIT
// Files and memory, through invoke().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

#include "runtime/base/bytes.h"
#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::sys {

/// openat(2); O_CLOEXEC is always set. Errors name the path.
Result<Fd> open(const std::string &path, int flags, uint32_t mode = 0);
/// openat2(2) with RESOLVE_IN_ROOT, 5.6: `path`, and every link on its way, is resolved as if `root` were "/". So a container's
/// files are found through /proc/PID/root as the container sees them, and none of its links leads out of it.
/// With `root` empty or "/" the same as open().
Result<Fd> open_under(const std::string &root, const std::string &path, int flags);
/// fcntl(2) F_DUPFD_CLOEXEC: a second descriptor for the same thing.
Result<Fd> duplicate(int fd);
/// One read(2), EINTR retried: bytes read, 0 at the end.
Result<size_t> read(int fd, void *into, size_t size);
/// One pread(2), EINTR retried.
Result<size_t> pread(int fd, void *into, size_t size, uint64_t offset);
/// Writes all of it; EINTR and short writes are continued.
Result<void> write_all(int fd, const void *from, size_t size);
inline constexpr size_t kReadLimit = 64 << 20; ///< bytes
/// The whole file, also from /proc and /sys where st_size lies. Errors: bad_input when it has more than `limit` bytes.
Result<std::string> read_file(const std::string &path, size_t limit = kReadLimit);
/// The first line of a file of /proc or /sys, without its newline; empty when it can't be read.
[[nodiscard]] std::string first_line(const std::string &path);
/// ftruncate(2).
Result<void> truncate(int fd, uint64_t size);
/// unlink(2).
Result<void> remove_file(const std::string &path);
/// readlink(2): what a symbolic link holds, up to 4096 bytes.
Result<std::string> read_link(const std::string &path);
/// The same, relative to an open directory (AT_FDCWD: the current one).
Result<std::string> read_link_at(int directory, const char *name);
/// stat(2); a symbolic link is followed.
Result<struct stat> stat_file(const std::string &path);
/// fstat(2).
Result<struct stat> stat_fd(int fd);
/// Whether something is at the path. True also where is_unread() (EIO, ENOMEM ...): opening it says why. False without permission
/// to search a directory on the way: of no use to us, but it may be there (stat_file() tells the two apart).
[[nodiscard]] bool exists(const std::string &path);
/// mkdirat(2), one level. Errors: busy when it is there (EEXIST).
Result<void> make_directory(const std::string &path, uint32_t mode = 0755);
/// rmdir(2). Errors: the kernel's; it must be empty.
Result<void> remove_directory(const std::string &path);
/// A new instance of a file system that lies nowhere in the tree of names (fsopen(2), fsmount(2), 5.2): what is in it is reached
/// by /proc/self/fd/N/..., and it goes with the descriptor. Errors: permission without CAP_SYS_ADMIN, unsupported when the kernel
/// has no such file system.
Result<Fd> mount_detached(const std::string &type);
/// The names in a directory, without "." and "..", unsorted.
Result<std::vector<std::string>> list_directory(const std::string &path);

/// A mapping with one owner; unmapped when dropped.
class [[nodiscard]] Mapping {
  public:
    Mapping() = default;
    /// Takes over what mmap(2) returned; nullptr is no mapping.
    Mapping(void *at, size_t size) : at_(at), size_(size) {}
    /// The one moved from is empty. What was assigned to is unmapped first.
    ///@{
    Mapping(Mapping &&other) noexcept : at_(std::exchange(other.at_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Mapping &operator=(Mapping &&other) noexcept;
    ///@}
    ~Mapping() { reset(); }
    /// munmap(2). The mapping is empty afterwards.
    void reset() noexcept;
    /// The memory, good until reset() or the end of this; nullptr and 0 bytes when empty. May be written to where the pages may.
    ///@{
    [[nodiscard]] std::byte *data() const { return static_cast<std::byte *>(at_); }
    [[nodiscard]] size_t size() const { return size_; }
    [[nodiscard]] Bytes bytes() const { return {data(), size_}; }
    ///@}
    /// False: empty.
    explicit operator bool() const { return at_ != nullptr; }

  private:
    void *at_ = nullptr;
    size_t size_ = 0;
};

/// mmap(2) with the given protection and flags.
Result<Mapping> map(int fd, uint64_t offset, size_t size, int protection, int flags);
/// Shared, readable and writable, at exactly that address (nullptr: anywhere). Errors: busy when something is there already.
Result<Mapping> map_at(void *address, int fd, size_t size);
/// A regular file, read-only. An empty file gives an empty Mapping without error.
Result<Mapping> map_file(const std::string &path);
/// What the kernel offers as a file: private, since of /sys/kernel/btf/vmlinux there are no shared mappings (6.16).
Result<Mapping> map_kernel_file(const std::string &path);
/// map_file() of a descriptor; `path` is for messages.
Result<Mapping> map_file(const Fd &fd, const std::string &path);
/// The whole file in anonymous memory, by one read into pages made beforehand: for large files that can't be mapped and tell
/// their size, as sysfs attributes do.
Result<Mapping> read_into_mapping(const std::string &path);
/// sysconf's page size: asked, never assumed.
[[nodiscard]] size_t page_size();

} // namespace rawbpf::inline v0::sys
