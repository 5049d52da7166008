// SPDX-License-Identifier: MIT
// Reads what the verifier says when it refuses a program.
//
//      ; return p->pid; @ hello.bpf.c:12                   source line of the next instruction
//      5: (61) r0 = *(u32 *)(r1 +0)       ; R1=scalar()    the instruction, the registers after it
//      R1 invalid mem access 'scalar'                      why
//      processed 6 insns (limit 1000000) ...               sums
//
// Linux 7.3 adds a report of its own below that: verifier_report.cpp. PURE: text in, value out. Any text is accepted; what it
// doesn't contain stays empty.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// What a verifier's log says about a refusal.
struct VerifierReport {
    int insn = -1;           ///< the instruction that it stopped at, counted in 8-byte slots as the verifier does; -1: unknown
    std::string instruction; ///< "r0 = *(u32 *)(r1 +0)"
    std::string source;      ///< the source line, where the program came with line information
    std::string file;        ///< "hello.bpf.c", since 6.8
    uint32_t line = 0;       ///< 0: unknown
    std::string registers;   ///< what it knew of the registers then: "R1=scalar() R10=fp0"
    std::string reason;      ///< its own words: "R1 invalid mem access 'scalar'"
    std::string hint;        ///< what that means and what helps; empty where we don't know either
    bool structured = false; ///< the report of 7.3 was there
    /// From it, the steps that led there, first to last: "prog.bpf.c:12: branch: took the true branch of this conditional".
    std::vector<std::string> path;

    /// The reason says that it saw the call that CO-RE puts where a relocation failed.
    [[nodiscard]] bool poisoned() const;
    /// Of `registers`, those that the instruction or the reason names; all where none is named.
    [[nodiscard]] std::string named_registers() const;
};

/// Never fails: what isn't in the log stays empty.
[[nodiscard]] VerifierReport read_verifier_log(std::string_view log);

/// What a reason in the verifier's words means: from a table. Empty when it isn't in there.
[[nodiscard]] std::string_view verifier_hint(std::string_view reason);
/// What sort of mistake it is, as Refusal::kind: from the same table. "other" when it isn't in there.
[[nodiscard]] std::string_view verifier_kind(std::string_view reason);

} // namespace rawbpf::inline v0
