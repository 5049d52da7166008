// The core starts no thread and no copy of the process: nothing that <rawbpf/core.h> offers asks for one. What could ask lies in
// the same files, though, and a product that links without --gc-sections keeps it: here is what it gets.
#include <cerrno>

#include "runtime/base/fail.h"
#include "runtime/sys/blocking_call.h"
#include "runtime/sys/ticker.h"

namespace rawbpf::inline v0::sys {

struct Lock::State {};
Lock::Lock() = default;
Lock::~Lock() = default;
void Lock::take() {}
void Lock::give() {}

struct Ticker::State {};
std::unique_ptr<Ticker> Ticker::start(std::function<uint64_t()>, Turn) { return nullptr; }
Ticker::~Ticker() = default;
void Ticker::wake() {}

Result<BlockingCall> BlockingCall::call(long, const std::array<uint64_t, 6> &, int, int) {
    return fail_os(ENOSYS, "the core makes no copy of the process");
}
BlockingCall &BlockingCall::operator=(BlockingCall &&other) noexcept {
    pid_ = other.pid_;
    other.pid_ = -1;
    return *this;
}
void BlockingCall::end() noexcept {}

} // namespace rawbpf::inline v0::sys
