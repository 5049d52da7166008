// Closing a probe's last descriptor removes the probe, and close(2) returns when no CPU runs its program any more: the kernel
// waits for a grace period, 50 to 200 ms. Calls that wait at the same time share one:
//
//      128 links   one after the other   |--wait--|--wait--|--wait--| ...      7.3 s
//                  by 64 threads         |--wait--|--wait--|                   0.2 s
//
// The threads do nothing else. If the machine can't start them, this thread closes the descriptors. In the static executable
// it always does (RAWBPF_ONE_THREAD), since threads would need the C library's locales and unwinder; and in the core, which
// starts none (RAWBPF_STARTS_NO_THREAD): with glibc a static program that may start one has 45 KB of its name resolver.
#include "runtime/sys/close_together.h"

#include <algorithm>
#include <atomic>

#include "runtime/sys/thread.h"

namespace rawbpf::inline v0::sys {
namespace {

[[maybe_unused]] constexpr size_t kFew = 4, kMostThreads = 64, kStackBytes = 128 << 10;

struct Work {
    std::vector<Fd> files;
    std::atomic<size_t> next{0};
};

void *close_some(void *argument) {
    Work &work = *static_cast<Work *>(argument);
    for (size_t i; (i = work.next.fetch_add(1)) < work.files.size();) work.files[i].reset();
    return nullptr;
}

} // namespace

void close_together(std::vector<Fd> files) {
    Work work{std::move(files)};
#if defined(RAWBPF_ONE_THREAD) || defined(RAWBPF_STARTS_NO_THREAD)
    (void)close_some(&work);
#else
    std::vector<pthread_t> threads;
    if (work.files.size() > kFew && !is_watched()) {
        while (threads.size() + 1 < std::min(work.files.size(), kMostThreads)) {
            const std::optional<pthread_t> thread = start_thread(close_some, &work, kStackBytes);
            if (!thread) break;
            threads.push_back(*thread);
        }
    }
    close_some(&work);
    for (pthread_t thread : threads) (void)pthread_join(thread, nullptr);
#endif
}

} // namespace rawbpf::inline v0::sys
