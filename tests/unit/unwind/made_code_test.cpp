// The rule of a frame in code that was made at run time, by the .eh_frame that its maker wrote.
#include "runtime/unwind/made_code.h"

#include <cstdint>
#include <vector>

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::unwind;

namespace {

// What CPython 3.13 writes of a trampoline (python -X perf_jit): sub rsp, 8; call rcx; add rsp, 8; ret. The section lies behind
// its 11 bytes, in whole words.
constexpr uint8_t kOfCpython[] = {0x14, 0,    0,    0,    0,    0, 0, 0, 1,    0x7a, 0x52, 0,    1,    0x78, 0x10, 1,
                                  0x1b, 0x0c, 7,    8,    0x90, 1, 0, 0, 0x14, 0,    0,    0,    0x1c, 0,    0,    0,
                                  0xd0, 0xff, 0xff, 0xff, 0x0b, 0, 0, 0, 0,    0x44, 0x0e, 0x10, 0x46, 0x0e, 8,    0};
constexpr uint64_t kCode = 0x7f6d'2b20'e000, kBytes = 11, kSection = kCode + 16;

std::vector<std::byte> section() {
    const auto bytes = std::as_bytes(std::span(kOfCpython));
    return {bytes.begin(), bytes.end()};
}
bool is(const std::optional<UnwindRule> &rule, int cfa) {
    return rule && rule->kind == UNWIND_SP && rule->cfa == cfa && rule->fp == 0 && rule->ra == -1;
}

} // namespace

TEST_CASE("made code: a trampoline of CPython's, at each of its bytes") {
    const auto bytes = section();
    for (uint64_t at = 0; at < kBytes; ++at)
        CHECK(is(rule_of_made_code(Arch::x86_64, bytes, kSection, kCode + at), at < 4 || at >= 10 ? 1 : 2));
    CHECK(!rule_of_made_code(Arch::x86_64, bytes, kSection, kCode - 1));
    CHECK(!rule_of_made_code(Arch::x86_64, bytes, kSection, kCode + kBytes));
    CHECK(!rule_of_made_code(Arch::x86_64, bytes, kSection + 16, kCode)); // relative to where the section lies
    CHECK(!rule_of_made_code(Arch::other, bytes, kSection, kCode));
    CHECK(!rule_of_made_code(Arch::x86_64, {}, kSection, kCode));
}

TEST_CASE("made code: an entry that is cut or says nonsense gives no rule") {
    const auto whole = section();
    for (size_t size = 0; size < whole.size(); ++size)
        CHECK(!rule_of_made_code(Arch::x86_64, Bytes(whole).first(size), kSection, kCode + 5));
    // Each byte turned over: whatever comes of it, it is read within its bounds.
    for (size_t at = 0; at < whole.size(); ++at) {
        auto bytes = whole;
        bytes[at] ^= std::byte{0xff};
        for (uint64_t pc = 0; pc < kBytes; ++pc) (void)rule_of_made_code(Arch::x86_64, bytes, kSection, kCode + pc);
    }
    auto other = whole;
    other[16] = std::byte{0x50}; // addresses that are relative to nothing that there is
    CHECK(!rule_of_made_code(Arch::x86_64, other, kSection, kCode + 5));
}
