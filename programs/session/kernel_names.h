// When the kernel's functions get their names. That takes a pass over /proc/kallsyms, ten megabytes of text that the kernel has
// to print: some tens of milliseconds. So what has an unknown kernel address waits, in numbered form, until a pass is affordable:
// passes take at most a twentieth of the time, and nothing waits for more than two seconds. After the first seconds nearly every
// address is known.
//
//      if (names.ready(nodes, now, waiting.front().t_ns)) { // nodes: the kernel stacks of all that waits
//          names.name(nodes);
//          ...                                             // show it
//      }
#pragma once

#include <cstdint>
#include <span>

#include "programs/processes/namer.h"
#include "programs/processes/stacks.h"

namespace rawbpf::inline v0::session {

/// How often passes are affordable. PURE. Times are CLOCK_MONOTONIC.
class PassBudget {
  public:
    /// Whether one may be made: none was yet, or the last one took less than a twentieth of the time since then.
    [[nodiscard]] bool affordable(uint64_t now_ns) const;
    /// The same, for what has waited since `oldest_ns`: after two seconds it may always.
    [[nodiscard]] bool due(uint64_t now_ns, uint64_t oldest_ns) const;
    void passed(uint64_t began_ns, uint64_t ended_ns);

  private:
    uint64_t cost_ns_ = 0, ended_ns_ = 0;
    bool any_ = false;
};

class KernelNames {
  public:
    /// Both must outlive this.
    KernelNames(const processes::StackTree &tree, processes::Namer &namer) : tree_(tree), namer_(namer) {}

    /// Whether all frames of a kernel stack have names already.
    [[nodiscard]] bool known(uint32_t node) const;
    /// Whether stacks that have waited since `oldest_ns` can be named: all of them are known(), or a pass is due.
    [[nodiscard]] bool ready(std::span<const uint32_t> nodes, uint64_t now_ns, uint64_t oldest_ns) const;
    /// Names all of them in one pass; in none where they have names.
    void name(std::span<const uint32_t> nodes);
    [[nodiscard]] PassBudget &budget() { return budget_; }

  private:
    const processes::StackTree &tree_;
    processes::Namer &namer_;
    PassBudget budget_;
};

} // namespace rawbpf::inline v0::session
