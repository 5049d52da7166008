// Someone else's opinion of a stack: elfutils walks a copy of the registers and of the stack's bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace rawbpf::unwind_test {

/// What the kernel copied out of a thread when a clock ticked: PERF_SAMPLE_REGS_USER and PERF_SAMPLE_STACK_USER.
struct Dump {
    uint64_t t_ns = 0; ///< CLOCK_MONOTONIC
    uint32_t pid = 0, tid = 0;
    std::vector<uint64_t> registers;  ///< in the kernel's order (PERF_REG_X86_..., PERF_REG_ARM64_...); empty: no user registers
    std::vector<unsigned char> stack; ///< from the stack pointer up
};

/// Registers to ask for, and how many of them there are.
uint64_t register_mask();
size_t register_count();
uint64_t pc_of(const Dump &dump);
uint64_t sp_of(const Dump &dump);

struct Walk {
    std::vector<uint64_t> pcs;   ///< leaf first; return addresses as they are on the stack
    bool dump_too_short = false; ///< it wanted to read beyond the copy
};

/// One process's stacks, walked by elfutils' libdwfl. The process must be alive, and its mappings the final ones, when it is
/// made.
class Oracle {
  public:
    /// nullptr: the process is gone, or can't be read.
    static std::unique_ptr<Oracle> of(uint32_t pid);
    ~Oracle();
    Walk walk(const Dump &dump);

  private:
    struct State;
    explicit Oracle(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

} // namespace rawbpf::unwind_test
