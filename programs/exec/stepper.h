// Steps through a program in both directions, and shows what each step did, as text.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "asm/assemble.h"
#include "runtime/emulator/machine.h"
#include "runtime/emulator/source.h"

namespace rawbpf::inline v0::exec {

/// A machine that steps, on which the program has been entered. `memory` is what r1 points to, or with `packet` the packet; it is
/// borrowed, as the spec is. Errors: the Machine's.
[[nodiscard]] Result<std::unique_ptr<emulator::Machine>> enter(const ObjectSpec &spec, size_t program,
                                                               std::span<std::byte> memory, bool packet);

/// The same again on that machine, whose maps stay as they are.
[[nodiscard]] Result<void> enter_again(emulator::Machine &machine, const ObjectSpec &spec, size_t program,
                                       std::span<std::byte> memory, bool packet);

/// One register or piece of memory that the last step changed.
struct StepChange {
    int reg = -1;              ///< 0 to 10, or -1: memory
    uint64_t address = 0;      ///< memory
    std::string before, after; ///< the bytes; of a register its eight
};

/// What the verifier knows beside the numbers of a run (knowledge.h has the one that there is; builds may leave it out).
class Knowledge {
  public:
    virtual ~Knowledge() = default;
    /// The run made a step, or took one back.
    virtual void advance(const emulator::Machine &machine) = 0;
    virtual void back() = 0;
    /// Before the next instruction, as the kernel's log writes it: "scalar(umax=9)"; empty: nothing is known.
    [[nodiscard]] virtual std::string of_register(unsigned reg) = 0;
    /// Of the eight bytes at r10 + offset of the running frame; `offset` is below 0 and a multiple of 8.
    [[nodiscard]] virtual std::string of_slot(int offset) = 0;
    /// Why nothing is known here; empty: something is.
    [[nodiscard]] virtual std::string why_not() = 0;
    /// What it says of the whole program: "accepted", "refused at instruction 5: R0 !read_ok".
    [[nodiscard]] virtual const std::string &verdict() const = 0;
    /// The instruction that it refuses; -1: none.
    [[nodiscard]] virtual int64_t refused_at() const = 0;
};

/// A register that is watched: where it changed last.
struct Watched {
    unsigned reg = 0;
    uint64_t step = 0;    ///< after which step it had its value; 0: from the start
    uint64_t before = 0;  ///< the value before
    size_t insn = 0;      ///< what changed it
    bool changed = false; ///< whether it ever did, as far as was seen
};

/// Steps through a run of one program, in both directions, and stops where it is told to.
class Stepper {
  public:
    /// The machine has been entered, with `stepping`. Borrowed, with its spec.
    Stepper(emulator::Machine &machine, const ObjectSpec &spec, std::vector<LabelPlace> labels = {});

    /// What is known beside it, from here on; nullptr: nothing.
    void set_knowledge(std::unique_ptr<Knowledge> knowledge) { knowledge_ = std::move(knowledge); }
    [[nodiscard]] Knowledge *knowledge() const { return knowledge_.get(); }

    [[nodiscard]] const emulator::Machine &machine() const { return *machine_; }
    [[nodiscard]] const ObjectSpec &spec() const { return *spec_; }
    /// Of the program that runs, as the source has it; empty: none stands there.
    [[nodiscard]] std::string_view label(size_t insn) const;
    /// One step. False: the program has ended, or can't go on (then fault() says why).
    bool forward();
    bool back();
    /// Until a breakpoint, a change of a watched register, the end, or `most` steps. Returns steps made.
    uint64_t run_on(uint64_t most = kMost);
    uint64_t run_back();
    /// Until so many steps have been made since the beginning. False: the program ends, can't go on, or that is further back than
    /// is remembered.
    bool go_to(uint64_t step);
    /// Until this function's next instruction: what it calls is run whole.
    void over();
    /// Until another source line.
    void next_line();

    /// "12": an instruction; "file.c:34" or ":34": a line; "name": a function. Errors: not_found.
    [[nodiscard]] Result<void> break_at(std::string_view where);
    void toggle(size_t insn);
    [[nodiscard]] bool breaks(size_t insn) const;
    /// Begins or ends watching a register, by its name: "r3". Errors: invalid_argument.
    [[nodiscard]] Result<void> watch(std::string_view what);
    [[nodiscard]] const std::vector<Watched> &watched() const { return watched_; }
    /// Whether the last step changed a watched register.
    [[nodiscard]] bool watched_changed() const;

    [[nodiscard]] const std::string &fault() const { return fault_; }
    /// What the last step changed, in either direction.
    [[nodiscard]] const std::vector<StepChange> &changes() const { return changes_; }
    /// What the last step printed.
    [[nodiscard]] std::string printed() const;

  private:
    static constexpr uint64_t kMost = 10'000'000;
    [[nodiscard]] emulator::Source line() const;
    void compare(const uint64_t (&before)[11]);
    void note_watched(size_t insn);

    emulator::Machine *machine_;
    const ObjectSpec *spec_;
    std::vector<LabelPlace> labels_;
    std::vector<size_t> breaks_; ///< in the program that the run began with
    std::string fault_;
    std::vector<StepChange> changes_;
    size_t printed_before_ = 0;
    std::unique_ptr<Knowledge> knowledge_;
    std::vector<Watched> watched_;
};

/// What a value points to, if that has a name: "memory+4", "map counts"; empty: it hasn't.
[[nodiscard]] std::string pointee_name(const emulator::Machine &machine, uint64_t value);
/// A value with the name of what it points to: "0x10000004 (memory+4)", "7", "-1".
[[nodiscard]] std::string value_text(const emulator::Machine &machine, uint64_t value);
/// "r3 = 7, [fp0-8] = 05 00 00 00"; empty: nothing changed. `known`: with what the verifier knows: "r3 = 7 {scalar(umax=9)}".
[[nodiscard]] std::string changes_text(const Stepper &stepper, bool known = false);
/// The instruction with the names of helpers, functions, maps and labels; "again: r0 += 1" where a label stands.
[[nodiscard]] std::string instruction_text(const Stepper &stepper, size_t insn);

/// What the lower part of the screen shows.
enum class Panel : uint8_t { memory, maps, calls };

struct ScreenOptions {
    int rows = 24, columns = 80;
    bool color = false;
    std::string message = {};    ///< wrapped
    size_t cursor = 0;           ///< the instruction that keys act on
    Panel panel = Panel::memory; ///< of the three
    bool known = true;           ///< with what the verifier knows
    size_t from = 0;             ///< of the panel: the first line that is shown
};
/// The whole screen: place, registers, stack, panel, code, keys. Never more rows than there are; the keys are always on it.
[[nodiscard]] std::string screen_text(const Stepper &stepper, const ScreenOptions &options);
/// What the keys do and what the screen means, for as many rows and columns; `from`: the first line.
[[nodiscard]] std::string help_screen_text(const ScreenOptions &options);

} // namespace rawbpf::inline v0::exec
