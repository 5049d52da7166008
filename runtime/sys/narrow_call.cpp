// What a 32-bit kernel takes where a 64-bit one takes something else. Callers all over this folder speak as on 64-bit machines:
//
//      call                   on 32 bits
//      pread64, ftruncate     the 64-bit number is two registers, the first an even one (arch/arm/tools/syscall.tbl, the EABI)
//      mmap                   mmap2: the offset in units of 4096 bytes
//      openat                 with O_LARGEFILE, or a file of 2 GiB can't be opened
//      ppoll                  ppoll_time64 (5.1): the C library's times have 64 bits (-D_TIME_BITS=64)
//      stat's calls           statx, for the same reason
//      wait4, getrusage       their times have 32 bits; there is no newer call
//      statfs                 statfs64, with the structure's size
//      setresuid ...          setresuid32 ...: the old ones have users of 16 bits
#include "runtime/sys/narrow_call.h"

#if __SIZEOF_LONG__ == 4
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace rawbpf::inline v0::sys {
namespace {

static_assert(sizeof(time_t) == 8 && sizeof(off_t) == 8, "-D_TIME_BITS=64 -D_FILE_OFFSET_BITS=64");

long make(long number, std::array<uint64_t, 6> args) {
    unsigned long words[6];
    for (size_t i = 0; i < 6; ++i) words[i] = static_cast<unsigned long>(args[i]);
    const long value = ::syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
    return value == -1 ? -errno : value;
}
uint64_t lower(uint64_t number) { return number & UINT32_MAX; }
uint64_t upper(uint64_t number) { return number >> 32; }
template <class T> T *pointer(uint64_t value) { return reinterpret_cast<T *>(static_cast<uintptr_t>(value)); }

long stat_by_statx(uint64_t directory, const char *path, uint64_t flags, struct stat *out) {
    struct statx found {};
    const long r = make(__NR_statx, {directory, reg(path), flags, STATX_BASIC_STATS, reg(&found)});
    if (r < 0) return r;
    *out = {};
    out->st_dev = makedev(found.stx_dev_major, found.stx_dev_minor);
    out->st_rdev = makedev(found.stx_rdev_major, found.stx_rdev_minor);
    out->st_ino = found.stx_ino;
    out->st_mode = found.stx_mode;
    out->st_nlink = found.stx_nlink;
    out->st_uid = found.stx_uid;
    out->st_gid = found.stx_gid;
    out->st_size = static_cast<off_t>(found.stx_size);
    out->st_blksize = static_cast<blksize_t>(found.stx_blksize);
    out->st_blocks = static_cast<blkcnt_t>(found.stx_blocks);
    const auto time = [](const statx_timestamp &t) { return timespec{t.tv_sec, static_cast<long>(t.tv_nsec)}; };
    out->st_atim = time(found.stx_atime);
    out->st_mtim = time(found.stx_mtime);
    out->st_ctim = time(found.stx_ctime);
    return r;
}

/// struct rusage of the kernel: times of 32 bits, then fourteen numbers in the C library's order.
struct KernelUsage {
    int32_t user[2], system[2];
    long numbers[14];
};
void widen(const KernelUsage &from, rusage &to) {
    to.ru_utime = {from.user[0], from.user[1]};
    to.ru_stime = {from.system[0], from.system[1]};
    long *const numbers[] = {&to.ru_maxrss, &to.ru_ixrss,    &to.ru_idrss,   &to.ru_isrss,   &to.ru_minflt,
                             &to.ru_majflt, &to.ru_nswap,    &to.ru_inblock, &to.ru_oublock, &to.ru_msgsnd,
                             &to.ru_msgrcv, &to.ru_nsignals, &to.ru_nvcsw,   &to.ru_nivcsw};
    static_assert(std::size(numbers) == std::size(decltype(from.numbers){}));
    for (size_t i = 0; i < std::size(numbers); ++i) *numbers[i] = from.numbers[i];
}

} // namespace

long narrow_call(const Call &call) {
    const std::array<uint64_t, 6> &a = call.args;
    switch (call.number) {
    case __NR_pread64: return make(__NR_pread64, {a[0], a[1], a[2], 0, lower(a[3]), upper(a[3])});
    case __NR_ftruncate: return make(__NR_ftruncate64, {a[0], 0, lower(a[1]), upper(a[1])});
    case __NR_mmap2:
        if (a[5] % 4096 != 0 || a[1] > UINT32_MAX) return -EINVAL;
        return make(__NR_mmap2, {a[0], a[1], a[2], a[3], a[4], a[5] / 4096});
    case __NR_openat: return make(__NR_openat, {a[0], a[1], a[2] | O_LARGEFILE, a[3]});
    case __NR_ppoll: return make(__NR_ppoll_time64, a);
    case __NR_fstat: return stat_by_statx(a[0], "", AT_EMPTY_PATH, pointer<struct stat>(a[1]));
    case __NR_fstatat64: return stat_by_statx(a[0], pointer<const char>(a[1]), a[3], pointer<struct stat>(a[2]));
    case __NR_wait4: {
        KernelUsage usage{};
        const long r = make(__NR_wait4, {a[0], a[1], a[2], a[3] ? reg(&usage) : 0});
        if (r > 0 && a[3]) widen(usage, *pointer<rusage>(a[3]));
        return r;
    }
    case __NR_getrusage: {
        KernelUsage usage{};
        const long r = make(__NR_getrusage, {a[0], reg(&usage)});
        if (r == 0) widen(usage, *pointer<rusage>(a[1]));
        return r;
    }
    case __NR_statfs: return make(__NR_statfs64, {a[0], sizeof(struct statfs), a[1]});
    case __NR_setresuid: return make(__NR_setresuid32, a);
    case __NR_setresgid: return make(__NR_setresgid32, a);
    case __NR_setgroups: return make(__NR_setgroups32, a);
    case __NR_geteuid: return make(__NR_geteuid32, a);
    default: return make(call.number, a);
    }
}

} // namespace rawbpf::inline v0::sys
#endif
