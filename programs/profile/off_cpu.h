// Waits in place of samples: what the profiler's Run asks of whoever makes the program that sees them.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "programs/profile/program.h"
#include "programs/profile/sample.h"
#include "programs/render/frame.h"
#include "runtime/kernel/loader.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::profile {

/// A wait of a thread, with the stacks that it left its CPU with. Its sample's t_ns is when it came back.
struct RawWait {
    RawSample sample;
    uint64_t left_ns = 0;   ///< CLOCK_MONOTONIC
    uint64_t waited_ns = 0; ///< 1 at least; 0: it has only begun, and this is a copy of the stack that it has
};

class OffCpu {
  public:
    virtual ~OffCpu() = default;
    /// The spec of program "profile" with the maps that program_spec()'s has. filter_pid LEFT_OUT means: those in profile_pids
    /// and what they start.
    [[nodiscard]] virtual Result<ObjectSpec> spec(const ProgramOptions &options) = 0;
    /// From here on waits come, out of what was loaded from the last spec.
    [[nodiscard]] virtual Result<void> attach(LoadedObject &object) = 0;
    /// When this returns, no CPU runs the program any more.
    virtual void detach() = 0;
    /// nullopt when the sizes in the record don't fit its bytes.
    [[nodiscard]] virtual std::optional<RawWait> parse(Bytes record) const = 0;
    /// After detach(), when the rings are empty: the waits that aren't over, as if they had ended then.
    [[nodiscard]] virtual Result<void> rest(LoadedObject &object, uint64_t now_ns, const std::function<void(Bytes)> &take) = 0;
    /// After rest(): fired, lost, waits; to filtered is added.
    [[nodiscard]] virtual Result<void> account(LoadedObject &object, Ledger &ledger) const = 0;
};

/// `min_wait_ns`: shorter waits are counted, and not shown.
[[nodiscard]] std::unique_ptr<OffCpu> make_off_cpu(uint64_t min_wait_ns);

} // namespace rawbpf::inline v0::profile
