// Text and bytes, there and back: every row of the instruction set with every register and the edges of its numbers, in all three
// dialects; and any eight bytes at all.
#include <cstring>
#include <string>

#include "asm/assemble.h"
#include "asm/encode.h"
#include "asm/print.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

struct Style {
    const char *name;
    PrintStyle style;
};
const Style kStyles[] = {
    {"llvm", {}},
    {"llvm in hexadecimal", {.hex = true}},
    {"kernel", {.dialect = Dialect::kernel}},
    {"conformance", {.dialect = Dialect::conformance}},
};

/// What a dialect can't say: the kernel's names of what is loaded, the conformance dialect's kinds of ld_imm64.
bool can_say(const Style &style, const Form &form, const Insn &insn) {
    if (style.style.dialect == Dialect::llvm) return true;
    if (form.shape == Shape::load_wide) return insn.src == 0;
    if (form.shape == Shape::call_kfunc) return style.style.dialect == Dialect::conformance && insn.off == 0;
    return true;
}

/// Many instructions as one text, assembled at once; a mistake is looked for one by one.
struct Batch {
    std::vector<Insn> insns;
    std::vector<const Form *> forms;

    void check() {
        for (const Style &style : kStyles) {
            std::vector<Insn> wanted;
            std::string text;
            for (size_t i = 0; i < insns.size(); i += is_wide(insns[i]) ? 2 : 1) {
                const std::span<const Insn> at(&insns[i], is_wide(insns[i]) ? 2 : 1);
                if (!can_say(style, *find_form(at[0]), at[0])) continue;
                append_insn(text, at, style.style);
                text += '\n';
                wanted.insert(wanted.end(), at.begin(), at.end());
            }
            if (wanted.empty()) continue;
            AssembleOptions options;
            options.lines = false;
            const Assembled back = assemble(text, options);
            INFO(style.name << "\n" << back.report());
            REQUIRE(back);
            std::vector<Insn> flat;
            std::string why;
            REQUIRE(flatten(back.unit, flat, why));
            REQUIRE(flat.size() == wanted.size());
            for (size_t i = 0; i < flat.size(); ++i) {
                INFO(style.name << ": " << print(std::span(wanted).subspan(i)));
                REQUIRE(flat[i] == wanted[i]);
            }
        }
        insns.clear();
    }
    void add(const Encoded &encoded) {
        insns.push_back(encoded.insn);
        if (is_wide(encoded.insn)) insns.push_back(encoded.second);
        if (insns.size() > 4000) check();
    }
};

} // namespace

TEST_CASE("round trip: every form, every register, the edges of every number, in every dialect") {
    constexpr int64_t kOffsets[] = {0, 1, -1, 7, -8, 255, 256, 32767, -32768};
    constexpr int64_t kNumbers[] = {0,           1,
                                    -1,          9,
                                    10,          31,
                                    32,          63,
                                    127,         -128,
                                    255,         32767,
                                    -32768,      65535,
                                    65536,       INT32_MAX,
                                    INT32_MIN,   0x7f00ff00,
                                    1000,        -1000000000,
                                    UINT32_MAX,  0x80000000,
                                    0x100000000, INT64_MAX,
                                    INT64_MIN,   0x1122334455667788};
    constexpr int64_t kNone[] = {0};
    Batch batch;
    size_t valid = 0;
    for (const Form &form : isa::kForms) {
        const uint8_t fields = form.fields();
        const std::span<const int64_t> offsets = fields & kOff ? std::span<const int64_t>(kOffsets) : kNone;
        const std::span<const int64_t> numbers = fields & kImm ? std::span<const int64_t>(kNumbers) : kNone;
        for (int dst = 0; dst <= (fields & kDst ? 10 : 0); ++dst)
            for (int src = 0; src <= (fields & kSrc ? 10 : 0); ++src)
                for (int64_t off : offsets)
                    for (int64_t imm : numbers) {
                        const Encoded encoded = encode(form, {dst, src, off, imm});
                        if (!encoded) continue;
                        // A call of its own text would be cut into functions; its distance is tried in the next test.
                        if (form.shape == Shape::call_local && imm < 100000) continue;
                        batch.add(encoded);
                        ++valid;
                    }
    }
    batch.check();
    CHECK(valid > 60000);
}

TEST_CASE("round trip: calls inside the text are cut into functions, and come out as they were") {
    const Assembled made = assemble("call +2\nr0 = 5\nexit\nr0 += 1\ncall -5\ncall +1\nexit\nr0 = 1\nexit\n");
    INFO(made.report());
    REQUIRE(made);
    REQUIRE(made.unit.functions.size() == 3);
    CHECK(made.unit.functions[0].section == "socket");
    CHECK(made.unit.functions[1].section.empty());
    CHECK(made.unit.functions[1].refs[0].symbol == "main");
    CHECK(made.unit.functions[1].refs[1].symbol == "main_7");
    std::vector<Insn> flat;
    std::string why;
    REQUIRE(flatten(made.unit, flat, why));
    CHECK(flat[0].imm == 2);
    CHECK(flat[4].imm == -5);
    CHECK(flat[5].imm == 1);
}

TEST_CASE("round trip: any bytes, as a listing") {
    uint64_t state = 88172645463325252;
    auto next = [&] { // xorshift
        state ^= state << 13;
        state ^= state >> 7;
        return state ^= state << 17;
    };
    for (int round = 0; round < 300; ++round) {
        Unit unit;
        unit.functions.resize(1);
        Function &function = unit.functions[0];
        function.name = "f";
        function.section = "socket";
        for (int i = 0; i < 200; ++i) {
            const uint64_t raw = next(), more = next();
            Insn insn;
            std::memcpy(static_cast<void *>(&insn), &raw, 8);
            if (more & 1) insn.off = static_cast<int16_t>(more >> 8 & 63);
            if (more & 2) insn.src = more >> 16 & 3;
            if (more & 4) insn.imm = static_cast<int32_t>(more >> 24 & 0xff);
            if (more & 8) insn.off = 0;
            if (insn.code == 0x85) insn.src = 0; // calls of the text itself: see above
            if ((more & 0xf0) == 0 && i > 0) insn = Insn{};
            function.insns.push_back(insn);
        }
        const std::string text = print(unit);
        AssembleOptions options;
        options.lines = false;
        const Assembled back = assemble(text, options);
        INFO(back.report());
        REQUIRE(back);
        std::vector<Insn> flat;
        std::string why;
        REQUIRE(flatten(back.unit, flat, why));
        REQUIRE(flat.size() == function.insns.size());
        for (size_t i = 0; i < flat.size(); ++i) {
            INFO(i << ": " << print(std::span(function.insns).subspan(i)));
            REQUIRE(flat[i] == function.insns[i]);
        }
    }
}
