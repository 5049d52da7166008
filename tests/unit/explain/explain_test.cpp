// From a refusal back to where the bad value came from: on our own walk, and on the kernel's log of the same program.
#include <string>
#include <string_view>
#include <utility>

#include "programs/explain/explanation.h"
#include "programs/explain/summary.h"
#include "tests/support/mend.h"
#include "tests/support/spec_from.h"
#include "tests/support/test.h"

using namespace rawbpf;
using explain::Cause;
using explain::Explanation;
using verifier::Outcome;

namespace {

Explanation own(const ObjectSpec &spec) {
    return explain::explain(spec, spec.programs[0], explain::trace_of(spec, spec.programs[0], verifier::verify(spec, 0)),
                            nullptr);
}

std::string chain_text(const Explanation &e) {
    std::string out;
    for (const Cause &cause : e.chain.causes) out += std::to_string(cause.insn) + ": " + cause.text + "\n";
    return out + e.chain.conclusion;
}

constexpr std::string_view kNull = ".map m hash key 4 value 16 entries 4\n.program p \"socket\"\n*(u32 *)(r10 - 4) = 1\n"
                                   "r1 = m ll\nr2 = r10\nr2 += -4\ncall bpf_map_lookup_elem\n" // instructions 0 to 5
                                   "r7 = r0\n*(u64 *)(r10 - 16) = r7\nr8 = 3\nif r8 == 4 goto +1\nr9 = *(u64 *)(r10 - 16)\n*(u64 "
                                   "*)(r9 + 0) = r8\nr0 = 0\nexit\n";

} // namespace

TEST_CASE("explain: a pointer that may be NULL is followed through copies and the stack to the call that gave it") {
    const ObjectSpec spec = test::spec_from(kNull);
    const Explanation e = own(spec);
    REQUIRE(e.trace.outcome == Outcome::refused);
    CHECK(chain_text(e) == "5: r0 is what bpf_map_lookup_elem() returned: a pointer to a value of map m, or NULL\n"
                           "6: r7 = r0: a copy: a pointer to a value of map m, or NULL\n"
                           "7: r7 is kept on the stack, at r10 - 16: a pointer to a value of map m, or NULL\n"
                           "10: r9 is read back from the stack, at r10 - 16: a pointer to a value of map m, or NULL\n"
                           "11: refused: *(u64 *)(r9 + 0) = r8\n"
                           "r9 was never compared with 0 on this path");
    const std::string text = explain::short_text(e);
    CHECK(text.find("cause: ") == 0);
    CHECK(text.find("\npath: 11 instructions, 1 branch: ") != std::string::npos);
    CHECK(text.find("\nremedy: in front of ") != std::string::npos);
}

TEST_CASE("explain: what a remedy proposes makes the program good") {
    for (std::string_view text :
         {kNull,
          std::string_view(".map m array key 4 value 16 entries 4\n.program p \"socket\"\nr6 = *(u32 *)(r1 + 0)\n*(u32 *)(r10 - "
                           "4) = 1\nr1 = m ll\nr2 = r10\nr2 += -4\n"
                           "call bpf_map_lookup_elem\nif r0 == 0 goto out\nr0 += r6\nr1 = *(u8 *)(r0 + 0)\nout:\nr0 = 0\nexit\n"),
          std::string_view(".program p \"xdp\"\nr2 = *(u32 *)(r1 + 0)\nr3 = *(u32 *)(r1 + 4)\nr4 = r2\nr4 += 12\nif r4 > r3 goto "
                           "out\nr5 = *(u16 *)(r2 + 12)\nout:\nr0 = 0\nexit\n"),
          std::string_view(".program p \"socket\"\nr1 = 1\nr0 = r7\nexit\n"),
          std::string_view(".program p \"socket\"\nr1 = 1\nexit\n"), std::string_view(".program p \"socket\"\nr0 = 1\n"),
          std::string_view(".map m array key 4 value 16 entries 4\n.program p \"socket\"\nr1 = m ll\nr2 = r10\ncall "
                           "bpf_map_lookup_elem\nr0 = 0\nexit\n"),
          std::string_view(".license \"Proprietary\"\n.program p \"tp/sched/sched_switch\"\nr1 = r10\nr1 += -16\nr2 = 16\nr3 "
                           "= 0\ncall bpf_probe_read_kernel\nr0 = 0\nexit\n")}) {
        const ObjectSpec spec = test::spec_from(text);
        const Explanation e = own(spec);
        INFO(text, chain_text(e), e.trace.reason);
        REQUIRE(e.trace.outcome == Outcome::refused);
        REQUIRE(e.remedy.how != explain::Remedy::How::none);
        const ObjectSpec better = test::spec_from(test::mended(text, e.remedy));
        const verifier::Verdict verdict = verifier::verify(better, 0);
        INFO(e.remedy.text, verdict.reason);
        CHECK(verdict.outcome == Outcome::accepted);
    }
}

TEST_CASE("explain: no value is proposed for a register that has to be an address") {
    for (std::string_view text : {std::string_view(".program p \"socket\"\nr0 = *(u8 *)(r7 + 0)\nexit\n"),
                                  std::string_view(".map m array key 4 value 16 entries 4\n.program p \"socket\"\nr1 = m ll\nr2 "
                                                   "+= -4\ncall bpf_map_lookup_elem\nr0 = 0\nexit\n")}) {
        const ObjectSpec spec = test::spec_from(text);
        const Explanation e = own(spec);
        INFO(text);
        CHECK(e.trace.outcome == Outcome::refused);
        CHECK(e.remedy.how == explain::Remedy::How::none);
    }
}

TEST_CASE("explain: of an offset that is too large, the number is followed and its comparisons are named") {
    const ObjectSpec spec =
        test::spec_from(".map m array key 4 value 16 entries 4\n.program p \"socket\"\nr6 = *(u32 *)(r1 + "
                        "0)\n*(u32 *)(r10 - 4) = 1\nr1 = m ll\nr2 = r10\nr2 += -4\n"
                        "call bpf_map_lookup_elem\nif r0 == 0 goto out\nif r6 > 16 goto out\nr0 += r6\nr1 = *(u8 "
                        "*)(r0 + 0)\nout:\nr0 = 0\nexit\n");
    const Explanation e = own(spec);
    REQUIRE(e.trace.outcome == Outcome::refused);
    const std::string chain = chain_text(e);
    INFO(chain);
    CHECK(chain.find("r6 is read from memory, through r1, the context") != std::string::npos);
    CHECK(chain.find("it goes straight on: r6 <= 16: a number from 0 to 16") != std::string::npos);
    CHECK(chain.find("r0 += r6: the offset is r6, a number from 0 to 16") != std::string::npos);
    CHECK(chain.ends_with("r6 was compared, but with a limit that is too large"));
    REQUIRE(e.remedy.lines.size() == 3);
    CHECK(e.remedy.lines[0] == "if r6 <= 15 goto +2");
}

TEST_CASE("explain: arguments are followed into the caller, answers into the callee") {
    const ObjectSpec spec =
        test::spec_from(".program p \"socket\"\nr1 = *(u32 *)(r1 + 0)\ncall other\nr6 = r0\nr0 = *(u8 *)(r6 + "
                        "0)\nexit\n.function other\nr0 = r1\nexit\n");
    const Explanation e = own(spec);
    REQUIRE(e.trace.outcome == Outcome::refused);
    const std::string chain = chain_text(e);
    INFO(chain);
    CHECK(chain.find("r1 is read from memory, through r1, the context") != std::string::npos);
    CHECK(chain.find("r1 is an argument that is passed by this call") != std::string::npos);
    CHECK(chain.find("r0 is what the function returned here") != std::string::npos);
}

TEST_CASE("explain: rounds of a loop that have nothing to do with it are left out of the path") {
    const ObjectSpec spec =
        test::spec_from(".program p \"socket\"\nr6 = *(u32 *)(r1 + 0)\nr7 = 0\nagain:\nr7 += 1\nif r7 != 50 goto "
                        "again\nr0 = *(u8 *)(r6 + 0)\nexit\n");
    const Explanation e = own(spec);
    REQUIRE(e.trace.outcome == Outcome::refused);
    CHECK(e.path.size() == 103);
    CHECK(e.shortest.size() == 5);
    CHECK(explain::summarize(e)[2].visits == 50);
}

TEST_CASE("explain: the kernel's log tells the same as our walk, of 6.18 and of 5.10") {
    const ObjectSpec spec = test::spec_from(kNull);
    for (std::string_view log :
         {std::string_view(
              "0: R1=ctx() R10=fp0\n0: (62) *(u32 *)(r10 -4) = 1          ; R10=fp0 fp-8=1\n1: (18) r1 = 0xffff888003bd2c00     "
              "; R1=map_ptr(map=m,ks=4,vs=16)\n"
              "3: (bf) r2 = r10                      ; R2=fp0 R10=fp0\n4: (07) r2 += -4                      ; R2=fp-4\n"
              "5: (85) call bpf_map_lookup_elem#1    ; R0=map_value_or_null(id=1,map=m,ks=4,vs=16)\n6: (bf) r7 = r0              "
              "         ; R0=map_value_or_null(id=1,map=m,ks=4,vs=16) R7=map_value_or_null(id=1,map=m,ks=4,vs=16)\n"
              "7: (7b) *(u64 *)(r10 -16) = r7        ; R7=map_value_or_null(id=1,map=m,ks=4,vs=16) R10=fp0 "
              "fp-16=map_value_or_null(id=1,map=m,ks=4,vs=16)\n"
              "8: (b7) r8 = 3                        ; R8=3\n9: (15) if r8 == 0x4 goto pc+1        ; R8=3\n10: (79) r9 = *(u64 "
              "*)(r10 -16)       ; R9=map_value_or_null(id=1,map=m,ks=4,vs=16) R10=fp0\n"
              "11: (7b) *(u64 *)(r9 +0) = r8\nR9 invalid mem access 'map_value_or_null'\nprocessed 11 insns (limit 1000000) "
              "max_states_per_insn 0 total_states 1 peak_states 1 mark_read 1\n"),
          std::string_view("0: R1=ctx(id=0,off=0,imm=0) R10=fp0\n0: (62) *(u32 *)(r10 -4) = 1\n1: R1=ctx(id=0,off=0,imm=0) "
                           "R10=fp0 fp-8=mmmm????\n1: (18) r1 = 0xffff888003bd2c00\n"
                           "3: R1_w=map_ptr(id=0,off=0,ks=4,vs=16,imm=0) R10=fp0 fp-8=mmmm????\n3: (bf) r2 = r10\n4: (07) r2 += "
                           "-4\n5: (85) call bpf_map_lookup_elem#1\n"
                           "6: R0_w=map_value_or_null(id=1,off=0,ks=4,vs=16,imm=0) R10=fp0 fp-8=mmmm????\n6: (bf) r7 = r0\n7: "
                           "(7b) *(u64 *)(r10 -16) = r7\n8: (b7) r8 = 3\n9: R8_w=inv3 R10=fp0\n"
                           "9: (15) if r8 == 0x4 goto pc+1\n10: (79) r9 = *(u64 *)(r10 -16)\n11: (7b) *(u64 *)(r9 +0) = r8\nR9 "
                           "invalid mem access 'map_value_or_null'\nprocessed 11 insns (limit 1000000) max_states_per_insn 0 "
                           "total_states 1 peak_states 1 mark_read 1\n")}) {
        Result<explain::Trace> trace = explain::trace_of_log(log, spec.programs[0]);
        REQUIRE(trace);
        const Explanation e = explain::explain(spec, spec.programs[0], std::move(*trace), nullptr);
        REQUIRE(e.trace.outcome == Outcome::refused);
        CHECK(e.trace.whole);
        CHECK(e.trace.insn == 11);
        const std::string chain = chain_text(e);
        INFO(chain);
        CHECK(chain.starts_with("5: r0 is what bpf_map_lookup_elem() returned: a pointer to a value of "));
        CHECK(chain.ends_with("11: refused: *(u64 *)(r9 + 0) = r8\nr9 was never compared with 0 on this path"));
        CHECK(e.chain.causes.size() == 5);
        CHECK(e.remedy.lines == std::vector<std::string>{"if r0 != 0 goto +2", "r0 = 0", "exit"});
    }
}

TEST_CASE("explain: a log's branches are a tree, and paths that were known before end in it") {
    const ObjectSpec spec =
        test::spec_from(".program p \"socket\"\nr6 = *(u32 *)(r1 + 0)\nif r6 > 5 goto +1\nr7 = 1\nr0 = 0\nexit\n");
    const std::string_view log = "0: R1=ctx() R10=fp0\n0: (61) r6 = *(u32 *)(r1 +0)          ; R1=ctx() "
                                 "R6_w=scalar(smin=0,smax=umax=4294967295,var_off=(0x0; 0xffffffff))\n"
                                 "1: (25) if r6 > 0x5 goto pc+1         ; R6_w=scalar(smin=0,smax=umax=5,var_off=(0x0; 0x7))\n2: "
                                 "(b7) r7 = 1                        ; R7_w=1\n"
                                 "3: (b7) r0 = 0                        ; R0_w=0\n4: (95) exit\n\nfrom 1 to 3: R1=ctx() "
                                 "R6=scalar(smin=umin=6,smax=umax=4294967295) R10=fp0\n"
                                 "3: (b7) r0 = 0                        ; R0_w=0\n4: (95) exit\nprocessed 7 insns (limit "
                                 "1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0\n";
    Result<explain::Trace> trace = explain::trace_of_log(log, spec.programs[0]);
    REQUIRE(trace);
    CHECK(trace->outcome == Outcome::accepted);
    CHECK(trace->processed == 7);
    const Explanation e = explain::explain(spec, spec.programs[0], std::move(*trace), nullptr);
    const auto all = explain::summarize(e);
    CHECK(all[1].jumps == 1);
    CHECK(all[1].straight == 1);
    CHECK(all[3].visits == 2);
    CHECK(all[4].ends == 2);
    CHECK(all[1].remarks() == "splits: 1 path jumps, 1 goes straight on");
}

TEST_CASE("explain: what level 2 of the kernel's log notes is no reason") {
    const ObjectSpec spec =
        test::spec_from(".program p \"socket\"\nr6 = *(u32 *)(r1 + 0)\nif r6 > 5 goto +1\nr7 = 1\nr0 = 0\nexit\n");
    const std::string_view log =
        "func#0 @0\nLive regs before insn:\n      0: .1........ (61) r6 = *(u32 *)(r1 +0)\n"
        "      1: ......6... (25) if r6 > 0x5 goto pc+1\n0: R1=ctx() R10=fp0\n0: (61) r6 = *(u32 *)(r1 +0)\n"
        "1: (25) if r6 > 0x5 goto pc+1\n2: (b7) r7 = 1\n(3) frame 0 insn 2 +written -8\n(3) frame 0 insn 2 "
        "+live -8\n3: (b7) r0 = 0\n4: (95) exit\nfrom 1 to 3: R1=ctx() R6=scalar() R10=fp0\n3: (b7) r0 = "
        "0\nmark_precise: frame0: last_idx 3 first_idx 0 subseq_idx -1\nframe 0: propagating r6\n4: safe\n"
        "processed 7 insns (limit 1000000) max_states_per_insn 0 total_states 1 peak_states 1 mark_read 0\n";
    const Result<explain::Trace> trace = explain::trace_of_log(log, spec.programs[0]);
    REQUIRE(trace);
    INFO(trace->reason);
    CHECK(trace->outcome == Outcome::accepted);
}

TEST_CASE("explain: a log of another program is refused, and no log is too strange") {
    const ObjectSpec spec = test::spec_from(kNull);
    const auto other = explain::trace_of_log("0: (b7) r0 = 0\n1: (95) exit\nprocessed 2 insns\n", spec.programs[0]);
    REQUIRE(!other);
    CHECK(other.error().message().find("the log is not of program p") != std::string::npos);
    CHECK(!explain::trace_of_log("", spec.programs[0]));
    CHECK(explain::trace_of_log("nothing of it", spec.programs[0])); // a verdict of one line is one
    const std::string whole =
        "0: R1=ctx() R10=fp0\n0: (62) *(u32 *)(r10 -4) = 1          ; R10=fp0 fp-8=1\nfrom 99 to 3: safe\nfrom 0 to 1: R1=ctx(\n"
        "5: (85) call bpf_map_lookup_elem#1    ; R0=map_value_or_null(id=1,map=m\nframe3: R6=4 fp-600=3 fp-=\n6: safe\n11: (7b) "
        "*(u64 *)(r9 +0) = r8\nR9 bad\n";
    for (size_t n = 0; n <= whole.size(); ++n) {
        Result<explain::Trace> trace = explain::trace_of_log(std::string_view(whole).substr(0, n), spec.programs[0]);
        if (!trace) continue;
        const Explanation e = explain::explain(spec, spec.programs[0], std::move(*trace), nullptr);
        std::string out;
        explain::append_text(out, e);
        explain::append_page(out, e);
        CHECK(!out.empty());
    }
}

TEST_CASE("explain: a page has nothing in it that could end its script early") {
    const ObjectSpec spec = test::spec_from(kNull);
    std::string page;
    Explanation e = own(spec);
    e.trace.reason = "</script><b>\x01";
    explain::append_page(page, e);
    CHECK(page.find("</script><b>") == std::string::npos);
    CHECK(page.find("\\u003c/script>\\u003cb>\\u0001") != std::string::npos);
}
