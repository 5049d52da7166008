// User stacks that end before a thread's first function: where, how often, and what would help.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "programs/processes/advice.h"
#include "programs/processes/namer.h"
#include "programs/processes/stacks.h"
#include "programs/render/ledger.h"

namespace rawbpf::inline v0::processes {

/// What every ledger counts of user stacks. Modules are known by their numbers, so it belongs to one table of them.
class EarlyEnds {
  public:
    /// The user stack of `count` samples or events, by its places, the leaf first; names those that it has to know. `ending`:
    /// UNWIND_ENDED_..., or kNoEnding. Not for a stack that was cut at the most frames: that one goes on.
    void add(Namer &namer, const StackTree &tree, std::span<const uint32_t> places, uint8_t ending, uint64_t count);
    /// The same by its node; nothing where that is kNone.
    void add(Namer &namer, const StackTree &tree, uint32_t node, uint8_t ending, uint64_t count);

    [[nodiscard]] uint64_t count() const { return count_; }
    /// Modules that stacks ended early in, most first.
    [[nodiscard]] std::vector<std::pair<std::string, uint64_t>> list() const;
    /// What would make more of them whole. `remedy`: see remedy_of().
    [[nodiscard]] std::vector<render::StackAdvice> advice(const ModuleTable &table, const Remedy &remedy) const;

  private:
    ModuleEnds &of_module(uint32_t module);

    struct Where {
        std::string name;
        uint64_t count = 0;
    };
    std::unordered_map<uint64_t, Where> where_; ///< by module and ending
    std::vector<ModuleEnds> by_module_;         ///< by its number
    std::vector<uint32_t> modules_, places_;    ///< of one stack, while it is counted
    uint64_t count_ = 0;
};

} // namespace rawbpf::inline v0::processes
