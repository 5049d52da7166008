// The assembler: what it makes of directives and names, what it reads of others' prints, and a page of mistakes as people see
// them (mistakes.inc: each source, and the report about it).
#include "asm/assemble.h"

#include <cstring>
#include <string>

#include "asm/isa_text.h"
#include "asm/print.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

struct Mistake {
    const char *source, *report;
};
const Mistake kMistakes[] = {
#include "mistakes.inc"
};

/// The bytes of a text that needs nothing loaded, in hex, an instruction a word; or the report.
std::string bytes(std::string_view text) {
    const Assembled made = assemble(text);
    if (!made) return made.report();
    std::vector<Insn> insns;
    std::string out;
    if (!flatten(made.unit, insns, out)) return out;
    for (const Insn &insn : insns) {
        uint8_t raw[8];
        std::memcpy(raw, &insn, 8);
        if (!out.empty()) out += ' ';
        for (uint8_t byte : raw) {
            out += "0123456789abcdef"[byte >> 4];
            out += "0123456789abcdef"[byte & 15];
        }
    }
    return out;
}

bool one_file(void *context, std::string_view path, std::string &text) {
    if (path != "other.asm") return false;
    text = *static_cast<const char **>(context);
    return true;
}

} // namespace

TEST_CASE("assemble: mistakes, with their place and what was probably meant") {
    for (const Mistake &mistake : kMistakes) {
        AssembleOptions options;
        options.name = "p";
        const Assembled made = assemble(mistake.source, options);
        INFO(mistake.source);
        CHECK_FALSE(made);
        CHECK(made.report() == mistake.report);
    }
}

TEST_CASE("assemble: many mistakes in one go, and no more than twenty") {
    std::string text;
    for (int i = 0; i < 30; ++i) text += "r10 = 5\n";
    CHECK(assemble(text).complaints.size() == 20);
    CHECK(assemble("r10 = 5\nr1 = 2\nr11 = 3\ngoto x\nexit\n").complaints.size() == 3);
    CHECK(assemble("").complaints.size() == 1);
    CHECK(assemble(".license \"\\\x1b\"\n").complaints[0].at.message == "there is no escape \\?");
    CHECK(assemble(std::string_view("r1 = 1\0exit\n", 12)).complaints.size() == 1);
}

TEST_CASE("assemble: numbers and expressions") {
    CHECK(
        bytes("r1 = 1 + 2 * 3\nr1 = (1 + 2) * 3\nr1 = 1 << 4 | 1\nr1 = -7 / 2\nr1 = 'a'\nr1 = ~0\nr1 = 0b101\n") ==
        "b701000007000000 b701000009000000 b701000011000000 b7010000fdffffff b701000061000000 b7010000ffffffff b701000005000000");
    CHECK(bytes("r1 = 0xffffffffffffffff ll\nr2 = -1 ll\n") ==
          "18010000ffffffff 00000000ffffffff 18020000ffffffff 00000000ffffffff");
    CHECK(bytes("N = 8\n.const M = N * 2\nr1 = *(u32 *)(r10 - N - 4)\nr1 = M\n") == "61a1f4ff00000000 b701000010000000");
    CHECK(bytes(".struct e\n a u8\n b u32\n c u16[3]\n.end\nr1 = sizeof(e)\nr1 = e.b + e.c\nr1 = sizeof(e[3])\n") ==
          "b701000010000000 b70100000c000000 b701000030000000");
    CHECK(bytes("w1 = 0xffffffff\n*(u8 *)(r1 + 0) = 0xff\n") == "b4010000ffffffff 72010000ff000000");
}

TEST_CASE("assemble: maps that have no entries needn't be told so") {
    for (const char *type : {"perf_event_array", "sk_storage", "task_storage", "cgroup_storage"}) {
        const Assembled made = assemble(std::string(".map m ") + type + " key s32 value u64 flags 1\nr0 = 0\nexit\n");
        INFO(made.report());
        REQUIRE(made);
        CHECK(made.unit.maps.at(0).max_entries == 0);
    }
}

TEST_CASE("assemble: labels, calls, and an atomic that takes two") {
    CHECK(bytes("a: goto b\nb: goto a\n") == "0500000000000000 0500feff00000000");
    CHECK(bytes("gotol b\nb: may_goto b\nif r1 s> -5 goto b\n") == "0600000000000000 e500ffff00000000 6501fefffbffffff");
    CHECK(bytes("call f\nexit\nf: r0 = 1\nexit\n") == "8510000001000000 9500000000000000 b700000001000000 9500000000000000");
    CHECK(bytes("r0 = atomic_fetch_add((u64 *)(r10 - 8), r3)\n") == "bf30000000000000 db0af8ff01000000");
    CHECK(bytes("call bpf_ktime_get_ns\ncall ktime_get_ns\ncall 5\ncall bpf_ktime_get_ns#5\n") ==
          "8500000005000000 8500000005000000 8500000005000000 8500000005000000");
}

TEST_CASE("assemble: what others print") {
    CHECK(bytes("0000000000000000 <f>:\n       0:\tbf 14 00 00 00 00 00 00\tr4 = r1\n"
                "       1:\t18 01 00 00 88 77 66 55 00 00 00 00 44 33 22 11\tr1 = 0x1122334455667788 ll\n"
                "       3:\t05 00 00 00 00 00 00 00\tgoto +0x0 <f+0x20>\n") ==
          "bf14000000000000 1801000088776655 0000000044332211 0500000000000000");
    CHECK(bytes("; int x = 5; @ a.c:3\n5: (bf) r1 = r10                      ; R1_w=fp0\n6: (85) call bpf_map_lookup_elem#1\n"
                "7: (18) r1 = 0xffff888100000000\n10: (62) *(u32 *)(r10 -4) = -1\n") ==
          "bfa1000000000000 8500000001000000 1801000000000000 000000008188ffff 620afcffffffffff");
    CHECK(bytes("(65) if r0 s> 0xfffffffb goto L1\nL1:\n(95) exit\n") == "65000000fbffffff 9500000000000000");
    CHECK(bytes("9: (55) if r0 != 0xffffffff goto pc+1\n") == "55000100ffffffff");
    CHECK(bytes("10: (c3) r2 = atomic_fetch_add((u32 *)(r1 +0), r2)\n11: (db) r0 = atomic64_cmpxchg((u64 *)(r1 +0), r0, r2)\n") ==
          "c321000001000000 db210000f1000000");
    CHECK(
        bytes("mov32 %r1, 5\nldxdw %r0, [%r1+8]\nlock fetch add32 [%r1], %r2\njeq %r1, 0xffffffff, out\nswap16 %r1\n"
              "movsx832 %r1, %r2\ncall helper 5\ncall local +0\nout: exit\n") ==
        "b401000005000000 7910080000000000 c321000001000000 15010400ffffffff d701000010000000 bc21080000000000 8500000005000000 "
        "8510000000000000 9500000000000000");
}

TEST_CASE("assemble: semicolons separate statements, and begin comments where others print them") {
    CHECK(bytes("r0 = 1; exit\n") == "b700000001000000 9500000000000000");
    CHECK(bytes("r0 = 1;exit;;\n") == "b700000001000000 9500000000000000");
    CHECK(bytes("a: r0 = 1; b: goto a; exit # r0 = 2; exit\n") == "b700000001000000 0500feff00000000 9500000000000000");
    CHECK(bytes("; r0 = 2; exit\n  ; r0 = 3\nexit\n") == "9500000000000000");
    CHECK(bytes("N = 8; r0 = N; exit\n") == "b700000008000000 9500000000000000");
    CHECK(bytes("1: (b7) r0 = 1 ; R0_w=1\n2: (95) exit\n") == "b700000001000000 9500000000000000");
    CHECK(bytes("1: r0 = 1; exit\n") == "b700000001000000 9500000000000000");
    const Assembled comment = assemble("r0 = 1 ; the answer\nexit\n");
    REQUIRE(comment.complaints.size() == 1);
    CHECK(comment.complaints[0].at.column == 10);
    CHECK(comment.complaints[0].hint == "`;` separates statements; `#` and `//` begin a comment");
}

TEST_CASE("assemble: a register misspelt is no constant") {
    struct {
        const char *word, *meant;
    } const kWords[] = {{"R0", "r0"},   {"ro", "r0"},   {"rO", "r0"}, {"x0", "r0"},  {"x7", "r7"}, {"W3", "w3"}, {"rl", "r1"},
                        {"r1O", "r10"}, {"R10", "r10"}, {"a1", "r1"}, {"fp", "r10"}, {"r", "r0"},  {"w", "w0"},  {"wl", "w1"}};
    for (auto [word, meant] : kWords) {
        INFO(std::string(word));
        const Assembled made = assemble(std::string(word) + " = 1\nexit\n");
        REQUIRE(made.complaints.size() == 1);
        CHECK(made.complaints[0].at.message.find(std::string("no register `") + word + "`") != std::string::npos);
        CHECK(made.complaints[0].hint.find(std::string("did you mean `") + meant + "`?") == 0);
        const Assembled used = assemble("r1 = " + std::string(word) + "\nexit\n");
        REQUIRE(used.complaints.size() == 1);
        CHECK(used.complaints[0].hint == "did you mean `" + std::string(meant) + "`?");
        CHECK(assemble(".const " + std::string(word) + " = 5\nr1 = " + word + "\nexit\n"));
    }
    CHECK(assemble("N = 8\nLIMIT = 9\nrate = 3\nr0 = N + LIMIT + rate\nexit\n").warning_report() == "");
    CHECK(assemble("rax = 8\nexit\n").warning_report() ==
          "asm:1:1: warning: the constant `rax` isn't used; registers are r0 to r10, "
          "and w0 to w10 for their lower halves\n  1 | rax = 8\n    | ^\n"
          "  hint: .const rax = n declares a constant\n");
    CHECK(assemble(".const LIMIT = 8\nexit\n").warnings.empty());
}

TEST_CASE("assemble: what no verifier takes is warned of, and assembled") {
    auto warned = [](std::string_view text) {
        AssembleOptions options;
        options.section = [](std::string_view section, std::string &hint) {
            hint = "did you mean `xdp`?";
            return section == "xdp" || section == "socket";
        };
        const Assembled made = assemble(text, options);
        INFO(made.report());
        CHECK(made);
        std::string out;
        for (const Complaint &warning : made.warnings)
            out += std::to_string(warning.at.line) + ":" + std::to_string(warning.at.column) + " " + warning.at.message + "\n";
        return out;
    };
    CHECK(warned("goto +100\nexit\n") == "1:1 warning: the jump goes to instruction 101, and the function has 0 to 1\n");
    CHECK(warned("r0 = 0\n  if r0 == 0 goto -5\nexit\n") ==
          "2:3 warning: the jump goes to instruction -3, and the function has 0 to 2\n");
    CHECK(warned("goto +1\nr1 = 5 ll\nexit\n") ==
          "1:1 warning: the jump goes into the middle of instruction 1, which takes two places\n");
    CHECK(warned("r0 = 1\n") == "1:1 warning: the function `main` ends here without an exit or a jump\n");
    CHECK(warned("exit\nr0 = 1 ll\n") == "2:1 warning: the function `main` ends here without an exit or a jump\n");
    CHECK(warned(".program p \"xdp\"\nr0 = 1\n.function f\nexit\n") ==
          "2:1 warning: the function `p` ends here without an exit or a jump\n");
    for (const char *access : {"r0 = *(u64 *)(r10 - 520)", "*(u8 *)(r10 - 513) = 1", "*(u8 *)(r10 + 0) = r1",
                               "*(u64 *)(r10 - 4) = r1", "lock *(u64 *)(r10 - 516) += r1", "w1 = load_acquire((u8 *)(r10 + 8))"})
        CHECK(warned(std::string(access) + "\nexit\n").find("outside of the stack, which is r10 - 512 to r10 - 1") !=
              std::string::npos);
    CHECK(warned("r0 = *(u64 *)(r10 - 512)\n*(u8 *)(r10 - 1) = 1\nr1 = *(u64 *)(r1 - 600)\nexit\n") == "");
    CHECK(warned(".program p \"xpd\"\nexit\n") == "1:12 warning: no loader knows the section name `xpd`\n");
    CHECK(warned("a: goto a\n") == "");
    CHECK(warned("call f\nexit\nf: r0 = 1\nexit\n") == "");
}

TEST_CASE("assemble: a register that nothing has written is told where it is read") {
    auto told = [](std::string_view text) {
        const Assembled made = assemble(text);
        INFO(made.report());
        CHECK(made);
        std::string out;
        for (const Complaint &warning : made.warnings) {
            const std::string &message = warning.at.message;
            const size_t at = message.find(" is read here, and nothing has been written to it, or not since a call");
            REQUIRE(at != std::string::npos);
            out += std::to_string(warning.at.line) + ":" + message.substr(std::string_view("warning: ").size(), at - 9) + " ";
        }
        return out;
    };
    CHECK(told("r3 = r7\nexit\n") == "1:r7 ");
    CHECK(told("r0 += 1\nr0 += r8\nexit\n") == "1:r0 2:r8 ");
    CHECK(told("r0 = r1\nr0 += r2\nr0 += r10\nexit\n") == ""); // context, length, stack
    CHECK(told("r0 = r3\nexit\n") == "1:r3 ");
    CHECK(told(".program p \"socket\"\ncall f\nexit\n.function f\nr0 = r5\nr0 += r6\nexit\n") == "6:r6 ");
    // A call leaves r0 and takes the arguments; r6 to r9 stay.
    CHECK(told("r6 = r1\ncall bpf_ktime_get_ns\nr0 += r6\nr0 += r1\nexit\n") == "4:r1 ");
    // Written on one path is enough; on a path that isn't taken from here it isn't.
    CHECK(told("if r1 == 0 goto a\nr7 = 1\na: r0 = r7\nexit\n") == "");
    CHECK(told("goto a\nr7 = 1\na: r0 = r7\nexit\n") == "3:r7 ");
    CHECK(told("r0 = 0\nexit\nr0 = r9\nexit\n") == ""); // nothing leads there
    // Round and round: what the end of a loop writes its beginning may read.
    CHECK(told("l: r0 = r7\nr7 = 1\nif r1 != 0 goto l\nexit\n") == "");
    // A label that is called has arguments; what a caller has in r6 it hasn't.
    CHECK(told("r6 = 1\ncall f\nexit\nf: r0 = r4\nr0 += r6\nexit\n") == "5:r6 ");
    // Addresses, values that are stored, compared, exchanged, read from a packet.
    CHECK(told("r0 = *(u64 *)(r9 + 0)\nexit\n") == "1:r9 ");
    CHECK(told("*(u64 *)(r10 - 8) = r4\nr0 = 0\nexit\n") == "1:r4 ");
    CHECK(told("r0 = 0\nif r0 == r4 goto +0\nexit\n") == "2:r4 ");
    CHECK(told("*(u64 *)(r10 - 8) = 0\nr0 = cmpxchg_64(r10 - 8, r0, r3)\nexit\n") == "2:r0 2:r3 ");
    CHECK(told("r0 = *(u8 *)skb[r3]\nexit\n") == "1:r3 1:r6 ");
    // A part of a program, and gotox, which leads nobody knows where.
    CHECK(assemble("r3 += r4\n").warnings.size() == 1);
    CHECK(told("gotox r3\nexit\n") == "");
}

TEST_CASE("assemble: a label that is called gives the function its name") {
    const auto names = [](std::string_view text) {
        std::string out;
        for (const Function &function : assemble(text).unit.functions) out += function.name + " ";
        return out;
    };
    CHECK(names("call double\nexit\ndouble: r0 = r1\nr0 += r1\nexit\n") == "main double ");
    // Not where the name is taken, or C has no such names.
    CHECK(names("call m\nexit\nm: r0 = 1\nexit\n.map m array key 4 value 4 entries 1\n") == "main main_2 ");
    CHECK(names("call a$b\nexit\na$b: r0 = 1\nexit\n") == "main main_2 ");
    CHECK(names(".program p \"socket\"\ncall f\nexit\nf: r0 = 1\nexit\n.program q \"socket\"\ncall f\nexit\nf: r0 = 2\nexit\n") ==
          "p f q q_2 ");
    CHECK(names("call +1\nexit\nr0 = 1\nexit\n") == "main main_2 ");
}

TEST_CASE("assemble: the label exit is the first exit where there is no other") {
    CHECK(bytes("jne %r0, 0, exit\nmov %r0, 1\nexit\nexit\n") ==
          "5500010000000000 b700000001000000 9500000000000000 9500000000000000");
    CHECK(bytes("jne %r0, 0, exit\nexit\nexit: exit\n") == "5500010000000000 9500000000000000 9500000000000000");
    CHECK_FALSE(assemble("jne %r0, 0, exit\na: goto a\n"));
}

TEST_CASE("assemble: the conformance suite's text may shift too far, with a warning, and call a register") {
    CHECK(bytes("rsh %r0, 68\nrsh32 %r0, -24\nexit\n") == "7700000044000000 74000000e8ffffff 9500000000000000");
    CHECK(assemble("rsh %r0, 68\nexit\n").warnings.at(0).at.message == "warning: a shift by 68; it may be 0 to 63");
    CHECK_FALSE(assemble("r0 >>= 68\nexit\n"));
    CHECK(bytes("call %r3\n") == "8d03000000000000");
}

TEST_CASE("assemble: load_acquire and store_release with either width of register") {
    for (const char *type : {"u8", "u16", "u32"}) {
        INFO(type);
        const std::string load = std::string(" = load_acquire((") + type + " *)(r2 + 0))\n";
        const std::string store = std::string("store_release((") + type + " *)(r2 + 0), ";
        CHECK(bytes("w1" + load) == bytes("r1" + load));
        CHECK(bytes(store + "w1)\n") == bytes(store + "r1)\n"));
    }
    CHECK_FALSE(assemble("w1 = load_acquire((u64 *)(r2 + 0))\nexit\n"));
    CHECK_FALSE(assemble("store_release((u64 *)(r2 + 0), w1)\nexit\n"));
}

TEST_CASE("assemble: a unit with everything, its listing is the unit again") {
    const char *text = R"(.license "GPL"
.struct event
    pid  u32
    comm u8[16]
    when u64
.end
.map counts hash key u32 value event entries 1024
.map events ringbuf entries 4096
.rodata greeting "hello"
.data total u64[2] = 1, 2
.bss table u32[16]
.kfunc bpf_task_release
.program p "perf_event"
    r1 = counts ll
    r1 = counts + 8 ll
    r1 = greeting ll
    r1 = total + 8 ll
    r1 = table ll
    r1 = walk ll
    r1 = ksym bpf_prog_active ll
    r2 = *(u32 *)(r1 + @task_struct.pid)
    r2 += @task_struct.mm.pgd
    call walk
    call bpf_task_release
    exit
.function walk
    r0 = 0
    exit
)";
    const Assembled made = assemble(text);
    INFO(made.report());
    REQUIRE(made);
    const Unit &unit = made.unit;
    CHECK(unit.license == "GPL");
    REQUIRE(unit.types.size() == 1);
    CHECK(unit.types[0].size == 32);
    CHECK(unit.types[0].fields[2].offset == 24);
    REQUIRE(unit.maps.size() == 5);
    CHECK(unit.maps[0].value_size == 32);
    CHECK(unit.maps[0].value_type == "event");
    CHECK(unit.maps[2].name == ".rodata");
    CHECK(unit.maps[2].contents == std::vector<uint8_t>{'h', 'e', 'l', 'l', 'o', 0});
    CHECK(unit.maps[3].contents[8] == 2);
    REQUIRE(unit.functions.size() == 2);
    const Function &p = unit.functions[0];
    CHECK(p.section == "perf_event");
    REQUIRE(p.refs.size() == 11);
    CHECK(p.refs[0].kind == RefKind::map);
    CHECK(p.refs[1].kind == RefKind::map_value);
    CHECK(p.refs[3].symbol == ".data");
    CHECK(p.refs[3].addend == 8);
    CHECK(p.refs[5].kind == RefKind::function);
    CHECK(p.refs[6].kind == RefKind::ksym);
    CHECK(p.refs[7].symbol == "task_struct.pid");
    CHECK(p.refs[9].kind == RefKind::call);
    CHECK(p.refs[10].kind == RefKind::kfunc);
    REQUIRE(p.lines.size() == 12);
    CHECK(p.lines[1].line == 15);
    CHECK(p.lines[1].text == "r1 = counts + 8 ll");
    const std::string listing = print(unit);
    AssembleOptions options;
    options.name = unit.name;
    const Assembled again = assemble(listing, options);
    INFO(again.report());
    REQUIRE(again);
    CHECK(print(again.unit) == listing);
    std::vector<Insn> insns;
    std::string why;
    CHECK_FALSE(flatten(unit, insns, why));
    CHECK(why.find("counts") != std::string::npos);
}

TEST_CASE("assemble: a kernel symbol may have a register's name") {
    const Assembled made = assemble("r1 = ksym r1 ll\nr2 = ksym w0 ll\nexit\n");
    INFO(made.report());
    REQUIRE(made);
    REQUIRE(made.unit.functions.at(0).refs.size() == 2);
    CHECK(made.unit.functions[0].refs[0].symbol == "r1");
    CHECK(made.unit.functions[0].refs[1].symbol == "w0");
}

TEST_CASE("assemble: a global function says how many arguments it takes") {
    const Assembled made = assemble(".program p\n call walk\n r0 = 0\n exit\n.function walk global 2\n r0 = 0\n exit\n");
    INFO(made.report());
    REQUIRE(made);
    REQUIRE(made.unit.functions.size() == 2);
    CHECK(made.unit.functions[1].global);
    CHECK(made.unit.functions[1].arguments == 2);
    CHECK_FALSE(made.unit.functions[0].global);
    CHECK(made.unit.functions[1].pointed == 0);
    CHECK_FALSE(assemble(".function walk global 6\n r0 = 0\n exit\n"));
    CHECK_FALSE(assemble(".function walk global\n r0 = 0\n exit\n"));
}

TEST_CASE("assemble: a global function's first argument may be the address of so many bytes") {
    const Assembled made = assemble(".program p\n call walk\n r0 = 0\n exit\n.function walk global 2 0x40\n r0 = 0\n exit\n");
    INFO(made.report());
    REQUIRE(made);
    REQUIRE(made.unit.functions.size() == 2);
    CHECK(made.unit.functions[1].arguments == 2);
    CHECK(made.unit.functions[1].pointed == 64);
    const std::string listing = print(made.unit);
    CHECK(listing.find(".function walk global 2 64\n") != std::string::npos);
    const Assembled again = assemble(listing);
    INFO(again.report());
    REQUIRE(again);
    CHECK(again.unit.functions[1].pointed == 64);
    for (const char *wrong : {"0 64", "1 0", "1 x", "1 4294967296", "1 8 8"})
        CHECK_FALSE(assemble(".function walk global " + std::string(wrong) + "\n r0 = 0\n exit\n"));
}

TEST_CASE("assemble: included files have their own lines, and an end") {
    const char *inner = "N = 5\nr1 = N\nr10 = 1\n";
    AssembleOptions options;
    options.name = "main.asm";
    options.include = one_file;
    options.context = &inner;
    const Assembled made = assemble("r0 = 0\n.include \"other.asm\"\nexit\n", options);
    REQUIRE(made.complaints.size() == 1);
    CHECK(made.complaints[0].at.file == "other.asm");
    CHECK(made.complaints[0].at.line == 3);
    inner = "N = 5\nr1 = N\n";
    CHECK(assemble(".include \"other.asm\"\nr2 = N\nexit\n", options));
    inner = ".include \"other.asm\"\n";
    CHECK(assemble(".include \"other.asm\"\nexit\n", options).report().find("16 deep") != std::string::npos);
}

TEST_CASE("isa: every row has its entry; words find their rows") {
    for (const Form &form : isa::kForms) {
        INFO(std::string(form.name));
        const std::string entry = isa_entry(form);
        CHECK(entry.find("does            ") != std::string::npos);
        CHECK(entry.find("does            \n") == std::string::npos);
    }
    CHECK(find_forms("add").size() == 2);
    CHECK(find_forms("+=").size() > 3);
    CHECK(find_forms("0x95").size() == 1);
    CHECK(find_forms("goto").size() == 1);
    CHECK(find_forms("swap16").size() == 1);
    CHECK(find_forms("nonsense").empty());
    CHECK(isa_hint("jslr") == "did you mean `jslt`?");
}

TEST_CASE("graph: blocks end at jumps") {
    const Assembled made = assemble("if r1 == 0 goto out\nr0 = 1\nexit\nout: r0 = 0\nexit\n");
    REQUIRE(made);
    const std::string graph = print_graph(made.unit);
    CHECK(graph.find("f0_0 -> f0_3 [color=green]") != std::string::npos);
    CHECK(graph.find("f0_0 -> f0_1 [color=red]") != std::string::npos);
    CHECK(graph.find("f0_1 ->") == std::string::npos);
}
