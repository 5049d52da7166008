// --syscalls: every system call that matters, as it is made, on standard error.
#pragma once

#include "runtime/sys/describe.h"
#include "runtime/sys/descriptors.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::cli {

/// Prints bpf(2), perf_event_open(2), ioctl(2) and mmap(2) while it lives; the observer before it comes back afterwards.
class Narrator final : public sys::Observer {
  public:
    /// `all`: instructions, logs and data whole; else their beginnings. `json`: a line of JSON for each call.
    Narrator(bool color, bool all, bool json);
    ~Narrator() override;
    Narrator(const Narrator &) = delete;
    Narrator &operator=(const Narrator &) = delete;
    void after(const sys::Call &call, long result) override;

  private:
    bool color_, json_;
    sys::Descriptors fds_;
    sys::Detail detail_;
    sys::Observer *before_;
};

} // namespace rawbpf::inline v0::cli
