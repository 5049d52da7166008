// A clock on a command and all that it starts, that at each tick copies a thread's registers and the top of its stack.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/unwind/oracle.h"

namespace rawbpf::unwind_test {

class DumpClock {
  public:
    /// One event a CPU, silent until `pid` calls exec. Empty `error`: it stands.
    static std::unique_ptr<DumpClock> on(int pid, uint64_t frequency, uint32_t stack_bytes, std::string &error);
    ~DumpClock();
    /// The events' descriptors: a BPF program may be attached to each. It runs before the copy is made, and only where it returns
    /// 1 is there a copy.
    [[nodiscard]] const std::vector<int> &events() const { return events_; }
    void read(const std::function<void(Dump &&)> &take);
    [[nodiscard]] uint64_t lost() const { return lost_; }

  private:
    struct Ring {
        unsigned char *at = nullptr;
        uint64_t size = 0;
    };
    std::vector<int> events_;
    std::vector<Ring> rings_;
    uint64_t lost_ = 0;
};

} // namespace rawbpf::unwind_test
