// Files and memory, through invoke(). Nothing here uses stdio: /proc files are consistent only if they are read in few, large
// reads, and the fake in the tests has to see every call.
#include "runtime/sys/file.h"

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/fail.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/kernel_file.h"
#include "runtime/sys/machine.h"
#include "runtime/sys/narrow_call.h"
#include "runtime/sys/unread.h"

namespace rawbpf::inline v0::sys {
namespace {

constexpr const char *kNoRoom = "that file system is full (df shows it): make room there, or name a file on another one";

// What a small system often lacks: a /proc or /sys, room, a folder that can be written.
Error not_opened(Error error, const std::string &path) {
    if (error.os == ENOENT && path == "/dev/null") error.hint = "mknod -m 666 /dev/null c 1 3";
    if (error.os == ENOENT) return unmounted(std::move(error), path);
    if (error.os == EROFS) error.hint = "name a file on a file system that can be written (/tmp or /run, say)";
    if (error.os == ENOSPC) error.hint = kNoRoom;
    return error;
}

} // namespace

Result<Fd> open(const std::string &path, int flags, uint32_t mode) {
    long fd;
    do {
        fd = invoke(__NR_openat, static_cast<uint64_t>(AT_FDCWD), reg(path.c_str()), static_cast<uint64_t>(flags | O_CLOEXEC),
                    mode);
    } while (fd == -EINTR);
    if (fd < 0) return Unexpected(not_opened(os_error(static_cast<int>(-fd), format("opening {}", path)), path));
    return Fd(static_cast<int>(fd));
}

Result<Fd> open_under(const std::string &root, const std::string &path, int flags) {
    if (root.empty() || root == "/") return open(path, flags);
    Fd directory = TRY(open(root, O_PATH | O_DIRECTORY));
    open_how how{};
    how.flags = static_cast<uint64_t>(flags | O_CLOEXEC | O_LARGEFILE);
    how.resolve = RESOLVE_IN_ROOT;
    long fd;
    do { // EAGAIN: somebody renamed a directory on the way, and the kernel could not tell whether the path stayed inside
        fd = invoke(__NR_openat2, directory.get(), reg(path.c_str()), reg(&how), sizeof how);
    } while (fd == -EINTR || fd == -EAGAIN);
    if (fd < 0) return fail_os(-fd, "opening {} under {}", path, root);
    return Fd(static_cast<int>(fd));
}

Result<Fd> duplicate(int fd) {
    long copy = invoke(__NR_fcntl, static_cast<uint64_t>(fd), F_DUPFD_CLOEXEC, 3);
    if (copy < 0) return fail_os(static_cast<int>(-copy), "descriptor {}", fd);
    return Fd(static_cast<int>(copy));
}

Result<size_t> read(int fd, void *into, size_t size) {
    for (;;) {
        long n = invoke(__NR_read, fd, reg(into), size);
        if (n == -EINTR) continue;
        if (n < 0) return fail_os(-n, "read");
        return static_cast<size_t>(n);
    }
}

Result<size_t> pread(int fd, void *into, size_t size, uint64_t offset) {
    for (;;) {
        long n = invoke(__NR_pread64, fd, reg(into), size, offset);
        if (n == -EINTR) continue;
        if (n < 0) return fail_os(-n, "pread");
        return static_cast<size_t>(n);
    }
}

Result<void> write_all(int fd, const void *from, size_t size) {
    const char *at = static_cast<const char *>(from);
    while (size > 0) {
        long n = invoke(__NR_write, fd, reg(at), size);
        if (n == -EINTR) continue;
        if (n < 0) return Unexpected(os_error(static_cast<int>(-n), "write", n == -ENOSPC ? kNoRoom : ""));
        at += n;
        size -= static_cast<size_t>(n);
    }
    return {};
}

Result<std::string> read_file(const std::string &path, size_t limit) {
    Fd fd = TRY(open(path, O_RDONLY));
    std::string out;
    size_t used = 0;
    for (;;) {
        if (out.size() - used < 4096) out.resize(out.size() < 16384 ? 16384 : out.size() * 2);
        size_t n = TRY_IN(read(fd.get(), out.data() + used, out.size() - used), "{}", path);
        if (n == 0) break;
        used += n;
        if (used > limit)
            return Unexpected(make_error(Errc::bad_input, format("{}: larger than {} bytes", path, limit),
                                         "this is read into memory, as a pipe is; files that are mapped may be larger"));
    }
    out.resize(used);
    return out;
}

std::string first_line(const std::string &path) {
    const Result<std::string> text = read_file(path);
    return text ? text->substr(0, text->find('\n')) : std::string();
}

Result<void> truncate(int fd, uint64_t size) {
    long r = invoke(__NR_ftruncate, fd, size);
    if (r < 0) return fail_os(-r, "ftruncate");
    return {};
}

Result<void> remove_file(const std::string &path) {
    long r = invoke(__NR_unlinkat, static_cast<uint64_t>(AT_FDCWD), reg(path.c_str()), 0);
    if (r < 0) return fail_os(-r, "removing {}", path);
    return {};
}

Result<void> make_directory(const std::string &path, uint32_t mode) {
    long r = invoke(__NR_mkdirat, static_cast<uint64_t>(AT_FDCWD), reg(path.c_str()), mode);
    if (r < 0) return fail_os(-r, "making the directory {}", path);
    return {};
}

Result<void> remove_directory(const std::string &path) {
    long r = invoke(__NR_unlinkat, static_cast<uint64_t>(AT_FDCWD), reg(path.c_str()), AT_REMOVEDIR);
    if (r < 0) return fail_os(-r, "removing the directory {}", path);
    return {};
}

Result<Fd> mount_detached(const std::string &type) {
    // The same numbers on every architecture; old headers lack them (include/uapi/linux/mount.h, asm-generic/unistd.h).
    constexpr long kFsopen = 430, kFsconfig = 431, kFsmount = 432;
    constexpr uint64_t kCloexec = 1, kConfigCreate = 6;
    long context = invoke(kFsopen, reg(type.c_str()), kCloexec);
    if (context < 0) {
        Error error = os_error(-static_cast<int>(context), format("mounting {}", type));
        if (error.os == ENODEV) error.kind = Errc::unsupported;
        return Unexpected(std::move(error));
    }
    Fd opened(static_cast<int>(context));
    long r = invoke(kFsconfig, static_cast<uint64_t>(context), kConfigCreate);
    if (r < 0) return fail_os(-r, "mounting {}", type);
    long mount = invoke(kFsmount, static_cast<uint64_t>(context), kCloexec);
    if (mount < 0) return fail_os(-mount, "mounting {}", type);
    return Fd(static_cast<int>(mount));
}

Result<std::string> read_link(const std::string &path) { return read_link_at(AT_FDCWD, path.c_str()); }

Result<std::string> read_link_at(int directory, const char *name) {
    char target[4096];
    const long n = invoke(__NR_readlinkat, static_cast<uint64_t>(directory), reg(name), reg(target), sizeof target);
    if (n < 0) return fail_os(-n, "reading the link {}", name);
    return std::string(target, static_cast<size_t>(n));
}

Result<struct stat> stat_file(const std::string &path) {
    struct stat st {};
    long r = invoke(__NR_newfstatat, static_cast<uint64_t>(AT_FDCWD), reg(path.c_str()), reg(&st), 0);
    if (r < 0) return fail_os(-r, "{}", path);
    return st;
}

Result<struct stat> stat_fd(int fd) {
    struct stat st {};
    long r = invoke(__NR_fstat, fd, reg(&st));
    if (r < 0) return fail_os(-r, "fstat");
    return st;
}

// After a shortage it is taken to be there: whoever opens it next is told of the shortage. What isn't for us to see is taken not
// to be: most callers ask at one place after the other, and go on. Who says that something isn't there asks stat_file().
bool exists(const std::string &path) {
    const Result<struct stat> st = stat_file(path);
    return st || is_unread(st.error());
}

bool is_unread(const Error &error) {
    switch (error.os) {
    case 0: // not the kernel's: malformed
    case ENOENT:
    case ENOTDIR:
    case ENODEV:
    case ENXIO:
    case ESRCH:
    case ELOOP:
    case ENAMETOOLONG:
    case EISDIR:
    case ENOSYS:
    case EOPNOTSUPP:
    case 524: // the kernel's own ENOTSUPP
    case E2BIG:
    case EBADF:
    case EINVAL:
    case EPERM:
    case EACCES: return false;
    default: return true;
    }
}

Result<std::vector<std::string>> list_directory(const std::string &path) {
    Fd fd = TRY(open(path, O_RDONLY | O_DIRECTORY));
    std::vector<std::string> names;
    alignas(8) char buffer[16384];
    for (;;) {
        long n = invoke(__NR_getdents64, fd.get(), reg(buffer), sizeof buffer);
        if (n < 0) return fail_os(-n, "listing {}", path);
        if (n == 0) return names;
        for (long at = 0; at < n;) { // struct linux_dirent64: u64 ino, s64 off, u16 reclen, u8 type, name
            uint16_t length = load<uint16_t>(reinterpret_cast<std::byte *>(buffer + at + 16));
            std::string_view name(buffer + at + 19);
            if (name != "." && name != "..") names.emplace_back(name);
            at += length;
        }
    }
}

Mapping &Mapping::operator=(Mapping &&other) noexcept {
    if (this != &other) {
        reset();
        at_ = std::exchange(other.at_, nullptr);
        size_ = std::exchange(other.size_, 0);
    }
    return *this;
}

void Mapping::reset() noexcept {
    if (at_) invoke(__NR_munmap, reg(at_), size_);
    at_ = nullptr;
    size_ = 0;
}

Result<Mapping> map(int fd, uint64_t offset, size_t size, int protection, int flags) {
    long at = invoke(__NR_mmap, 0, size, static_cast<uint64_t>(protection), static_cast<uint64_t>(flags),
                     static_cast<uint64_t>(fd), offset);
    if (at < 0 && at > -4096) return fail_os(-at, "mmap of {} bytes", size);
    return Mapping(reinterpret_cast<void *>(at), size);
}

Result<Mapping> map_at(void *address, int fd, size_t size) {
    constexpr int kFixedNoReplace = 0x100000; // MAP_FIXED_NOREPLACE, 4.17
    const int flags = MAP_SHARED | (address ? kFixedNoReplace : 0);
    long at =
        invoke(__NR_mmap, reg(address), size, PROT_READ | PROT_WRITE, static_cast<uint64_t>(flags), static_cast<uint64_t>(fd), 0);
    if (at < 0 && at > -4096) return fail_os(-at, "mmap of {} bytes at {:#x}", size, reg(address));
    return Mapping(reinterpret_cast<void *>(at), size);
}

namespace {

// Nothing when `size` bytes and what else this process will need have room in its address space. Only where `ulimit -v` bounds
// it: a file that takes the last of it leaves no memory for the next small thing. A quarter of the limit has to be free beside
// the file: it is mapped for as long as the file is being mapped.
Result<Mapping> hold_room(size_t size) {
    constexpr size_t kSmall = 256 << 10;
    const uint64_t limit = address_space_limit();
    if (size < kSmall || limit == UINT64_MAX) return Mapping();
    return map(-1, 0, static_cast<size_t>(limit / 4), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
}

} // namespace

Result<Mapping> map_file(const std::string &path) {
    Fd fd = TRY(open(path, O_RDONLY | O_NONBLOCK));
    return map_file(fd, path);
}

Result<Mapping> map_file(const Fd &fd, const std::string &path) {
    struct stat st = TRY_IN(stat_fd(fd.get()), "{}", path);
    if (!S_ISREG(st.st_mode)) return fail(Errc::bad_input, "{}: not a regular file", path);
    if (st.st_size == 0) return Mapping();
    const auto size = static_cast<size_t>(st.st_size);
    const auto no_room = [&] {
        return fail(Errc::no_memory,
                    "{}: mapping its {} bytes would leave too little of the address space that this process may have (ulimit -v)",
                    path, size);
    };
    const Result<Mapping> room = hold_room(size);
    if (!room) return no_room();
    // Shared, although nothing is written: into private mappings the kernel puts the breakpoints of uprobes on this file. Some
    // file systems have no shared ones.
    if (Result<Mapping> shared = map(fd.get(), 0, size, PROT_READ, MAP_SHARED)) return shared;
    Result<Mapping> own = map(fd.get(), 0, size, PROT_READ, MAP_PRIVATE);
    if (!own && *room && own.error().kind == Errc::no_memory) return no_room();
    return TRY_IN(std::move(own), "{}", path);
}

Result<Mapping> map_kernel_file(const std::string &path) {
    Fd fd = TRY(open(path, O_RDONLY | O_NONBLOCK));
    struct stat st = TRY_IN(stat_fd(fd.get()), "{}", path);
    return TRY_IN(map(fd.get(), 0, static_cast<size_t>(st.st_size), PROT_READ, MAP_PRIVATE), "{}", path);
}

Result<Mapping> read_into_mapping(const std::string &path) {
    Fd fd = TRY(open(path, O_RDONLY | O_NONBLOCK));
    struct stat st = TRY_IN(stat_fd(fd.get()), "{}", path);
    if (!S_ISREG(st.st_mode)) return fail(Errc::bad_input, "{}: not a regular file", path);
    const size_t size = static_cast<size_t>(st.st_size);
    if (size == 0) return Mapping();
    // Populated at once: a fault for each page would cost more than the copy.
    Mapping memory = TRY_IN(map(-1, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE), "{}", path);
    for (size_t used = 0; used < size;) {
        size_t n = TRY_IN(read(fd.get(), memory.data() + used, size - used), "{}", path);
        if (n == 0) return fail(Errc::io, "{}: ends after {} of {} bytes", path, used, size);
        used += n;
    }
    return memory;
}

size_t page_size() {
    static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return size;
}

} // namespace rawbpf::inline v0::sys
