// The differences between kernel versions that a verdict depends on: one row for each difference. PURE.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "asm/opcodes.h"
#include "runtime/verifier/bounds.h"

namespace rawbpf::inline v0::verifier {

/// One difference; `since`: the first kernel that has it.
struct RuleRow {
    std::string_view name;
    KernelVersion since;
    std::string_view change; ///< the subject of the commit, or of the series, that made it
    std::string_view effect; ///< what is accepted since then
};

// clang-format off
#define RAWBPF_VERIFIER_RULES(X) \
    X(small_spills, 5, 16, "bpf: Support <8-byte scalar spill and refill", "a number of fewer than 8 bytes is known again when it is read back from the stack") \
    X(variable_stack, 5, 12, "bpf: Allow variable-offset stack access", "reads and writes of the stack at an offset that isn't known") \
    X(unset_stack, 6, 1, "bpf: Allow reads from uninit stack", "reads of stack that nothing was written to, with CAP_PERFMON; 6.3, and 6.1's later releases") \
    X(halves, 6, 8, "BPF register bounds logic and testing improvements (series)", "ranges of 64 bits that follow from those of 32") \
    X(shared_refine, 6, 8, "BPF register bounds range vs range support (series)", "both sides of a comparison learn from it, and disjoint ranges decide it") \
    X(any_operand, 6, 10, "bpf/verifier: range computation improvements (series)", "ranges of products, | and ^ with an operand that isn't a constant") \
    X(sums_linked, 6, 11, "bpf: Track delta between linked registers", "a comparison of r1 says something of r1 + 8 in another register") \
    X(trust, 6, 4, "bpf: Refactor RCU enforcement in the verifier.", "a pointer read from a trusted object isn't trusted itself") \
    X(open_callbacks, 6, 7, "bpf: verify callbacks as if they are called unknown number of times", "callbacks are looked at until nothing new is known") \
    X(null_tracepoints, 6, 13, "bpf: Augment raw_tp arguments with PTR_MAYBE_NULL", "arguments of some tracepoints have to be compared with 0") \
    X(global_moves, 6, 13, "bpf: track changes_pkt_data property for global functions (series)", "pointers into the packet are lost in calls of functions that may move it, and in tail calls") \
    X(private_stack, 6, 13, "bpf: Support private stack for bpf progs (series)", "functions of tracing programs that need more than 512 bytes together") \
    X(known_key, 6, 14, "bpf: verifier: Support eliding map lookup nullchecks", "a lookup in an array by a known index below its size isn't NULL") \
    X(narrow_fills, 6, 9, "bpf: Preserve boundaries and track scalars on narrowing fill", "a part of a number that was written to the stack is known when it is read back") \
    X(products, 6, 14, "bpf, verifier: Improve precision of BPF_MUL", "ranges of products of signed numbers") \
    X(negation, 6, 17, "bpf: Add range tracking for BPF_NEG", "the range of -r1") \
    X(wrapped_sums, 6, 17, "bpf, verifier: Improve precision for BPF_ADD and BPF_SUB", "the range of a sum that surely wraps around") \
    X(across_sign, 6, 17, "bpf: Improve bounds when s64 crosses sign boundary", "signed ranges on both sides of zero that learn from the unsigned one") \
    X(swapped_bits, 6, 18, "bpf: Add bitwise tracking for BPF_END", "the bits of le16 to bswap64; 7.0, and 6.18's later releases") \
    X(across_sign_half, 6, 18, "bpf: Fix u32/s32 bounds when ranges cross min/max boundary", "the same of 32 bits") \
    X(bits_decide, 6, 18, "bpf: Use tnums for JEQ/JNE is_branch_taken logic", "what stands behind `if r1 == 5` where r1 is even; 6.12's later releases, too") \
    X(with_itself, 6, 19, "bpf: Skip bounds adjustment for conditional jumps on same scalar register", "what stands behind `if r1 < r1`, which no run takes") \
    X(nested_rcu, 6, 19, "bpf: support nested rcu critical sections", "an RCU section inside of another one") \
    X(void_functions, 7, 0, "bpf: Support void global functions", "global functions that return nothing") \
    X(one_offset, 7, 1, "bpf: fixed and variable offsets of pointers in one (measured in 7.2)", "nothing more: a pointer below its object may not be used with an offset that leads back") \
    X(fields_first, 7, 1, "bpf: Move checks for reserved fields out of the main pass", "nothing more: reserved fields are looked at where no path comes, too")
// clang-format on

/// The rows' numbers.
enum class Rule : uint8_t {
#define RAWBPF_RULE(name, ...) name,
    RAWBPF_VERIFIER_RULES(RAWBPF_RULE)
#undef RAWBPF_RULE
};

/// The table.
inline constexpr RuleRow kRules[] = {
#define RAWBPF_RULE(name, major, minor, change, effect) {#name, {major, minor}, change, effect},
    RAWBPF_VERIFIER_RULES(RAWBPF_RULE)
#undef RAWBPF_RULE
};

/// Whether a kernel has what another one brought.
[[nodiscard]] constexpr bool at_least(KernelVersion kernel, KernelVersion since) {
    return kernel.major != since.major ? kernel.major > since.major : kernel.minor >= since.minor;
}
/// Whether a rule holds in that kernel.
[[nodiscard]] constexpr bool holds(Rule rule, KernelVersion kernel) {
    return at_least(kernel, kRules[static_cast<size_t>(rule)].since);
}

/// How that kernel deduces.
[[nodiscard]] constexpr Deductions deductions_of(KernelVersion kernel) {
    return {.halves = holds(Rule::halves, kernel),
            .across_sign = holds(Rule::across_sign, kernel),
            .across_sign_half = holds(Rule::across_sign_half, kernel),
            .wrapped_sums = holds(Rule::wrapped_sums, kernel),
            .products = holds(Rule::products, kernel),
            .bits_decide = holds(Rule::bits_decide, kernel),
            .any_operand = holds(Rule::any_operand, kernel),
            .shared_refine = holds(Rule::shared_refine, kernel)};
}

} // namespace rawbpf::inline v0::verifier
