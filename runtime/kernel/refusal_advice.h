// Explains a refusal for the given program: numbers, other places, a remedy. Part of the loader.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/btf/btf.h"
#include "runtime/kernel/refusal.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {

/// Where the instructions of a program stand in its source.
class ProgramPlaces {
  public:
    ProgramPlaces(const ObjectSpec &spec, const ProgramSpec &program);
    [[nodiscard]] ProgramPlace at(uint32_t insn, std::string_view instruction = {}) const;
    /// The line, from that of `insn` on within its function, that has `word` in its text; that of `insn` where none has.
    [[nodiscard]] ProgramPlace mentioning(uint32_t insn, std::string_view word) const;
    /// The name of the function that the instruction is in; empty: unknown.
    [[nodiscard]] std::string_view function(uint32_t insn) const;

  private:
    [[nodiscard]] ProgramPlace at(const LineInfo &line) const;
    const ProgramSpec &program_;
    std::optional<btf::Btf> types_;
};

/// What surrounds the program on this machine, as far as it matters for an advice.
struct RefusalContext {
    std::string_view license;   ///< the object's; empty: it has none
    std::string_view lockdown;  ///< "none", "integrity", "confidentiality"; empty: unknown
    std::string_view registers; ///< all that the log says of them: "R1=ctx() R10=fp0"
    bool log_is_cut = false;    ///< it has the end of the way alone
};

/// Adds notes and, where more can be said than the table of hints says, replaces the hint. `refusal` has reason, place and
/// registers already. Moves the place where the verifier named none. PURE.
void advise(const ProgramSpec &program, const ProgramPlaces &places, std::string_view log, const RefusalContext &context,
            Refusal &refusal);

} // namespace rawbpf::inline v0
