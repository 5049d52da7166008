// Where in its machine code a loaded program spends its time: a clock samples the instruction pointer of each CPU in the kernel.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "programs/inspect/machine_code.h"
#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/events/perf_ring.h"

namespace rawbpf::inline v0::running {

/// How often a program was met, and where. PURE.
class CodeSamples {
  public:
    /// Functions with their addresses, as machine_code() gives them.
    explicit CodeSamples(std::vector<inspect::MachineFunction> functions);
    /// One more look.
    void add(uint64_t address);
    /// Looks that found something else.
    [[nodiscard]] uint64_t elsewhere() const { return elsewhere_; }
    [[nodiscard]] uint64_t inside() const { return inside_; }
    /// For people: each function with its samples, by lines of source where the kernel has them, else by places in its code.
    [[nodiscard]] std::string text() const;
    /// {"type":"code","function","address","offset","samples","file","line","text"} a place, in the code's order.
    void append_json(std::string &out) const;

  private:
    std::vector<inspect::MachineFunction> functions_;
    std::vector<std::map<uint32_t, uint64_t>> hits_; // a function's: offset -> samples
    uint64_t inside_ = 0, elsewhere_ = 0;
};

/// A clock on every CPU. Cycles where there is a PMU, whose interrupts also meet code that has switched interrupts off.
class AddressClock {
  public:
    /// Errors: perf_event_open(2)'s, permission where the kernel shows no addresses of its own.
    [[nodiscard]] static Result<AddressClock> open(uint64_t frequency);
    /// Hands over what came since the last time.
    void read(CodeSamples &samples);
    /// Samples that found no room.
    [[nodiscard]] uint64_t lost() const { return lost_; }
    [[nodiscard]] bool hardware() const { return hardware_; }

  private:
    struct Ring {
        Fd event;
        SidebandRing ring;
    };
    std::vector<Ring> rings_;
    uint64_t lost_ = 0;
    bool hardware_ = false;
};

} // namespace rawbpf::inline v0::running
