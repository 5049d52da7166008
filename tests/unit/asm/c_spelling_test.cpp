// Lines as C has them: the assembler refuses each, and what its hint shows as code assembles.
#include "asm/c_spelling.h"

#include "asm/assemble.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

constexpr std::string_view kLikeC[] = {
    "r0 = r0 + r1",
    "r0 = r1 + 1",
    "r0 = r1 & 3",
    "r0 = 4 * r1",
    "w2 = w3 << 4",
    "r7 = r10 - 8 + r6",
    "r0 += *(u32 *)(r10 - 4)",
    "r0 = (u32 *)(r10 - 8)",
    "r2 = &r10",
    "r0 = *(u8 *)(r10 - 8 + r6)",
    "r0 = *(u8 *)(r1 + r6)",
    "if r2 + 14 > r3 goto out",
    "if (r2 + 14 > r3) goto out",
    "*r0 += 1",
    "return r0;",
    "r0++",
    "r0--;",
    "++r3",
    "r1 + 5",
    "*(u64 *)(r0 + 0) += 1",
    "*(u32 *)(r10 - 8) += r1",
    "lock *(u64 *)(r0 + 0) += 1",
    "lock *(u32*)(r10 - 4) |= 8",
    "lock r0 += 1",
    "if (r0 == 0) goto out",
    "if (!r0) return 0;",
    "if !r0 goto out",
    "if r0 = 0 goto out",
    "if r0 goto out",
    "if r0 == 0 then goto out",
    "if r1 < r2 { goto out }",
    "if r0 == 0 exit",
    "else goto out",
    "while (r1 > 0) {",
    "for (;;)",
    "}",
    "return 0",
    "return r0 + 1",
    "exit 0",
    "jmp out",
    "r0 == 1",
    "r0 := 1",
    "r0 = (r1)",
    "r1 = *r0",
    "r1 = [r0]",
    "r1 = r2[8]",
    "r0 = *(u64 *)r1",
    "r1 = *(u64 *)(r0[0])",
    "*r1 = 5",
    "r1[4] = 5",
    "[r1] = 5",
    "r0 = ~r1",
    "r0 = !r1",
    "call bpf_map_lookup_elem(r1, r2)",
    "r0 = bpf_map_lookup_elem(r1, r2)",
    "bpf_ktime_get_ns();",
    "r0 = counts[0]",
    "counts[0] += 1",
    "r1 = *(int *)(r0 + 0)",
    "r1 = *(unsigned int *)(r0 + 0)",
    "int x = 3;",
    "u64 *value;",
};

// What stands between ` and `, and is more than a word.
std::vector<std::string> code_in(std::string_view hint) {
    std::vector<std::string> out;
    for (size_t at = hint.find('`'); at != std::string_view::npos; at = hint.find('`', at + 1)) {
        const size_t end = hint.find('`', at + 1);
        REQUIRE(end != std::string_view::npos);
        const std::string_view code = hint.substr(at + 1, end - at - 1);
        if (code.find(' ') != std::string_view::npos && code != "goto LABEL" && code.find("*)") != 2 && code != "*(u64 *)" &&
            code != "unsigned int" && !(code.starts_with("*(") && code.ends_with("*)")))
            out.emplace_back(code);
        at = end;
    }
    return out;
}

} // namespace

TEST_CASE("assembler: what is written as C has it gets a hint, and the code in the hint assembles") {
    for (std::string_view line : kLikeC) {
        CAPTURE(line);
        const Assembled refused = assemble(std::string("out:\n") + std::string(line) + "\nr0 = 0\nexit\n");
        REQUIRE_FALSE(refused.complaints.empty());
        const std::string &hint = refused.complaints.front().hint;
        CHECK_MESSAGE(!hint.empty(), refused.complaints.front().at.message);
        for (const std::string &code : code_in(hint)) {
            CAPTURE(code);
            const Assembled good = assemble(code + "\nout:\nagain:\nLABEL:\nr0 = 0\nexit\n");
            CHECK_MESSAGE(good.complaints.empty(), good.report());
        }
    }
}

TEST_CASE("assembler: a hint names the line's own registers") {
    CHECK(hint_for_c_spelling("r0 = r0 + r1") == "an instruction has two operands: `r0 += r1`");
    CHECK(hint_for_c_spelling("  r3 = r4 - 8 # less") == "an instruction has two operands: `r3 = r4` first, then `r3 -= 8`");
    CHECK(hint_for_c_spelling("call bpf_ktime_get_ns()").find("`call bpf_ktime_get_ns`") != std::string::npos);
    for (std::string_view other : {"", "r0 = 1", "# r0 = r0 + r1", "exit", "((((((((((((((((((((((((((((", "=", "r0 ="})
        CHECK(hint_for_c_spelling(other).empty());
}
