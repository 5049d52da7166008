// A verifier's walk in one form, whoever walked: ours, or the kernel, whose log tells it.
//
//      step 7: instruction 4, after step 6          r0 = map_value_or_null(...)
//      step 9: instruction 5, after step 7          splits: this side goes on
//      step 21: instruction 5, after step 7         the other side of the same branch
//
// Values are text, as the kernel writes them since 5.18. They are kept for the first visits of each instruction and for the way
// to the refusal; steps are kept all, 28 bytes each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/object/spec.h"
#include "runtime/verifier/verify.h"

namespace rawbpf::inline v0::explain {

using verifier::StepEnd;

/// What is known of one place after a step.
struct Known {
    int16_t place = 0; ///< 0 to 10: a register; below 0: a slot of the stack, from r10
    uint8_t frame = 0;
    std::string text; ///< "scalar(umax=255)"; empty: nothing any more
};

/// One instruction, looked at once.
struct TraceStep {
    uint32_t insn = 0, parent = 0;
    uint32_t before = 0; ///< pruned: the step that was here then; 0: not told
    uint32_t known = 0;  ///< the first of Trace::known
    uint16_t known_count = 0;
    uint8_t frame = 0;
    bool taken = false; ///< a branch: whether this side jumps
    StepEnd end = StepEnd::next;
};

/// All steps.
struct Trace {
    bool own = true;   ///< our walk; else the kernel's log
    bool whole = true; ///< false: the log's beginning is missing
    verifier::Outcome outcome = verifier::Outcome::undecided;
    int64_t insn = -1;  ///< refused, undecided: where; -1: the program as a whole
    uint32_t last = 0;  ///< the step that was refused; 0: none
    std::string reason; ///< in the kernel's words
    std::string log;    ///< the kernel's log, or ours in its form, with the way alone
    uint32_t processed = 0, states = 0;
    std::vector<TraceStep> steps{{}}; ///< from 1 on
    std::vector<Known> known;
    std::vector<uint32_t> visits; ///< of each instruction

    /// The steps that lead to this one, first to last, it included.
    [[nodiscard]] std::vector<uint32_t> path_to(uint32_t step) const;
    /// What is known of a place before a step of a path; empty: nothing, or it wasn't kept.
    [[nodiscard]] std::string_view value_before(const std::vector<uint32_t> &path, size_t at, int place, unsigned frame) const;
    /// The same after it.
    [[nodiscard]] std::string_view value_after(const std::vector<uint32_t> &path, size_t at, int place, unsigned frame) const;
};

/// Our walk.
[[nodiscard]] Trace trace_of(const ObjectSpec &spec, const ProgramSpec &program, const verifier::Verdict &verdict);
/// The kernel's log of levels 1 and 2, 5.10 to 7.x; lines that aren't of it are skipped. Errors: no instruction in it, or those
/// of another program.
[[nodiscard]] Result<Trace> trace_of_log(std::string_view log, const ProgramSpec &program);

} // namespace rawbpf::inline v0::explain
