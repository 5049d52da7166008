// Makes one system call that may block in a copy of this process, while this one goes on.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::sys {

/// For calls that wait, and whose effect lasts as long as what they made is open. Dropping it ends the copy, without waiting.
class [[nodiscard]] BlockingCall {
  public:
    /// Forks; the copy closes all descriptors but `keep` (and `also`) and makes the call, once. It ends with this process.
    /// Whether the call worked isn't told. Errors: the kernel's of clone(2).
    static Result<BlockingCall> call(long number, const std::array<uint64_t, 6> &args, int keep, int also = -1);
    BlockingCall() = default;
    BlockingCall(BlockingCall &&other) noexcept : pid_(other.pid_) { other.pid_ = -1; }
    BlockingCall &operator=(BlockingCall &&other) noexcept;
    ~BlockingCall() { end(); }

  private:
    void end() noexcept;
    int pid_ = -1;
};

} // namespace rawbpf::inline v0::sys
