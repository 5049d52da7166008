// Which share of a file's code stacks go through, and how.
#include "runtime/unwind/coverage.h"

#include <algorithm>
#include <initializer_list>

#include "runtime/symbols/vdso.h"
#include "tests/support/test.h"
#include "tests/unit/unwind/cfi_elf.h"

using namespace rawbpf;
using test::CfiElf;

namespace {

unwind::Coverage of(const CfiElf &app) {
    const std::vector<std::byte> image = app.file();
    const auto file = elf::Elf::parse(image, "app").value();
    return unwind::coverage(file, unwind::build_table(file).value());
}

} // namespace

TEST_CASE("unwind coverage: rows, holes with frame pointers, holes without, padding") {
    CfiElf app; // 192 KiB
    std::fill(app.code.begin(), app.code.end(), uint8_t{0x53});
    const uint64_t cie = app.eh.cie();
    app.eh.fde(cie, 0x10000, 0x10000);
    app.eh.fde(cie, 0x20010, 0x0fff0); // 16 bytes of padding before it
    unwind::Coverage code = of(app);
    CHECK(code.by_table == 0x1fff0);
    CHECK(code.by_pointers == 0);
    CHECK(code.by_neither == 0x10000);
    CHECK(code.percent(code.by_neither) == 33);
    const uint8_t prologue[] = {0x55, 0x48, 0x89, 0xe5};
    for (size_t at = 0x20000; at < 0x30000; at += 2048)
        std::copy(std::begin(prologue), std::end(prologue), app.code.begin() + static_cast<std::ptrdiff_t>(at));
    code = of(app);
    CHECK(code.by_pointers == 0x10000);
    CHECK(code.by_neither == 0);
    for (size_t at = 0x20000; at < 0x28000; at += 2048) app.code[at] = 0x53; // too few of them
    CHECK(of(app).by_neither == 0x10000);
    CHECK(of(CfiElf{}).all() == 0); // padding alone
}

TEST_CASE("unwind coverage: a hole that never saves the frame pointer has its caller's, where callers keep them") {
    CfiElf app;
    std::fill(app.code.begin(), app.code.end(), uint8_t{0x53});
    const uint64_t cie = app.eh.cie();
    app.eh.fde(cie, 0x10000, 0x10000, {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6}); // push rbp; mov rbp, rsp
    app.eh.fde(cie, 0x20010, 0x0fff0, {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6});
    CHECK(of(app).by_pointers == 0x10000);
    CHECK(of(app).by_neither == 0);
    const auto with = [&](std::initializer_list<uint8_t> code) {
        CfiElf other = app;
        std::copy(code.begin(), code.end(), other.code.begin() + 0x28000);
        return of(other).by_neither;
    };
    CHECK(with({0x55}) == 0x10000);                         // push rbp
    CHECK(with({0x48, 0x89, 0x6c, 0x24, 0x10}) == 0x10000); // mov [rsp + 16], rbp
    CHECK(with({0x48, 0x89, 0x5c, 0x24, 0x10}) == 0);       // rbx
    app.eh.fde(cie, 0x20000, 8, {0x41, 0x0e, 16});          // another keeps none
    CHECK(of(app).by_neither > 0);
}

TEST_CASE("unwind coverage: riscv64's instructions of two bytes and of four") {
    CfiElf app;
    app.target.machine = EM_RISCV;
    // sd ra, 8(sp); sd s0, 0(sp); addi s0, sp, 16; li a0, 1; jal ra, 0, which looks like the third where its bytes are halved
    const uint8_t code[] = {0x06, 0xe4, 0x22, 0xe0, 0x00, 0x08, 0x05, 0x45, 0xef, 0x00, 0x00, 0x08};
    const auto fill = [&](size_t from, size_t to) {
        for (size_t at = 0; at + sizeof code <= app.code.size(); at += sizeof code)
            std::copy(code + from, code + to, app.code.begin() + static_cast<std::ptrdiff_t>(at + from));
    };
    std::fill(app.code.begin(), app.code.end(), uint8_t{0x01}); // nop
    for (size_t i = 1; i < app.code.size(); i += 2) app.code[i] = 0;
    CHECK(of(app).by_pointers == 0);
    fill(8, sizeof code);
    CHECK(of(app).by_pointers == 0);
    fill(2, 4);
    CHECK(of(app).by_pointers == 0); // s0 is saved, but leads nowhere
    fill(4, 6);
    CHECK(of(app).by_neither == 0);
    CHECK(of(app).by_pointers == 0x30000);
}

TEST_CASE("unwind coverage: stacks go through all of the vdso, as profiles show") {
    const auto image = symbols::vdso_image();
    if (!image) SKIP(image.error().message());
    const auto file = elf::Elf::parse(*image, "[vdso]").value();
    const unwind::Coverage code = unwind::coverage(file, unwind::build_table(file).value());
    CHECK(code.percent(code.by_neither) < 5);
}
