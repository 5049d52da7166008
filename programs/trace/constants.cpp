// Neither tracefs nor BTF knows what the number in an `int flags` means: to them it is an int. The name of the function and that
// of the argument tell, for the system calls that people look at most.
//
//      openat   flags  ->  open_flags     the two lowest bits are one of three, the others are bits
//      kill     sig    ->  signals        one of many
//      mmap     prot   ->  prot           bits
//
// The values are this machine's: what is traced runs here, and a recording takes them along to others. (O_DIRECTORY is 0200000 on
// x86_64 and 040000 on arm64.)
#include "programs/trace/constants.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <ctime>
#include <span>

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/format.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080 // Linux 5.6
#endif
#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x00001000 // Linux 5.2
#endif

namespace rawbpf::inline v0::trace {
namespace {

#define NAMED(constant) static_cast<uint32_t>(constant), #constant

// The kernel adds O_LARGEFILE to whatever 64-bit programs ask for; the C library says that it is 0 there.
#if defined(__aarch64__) || defined(__arm__)
constexpr uint32_t kLargeFile = 0x20000;
#else
constexpr uint32_t kLargeFile = 0x8000;
#endif

// Combinations come before their parts.
constexpr Constant kOpen[] = {{NAMED(O_CREAT)},           {NAMED(O_EXCL)},     {NAMED(O_NOCTTY)},  {NAMED(O_TRUNC)},
                              {NAMED(O_APPEND)},          {NAMED(O_NONBLOCK)}, {NAMED(O_SYNC)},    {NAMED(O_DSYNC)},
                              {NAMED(O_ASYNC)},           {NAMED(O_DIRECT)},   {NAMED(O_TMPFILE)}, {NAMED(O_DIRECTORY)},
                              {NAMED(O_NOFOLLOW)},        {NAMED(O_NOATIME)},  {NAMED(O_CLOEXEC)}, {NAMED(O_PATH)},
                              {kLargeFile, "O_LARGEFILE"}};
constexpr Constant kAt[] = {
    {NAMED(AT_SYMLINK_NOFOLLOW)}, {NAMED(AT_SYMLINK_FOLLOW)}, {NAMED(AT_NO_AUTOMOUNT)}, {NAMED(AT_EMPTY_PATH)}};
constexpr Constant kUnlink[] = {{NAMED(AT_REMOVEDIR)}};
constexpr Constant kAccess[] = {{NAMED(R_OK)}, {NAMED(W_OK)}, {NAMED(X_OK)}};
constexpr Constant kProt[] = {{NAMED(PROT_READ)}, {NAMED(PROT_WRITE)}, {NAMED(PROT_EXEC)}, {NAMED(PROT_GROWSDOWN)}};
constexpr Constant kMap[] = {{NAMED(MAP_SHARED_VALIDATE)}, {NAMED(MAP_SHARED)},    {NAMED(MAP_PRIVATE)},
                             {NAMED(MAP_FIXED)},           {NAMED(MAP_ANONYMOUS)}, {NAMED(MAP_GROWSDOWN)},
                             {NAMED(MAP_DENYWRITE)},       {NAMED(MAP_LOCKED)},    {NAMED(MAP_NORESERVE)},
                             {NAMED(MAP_POPULATE)},        {NAMED(MAP_NONBLOCK)},  {NAMED(MAP_STACK)},
                             {NAMED(MAP_HUGETLB)},         {NAMED(MAP_SYNC)},      {NAMED(MAP_FIXED_NOREPLACE)}};
constexpr Constant kAdvice[] = {{NAMED(MADV_NORMAL)},   {NAMED(MADV_RANDOM)},   {NAMED(MADV_SEQUENTIAL)},
                                {NAMED(MADV_WILLNEED)}, {NAMED(MADV_DONTNEED)}, {NAMED(MADV_FREE)},
                                {NAMED(MADV_DONTFORK)}, {NAMED(MADV_HUGEPAGE)}, {NAMED(MADV_NOHUGEPAGE)},
                                {NAMED(MADV_DONTDUMP)}, {NAMED(MADV_COLD)},     {NAMED(MADV_PAGEOUT)}};
constexpr Constant kFamily[] = {{NAMED(AF_UNSPEC)},  {NAMED(AF_UNIX)},   {NAMED(AF_INET)},  {NAMED(AF_INET6)},
                                {NAMED(AF_NETLINK)}, {NAMED(AF_PACKET)}, {NAMED(AF_VSOCK)}, {NAMED(AF_ALG)}};
constexpr Constant kSocketType[] = {{NAMED(SOCK_STREAM)}, {NAMED(SOCK_DGRAM)}, {NAMED(SOCK_RAW)}, {NAMED(SOCK_SEQPACKET)}};
constexpr Constant kSocketFlags[] = {{NAMED(SOCK_CLOEXEC)}, {NAMED(SOCK_NONBLOCK)}};
constexpr Constant kMessage[] = {{NAMED(MSG_OOB)},      {NAMED(MSG_PEEK)},         {NAMED(MSG_DONTROUTE)}, {NAMED(MSG_TRUNC)},
                                 {NAMED(MSG_DONTWAIT)}, {NAMED(MSG_WAITALL)},      {NAMED(MSG_NOSIGNAL)},  {NAMED(MSG_MORE)},
                                 {NAMED(MSG_ERRQUEUE)}, {NAMED(MSG_CMSG_CLOEXEC)}, {NAMED(MSG_WAITFORONE)}};
constexpr Constant kShutdown[] = {{NAMED(SHUT_RD)}, {NAMED(SHUT_WR)}, {NAMED(SHUT_RDWR)}};
constexpr Constant kWhence[] = {{NAMED(SEEK_SET)}, {NAMED(SEEK_CUR)}, {NAMED(SEEK_END)}, {NAMED(SEEK_DATA)}, {NAMED(SEEK_HOLE)}};
constexpr Constant kFcntl[] = {{NAMED(F_DUPFD)},      {NAMED(F_GETFD)},         {NAMED(F_SETFD)},      {NAMED(F_GETFL)},
                               {NAMED(F_SETFL)},      {NAMED(F_GETLK)},         {NAMED(F_SETLK)},      {NAMED(F_SETLKW)},
                               {NAMED(F_SETOWN)},     {NAMED(F_GETOWN)},        {NAMED(F_OFD_GETLK)},  {NAMED(F_OFD_SETLK)},
                               {NAMED(F_OFD_SETLKW)}, {NAMED(F_DUPFD_CLOEXEC)}, {NAMED(F_GETPIPE_SZ)}, {NAMED(F_SETPIPE_SZ)},
                               {NAMED(F_ADD_SEALS)},  {NAMED(F_GET_SEALS)}};
constexpr Constant kFlock[] = {{NAMED(LOCK_SH)}, {NAMED(LOCK_EX)}, {NAMED(LOCK_NB)}, {NAMED(LOCK_UN)}};
constexpr Constant kClone[] = {{NAMED(CLONE_VM)},
                               {NAMED(CLONE_FS)},
                               {NAMED(CLONE_FILES)},
                               {NAMED(CLONE_SIGHAND)},
                               {NAMED(CLONE_PIDFD)},
                               {NAMED(CLONE_PTRACE)},
                               {NAMED(CLONE_VFORK)},
                               {NAMED(CLONE_PARENT)},
                               {NAMED(CLONE_THREAD)},
                               {NAMED(CLONE_NEWNS)},
                               {NAMED(CLONE_SYSVSEM)},
                               {NAMED(CLONE_SETTLS)},
                               {NAMED(CLONE_PARENT_SETTID)},
                               {NAMED(CLONE_CHILD_CLEARTID)},
                               {NAMED(CLONE_UNTRACED)},
                               {NAMED(CLONE_CHILD_SETTID)},
                               {NAMED(CLONE_NEWCGROUP)},
                               {NAMED(CLONE_NEWUTS)},
                               {NAMED(CLONE_NEWIPC)},
                               {NAMED(CLONE_NEWUSER)},
                               {NAMED(CLONE_NEWPID)},
                               {NAMED(CLONE_NEWNET)},
                               {NAMED(CLONE_IO)}};
constexpr Constant kWait[] = {{NAMED(WNOHANG)}, {NAMED(WUNTRACED)},          {NAMED(WEXITED)},       {NAMED(WCONTINUED)},
                              {NAMED(WNOWAIT)}, {0x20000000, "__WNOTHREAD"}, {0x40000000, "__WALL"}, {0x80000000, "__WCLONE"}};
constexpr Constant kEpoll[] = {{NAMED(EPOLL_CTL_ADD)}, {NAMED(EPOLL_CTL_DEL)}, {NAMED(EPOLL_CTL_MOD)}};
constexpr Constant kClock[] = {{NAMED(CLOCK_REALTIME)},          {NAMED(CLOCK_MONOTONIC)},     {NAMED(CLOCK_PROCESS_CPUTIME_ID)},
                               {NAMED(CLOCK_THREAD_CPUTIME_ID)}, {NAMED(CLOCK_MONOTONIC_RAW)}, {NAMED(CLOCK_REALTIME_COARSE)},
                               {NAMED(CLOCK_MONOTONIC_COARSE)},  {NAMED(CLOCK_BOOTTIME)}};
constexpr Constant kRandom[] = {{NAMED(GRND_NONBLOCK)}, {NAMED(GRND_RANDOM)}};
constexpr Constant kMaskHow[] = {{NAMED(SIG_BLOCK)}, {NAMED(SIG_UNBLOCK)}, {NAMED(SIG_SETMASK)}};
constexpr Constant kRename[] = {{NAMED(RENAME_NOREPLACE)}, {NAMED(RENAME_EXCHANGE)}, {NAMED(RENAME_WHITEOUT)}};
constexpr Constant kMount[] = {{NAMED(MS_RDONLY)},      {NAMED(MS_NOSUID)}, {NAMED(MS_NODEV)},  {NAMED(MS_NOEXEC)},
                               {NAMED(MS_REMOUNT)},     {NAMED(MS_BIND)},   {NAMED(MS_MOVE)},   {NAMED(MS_REC)},
                               {NAMED(MS_PRIVATE)},     {NAMED(MS_SLAVE)},  {NAMED(MS_SHARED)}, {NAMED(MS_RELATIME)},
                               {NAMED(MS_STRICTATIME)}, {NAMED(MS_SILENT)}};
constexpr Constant kFutex[] = {{NAMED(FUTEX_WAIT)},        {NAMED(FUTEX_WAKE)},       {NAMED(FUTEX_REQUEUE)},
                               {NAMED(FUTEX_CMP_REQUEUE)}, {NAMED(FUTEX_WAKE_OP)},    {NAMED(FUTEX_LOCK_PI)},
                               {NAMED(FUTEX_UNLOCK_PI)},   {NAMED(FUTEX_TRYLOCK_PI)}, {NAMED(FUTEX_WAIT_BITSET)},
                               {NAMED(FUTEX_WAKE_BITSET)}};
constexpr Constant kFutexFlags[] = {{NAMED(FUTEX_PRIVATE_FLAG)}, {NAMED(FUTEX_CLOCK_REALTIME)}};
#undef NAMED

using Style = ConstantStyle;

struct Row {
    std::string_view argument;
    std::string_view functions; ///< words; empty: any
    Style style;
    std::span<const Constant> values = {};
    std::span<const Constant> more = {};
};

constexpr Row kRows[] = {
    {"dfd", "", Style::at},
    {"dirfd", "", Style::at},
    {"olddfd", "", Style::at},
    {"newdfd", "", Style::at},
    {"flags", "open openat open_by_handle_at filp_open", Style::open_flags, kOpen},
    {"oflag", "open openat", Style::open_flags, kOpen},
    {"flags", "pipe2 dup3 eventfd2 eventfd epoll_create1 inotify_init1 signalfd4 timerfd_create", Style::bits, kOpen},
    {"flags", "mmap mmap_pgoff", Style::bits, kMap},
    {"prot", "mmap mmap_pgoff mprotect pkey_mprotect", Style::bits, kProt},
    {"behavior", "madvise process_madvise", Style::one_of, kAdvice},
    {"advice", "madvise process_madvise", Style::one_of, kAdvice},
    {"mode", "open openat creat mkdir mkdirat mknod mknodat chmod fchmod fchmodat fchmodat2", Style::octal},
    {"mask", "umask", Style::octal},
    {"mode", "access faccessat faccessat2", Style::access, kAccess},
    {"flag", "newfstatat fstatat fchownat fchmodat2", Style::bits, kAt},
    {"flags", "statx execveat linkat faccessat2 utimensat name_to_handle_at fstatat", Style::bits, kAt},
    {"flag", "unlinkat", Style::bits, kUnlink},
    {"flags", "renameat2", Style::bits, kRename},
    {"sig", "", Style::signal},
    {"signum", "", Style::signal},
    {"how", "rt_sigprocmask sigprocmask pthread_sigmask", Style::one_of, kMaskHow},
    {"how", "shutdown", Style::one_of, kShutdown},
    {"whence", "", Style::one_of, kWhence},
    {"origin", "llseek", Style::one_of, kWhence},
    {"family", "socket socketpair sock_create inet_create", Style::one_of, kFamily},
    {"domain", "socket socketpair", Style::one_of, kFamily},
    {"type", "socket socketpair", Style::low4_and, kSocketType, kSocketFlags},
    {"flags", "accept4", Style::bits, kSocketFlags},
    {"flags", "send sendto sendmsg sendmmsg recv recvfrom recvmsg recvmmsg", Style::bits, kMessage},
    {"cmd", "fcntl", Style::one_of, kFcntl},
    {"cmd", "flock", Style::bits, kFlock},
    {"operation", "flock", Style::bits, kFlock},
    {"op", "epoll_ctl", Style::one_of, kEpoll},
    {"op", "futex", Style::low7_and, kFutex, kFutexFlags},
    {"clone_flags", "clone", Style::clone, kClone},
    {"unshare_flags", "unshare", Style::bits, kClone},
    {"flags", "unshare", Style::bits, kClone},
    {"nstype", "setns", Style::bits, kClone},
    {"options", "wait4 waitpid waitid", Style::bits, kWait},
    {"which_clock", "", Style::one_of, kClock},
    {"clockid", "", Style::one_of, kClock},
    {"flags", "getrandom", Style::bits, kRandom},
    {"flags", "mount", Style::bits, kMount},
};

// "open" for "open", "__open64", "__x64_sys_open", "do_sys_open".
std::string_view plain_name(std::string_view function) {
    for (std::string_view prefix : {"__x64_", "__arm64_", "__se_", "__do_", "do_", "sys_", "__libc_", "__"})
        if (function.starts_with(prefix) && function.size() > prefix.size() + 2) function.remove_prefix(prefix.size());
    if (function.ends_with("64") && function.size() > 4) function.remove_suffix(2);
    return function;
}

bool has_word(std::string_view words, std::string_view wanted) {
    while (!words.empty()) {
        const std::string_view word = words.substr(0, words.find(' '));
        if (word == wanted) return true;
        words.remove_prefix(std::min(words.size(), word.size() + 1));
    }
    return false;
}

std::string_view find(std::span<const Constant> values, uint32_t value) {
    for (const Constant &one : values)
        if (one.value == value) return one.name;
    return {};
}

void append_bits(std::string &out, std::span<const Constant> values, uint64_t value) {
    for (const Constant &one : values) {
        if (one.value == 0 || (value & one.value) != one.value) continue;
        append(out, "{}{}", out.empty() ? "" : "|", one.name);
        value &= ~uint64_t{one.value};
    }
    if (value) append(out, "{}{:#x}", out.empty() ? "" : "|", value);
}

std::string signal_name(uint32_t value) {
    if (value == 0) return {}; // kill(pid, 0) sends none
    if (const char *name = value < 32 ? sigabbrev_np(static_cast<int>(value)) : nullptr) return format("SIG{}", name);
    return value >= 32 && value <= 64 ? format("SIGRT{}", value) : std::string();
}

std::string name_by(const Constants &row, uint64_t raw) {
    const auto value = static_cast<uint32_t>(raw);
    std::string out;
    switch (row.style) {
    case Style::bits: append_bits(out, row.values, value); break;
    case Style::one_of: out = find(row.values, value); break;
    case Style::low4_and:
    case Style::low7_and: {
        const uint32_t mask = row.style == Style::low4_and ? 0xf : 0x7f;
        out = find(row.values, value & mask);
        if (!out.empty()) append_bits(out, row.more, value & ~mask);
        break;
    }
    case Style::open_flags: {
        constexpr std::string_view kModes[] = {"O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"};
        out = kModes[value & O_ACCMODE];
        append_bits(out, row.values, value & ~uint32_t{O_ACCMODE});
        break;
    }
    case Style::access:
        if (value == F_OK) return "F_OK";
        append_bits(out, row.values, value);
        break;
    case Style::octal: append(out, "{}{:o}", value & 0177777 ? "0" : "", value & 0177777); break;
    case Style::signal: return signal_name(value);
    case Style::clone:
        append_bits(out, row.values, value & ~0xffU);
        if (const std::string signal = signal_name(value & 0xff); !signal.empty())
            append(out, "{}{}", out.empty() ? "" : "|", signal);
        break;
    case Style::at:
        if (value == static_cast<uint32_t>(AT_FDCWD)) out = "AT_FDCWD";
        break;
    }
    return out;
}

const Row *row_of(std::string_view function, std::string_view argument) {
    std::string_view plain;
    for (const Row &row : kRows) {
        if (row.argument != argument) continue;
        if (plain.empty()) plain = plain_name(function);
        if (row.functions.empty() || has_word(row.functions, plain)) return &row;
    }
    return nullptr;
}

} // namespace

std::optional<Constants> constants_of(std::string_view function, std::string_view argument) {
    const Row *row = row_of(function, argument);
    return row ? std::optional(Constants{row->style, row->values, row->more}) : std::nullopt;
}

std::string constant_name(const Constants &constants, uint64_t value) { return name_by(constants, value); }

std::string constant_name(std::string_view function, std::string_view argument, uint64_t value) {
    const std::optional<Constants> known = constants_of(function, argument);
    return known ? name_by(*known, value) : std::string();
}

} // namespace rawbpf::inline v0::trace
