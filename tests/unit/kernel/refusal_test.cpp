// What is made of a refusal: the path through a log, where a register's value comes from, words, lines. The messages themselves
// are tested with a kernel, from outside (tests/cli/refused_test.py).
#include "runtime/kernel/refusal.h"

#include <linux/bpf.h>

#include "runtime/kernel/refusal_advice.h"
#include "runtime/kernel/verifier_log.h"
#include "runtime/kernel/verifier_path.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

constexpr std::string_view kTwoPaths = "0: R1=ctx() R10=fp0\n"
                                       "0: (85) call bpf_ktime_get_ns#5       ; R0=scalar()\n"
                                       "1: (15) if r0 == 0x0 goto pc+2        ; R0=scalar()\n"
                                       "2: (b7) r0 = 0                        ; R0=0\n"
                                       "3: (95) exit\n"
                                       "from 1 to 4: R0=0 R10=fp0\n"
                                       "4: (79) r1 = *(u64 *)(r0 +0)\n"
                                       "R0 invalid mem access 'scalar'\n"
                                       "processed 5 insns\n";

std::vector<uint32_t> numbers(const std::vector<PathStep> &path) {
    std::vector<uint32_t> out;
    for (const PathStep &step : path) out.push_back(step.insn);
    return out;
}

} // namespace

TEST_CASE("refusal: the path goes back to the branch whose other side comes later") {
    const std::vector<PathStep> path = verifier_path(kTwoPaths);
    CHECK(numbers(path) == std::vector<uint32_t>{0, 1, 4});
    CHECK(path[1].text == "if r0 == 0x0 goto pc+2");
    CHECK(verifier_path("").empty());
    CHECK(verifier_path("from 5 to 9: R0=1\n9: (95) exit\n").size() == 1); // a log whose start is cut off
    // The same branch, twice on the path: the last one that is still open comes first.
    const std::string_view twice = "0: (b7) r1 = 0\n1: (05) goto pc+0\n2: (15) if r0 == 0x0 goto pc+1\n3: (05) goto pc-2\n"
                                   "2: (15) if r0 == 0x0 goto pc+1\n3: (05) goto pc-2\nfrom 2 to 4: R0=0\n4: (95) exit\n"
                                   "from 2 to 4: R0=0\n4: (95) exit\n";
    CHECK(numbers(verifier_path(twice)) == std::vector<uint32_t>{0, 1, 2, 4});
}

TEST_CASE("refusal: a value is followed through copies and the stack, over other functions") {
    const auto call = [](int32_t imm, uint8_t src = 0) { return Insn{BPF_JMP | BPF_CALL, 0, src, 0, imm}; };
    const std::vector<Insn> insns = {
        call(1),                                    // 0: r0 = lookup
        {BPF_STX | BPF_MEM | BPF_DW, 10, 0, -8, 0}, // 1: [r10-8] = r0
        call(3, BPF_PSEUDO_CALL),                   // 2: a function, at 6
        {BPF_LDX | BPF_MEM | BPF_DW, 7, 10, -8, 0}, // 3: r7 = [r10-8]
        {BPF_ALU64 | BPF_MOV | BPF_X, 3, 7, 0, 0},  // 4: r3 = r7
        {BPF_LDX | BPF_MEM | BPF_DW, 0, 3, 0, 0},   // 5: r0 = *r3
        {BPF_ALU64 | BPF_MOV | BPF_K, 7, 0, 0, 1},  // 6: the function: r7 = 1
        {BPF_STX | BPF_MEM | BPF_DW, 10, 7, -8, 0}, // 7: its own [r10-8]
        {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},           // 8
    };
    std::vector<PathStep> path;
    for (uint32_t insn : {0, 1, 2, 6, 7, 8, 3, 4, 5}) path.push_back({insn, "", false});
    const Origin origin = origin_of(path, path.size() - 1, insns, 3);
    CHECK(origin.kind == Origin::Kind::call);
    CHECK(path[origin.step].insn == 0);
    CHECK(origin_of(path, path.size() - 1, insns, 9).kind == Origin::Kind::entry);
    CHECK(origin_of(path, 1, insns, 1).kind == Origin::Kind::cleared);
    CHECK(origin_of(path, 3, insns, 1).kind == Origin::Kind::cleared);
}

TEST_CASE("refusal: the busiest loop") {
    std::vector<PathStep> path;
    for (int round = 0; round < 20; ++round)
        for (uint32_t insn : {1, 2, 3}) path.push_back({insn, insn == 3 ? "goto pc-3" : "r0 += 1", false});
    const PathLoop loop = busiest_loop(path, 8);
    CHECK(loop.rounds == 19);
    CHECK(loop.head == 1);
    CHECK(loop.back == 3);
    CHECK(busiest_loop(path, 30).rounds == 0);
}

TEST_CASE("refusal: what registers hold, in words") {
    CHECK(describe_register("map_value_or_null(id=1,map=counts,ks=4,vs=8)") == "a pointer to a value of map counts, or NULL");
    CHECK(describe_register("map_value(off=0,ks=4,vs=8,imm=0)") == "a pointer to a value of a map"); // 5.10 doesn't name it
    CHECK(describe_register("map_ptr(map=m,ks=4,vs=8)") == "map m");
    CHECK(describe_register("map_ptr()") == "a map");
    CHECK(describe_register("fp-16") == "a pointer to the stack");
    CHECK(describe_register("ctx()") == "the context");
    CHECK(describe_register("pkt(r=0)") == "a pointer into the packet");
    CHECK(describe_register("pkt_end()") == "the end of the packet (data_end)");
    CHECK(describe_register("trusted_ptr_task_struct()") == "a pointer to the kernel's struct task_struct");
    CHECK(describe_register("ptr_or_null_file(id=1)") == "a pointer to the kernel's struct file");
    CHECK(describe_register("scalar(id=1)") == "a number");
    CHECK(describe_register("invP0") == "a number");
    CHECK(describe_register("-4") == "a number");
    CHECK(describe_register("something_new()").empty());
    CHECK(describe_register("").empty());
}

TEST_CASE("refusal: every hint has a kind") {
    CHECK(verifier_kind("R0 invalid mem access 'map_value_or_null'") == "null");
    CHECK(verifier_kind("misaligned stack access off 0+-21+0 size 8") == "alignment");
    CHECK(verifier_kind("Unreleased reference id=2 alloc_insn=4") == "leak");
    CHECK(verifier_kind("nobody has ever said this") == "other");
}

TEST_CASE("refusal: without source lines the instruction stands for them") {
    ObjectSpec spec;
    ProgramSpec program;
    program.name = "p";
    program.insns = {{BPF_JMP | BPF_CALL, 0, 0, 0, 5},
                     {BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2, 0},
                     {BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
                     {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
                     {BPF_LDX | BPF_MEM | BPF_DW, 1, 0, 0, 0}};
    Refusal refusal;
    refusal.program = "p";
    refusal.at.insn = 4;
    refusal.at.instruction = "r1 = *(u64 *)(r0 +0)";
    refusal.reason = "R0 invalid mem access 'scalar'";
    refusal.registers = "R0=scalar()";
    advise(program, ProgramPlaces(spec, program), kTwoPaths, {"GPL", "none", "R0=scalar()"}, refusal);
    CHECK(print_refusal(refusal) == "instruction 4: R0 invalid mem access 'scalar'\n"
                                    "  4 | r1 = *(u64 *)(r0 +0)\n"
                                    "  R0 = scalar(): a number\n"
                                    "  note: instruction 0: R0 is the number that bpf_ktime_get_ns() returned here\n"
                                    "  0 | call bpf_ktime_get_ns#5\n");
}

TEST_CASE("refusal: lockdown is told apart from the wrong type of program") {
    ObjectSpec spec;
    ProgramSpec program;
    program.type = BPF_PROG_TYPE_KPROBE;
    program.insns = {{BPF_JMP | BPF_CALL, 0, 0, 0, 36}};
    Refusal refusal;
    refusal.at.insn = 0;
    refusal.reason = "program of this type cannot use helper bpf_probe_write_user#36";
    const auto kind_of = [&](std::string_view lockdown) {
        Refusal copy = refusal;
        copy.kind = "helper";
        advise(program, ProgramPlaces(spec, program), "", {"GPL", lockdown, ""}, copy);
        return copy.kind;
    };
    CHECK(kind_of("integrity") == "policy");
    CHECK(kind_of("confidentiality") == "policy");
    CHECK(kind_of("none") == "policy"); // CAP_SYS_ADMIN
    CHECK(kind_of("") == "policy");     // which policy can't be seen
    program.insns[0].imm = 113;         // bpf_probe_read_kernel()
    CHECK(kind_of("confidentiality") == "policy");
    CHECK(kind_of("integrity") == "helper");
    program.insns[0].imm = 36;
    program.type = BPF_PROG_TYPE_XDP; // may never call it
    CHECK(kind_of("integrity") == "helper");
}
