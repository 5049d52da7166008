// The one function that enters the kernel. See invoke.h for the picture.
#include "runtime/sys/invoke.h"

#include <atomic>
#include <cerrno>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/sys/close_together.h"
#include "runtime/sys/narrow_call.h"

namespace rawbpf::inline v0 {

void close_fd(int fd) noexcept { sys::invoke(__NR_close, static_cast<uint64_t>(fd)); }

namespace sys {
namespace {

class Kernel final : public Backend {
  public:
    long call(const Call &c) override {
#if __SIZEOF_LONG__ == 4
        return narrow_call(c);
#else
        long value = ::syscall(c.number, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5]);
        return value == -1 ? -errno : value;
#endif
    }
};

Kernel the_kernel;
std::atomic<Backend *> backend{&the_kernel}; // in each call of each thread, hence without an order among them
std::atomic<Observer *> observer{nullptr};
thread_local std::string_view current_why;

} // namespace

bool is_watched() { return observer.load() != nullptr || backend.load() != &the_kernel; }

Observer *observe(Observer *next) { return observer.exchange(next); }

Backend *use_backend(Backend *next) { return backend.exchange(next ? next : &the_kernel); }

Backend &kernel_backend() { return the_kernel; }

long invoke(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
    Call call{number, {a, b, c, d, e, f}, current_why};
    const long result = backend.load(std::memory_order_relaxed)->call(call);
    if (Observer *seen = observer.load(std::memory_order_relaxed)) seen->after(call, result);
    return result;
}

Because::Because(std::string_view why) : outer_(current_why) { current_why = why; }
Because::~Because() { current_why = outer_; }

} // namespace sys
} // namespace rawbpf::inline v0
