// getdents64(2) and readlinkat(2) relative to the directory: in /proc, to walk a path costs more than to read the link.
#include "runtime/sys/each_link.h"

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <sys/syscall.h>

#include "runtime/base/bytes.h"
#include "runtime/base/fail.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::sys {

Result<void> each_symbolic_link(const std::string &directory,
                                const std::function<void(std::string_view name, std::string_view target)> &see) {
    const Fd fd = TRY(open(directory, O_RDONLY | O_DIRECTORY));
    alignas(8) char buffer[4096];
    char target[256];
    for (;;) {
        const long n = invoke(__NR_getdents64, fd.get(), reg(buffer), sizeof buffer);
        if (n < 0) return fail_os(-n, "listing {}", directory);
        if (n == 0) return {};
        for (long at = 0; at < n;) { // struct linux_dirent64: u64 ino, s64 off, u16 reclen, u8 type, name
            const char *name = buffer + at + 19;
            at += load<uint16_t>(reinterpret_cast<const std::byte *>(buffer + at + 16));
            if (*name == '.') continue;
            const long length = invoke(__NR_readlinkat, fd.get(), reg(name), reg(target), sizeof target - 1);
            if (length == -ENOENT || length == -EINVAL) continue;
            if (length < 0) return fail_os(-length, "reading the link {}/{}", directory, name);
            see(name, std::string_view(target, static_cast<size_t>(length)));
        }
    }
}

} // namespace rawbpf::inline v0::sys
