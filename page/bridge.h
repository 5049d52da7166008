// The page's requests to the engine; the answers are JSON text. The bridge has no logic: it calls the same functions of the
// assembler, the emulator, the verifier and the lessons' checker as the commands asm, step, verify and lab check.
//
//      page.js --text, numbers--> exports.cpp --> Bridge --> asm/, programs/exec, programs/explain, programs/lab
//              <----- JSON ------
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "asm/assemble.h"
#include "programs/exec/stepper.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::page {

/// One program that somebody is writing, and a run of it.
class Bridge {
  public:
    Bridge();
    ~Bridge();

    /// Assembles a text; a name that ends in ".hex" says that it is hex digits, as in the lessons. The run ends.
    /// {"mistakes":[{"line","column","message","hint"}],"warnings":[...],"programs":[{"name","section","packet",
    /// "instructions":[{"at","line","text","name","undefined","bytes","fields":[...]}]}]}
    [[nodiscard]] std::string assemble(std::string_view text, std::string_view name);
    /// What the verifier says of each program: {"verdicts":[{... the fields of `rawbpf verify --json`,
    /// "line","column","report"}]}
    [[nodiscard]] std::string verify() const;
    /// Begins a run: `memory` in hex. The state, or {"error":...}.
    [[nodiscard]] std::string enter(size_t program, std::string_view memory, bool packet);
    /// Once more with the same input: maps keep what they have. The state, or {"error":...} where nothing ran.
    [[nodiscard]] std::string again();
    /// "forward", "back", "run", "home", or "step" to go to step `n`. The state, or {"error":...} where nothing runs.
    [[nodiscard]] std::string move(std::string_view how, uint64_t n = 0);
    /// Carries a lesson's check (the text of its check.exp) out: {"passed","summary","findings":[{"text","line","hint"}]}, or
    /// {"error":...}.
    [[nodiscard]] static std::string check(uint32_t number, std::string_view lesson, std::string_view file, std::string_view text,
                                           std::string_view check);

    /// Carries out an experiment in the emulator: {"text","failed","expectations"}, or {"error","hint"}.
    [[nodiscard]] static std::string experiment(std::string_view text, std::string_view name);

  private:
    [[nodiscard]] std::string state() const;
    void end_run();
    [[nodiscard]] std::string begin();

    bool ready_ = false; ///< spec_ is of the last text
    ObjectSpec spec_;
    std::vector<LabelPlace> labels_;
    std::vector<std::byte> input_;  ///< what was given
    std::vector<std::byte> memory_; ///< of the run: its program may change it
    size_t program_ = 0;
    bool packet_ = false;
    std::unique_ptr<emulator::Machine> machine_; ///< of spec_ and memory_
    std::unique_ptr<exec::Stepper> stepper_;     ///< of machine_
};

} // namespace rawbpf::inline v0::page
