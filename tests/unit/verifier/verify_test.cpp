// Whole programs: what the walk knows at each point, what is pruned, what kernels do differently, what isn't decided.
#include "runtime/verifier/print.h"
#include "runtime/verifier/rules.h"
#include "runtime/verifier/verify.h"
#include "tests/support/sanitized.h"
#include "tests/support/spec_from.h"
#include "tests/support/test.h"

using namespace rawbpf;
using verifier::Outcome;
using verifier::Verdict;

namespace {

Verdict judge(std::string_view text, KernelVersion kernel = verifier::kModelled, uint32_t most_steps = 1'000'000) {
    verifier::VerifyOptions options;
    options.kernel = kernel;
    options.most_steps = most_steps;
    return verifier::verify(test::spec_from(text), 0, options);
}

// The value that a register has after the last step at an instruction, as the log writes it.
std::string known_after(std::string_view text, uint32_t insn, int reg) {
    const ObjectSpec spec = test::spec_from(text);
    const Verdict verdict = verifier::verify(spec, 0);
    std::string out = "not there";
    for (const verifier::Step &step : verdict.walk.steps)
        for (uint32_t n = 0; step.insn == insn && n < step.change_count; ++n) {
            const verifier::Change *change = verdict.walk.change(step.changes + n);
            if (change && change->place == reg) out = verifier::value_text(change->value, spec);
        }
    return out;
}

constexpr std::string_view kLookUp =
    ".map m array key 4 value 16 entries 4\n.program p \"socket\"\nr6 = *(u32 *)(r1 + 0)\n*(u32 *)(r10 - 4) = r6\n"
    "r1 = m ll\nr2 = r10\nr2 += -4\ncall bpf_map_lookup_elem\n"; // instructions 0 to 6
std::string after_look_up(std::string_view rest) { return std::string(kLookUp) + std::string(rest); }

} // namespace

TEST_CASE("verify: what is known of a register after each instruction") {
    CHECK(known_after("r0 = *(u8 *)(r1 + 0)\nr0 &= 60\nexit\n", 0, 0) ==
          "scalar(smin=smin32=0,smax=umax=smax32=umax32=255,var_off=(0x0; 0xff))");
    CHECK(known_after("r0 = *(u8 *)(r1 + 0)\nr0 &= 60\nexit\n", 1, 0) ==
          "scalar(smin=smin32=0,smax=umax=smax32=umax32=60,var_off=(0x0; 0x3c))");
    CHECK(known_after("r0 = 6\nr0 *= 7\nexit\n", 1, 0) == "42");
    CHECK(known_after("r2 = r10\nr2 += -16\nr0 = 0\nexit\n", 1, 2) == "fp-16");
    CHECK(known_after("r6 = r1\n*(u64 *)(r10 - 8) = r6\nr3 = *(u64 *)(r10 - 8)\nr0 = 0\nexit\n", 2, 3) == "ctx()");
    CHECK(known_after(after_look_up("if r0 == 0 goto +0\nr0 = 0\nexit\n"), 6, 0) == "map_value_or_null(id=2,map=m,ks=4,vs=16)");
}

TEST_CASE("verify: a refusal names the instruction, says why in the kernel's words, and has the path that leads there") {
    const ObjectSpec spec = test::spec_from(after_look_up("r0 = *(u64 *)(r0 + 0)\nexit\n"));
    const Verdict verdict = verifier::verify(spec, 0);
    CHECK(verdict.outcome == Outcome::refused);
    CHECK(verdict.insn == 7);
    CHECK(verdict.reason == "R0 invalid mem access 'map_value_or_null'");
    CHECK(verdict.walk.path_to(verdict.step).size() == 7); // ld_imm64 is one of them
    const std::string log = verifier::log_text(spec, spec.programs[0], verdict);
    CHECK(log.find("R0=map_value_or_null(id=2,map=m,ks=4,vs=16)") != std::string::npos);
    CHECK(log.find("\nR0 invalid mem access 'map_value_or_null'\nprocessed 7 insns") != std::string::npos);
}

TEST_CASE("verify: of bounds, what fits is taken and what is one too far isn't") {
    for (const auto &[limit, good] : {std::pair{8, true}, {9, false}}) {
        const Verdict verdict = judge(after_look_up("if r0 == 0 goto out\nif r6 > " + std::to_string(limit) +
                                                    " goto out\nr0 += r6\nr0 = *(u64 *)(r0 + 0)\nout: r0 = 0\nexit\n"));
        CHECK((verdict.outcome == Outcome::accepted) == good);
    }
    // Signed: a negative index has to be excluded as well.
    CHECK(judge(after_look_up(
                    "if r0 == 0 goto out\nr6 -= 3\nif r6 s> 8 goto out\nr0 += r6\nr0 = *(u64 *)(r0 + 0)\nout: r0 = 0\nexit\n"))
              .outcome == Outcome::refused);
}

TEST_CASE("verify: atomic accesses have to be aligned, others needn't be") {
    CHECK(judge(after_look_up("if r0 == 0 goto out\nr1 = *(u32 *)(r0 + 2)\nout: r0 = 0\nexit\n")).outcome == Outcome::accepted);
    const Verdict odd = judge(after_look_up("if r0 == 0 goto out\nr1 = 1\nlock *(u32 *)(r0 + 2) += r1\nout: r0 = 0\nexit\n"));
    CHECK(odd.reason == "misaligned value access off 0+0+2 size 4");
}

TEST_CASE("verify: instructions that no path gets to have to exist all the same") {
    ObjectSpec spec = test::spec_from("r0 = 0\nif r0 == 0 goto +1\nr0 = *(u32 *)(r1 + 0)\nexit\n");
    CHECK(verifier::verify(spec, 0).outcome == Outcome::accepted);
    spec.programs[0].insns[2].imm = 1;
    CHECK(verifier::verify(spec, 0).reason == "BPF_LDX uses reserved fields");
    spec.programs[0].insns[2].code = 0x8f;
    CHECK(verifier::verify(spec, 0).reason == "unknown opcode 8f");
}

TEST_CASE("verify: a path that comes to a point where as much was known is pruned") {
    std::string text = "r6 = *(u32 *)(r1 + 0)\nr7 = 0\n";
    for (int n = 0; n < 30; ++n)
        text += "if r6 & " + std::to_string(1 << n) + " goto +1\nr7 += 1\nr8 = r7\nr8 += 1\nr8 *= 3\nr9 = r8\n";
    const Verdict verdict = judge(text + "r0 = 0\nexit\n"); // 2^30 paths
    CHECK(verdict.outcome == Outcome::accepted);
    CHECK(verdict.processed < 5000);
    size_t pruned = 0;
    for (const verifier::Step &step : verdict.walk.steps) pruned += step.end == verifier::StepEnd::pruned;
    CHECK(pruned > 0);
    // Where the number chooses a place in memory, paths differ.
    const Verdict precise = judge(after_look_up(
        "if r0 == 0 goto out\nr7 = 0\nif r6 & 1 goto +1\nr7 = 8\nr1 = 0\nr2 = 0\nr3 = 0\nr4 = 0\nr5 = 0\nif r6 & 2 goto +1\n"
        "r7 += 1\nr0 += r7\nr0 = *(u64 *)(r0 + 0)\nout: r0 = 0\nexit\n"));
    CHECK(precise.outcome == Outcome::refused); // 9 + 8 is beyond 16
}

TEST_CASE("verify: loops that end, that never do, and that take too long") {
    const Verdict ends = judge("r1 = 0\nl: r1 += 1\nif r1 < 1000 goto l\nr0 = 0\nexit\n");
    CHECK(ends.outcome == Outcome::accepted);
    CHECK(ends.processed > 2000);
    CHECK(ends.states < 400); // rounds aren't all kept
    CHECK(judge("l: r1 = 0\ngoto l\n").reason == "infinite loop detected at insn 0");
    if (!test::kSanitized) // a million instructions: half a minute there
        CHECK(
            judge("r1 = 0\nl: r1 += 1\nif r1 < 10000000 goto l\nr0 = 0\nexit\n").reason.starts_with("BPF program is too large"));
    const Verdict cut = judge("r1 = 0\nl: r1 += 1\nif r1 < 10000000 goto l\nr0 = 0\nexit\n", verifier::kModelled, 1000);
    CHECK(cut.outcome == Outcome::undecided);
    CHECK(cut.reason == "more than 1000 instructions");
}

TEST_CASE("verify: kernels differ by the rows of rules.h") {
    struct Case {
        verifier::Rule rule;
        std::string text;
    };
    const std::string stack = ".program p \"kprobe\"\n*(u64 *)(r10 - 304) = 1\ncall f\nr0 = 0\nexit\n.function f\n*(u64 *)(r10 - "
                              "304) = 1\nr0 = 0\nexit\n";
    const Case cases[] = {
        {verifier::Rule::variable_stack,
         "*(u64 *)(r10 - 8) = 0\nr3 = *(u32 *)(r1 + 0)\nr3 &= 7\nr2 = r10\nr2 += -8\nr2 += r3\nr0 = *(u8 *)(r2 + 0)\nexit\n"},
        {verifier::Rule::unset_stack, "r0 = *(u64 *)(r10 - 8)\nexit\n"},
        {verifier::Rule::sums_linked,
         after_look_up(
             "if r0 == 0 goto out\nr7 = r6\nr7 += 4\nif r6 > 8 goto out\nr0 += r7\nr0 = *(u32 *)(r0 + 0)\nout: r0 = 0\nexit\n")},
        {verifier::Rule::private_stack, stack},
        {verifier::Rule::small_spills,
         after_look_up("if r0 == 0 goto out\nr6 &= 7\n*(u32 *)(r10 - 16) = r6\nr7 = *(u32 *)(r10 - 16)\n"
                       "r0 += r7\nr0 = *(u8 *)(r0 + 0)\nout: r0 = 0\nexit\n")},
        {verifier::Rule::narrow_fills,
         after_look_up("if r0 == 0 goto out\nr6 &= 7\n*(u64 *)(r10 - 16) = r6\nr7 = *(u32 *)(r10 - 16)\n"
                       "r0 += r7\nr0 = *(u8 *)(r0 + 0)\nout: r0 = 0\nexit\n")},
        {verifier::Rule::any_operand,
         after_look_up("if r0 == 0 goto out\nr6 &= 3\nr7 = r0\nr7 = *(u64 *)(r7 + 0)\nr7 &= 3\nr6 |= r7\n"
                       "r0 += r6\nr0 = *(u8 *)(r0 + 0)\nout: r0 = 0\nexit\n")},
        {verifier::Rule::bits_decide, after_look_up("r6 &= 6\nif r6 == 5 goto bad\nr0 = 0\nexit\nbad: r0 = r9\nexit\n")},
        {verifier::Rule::with_itself, after_look_up("if r6 < r6 goto bad\nif w6 s>= w6 goto out\nr0 = r9\nexit\n"
                                                    "out: r0 = 0\nexit\nbad: r0 = r9\nexit\n")},
        {verifier::Rule::known_key,
         ".map m array key 4 value 16 entries 4\n*(u32 *)(r10 - 8) = 3\nr1 = m ll\nr2 = r10\nr2 += -8\ncall bpf_map_lookup_elem\n"
         "r0 = *(u64 *)(r0 + 0)\nexit\n"},
        {verifier::Rule::negation,
         after_look_up("if r0 == 0 goto out\nr6 |= -8\nr6 = -r6\nr0 += r6\nr0 = *(u64 *)(r0 + 0)\nout: r0 = 0\nexit\n")},
    };
    for (const Case &c : cases) {
        const verifier::RuleRow &row = verifier::kRules[static_cast<size_t>(c.rule)];
        INFO(row.name);
        const KernelVersion since = row.since;
        const KernelVersion before =
            since.minor ? KernelVersion{since.major, static_cast<uint8_t>(since.minor - 1)} : KernelVersion{5, 19};
        const Verdict now = judge(c.text, since), then = judge(c.text, before);
        INFO(now.reason);
        CHECK(now.outcome == Outcome::accepted);
        CHECK(then.outcome == Outcome::refused);
    }
}

TEST_CASE("verify: nothing is known after a division and after a shift by what isn't known") {
    // Not even that the upper half is 0.
    for (const char *operation : {"w6 /= 3", "w6 /= w7", "w6 %= w7", "w6 s/= 3", "w6 <<= w7", "w6 >>= w7", "w6 s>>= w7",
                                  "r6 <<= r7", "r6 >>= r7", "w8 = 40\nw6 <<= w8"}) {
        const Verdict verdict = judge(after_look_up("if r0 == 0 goto out\nr6 &= 7\nr7 = *(u64 *)(r0 + 0)\nr7 &= 3\n" +
                                                    std::string(operation) + "\nr0 += r6\nout: r0 = 0\nexit\n"));
        INFO(operation);
        CHECK(verdict.reason == "math between map_value pointer and register with unbounded min value is not allowed");
    }
    CHECK(judge(after_look_up("if r0 == 0 goto out\nw6 = -w6\nr0 += r6\nout: r0 = 0\nexit\n"), {6, 16}).reason ==
          "math between map_value pointer and register with unbounded min value is not allowed");
    // Before 6.10 it is, after a division by a constant.
    const std::string divided = after_look_up("r7 = r10\nw6 /= 3\nr7 += r6\nr0 = 0\nexit\n");
    CHECK(judge(divided, {6, 1}).reason == "");
    CHECK(judge(divided, {6, 10}).reason == "math between fp pointer and register with unbounded min value is not allowed");
}

TEST_CASE("verify: which programs may call a helper depends on the kernel") {
    const std::string text = ".program p \"xdp\"\nr1 = r10\nr1 += -16\nr2 = 16\ncall bpf_get_current_comm\nr0 = 2\nexit\n";
    CHECK(judge(text, {6, 18}).outcome == Outcome::accepted);
    CHECK(judge(text, {6, 12}).reason == "program of this type cannot use helper bpf_get_current_comm#16");
    CHECK(judge(text, {6, 1}).reason == "unknown func bpf_get_current_comm#16");
    const Verdict between = judge(text, {6, 14}); // nobody asked that one
    CHECK(between.outcome == Outcome::undecided);
    CHECK(between.reason == "whether 6.14 lets programs of this type call bpf_get_current_comm");
    // Reserved fields where no path comes.
    const std::string unreached = "r0 = 0\nif r0 == 0 goto out\n.8byte 0x00000000000500bf\nout: exit\n";
    CHECK(judge(unreached).outcome == Outcome::accepted);
    CHECK(judge(unreached, {7, 1}).reason == "BPF_MOV uses reserved fields");
    // *(u64 *)(r10 - 8) atomically, with an operation that came in 5.12, where no path comes.
    const std::string atomic = "r0 = 0\nif r0 == 0 goto out\n.8byte 0x00000001fff80adb\nout: exit\n";
    CHECK(judge(atomic, {5, 10}).reason == "BPF_STX uses reserved fields");
    CHECK(judge(atomic, {5, 15}).outcome == Outcome::accepted);
    // Opcodes that an older kernel doesn't have, reached or not.
    CHECK(judge("*(u64 *)(r10 - 8) = 0\nr0 = *(s8 *)(r10 - 8)\nexit\n", {6, 1}).reason == "BPF_LDX uses reserved fields");
    CHECK(judge("r0 = 0\nr0 = bswap64 r0\nexit\n", {6, 1}).reason == "unknown opcode d7");
    CHECK(judge("r0 = 0\nr0 = (s8)r0\nexit\n", {6, 1}).reason == "BPF_MOV uses reserved fields");
    CHECK(judge("r0 = 1\nr0 s/= 3\nexit\n", {6, 1}).reason == "BPF_ALU uses reserved fields");
    CHECK(judge("r0 = 0\n.8byte 0x00000000ffff0007\nexit\n").reason == "BPF_ALU uses reserved fields");
}

TEST_CASE("verify: what the kernel forgets on the way") {
    // A test of bits that isn't true drops the ranges: 126, not 10.
    const std::string bits = after_look_up(
        "if r0 == 0 goto out\nif r6 > 10 goto out\nif r6 & 1 goto out\nr0 += r6\nr0 = *(u32 *)(r0 + 0)\nout: r0 = 0\nexit\n");
    CHECK(judge(bits).outcome == Outcome::refused);
    CHECK(judge(bits, {6, 1}).outcome == Outcome::refused);
    // Before 6.8: the lower half, by a comparison of all 64 bits; equality by the range.
    const std::string halves = after_look_up("if r0 == 0 goto out\nr6 = *(u64 *)(r0 + 0)\nif w6 > 10 goto out\nif r6 == 5 goto "
                                             "out\nw6 = w6\nr0 += r6\nr0 = *(u32 *)(r0 + 0)\nout: r0 = "
                                             "0\nexit\n");
    CHECK(judge(halves).outcome == Outcome::accepted);
    CHECK(judge(halves, {6, 1}).outcome == Outcome::refused);
    const std::string equal = after_look_up("r6 &= 7\nif r6 == 9 goto bad\nr0 = 0\nexit\nbad: r0 = r9\nexit\n");
    CHECK(judge(equal).outcome == Outcome::accepted);
    CHECK(judge(equal, {6, 1}).reason == "R9 !read_ok");
    // A comparison of a register with itself, where no run goes.
    const std::string itself = after_look_up("if r0 == 0 goto out\nr6 &= 1\nif r6 < r6 goto bad\nr0 = 0\nexit\nbad: r0 += r6\nr0 "
                                             "= *(u8 *)(r0 + 15)\nout: r0 = 0\nexit\n");
    CHECK(judge(itself, {6, 19}).outcome == Outcome::accepted);
    // A place below the value, and an offset that leads back.
    const std::string below = after_look_up("if r0 == 0 goto out\nr0 += -4\nr0 = *(u32 *)(r0 + 8)\nout: r0 = 0\nexit\n");
    CHECK(judge(below).outcome == Outcome::accepted);
    CHECK(judge(below, {7, 2}).reason == "R0 unbounded memory access, make sure to bounds check any such access");
    // ld_imm64 of a kind that doesn't exist, where no path comes.
    CHECK(judge("r0 = 0\nif r0 == 0 goto out\n.8byte 0x0000000000007018\n.8byte 0\nout: exit\n").reason ==
          "unrecognized bpf_ld_imm64 insn");
    CHECK(judge("r0 = 0\nif r0 == 0 goto out\n.8byte 0x0000000000000bb7\nout: exit\n", {7, 2}).reason == "R11 is invalid");
}

TEST_CASE("verify: where an instruction leads is said by the fields that the kernel looks at") {
    CHECK(judge(".8byte 0x0000000000040095\nr0 = 0\nexit\n").reason == "unreachable insn 1"); // exit with an offset
    CHECK(judge("r0 = 0\ngoto out\n.8byte 0xffffffff00000106\nout: exit\n").reason ==
          "unreachable insn 2"); // gotol with a register
    CHECK(judge("r0 = 0\nif r0 == 0 goto out\n.8byte 0x0000000100021085\nout: exit\nr0 = 1\nexit\n").outcome ==
          Outcome::accepted); // a call with an offset, which no path comes to
}

TEST_CASE("verify: a callback that may be called again gets further than one that may not") {
    // Round one sets the first, round two the second: only then does the division come.
    const std::string text =
        ".program p \"tc\"\n*(u64 *)(r10 - 8) = 7\n*(u64 *)(r10 - 16) = 7\n*(u64 *)(r10 - 24) = 7\nr1 = 2\nr2 = f ll\n"
        "r3 = r10\nr3 += -24\nr4 = 0\ncall bpf_loop\nr1 = *(u64 *)(r10 - 24)\nif r1 != 42 goto out\nr1 = *(u64 *)(r10 - 16)\n"
        "if r1 != 42 goto out\nr1 = *(u64 *)(r10 - 8)\nif r1 != 7 goto out\n.8byte 0x137\nout: r0 = 0\nexit\n"
        ".function f\nr9 = r2\ncall bpf_get_prandom_u32\nr1 = r0\nr2 = 42\nr0 = 0\nif r1 == 1 goto a\nif r1 == 2 goto b\n"
        "*(u64 *)(r9 + 16) = r2\nexit\na: *(u64 *)(r9 + 0) = r2\nexit\nb: *(u64 *)(r9 + 8) = r2\nexit\n";
    CHECK(judge(text).reason == "div by zero");
}

TEST_CASE("verify: what isn't modelled is not decided, and its name is said") {
    CHECK(judge(".program p \"freplace/f\"\nr0 = 0\nexit\n").reason == "programs of type EXT");
    const std::string function = "r1 = 1\ncall kfunc bpf_task_from_pid\nr0 = 0\nexit\n";
    const Verdict undecided = judge(function);
    CHECK(undecided.outcome == Outcome::undecided);
    CHECK(undecided.reason == "types of the kernel, which aren't at hand");
    // But a mistake before it is one.
    CHECK(judge("r0 = r5\n" + function).reason == "R5 !read_ok");
}
