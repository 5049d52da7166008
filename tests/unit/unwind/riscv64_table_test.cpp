// riscv64's tables: call frame information as its compiler writes it, its PLT, its vdso.
#include <algorithm>
#include <iterator>

#include "runtime/unwind/table.h"

#include "tests/support/test.h"
#include "tests/unit/unwind/cfi_elf.h"

using namespace rawbpf;
using test::Cfi;
using test::CfiElf;
using test::Program;
using test::text;

namespace {

constexpr uint8_t kAdvance = 0x40, kOffset = 0x80, kRestore = 0xc0;

// The rows of one function at 0x10000, 64 bytes.
std::string riscv_rows(const Program &program) {
    CfiElf app;
    app.target.machine = EM_RISCV;
    Cfi::Cie cie;
    cie.program = {0x0d, 2}; // def_cfa_register sp: its offset is 0
    cie.data_align = 0x7c;   // -4
    cie.column = 1;
    app.eh.fde(app.eh.cie(cie), 0x10000, 64, program);
    std::string all = text(app.table());
    const std::string end = ", 10040 none";
    REQUIRE(all.ends_with(end));
    all.resize(all.size() - end.size());
    return all;
}

} // namespace

// As riscv64-linux-gnu-gcc -O2 writes them: offsets in fours, everything that is saved told at once.
TEST_CASE("unwind table: riscv64's frames, without a frame pointer and with one, which is the CFA") {
    CHECK(riscv_rows({}) == "10000 sp+0");
    // addi sp, -32; sd ra, 24(sp); ... ld ra; addi sp, 32
    CHECK(riscv_rows({kAdvance | 2, 0x0e, 32, kAdvance | 2, kOffset | 1, 2, kAdvance | 40, kRestore | 1, kAdvance | 2, 0x0e,
                      0}) == "10000 sp+0, 10002 sp+32, 10004 sp+32 ra-8, 1002c sp+32, 1002e sp+0");
    // sd s0, 16(sp); addi s0, sp, 32
    CHECK(riscv_rows({kAdvance | 2, 0x0e, 32, kAdvance | 4, kOffset | 1, 2, kOffset | 8, 4, kAdvance | 2, 0x0c, 8, 0}) ==
          "10000 sp+0, 10002 sp+32, 10006 sp+32 fp-16 ra-8, 10008 fp+0 fp-16 ra-8");
    // With variable arguments above: the CFA is 64 bytes further up.
    CHECK(riscv_rows({kAdvance | 2, 0x0c, 8, 0xc0, 0, kOffset | 1, 18, kOffset | 8, 20}) ==
          "10000 sp+0, 10002 fp+64 fp-80 ra-72");
    CHECK(riscv_rows({kAdvance | 2, 0x0c, 5, 0}) == "10000 sp+0, 10002 odd"); // t0, as __riscv_save_0 has it
    CHECK(riscv_rows({kAdvance | 2, 0x07, 1}) == "10000 sp+0, 10002 end");
    CHECK(riscv_rows({kAdvance | 2, 0x09, 1, 8}) == "10000 sp+0, 10002 end"); // glibc's __start_context
    CHECK(riscv_rows({kAdvance | 2, 0x09, 1, 5}) == "10000 sp+0, 10002 odd");
}

TEST_CASE("unwind table: riscv64's PLT, and its vdso's entry for what signal handlers return to") {
    CfiElf app;
    app.target.machine = EM_RISCV;
    app.code.resize(0x10000);
    Cfi::Cie cie;
    cie.program = {0x0d, 2};
    cie.column = 1;
    app.eh.fde(app.eh.cie(cie), 0x10000, 64);
    app.plt.assign(16, 0x00000013);
    CHECK(text(app.table()) == "10000 sp+0, 10040 none, 20000 sp+0, 20040 none");
    CHECK(app.table().find(0x20010).flags == (UNWIND_ADDED | UNWIND_RA_IN_LR));
    app.plt.clear();
    const uint8_t sigreturn[] = {0x93, 0x08, 0xb0, 0x08, 0x73, 0, 0, 0}; // li a7, 139; ecall
    std::copy(std::begin(sigreturn), std::end(sigreturn), app.code.begin() + 0x80);
    CHECK(text(app.table()) == "10000 sp+0, 10040 none, 1007f signal, 10088 none"); // by its instructions
    cie.augmentation = "zRS";
    app.eh.fde(app.eh.cie(cie), 0x10080, 8);
    CHECK(text(app.table()) == "10000 sp+0, 10040 none, 1007f signal, 10088 none");
    app.code[0x80] = 0x13; // another register: the entry alone, as it says
    CHECK(text(app.table()) == "10000 sp+0, 10040 none, 10080 signal, 10088 none");
}
