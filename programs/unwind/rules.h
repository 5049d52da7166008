// The rules of all modules together, each once.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/unwind/layout.h"

namespace rawbpf::inline v0::unwind {

/// Where rules are written to before a row may name them: the map unwind_rules, or a fake.
class RuleSink {
  public:
    virtual ~RuleSink() = default;
    virtual Result<void> put(uint32_t number, const UnwindRule &rule) = 0;
};

class Rules {
  public:
    explicit Rules(RuleSink &sink) : sink_(sink) { rules_.push_back({}); } // the map's element 0 is zero: UNWIND_NONE

    /// The number of this rule. 0, a stop, when there is no room for another one: see overflows().
    [[nodiscard]] Result<uint16_t> intern(const UnwindRule &rule);
    [[nodiscard]] size_t size() const { return rules_.size(); }
    /// nullptr: no rule has that number.
    [[nodiscard]] const UnwindRule *find(uint32_t number) const { return number < rules_.size() ? &rules_[number] : nullptr; }
    /// How often a rule found no room.
    [[nodiscard]] uint64_t overflows() const { return overflows_; }

  private:
    RuleSink &sink_;
    std::vector<UnwindRule> rules_;
    std::vector<uint16_t> sorted_; // their numbers, by rule
    uint64_t overflows_ = 0;
};

} // namespace rawbpf::inline v0::unwind
