// getrandom(2). Requests of up to 256 bytes are answered completely and without interruption once the pool is ready
// (random(7)). Requests here are never larger, so the loop over short answers is only a safeguard.
#include "runtime/sys/random.h"

#include <algorithm>
#include <cerrno>
#include <sys/syscall.h>

#include "runtime/base/fail.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::sys {

Result<void> random_bytes(std::span<std::byte> into) {
    while (!into.empty()) {
        const long n = invoke(__NR_getrandom, reg(into.data()), std::min<size_t>(into.size(), 256), 0);
        if (n == -EINTR) continue;
        if (n <= 0) return fail_os(n < 0 ? -static_cast<int>(n) : EIO, "random bytes");
        into = into.subspan(static_cast<size_t>(n));
    }
    return {};
}

} // namespace rawbpf::inline v0::sys
