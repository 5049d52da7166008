// Steps through a program in both directions, and shows what each step did, as text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "asm/assemble.h"
#include "runtime/emulator/machine.h"
#include "runtime/emulator/source.h"

namespace rawbpf::inline v0::exec {

/// One register or piece of memory that the last step changed.
struct StepChange {
    int reg = -1;              ///< 0 to 10, or -1: memory
    uint64_t address = 0;      ///< memory
    std::string before, after; ///< the bytes; of a register its eight
};

class Walk {
  public:
    /// The machine has been entered, with `stepping`. Borrowed, with its spec.
    Walk(emulator::Machine &machine, const ObjectSpec &spec, std::vector<LabelPlace> labels = {});

    [[nodiscard]] const emulator::Machine &machine() const { return *machine_; }
    [[nodiscard]] const ObjectSpec &spec() const { return *spec_; }
    /// Of the program that runs, as the source has it; empty: none stands there.
    [[nodiscard]] std::string_view label(size_t insn) const;
    /// One step. False: the program has ended, or can't go on (then fault() says why).
    bool forward();
    bool back();
    /// Until a breakpoint, the end, or `most` steps. Returns steps made.
    uint64_t run_on(uint64_t most = kMost);
    uint64_t run_back();
    /// Until this function's next instruction: what it calls is run whole.
    void over();
    /// Until another source line.
    void next_line();

    /// "12": an instruction; "file.c:34" or ":34": a line; "name": a function. Errors: not_found.
    [[nodiscard]] Result<void> break_at(std::string_view where);
    void toggle(size_t insn);
    [[nodiscard]] bool breaks(size_t insn) const;

    [[nodiscard]] const std::string &fault() const { return fault_; }
    /// What the last step changed, in either direction.
    [[nodiscard]] const std::vector<StepChange> &changes() const { return changes_; }
    /// What the last step printed.
    [[nodiscard]] std::string printed() const;

  private:
    static constexpr uint64_t kMost = 10'000'000;
    [[nodiscard]] emulator::Source line() const;
    void compare(const uint64_t (&before)[11]);

    emulator::Machine *machine_;
    const ObjectSpec *spec_;
    std::vector<LabelPlace> labels_;
    std::vector<size_t> breaks_; ///< in the program that the walk began with
    std::string fault_;
    std::vector<StepChange> changes_;
    size_t printed_before_ = 0;
};

/// A value with the name of what it points to: "0x10000004 (memory+4)", "7", "-1".
[[nodiscard]] std::string value_text(const emulator::Machine &machine, uint64_t value);
/// "r3 = 7, [fp0-8] = 05 00 00 00"; empty: nothing changed.
[[nodiscard]] std::string changes_text(const Walk &walk);
/// The instruction with the names of helpers, functions, maps and labels; "again: r0 += 1" where a label stands.
[[nodiscard]] std::string instruction_text(const Walk &walk, size_t insn);

struct ScreenOptions {
    int rows = 24, columns = 80;
    bool color = false;
    std::string message; ///< one line
    size_t cursor = 0;   ///< the instruction that keys act on
};
/// The whole screen: place, registers, stack, memory, code, keys.
[[nodiscard]] std::string screen_text(const Walk &walk, const ScreenOptions &options);

} // namespace rawbpf::inline v0::exec
