// What is refused before it runs, with the instruction's number and the reason.
#include "tests/support/sanitized.h"
#include "tests/unit/emulator/emulated.h"

using namespace rawbpf;
using namespace rawbpf::test;

namespace {
bool says(const std::string &text, std::string_view part) {
    if (text.find(part) != std::string::npos) return true;
    MESSAGE(text);
    return false;
}
} // namespace

TEST_CASE("emulator: what is no program is refused, and where it isn't") {
    const Insn exit = i("exit");
    CHECK(says(fault({}), "no instructions"));
    CHECK(says(fault({raw(0x8e, 0, 0, 0, 0), exit}), "instruction 0"));
    CHECK(says(fault({raw(0x8e, 0, 0, 0, 0), exit}), "there is no opcode 0x8e"));
    CHECK(says(fault({i("mov"), raw(0x07, 11, 0, 0, 1), exit}), "instruction 1"));
    CHECK(says(fault({raw(0x07, 11, 0, 0, 1), exit}), "there is no register r11"));
    CHECK(says(fault({raw(0x0f, 1, 12, 0, 0), exit}), "there is no register r12"));
    CHECK(says(fault({raw(0xb7, 10, 0, 0, 0), exit}), "r10, the frame pointer"));
    CHECK(says(fault({raw(0xdb, 1, 10, 0, 0x01), exit}), "r10, the frame pointer"));
    CHECK(says(fault({raw(0xb7, 0, 3, 0, 0), exit}), "doesn't take these values in its register, offset and immediate"));
    CHECK(says(fault({raw(0x05, 0, 0, 5, 0), exit}), "goes to instruction 6, and the program has instructions 0 to 1"));
    CHECK(says(fault({raw(0x05, 0, 0, -2, 0), exit}), "goes to instruction -1"));
    CHECK(says(fault({raw(0x06, 0, 0, 0, INT32_MAX), exit}), "goes to instruction 2147483648"));
    CHECK(says(fault({raw(0x05, 0, 0, 1, 0), raw(0x18, 0, 0, 0, 0), Insn{}, exit}), "second half of a 16-byte instruction"));
    CHECK(says(fault({raw(0x18, 0, 0, 0, 0)}), "the second half is missing"));
    CHECK(says(fault({raw(0x18, 0, 0, 0, 0), exit, exit}), "second half must be zero"));
    CHECK(says(fault({i("mov")}), "ends here without an exit"));
    CHECK(says(fault({i("mov"), raw(0x18, 0, 0, 0, 0), Insn{}}), "ends here without an exit"));
    CHECK(says(fault({raw(0x85, 0, 0, 0, 4711), exit}), "there is no helper 4711"));
    CHECK(says(fault({raw(0x85, 0, 1, 0, 7), exit}), "the call goes to instruction 8"));
    CHECK(says(fault({raw(0x18, 1, 1, 0, 3), Insn{}, exit}), "maps by descriptor"));
}

TEST_CASE("emulator: every opcode with any fields is run or refused, never worse") {
    // Any first byte, registers at their limits: decode() must say no or the run must end. With sanitizers each fifth, which has
    // every value of each.
    const int every = kSanitized ? 5 : 1;
    int number = 0;
    for (int code = 0; code < 256; ++code)
        for (uint8_t registers : {0x00, 0x10, 0x21, 0x5a, 0xa5, 0xbb, 0xff})
            for (int32_t imm : {0, 1, 16, 32, 64, 0xe1, 0xf1, 0x100, -1})
                for (int16_t off : {0, 1, 8, -1}) {
                    if (number++ % every != 0) continue;
                    const Insn insn = raw(static_cast<uint8_t>(code), registers & 15, registers >> 4, off, imm);
                    ObjectSpec spec = spec_of({insn, Insn{}, i("exit"), i("exit")});
                    if (code != 0x18) spec.programs[0].insns[1] = i("exit");
                    (void)run(spec, {}, {.limit = 100});
                }
}

TEST_CASE("emulator: it never falls off the end") {
    // The last instruction is an exit or a jump, so whatever comes before, running on ends.
    CHECK(run({raw(0x05, 0, 0, 1, 0), i("exit"), raw(0x05, 0, 0, -2, 0)}).value() == 0);
}
