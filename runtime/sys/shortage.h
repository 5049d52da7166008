// Calls that failed because the machine was short of something (memory, descriptors), while rawbpf asked the kernel something
// else.
#pragma once

#include <string>

#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::sys {

/// While it lives, notes the calls that fail with EIO, ENOMEM, EMFILE or ENFILE: these say nothing of what was asked, so a "no"
/// that is made of one is none. For commands whose whole output is answers. The observer before it goes on seeing all calls.
class Shortage final : public Observer {
  public:
    Shortage() : before_(observe(this)) {}
    ~Shortage() override { observe(before_); }
    Shortage(const Shortage &) = delete;
    Shortage &operator=(const Shortage &) = delete;
    void after(const Call &call, long result) override;
    /// The first of them as a line of text, and how many more there were; empty: none.
    [[nodiscard]] std::string text() const;

  private:
    Observer *before_;
    std::string first_;
    size_t more_ = 0;
};

} // namespace rawbpf::inline v0::sys
