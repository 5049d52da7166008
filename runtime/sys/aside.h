// Makes one system call that may block in a copy of this process, while this one goes on.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::sys {

/// For calls that wait, and whose effect lasts as long as what they made is open. Dropping it ends the copy, without waiting.
class [[nodiscard]] Aside {
  public:
    /// Forks; the copy closes all descriptors but `keep` (and `also`) and makes the call, once. It ends with this process.
    /// Whether the call worked isn't told. Errors: the kernel's of clone(2).
    static Result<Aside> call(long number, const std::array<uint64_t, 6> &args, int keep, int also = -1);
    Aside() = default;
    Aside(Aside &&other) noexcept : pid_(other.pid_) { other.pid_ = -1; }
    Aside &operator=(Aside &&other) noexcept;
    ~Aside() { end(); }

  private:
    void end() noexcept;
    int pid_ = -1;
};

} // namespace rawbpf::inline v0::sys
