// Says which long step is running now, so that other code can show it to a waiting user (cli/starting.h). It costs a few
// stores; nobody has to read it.
//
//      LongStep step("attaching", "functions", functions.size());
//      for (const Function &function : functions) {
//          TRY(attach(function));
//          step.advance();
//      }
#pragma once

#include <cstddef>
#include <cstdint>

namespace rawbpf::inline v0 {

/// A long step, from its making to its end.
class LongStep {
  public:
    /// What the terminal shows. Two threads access it without a lock: one reading may mix a step with the next one.
    struct State {
        const char *doing = nullptr; ///< "attaching"; nullptr: nothing long
        const char *of = "";         ///< "functions"
        uint32_t done = 0,           ///< how many of them are behind us
            total = 0;               ///< how many there are; 0 or 1: not counted
    };
    /// Until it is dropped; then the one around it goes on. Both texts must last: literals. `total` 0 or 1: not counted.
    explicit LongStep(const char *doing, const char *of = "", size_t total = 0);
    ~LongStep();
    LongStep(const LongStep &) = delete;
    LongStep &operator=(const LongStep &) = delete;
    /// So many more are done. Of the innermost step, whichever object is asked.
    void advance(size_t more = 1);

    /// From any thread. Steps are made by one.
    [[nodiscard]] static State now();
    /// Called by the thread that makes steps whenever one begins or advances, where no other thread can look; nullptr: nothing
    /// is. Returns the one before.
    static void (*listen(void (*listener)()))();

  private:
    State outer_;
};

} // namespace rawbpf::inline v0
