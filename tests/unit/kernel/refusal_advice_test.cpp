// What is advised: a program and what the verifier said of it (logs of 6.18, shortened to the path), the whole way to the hint.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <linux/bpf.h>

#include "asm/assemble.h"
#include "runtime/base/format.h"
#include "runtime/kernel/program_error.h"
#include "runtime/kernel/refusal.h"
#include "runtime/object/unit_object.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

// `path`: the instructions that the verifier went through, "0 1 3"; with what it said behind them, "3;R6=pkt(r=0)".
Refusal refused(std::string_view program, std::string_view path, std::string_view reason, std::string_view file = "p.c") {
    Assembled unit = assemble(program, {.name = file}); // advice is in the language of the file
    REQUIRE_MESSAGE(unit, unit.report());
    Result<ObjectSpec> spec = object_of(unit.unit);
    REQUIRE(spec);
    std::string log;
    while (!path.empty()) {
        const std::string_view step = path.substr(0, path.find(' '));
        path.remove_prefix(std::min(step.size() + 1, path.size()));
        const std::string_view insn = step.substr(0, step.find(';'));
        const bool exit = spec->programs[0].insns.at(std::stoul(std::string(insn))).code == (BPF_JMP | BPF_EXIT);
        log += format("{}: (00) {} {} ; {}\n", insn, exit ? "exit" : "instruction", insn,
                      step.substr(std::min(insn.size() + 1, step.size())));
    }
    log += format("{}\nprocessed 1 insns\n", reason);
    Refusal out;
    KeepRefusal keep(out);
    (void)explain_refusal(*spec, spec->programs[0], nullptr, make_error(Errc::rejected, "refused"), log);
    return out;
}

// The note that stands at that line; empty: none.
std::string note_at(const Refusal &refusal, uint32_t line) {
    for (const RefusalNote &note : refusal.notes)
        if (note.at.line == line) return note.text;
    return {};
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool number_advice(const Refusal &refusal) { return has(refusal.hint, "bpf_probe_read_kernel"); }

} // namespace

TEST_CASE("refusal advice: what was given back, by whom, and where") {
    constexpr std::string_view kRecord = ".map rb ringbuf entries 4096\n" // 1
                                         ".program p \"socket\"\n"        // 2
                                         "r1 = rb ll\n"                   // 3: 0
                                         "r2 = 8\n"                       // 4: 2
                                         "r3 = 0\n"                       // 5: 3
                                         "call bpf_ringbuf_reserve\n"     // 6: 4
                                         "if r0 == 0 goto out\n"          // 7: 5
                                         "r6 = r0\n"                      // 8: 6
                                         "r1 = r6\n"                      // 9: 7
                                         "r2 = 0\n"                       // 10: 8
                                         "call bpf_ringbuf_submit\n";     // 11: 9
    const std::string used = std::string(kRecord) + "r7 = *(u32 *)(r6 + 0)\nout:\nr0 = 0\nexit\n";
    Refusal r = refused(used, "0 2 3 4 5 6;R6=ringbuf_mem(ref_obj_id=2,sz=8) 7 8 9 10", "R6 invalid mem access 'scalar'");
    CHECK(r.kind == "released");
    CHECK(has(note_at(r, 6), "bpf_ringbuf_reserve() returned"));
    CHECK(has(note_at(r, 11), "bpf_ringbuf_submit() released it here"));
    CHECK(has(r.hint, "before bpf_ringbuf_submit()"));
    CHECK(!has(r.registers, "ringbuf_mem")); // as it was before
    // Passed on, and given back twice.
    const std::string twice = std::string(kRecord) + "r1 = r6\nr2 = 0\ncall bpf_ringbuf_discard\nout:\nr0 = 0\nexit\n";
    r = refused(twice, "0 2 3 4 5 6 7 8 9 10;R1=scalar(id=3) 11 12", "R1 type=scalar expected=ringbuf_mem");
    CHECK(r.kind == "released");
    CHECK(has(note_at(r, 11), "released it here"));
    CHECK(has(r.hint, "once on each path"));
    // A pointer that a cast made of what was given back, by kernel functions.
    r = refused(".program p \"tc\"\nr1 = 1\ncall kfunc bpf_task_from_pid\nif r0 == 0 goto out\nr6 = r0\nr1 = r6\n"
                "call kfunc bpf_task_release\nr0 = *(u32 *)(r6 + 8)\nout:\nr0 = 0\nexit\n",
                "0 1 2 3 4 5 6", "R6 invalid mem access 'scalar'");
    CHECK(has(note_at(r, 7), "bpf_task_release() released it"));
    r = refused(
        ".program p \"tc\"\nr2 = 0\nr3 = 12\nr4 = 0\nr5 = 0\ncall bpf_sk_lookup_tcp\nif r0 == 0 goto out\nr6 = r0\nr1 = r6\n"
        "call bpf_tcp_sock\nr7 = r0\nr1 = r6\ncall bpf_sk_release\nr0 = *(u32 *)(r7 + 0)\nout:\nr0 = 0\nexit\n",
        "0 1 2 3 4 5 6 7 8 9 10 11 12", "R7 invalid mem access 'inv'");
    CHECK(has(note_at(r, 13), "bpf_sk_release() released it"));
    // Memory of a dynptr.
    r = refused(
        ".map rb ringbuf entries 4096\n.program p \"socket\"\nr1 = rb ll\nr2 = 8\nr3 = 0\nr4 = r10\nr4 += -16\n"
        "call bpf_ringbuf_reserve_dynptr\nr1 = r10\nr1 += -16\nr2 = 0\nr3 = 8\ncall bpf_dynptr_data\nif r0 == 0 goto out\n"
        "r6 = r0\nout:\nr1 = r10\nr1 += -16\nr2 = 0\ncall bpf_ringbuf_submit_dynptr\nr0 = *(u8 *)(r6 + 0)\nexit\n",
        "0 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18", "R6 invalid mem access 'scalar'");
    CHECK(has(note_at(r, 20), "bpf_ringbuf_submit_dynptr() released it"));
    // Where nothing was given back, it stays what it was.
    r = refused(used, "0 2 3 4 5 6 10", "R6 invalid mem access 'scalar'");
    CHECK(r.kind == "memory");
}

TEST_CASE("refusal advice: the call that makes pointers into the packet invalid") {
    struct Row {
        std::string_view section, data, call;
    };
    for (const Row &row : {Row{"xdp", "0", "bpf_xdp_adjust_head"}, Row{"xdp", "0", "bpf_tail_call"},
                           Row{"tc", "76", "bpf_skb_pull_data"}, Row{"tc", "76", "bpf_skb_store_bytes"},
                           Row{"tc", "76", "bpf_l4_csum_replace"}, Row{"sk_msg", "0", "bpf_msg_push_data"}}) {
        const std::string program =
            format(".program p \"{}\"\nr6 = *(u{} *)(r1 + {})\nr2 = 4\ncall {}\nr0 = *(u8 *)(r6 + 12)\nexit\n", row.section,
                   row.section == "sk_msg" ? 64 : 32, row.data, row.call);
        const Refusal r = refused(program, "0;R6=pkt(r=0) 1 2 3", "R6 invalid mem access 'scalar'");
        CAPTURE(row.call);
        CHECK(r.kind == "packet");
        CHECK(has(note_at(r, 4), row.call));
        CHECK(has(r.hint, "load data and data_end"));
        CHECK(!number_advice(r));
        CHECK(r.registers.empty());
    }
    // By a function of its own, verified apart; an index that the pointer was added to.
    Refusal r = refused(".program p \"xdp\"\nr6 = *(u32 *)(r1 + 0)\nr7 = 4\nr7 += r6\ncall f\nr0 = *(u8 *)(r7 + 0)\nexit\n"
                        ".function f\nr2 = 4\ncall bpf_xdp_adjust_tail\nr0 = 0\nexit\n",
                        "0;R6=pkt(r=0) 1 2;R7=pkt(r=0) 3 4", "R7 invalid mem access 'scalar'");
    CHECK(has(note_at(r, 5), "f(), which calls bpf_xdp_adjust_tail()"));
    // A helper that leaves packets alone, and a number.
    r = refused(".program p \"xdp\"\nr6 = *(u32 *)(r1 + 12)\ncall bpf_ktime_get_ns\nr0 = *(u8 *)(r6 + 12)\nexit\n", "0 1 2",
                "R6 invalid mem access 'scalar'");
    CHECK(number_advice(r));
    r = refused(".program p \"xdp\"\nr6 = *(u32 *)(r1 + 12)\nr2 = 4\ncall bpf_xdp_adjust_head\nr0 = *(u8 *)(r6 + 12)\nexit\n",
                "0 1 2 3", "R6 invalid mem access 'scalar'");
    CHECK(number_advice(r));
}

TEST_CASE("refusal advice: the size that a packet's access needs, counted from the pointer that the program has") {
    // data + 14 + n, with data + 34 proved
    Refusal r =
        refused(".program p \"xdp\"\nr2 = *(u32 *)(r1 + 4)\nr1 = *(u32 *)(r1 + 0)\nr3 = r1\nr3 += 34\nif r3 > r2 goto out\n"
                "r2 = *(u8 *)(r1 + 14)\nr1 += 14\nr2 &= 60\nr1 += r2\nr0 = *(u8 *)(r1 + 0)\nout:\nexit\n",
                "0;R2=pkt_end() 1;R1=pkt(r=0) 2 3 4;R2=pkt_end() 5 6 7 8;R1=pkt(id=1,off=14,r=0) 9",
                "invalid access to packet, off=14 size=1, R1(id=1,off=14,r=0)\nR1 offset is outside of the packet");
    CHECK(has(r.hint, "if (pointer + 1 > data_end)"));
    CHECK(has(r.hint, "what R1 holds"));
    CHECK(has(note_at(r, 10), "isn't constant is added"));
    CHECK(has(note_at(r, 10), "needs 1 byte "));
    // The same, a comparison of the sum that is too short: 4 bytes from it are asked for, 2 proved.
    r = refused(
        ".program p \"xdp\"\nr2 = *(u32 *)(r1 + 4)\nr1 = *(u32 *)(r1 + 0)\ncall bpf_ktime_get_ns\nr0 &= 60\nr1 += r0\nr1 += 14\n"
        "r3 = r1\nr3 += 2\nif r3 > r2 goto out\nr0 = *(u32 *)(r1 + 0)\nout:\nexit\n",
        "0 1 4;R1=pkt(id=1,r=0) 5 6 7 8;R3=pkt(id=1,off=16,r=16),R2=pkt_end() 9",
        "invalid access to packet, off=14 size=4, R1(id=1,off=14,r=16)");
    CHECK(has(r.hint, "compare 2 bytes more: `if (pointer + 4 > data_end)"));
}

TEST_CASE("refusal advice: comparisons with the packet's end that prove nothing") {
    const auto judged = [](std::string_view comparison, bool jumps) {
        const std::string program =
            format(".program p \"xdp\"\nr2 = *(u32 *)(r1 + 4)\nr1 = *(u32 *)(r1 + 0)\nr3 = r1\nr3 += 14\nif {} goto "
                   "other\n{}\nother:\n{}\nexit\n",
                   comparison, jumps ? "exit" : "r0 = *(u8 *)(r1 + 12)\nexit", jumps ? "r0 = *(u8 *)(r1 + 12)" : "r0 = 0");
        return refused(program, jumps ? "0 1 2 3 4 6" : "0 1 2 3 4 5",
                       "invalid access to packet, off=12 size=1, R1(id=0,off=12,r=0)\nR1 offset is outside of the packet");
    };
    struct Row {
        std::string_view comparison;
        bool jumps;
        std::string_view words;
    };
    for (const Row &row :
         {Row{"r2 > r3", false, "wrong way round"}, Row{"r3 < r2", false, "wrong way round"},
          Row{"r3 <= r2", false, "wrong way round"}, Row{"r3 > r2", true, "wrong way round"},
          Row{"r2 <= r3", true, "wrong way round"}, Row{"r3 != r2", false, "== or !="}, Row{"r3 s> r2", false, "signed"}}) {
        CAPTURE(row.comparison);
        const Refusal r = judged(row.comparison, row.jumps);
        CHECK(has(note_at(r, 6), row.words));
        CHECK(has(r.hint, "if (data + 13 > data_end)"));
    }
    // In assembly: by the registers of the program, and an end that isn't named where no register is known to have it.
    for (auto [end, named] : {std::pair{";R3=pkt_end()", "r3"}, {"", "data_end"}}) {
        const Refusal a =
            refused(".program p \"xdp\"\nr2 = *(u32 *)(r1 + 0)\nr3 = *(u32 *)(r1 + 4)\nr0 = *(u16 *)(r2 + 12)\nexit\n",
                    format("0;R2=pkt(r=0) 1{} 2", end),
                    "invalid access to packet, off=12 size=2, R2(id=0,off=12,r=0)\nR2 offset is outside of the packet", "p.asm");
        CHECK(has(a.hint, format("compare first: `r4 = r2`, `r4 += 14`, `if r4 > {} goto out`", named)));
    }
    // A comparison before the packet was changed, and one of the difference.
    Refusal r = refused(
        ".program p \"tc\"\nr6 = r1\nr2 = *(u32 *)(r6 + 76)\nr3 = *(u32 *)(r6 + 80)\nr2 += 14\nif r2 > r3 goto out\nr2 = 0\n"
        "call bpf_skb_pull_data\nr2 = *(u32 *)(r6 + 76)\nr0 = *(u8 *)(r2 + 0)\nout:\nexit\n",
        "0 1 2 3 4 5 6 7 8", "invalid access to packet, off=0 size=1, R2(id=0,off=0,r=0)");
    CHECK(has(note_at(r, 8), "comparisons before this call are no longer valid"));
    r = refused(
        ".program p \"tc\"\nr2 = *(u32 *)(r1 + 76)\nr3 = *(u32 *)(r1 + 80)\nr3 -= r2\nif r3 < 14 goto out\nr0 = *(u8 *)(r2 + "
        "0)\nout:\nexit\n",
        "0 1 2 3 4", "invalid access to packet, off=0 size=1, R2(id=0,off=0,r=0)");
    CHECK(has(note_at(r, 4), "difference of two pointers"));
}

TEST_CASE("refusal advice: which bound a size or an index lacks") {
    const auto judged = [](std::string_view value) {
        return refused(".program p \"kprobe/f\"\nr1 = r10\nr1 += -64\nr3 = 16\ncall bpf_probe_read_user\nexit\n",
                       format("0 1;R2={} 2 3", value), "R2 min value is negative, either use unsigned or 'var &= const'");
    };
    for (std::string_view unknown : {"scalar(id=1)", "scalar()", "inv(id=0)"}) {
        const Refusal r = judged(unknown);
        CAPTURE(unknown);
        CHECK(has(r.hint, "an unsigned number needs an upper bound"));
        CHECK(has(r.notes.back().text, "nothing bounds the size"));
    }
    for (std::string_view capped : {"scalar(id=1,smin=0xffffffff80000000,smax=smax32=64)", "scalar(smax=64)",
                                    "inv(id=1,smin_value=-2147483648,smax_value=64)"}) {
        const Refusal r = judged(capped);
        CAPTURE(capped);
        CHECK(has(r.hint, "`if (n < 0) return 0;`"));
        CHECK(has(r.notes.back().text, "at most 64"));
        CHECK(!has(r.hint, "MAX"));
    }
    const Refusal r = judged("scalar(smin=smin32=-2147483648,smax=smax32=2147483647)");
    CHECK(has(r.hint, "if (n < 0 || n > MAX)"));
    CHECK(has(r.notes.back().text, "a signed number"));
    const Refusal index =
        refused(".program p \"socket\"\nr0 = *(u8 *)(r1 + 0)\nexit\n", "0;R1=map_value(map=m,ks=4,vs=64,smax=63)",
                "R1 min value is negative, either use unsigned index or do a if (index >=0) check.");
    CHECK(has(index.hint, "if (i < 0)"));
}

TEST_CASE("refusal advice: a size that must be a constant, a map of another type, an atomic operation") {
    Refusal r = refused(".map rb ringbuf entries 4096\n.program p \"socket\"\nr1 = rb ll\nr2 = *(u32 *)(r1 + 0)\nr3 = 0\ncall "
                        "bpf_ringbuf_reserve\nexit\n",
                        "0 2 3 4", "R2 is not a known constant'");
    CHECK(has(r.hint, "bpf_ringbuf_output()"));
    CHECK(has(r.hint, "bpf_ringbuf_reserve_dynptr()"));
    struct Row {
        std::string_view call;
        int type;
        std::string_view name, takes, instead;
    };
    for (const Row &row :
         {Row{"perf_event_output", 27, "BPF_MAP_TYPE_RINGBUF", "BPF_MAP_TYPE_PERF_EVENT_ARRAY", "bpf_ringbuf_output()"},
          Row{"ringbuf_output", 4, "BPF_MAP_TYPE_PERF_EVENT_ARRAY", "BPF_MAP_TYPE_RINGBUF", "bpf_perf_event_output()"},
          Row{"map_lookup_elem", 22, "BPF_MAP_TYPE_QUEUE", "", "bpf_map_pop_elem()"},
          Row{"map_push_elem", 1, "BPF_MAP_TYPE_HASH", "BPF_MAP_TYPE_QUEUE or BPF_MAP_TYPE_STACK", ""},
          Row{"redirect_map", 2, "BPF_MAP_TYPE_ARRAY", "BPF_MAP_TYPE_XSKMAP", ""}}) {
        CAPTURE(row.call);
        r = refused(format(".program p \"xdp\"\ncall bpf_{}\nexit\n", row.call), "0;R2=map_ptr(map=rb,ks=0,vs=0)",
                    format("cannot pass map_type {} into func bpf_{}#1", row.type, row.call));
        CHECK(has(r.notes.front().text, row.name));
        CHECK(has(r.hint, row.takes));
        CHECK(has(r.hint, row.instead));
        CHECK(r.registers.empty() == false);
    }
    r = refused(".program p \"xdp\"\ncall bpf_tail_call\nexit\n", "0;R2=map_ptr(map=counts,ks=4,vs=8)",
                "expected prog array map for tail call");
    CHECK(r.kind == "argument");
    CHECK(has(r.hint, "BPF_MAP_TYPE_PROG_ARRAY"));
    CHECK(has(r.notes.front().text, "map counts"));
    for (std::string_view words :
         {"BPF_ATOMIC stores into R1 pkt is not allowed", "BPF_XADD stores into R1 pkt is not allowed"}) {
        r = refused(".program p \"xdp\"\nr2 = 1\nlock *(u64 *)(r1 + 0) += r2\nexit\n", "0;R1=pkt(r=0) 1", words);
        CHECK(has(r.notes.front().text, "a pointer into the packet"));
        CHECK(has(r.hint, "a load, an operation and a store"));
    }
}

TEST_CASE("refusal advice: the lock that is held") {
    const std::string program =
        ".program p \"tc\"\nr6 = r1\ncall bpf_spin_lock\nr1 = r6\ncall bpf_spin_unlock\nr1 = r6\ncall bpf_spin_lock\n"
        "r0 = *(u32 *)(r6 + 8)\nif r0 > 10 goto out\ncall bpf_ktime_get_ns\nr1 = r6\ncall bpf_spin_unlock\nout:\nr0 = 0\nexit\n";
    for (std::string_view words :
         {"BPF_EXIT instruction in main prog cannot be used inside bpf_spin_lock-ed region", "bpf_spin_unlock is missing"}) {
        const Refusal r = refused(program, "0 1 2 3 4 5 6 7 11 12", words);
        CAPTURE(words);
        CHECK(has(note_at(r, 7), "bpf_spin_lock() here"));
        CHECK(has(note_at(r, 9), "takes this jump"));
        CHECK(has(r.hint, "bpf_spin_unlock() on every path"));
        CHECK(note_at(r, 3).empty());
    }
    Refusal r = refused(program, "0 1 2 3 4 5 6 7 8", "function calls are not allowed while holding a lock");
    CHECK(has(note_at(r, 7), "bpf_spin_lock() here"));
    CHECK(has(r.hint, "bpf_ktime_get_ns() before bpf_spin_lock()"));
    r = refused(".program p \"fentry.s/f\"\ncall kfunc bpf_rcu_read_lock\nr0 = 0\nexit\n", "0 1 2",
                "BPF_EXIT instruction in main prog cannot be used inside bpf_rcu_read_lock-ed region");
    CHECK(has(note_at(r, 2), "bpf_rcu_read_lock() here"));
}

TEST_CASE("refusal advice: registers that a function is given, or not") {
    constexpr std::string_view kProgram = ".program p \"socket\"\nr1 = 1\ncall f\nexit\n.function f\nr0 = r2\nr0 = r6\nexit\n";
    Refusal r = refused(kProgram, "0 1 3", "R2 !read_ok");
    CHECK(has(note_at(r, 3), "passes no argument 2"));
    CHECK(!has(r.notes.front().text, "only r1"));
    r = refused(kProgram, "0 1 3 4", "R6 !read_ok");
    CHECK(has(note_at(r, 3), "begins with r6 to r9 unset"));
    CHECK(has(r.hint, "pass it as an argument"));
    r = refused(".program p \"socket\"\nr0 = r2\nexit\n", "0", "R2 !read_ok");
    CHECK(has(r.notes.front().text, "only r1 (the context)"));
    // Cleared within the function: not the caller's doing.
    r = refused(".program p \"socket\"\nr2 = 1\ncall f\nexit\n.function f\ncall bpf_ktime_get_ns\nr0 = r2\nexit\n", "0 1 3 4",
                "R2 !read_ok");
    CHECK(has(note_at(r, 6), "cleared r1 to r5"));
}

TEST_CASE("refusal advice: the loop that the verifier was in, from its first to its last instruction") {
    constexpr std::string_view kProgram = ".program p \"socket\"\n" // 1
                                          "r6 = 0\n"                // 2: 0
                                          "outer:\n"                // 3
                                          "r6 += 1\n"               // 4: 1
                                          "inner:\n"                // 5
                                          "call f\n"                // 6: 2
                                          "if r0 == 1 goto next\n"  // 7: 3
                                          "r6 += 2\n"               // 8: 4
                                          "if r0 != 7 goto inner\n" // 9: 5
                                          "next:\n"                 // 10
                                          "if r6 != 3 goto outer\n" // 11: 6
                                          "r0 = 0\n"                // 12: 7
                                          "exit\n"                  // 13: 8
                                          ".function f\n"           // 14
                                          "r0 = r1\n"               // 15: 9
                                          "exit\n";                 // 16: 10
    const auto rounds = [](std::string path, std::string_view round, int times) {
        for (int i = 0; i < times; ++i) path += round;
        return path;
    };
    constexpr std::string_view kLarge = "BPF program is too large. Processed 1000001 insn";
    Refusal r = refused(kProgram, rounds("0 1", " 2 9 10 3 4 5", 30), kLarge);
    CHECK(r.kind == "loop");
    CHECK(r.headline == "program p (socket): the verifier refused the loop of instructions 2 to 5 (p.c:6 to 9)");
    CHECK(has(r.sentence, "the loop of instructions 2 to 5 (p.c:6 to 9): BPF program is too large"));
    CHECK(has(note_at(r, 9), "the verifier followed it 29 times and saw"));
    // The outer one, whose rounds have few of the inner one's.
    r = refused(kProgram, rounds("0", " 1 2 9 10 3 4 5 6", 30), kLarge);
    CHECK(has(r.headline, "the loop of instructions 1 to 6 (p.c:4 to 11)"));
    // The verifier names the instruction that it came back to.
    r = refused(kProgram, "0 1 2 9 10 3 4 5 2", "infinite loop detected at insn 2");
    CHECK(has(r.headline, "the loop of instructions 2 to 5 (p.c:6 to 9)"));
    CHECK(!has(note_at(r, 9), "times"));
    r = refused(".program p \"socket\"\nr0 = 0\nagain:\nif r0 != 1 goto again\nexit\n", "0 1 1",
                "infinite loop detected at insn 1");
    CHECK(has(r.headline, "the loop of instruction 1 (p.c:4)"));
    r = refused(".program p \"socket\"\ncall f\nexit\n.function f\nr0 = 0\nagain:\nr0 += 1\nif r0 != 0 goto again\nexit\n",
                rounds("0 2", " 3 4", 20), kLarge);
    CHECK(has(r.headline, "the loop of instructions 3 to 4 in function f (p.c:7 to 8)"));
}

TEST_CASE("refusal advice: another map, recursion, half a pointer") {
    Refusal r = refused(".program p \"tc\"\ncall bpf_timer_init\nexit\n",
                        "0;R1=map_value(map=tm,ks=4,vs=16) 0;R2=map_ptr(map=counts,ks=4,vs=8)",
                        "timer pointer in R1 map_uid=0 doesn't match map pointer in R2 map_uid=0");
    CHECK(has(r.notes.back().text, "a value of map tm, and R2 is map counts"));
    CHECK(has(r.hint, "the map that the timer lies in"));
    std::string path = "0 1";
    for (int i = 0; i < 20; ++i) path += " 3 4";
    r = refused(".program p \"socket\"\ncall f\nr0 = 0\nexit\n.function f\nr1 += 1\ncall f\nr0 = 0\nexit\n", path,
                "BPF program is too large. Processed 1000001 insn");
    CHECK(has(r.hint, "without recursion"));
    CHECK(r.at.line == 7);
    r = refused(".program p \"socket\"\n*(u32 *)(r10 - 8) = r1\nexit\n", "0", "invalid size of register spill");
    CHECK(has(r.hint, "whole"));
}
