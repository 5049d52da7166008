// Tables from call frame information written by hand: each instruction, each encoding, pages, gaps, overlaps; and hostile bytes.
#include <algorithm>

#include "runtime/unwind/table.h"

#include "tests/support/test.h"
#include "tests/unit/unwind/cfi_elf.h"

using namespace rawbpf;
using test::Cfi;
using test::CfiElf;
using test::Program;
using test::text;

namespace {

// The rows of one function at 0x10000, 64 bytes, of x86_64 or arm64.
std::string rows(const Program &program, uint16_t machine = EM_X86_64, std::string augmentation = "zR", Program initial = {}) {
    CfiElf app;
    app.target.machine = machine;
    Cfi::Cie cie;
    cie.augmentation = std::move(augmentation);
    if (machine == EM_AARCH64) {
        cie.program = {0x0c, 31, 0}; // def_cfa sp 0
        cie.column = 30;
    }
    if (!initial.empty()) cie.program = std::move(initial);
    app.eh.fde(app.eh.cie(cie), 0x10000, 64, program);
    const unwind::Table table = app.table();
    if (table.stats.bad_entries != 0) return table.stats.first_bad;
    std::string all = text(table);
    const std::string end = ", 10040 none";
    REQUIRE(all.ends_with(end));
    all.resize(all.size() - end.size());
    return all;
}

std::string arm_rows(const Program &program) { return rows(program, EM_AARCH64); }

constexpr uint8_t kAdvance = 0x40, kOffset = 0x80, kRestore = 0xc0;

} // namespace

TEST_CASE("unwind table: a function that pushes, with and without a frame pointer") {
    CHECK(rows({}) == "10000 sp+8 ra-8");
    // push rbp; mov rbp, rsp; ...; leave
    CHECK(rows({kAdvance | 1, 0x0e, 16, kOffset | 6, 2, kAdvance | 3, 0x0d, 6, kAdvance | 30, 0x0c, 7, 8}) ==
          "10000 sp+8 ra-8, 10001 sp+16 fp-16 ra-8, 10004 fp+16 fp-16 ra-8, 10022 sp+8 fp-16 ra-8");
    // What changes nothing makes no row, nor do registers that nobody asks for.
    CHECK(rows({kAdvance | 1, kOffset | 3, 2, kAdvance | 1, 0x2e, 0x90, 1, kAdvance | 1, 0x0e, 8}) == "10000 sp+8 ra-8");
    CHECK(arm_rows({}) == "10000 sp+0");
    CHECK(arm_rows({kAdvance | 4, 0x0e, 32, kOffset | 29, 4, kOffset | 30, 3, kAdvance | 40, kRestore | 30, kRestore | 29, 0x0e,
                    0}) == "10000 sp+0, 10004 sp+32 fp-32 ra-24, 1002c sp+0");
}

TEST_CASE("unwind table: each instruction of a program") {
    CHECK(rows({0x01, 0xd8, 0xff, 0xf8, 0xff, 0x0e, 16}) == "10000 sp+8 ra-8, 10002 sp+16 ra-8"); // set_loc, from 0x8002a
    CHECK(rows({0x01, 0xd0, 0xff, 0xf8, 0xff, 0x0e, 16}).find("goes back to a lower address") != std::string::npos);
    CHECK(rows({0x02, 2, 0x0e, 16}) == "10000 sp+8 ra-8, 10002 sp+16 ra-8"); // advance_loc1
    CHECK(rows({0x03, 2, 0, 0x0e, 16}) == "10000 sp+8 ra-8, 10002 sp+16 ra-8");
    CHECK(rows({0x04, 2, 0, 0, 0, 0x0e, 16}) == "10000 sp+8 ra-8, 10002 sp+16 ra-8");
    CHECK(rows({0x1d, 2, 0, 0, 0, 0, 0, 0, 0, 0x0e, 16}) == "10000 sp+8 ra-8, 10002 sp+16 ra-8");
    CHECK(rows({0x05, 6, 2}) == "10000 sp+8 fp-16 ra-8"); // offset_extended
    CHECK(rows({0x05, 6, 2, 0x06, 6}) == "10000 sp+8 ra-8");
    CHECK(rows({0x07, 16}) == "10000 end"); // undefined
    CHECK(rows({0x07, 6}) == "10000 odd");
    CHECK(rows({0x05, 6, 2, 0x08, 6}) == "10000 sp+8 ra-8"); // same_value
    CHECK(rows({0x08, 16}) == "10000 odd");
    CHECK(rows({0x08, 7}) == "10000 odd");
    CHECK(rows({0x0e, 0, 0x09, 16, 5}) == "10000 sp+0 ra=di"); // register: vfork
    CHECK(rows({0x09, 16, 4}) == "10000 odd");
    CHECK(rows({0x09, 6, 5}) == "10000 odd");
    CHECK(rows({0x09, 30, 5}, EM_AARCH64) == "10000 odd");
    CHECK(rows({0x09, 3, 5}) == "10000 sp+8 ra-8");
    CHECK(rows({0x0c, 6, 0x80, 1}) == "10000 fp+128 ra-8");
    CHECK(rows({0x0c, 10, 0}) == "10000 r10+0 ra-8"); // a function that aligns its stack
    CHECK(rows({0x0c, 10, 0, kOffset | 6, 2}) == "10000 r10+0 fp-16 ra-8");
    CHECK(rows({0x0c, 10, 0, 0x10, 6, 2, 0x76, 0}) == "10000 r10+0 fp(fp+0) ra-8");
    CHECK(rows({0x0c, 13, 0}) == "10000 odd");
    CHECK(arm_rows({0x0c, 10, 0}) == "10000 odd");
    CHECK(rows({0x0c, 10, 0, 0x0d, 7}) == "10000 sp+0 ra-8"); // def_cfa_register keeps the offset
    CHECK(rows({0x11, 6, 2}) == "10000 sp+8 fp-16 ra-8");     // offset_extended_sf
    CHECK(rows({0x11, 6, 0x7e}) == "10000 sp+8 fp+16 ra-8");
    CHECK(rows({0x12, 6, 0x7e}) == "10000 fp+16 ra-8"); // def_cfa_sf
    CHECK(rows({0x13, 0x7e}) == "10000 sp+16 ra-8");
    CHECK(rows({0x14, 7, 0}) == "10000 sp+8 ra-8"); // val_offset
    CHECK(rows({0x14, 7, 1}) == "10000 odd");
    CHECK(rows({0x15, 6, 1}) == "10000 odd");
    CHECK(rows({0x16, 6, 2, 0x76, 0}) == "10000 odd"); // val_expression
    CHECK(rows({0x2e, 0xff, 0x7f}) == "10000 sp+8 ra-8");
    CHECK(rows({0x2f, 6, 2}) == "10000 sp+8 fp+16 ra-8"); // GNU_negative_offset_extended
    CHECK(rows({0x3f}).find(".eh_frame: offset 0x29: its program has an unknown instruction") != std::string::npos);
    CHECK(rows({0x0e}, EM_X86_64, "zR", {0x0c, 7, 8, 0x90, 1, 0, 0}) == "10000 sp+0 ra-8"); // the padding is its operand
    CHECK(rows({0, 0, 0x0e}).find("its program ends within an instruction") != std::string::npos);
}

TEST_CASE("unwind table: remember and restore, nested and bounded") {
    CHECK(rows({kAdvance | 1, 0x0e, 16, 0x0a, kAdvance | 1, 0x0e, 32, 0x0a, kAdvance | 1, 0x0c, 6, 8, kOffset | 6, 2,
                kAdvance | 1, 0x0b, kAdvance | 1, 0x0b}) ==
          "10000 sp+8 ra-8, 10001 sp+16 ra-8, 10002 sp+32 ra-8, 10003 fp+8 fp-16 ra-8, "
          "10004 sp+32 ra-8, 10005 sp+16 ra-8");
    CHECK(rows({0x0b}).find("restores a state that it didn't save") != std::string::npos);
    CHECK(rows(Program(64, 0x0a)) == "10000 sp+8 ra-8");
    CHECK(rows(Program(65, 0x0a)).find("saves too many states") != std::string::npos);
}

TEST_CASE("unwind table: expressions") {
    const Program plt = {0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
    CHECK(rows(plt) == "10000 plt+8 ra-8");
    CHECK(rows(plt, EM_AARCH64) == "10000 odd");
    Program other = plt;
    other[8] = 0x39; // lit9
    CHECK(rows(other) == "10000 odd");
    other = plt;
    other[1] = 10;
    other.pop_back();
    CHECK(rows(other) == "10000 odd");
    // An aligned stack: the CFA and the frame pointer lie where rbp points.
    CHECK(rows({0x10, 6, 2, 0x76, 0, 0x0f, 3, 0x76, 0x78, 0x06}) == "10000 *fp-8 fp(fp+0) ra-8");
    CHECK(rows({0x10, 6, 2, 0x76, 0x10, 0x0f, 3, 0x76, 0x78, 0x06}) == "10000 *fp-8 fp(fp+16) ra-8");
    CHECK(rows({kOffset | 6, 2, 0x0f, 3, 0x76, 0x78, 0x06}) == "10000 odd");
    CHECK(rows({0x10, 6, 2, 0x76, 0}) == "10000 odd");
    CHECK(rows({0x10, 6, 2, 0x77, 0, 0x0f, 3, 0x76, 0x78, 0x06}) == "10000 odd");
    // OpenSSL
    CHECK(rows({kOffset | 6, 3, 0x0f, 6, 0x77, 0x90, 4, 0x06, 0x23, 8}) == "10000 *sp+528 fp-24 ra-8");
    CHECK(rows({0x0f, 5, 0x77, 8, 0x06, 0x23, 16}) == "10000 odd");
    CHECK(rows({0x0f, 0}) == "10000 odd");
    CHECK(rows({0x0f, 3, 0x76, 0x78, 0x06, 0x0d, 7}) == "10000 odd"); // only behind a register and an offset
    CHECK(rows({0x0f, 3, 0x76, 0x78, 0x06, 0x0e, 8}) == "10000 odd");
    CHECK(rows({0x0f, 3, 0x76, 0x78, 0x06, 0x0c, 7, 16}) == "10000 sp+16 ra-8");
    CHECK(rows({0x0f, 0x80, 1}).find("ends within an instruction") != std::string::npos);
}

TEST_CASE("unwind table: what doesn't fit a rule is odd, and counted") {
    CHECK(rows({0x0e, 12}) == "10000 odd");
    CHECK(rows({0x0e, 0xf8, 0xff, 0x0f}) == "10000 sp+262136 ra-8");
    CHECK(rows({0x0e, 0x80, 0x80, 0x10}) == "10000 odd"); // 262144
    CHECK(rows({0x11, 6, 0x80, 0x80, 0x02}) == "10000 sp+8 fp-262144 ra-8");
    CHECK(rows({0x11, 6, 0x81, 0x80, 0x02}) == "10000 odd");
    CHECK(rows({kOffset | 6, 0}) == "10000 odd"); // at the CFA: 0 means unchanged
    CHECK(rows({kOffset | 16, 2}) == "10000 odd");
    CHECK(rows({}, EM_X86_64, "zR", {0x0c, 7, 8}) == "10000 odd"); // no return address
    CfiElf app;
    Cfi::Cie cie;
    cie.column = 15;
    app.eh.fde(app.eh.cie(cie), 0x10000, 64, {kAdvance | 1, 0x07, 16, kAdvance | 1, 0x0e, 12});
    CHECK(text(app.table()) == "10000 odd, 10001 end, 10040 none");
    CHECK(app.table().stats.odd_rows == 1);
}

TEST_CASE("unwind table: arm64's signed return addresses") {
    CHECK(arm_rows({kAdvance | 4, 0x2d, kAdvance | 4, 0x0e, 16, kOffset | 29, 2, kOffset | 30, 1, 0x0a, kAdvance | 4, 0x2d,
                    kAdvance | 4, 0x0b}) ==
          "10000 sp+0, 10004 sp+0 signed, 10008 sp+16 fp-16 ra-8 signed, 1000c sp+16 fp-16 ra-8, "
          "10010 sp+16 fp-16 ra-8 signed");
    CHECK(arm_rows({0x2c}) == "10000 sp+0 signed");
    CHECK(rows({}, EM_AARCH64, "zRB") == "10000 sp+0");
    CHECK(arm_rows({0x07, 30}) == "10000 end");
}

TEST_CASE("unwind table: signal frames") {
    CHECK(rows({0x0f, 3, 0x77, 0x20, 0x06, kAdvance | 1, 0x0e, 8}, EM_X86_64, "zRS") == "10000 signal");
    CHECK(arm_rows({kAdvance | 4}) == "10000 sp+0");
    CHECK(rows({}, EM_AARCH64, "zRS") == "10000 signal");
}

TEST_CASE("unwind table: how a signal handler returns is found also where nothing describes it") {
    const Program x86 = {0x90, 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}, arm = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
    CfiElf app;
    std::copy(x86.begin(), x86.end(), app.code.begin() + 0x50);
    const uint64_t cie = app.eh.cie();
    app.eh.fde(cie, 0x10000, 64);
    CHECK(text(app.table()) == "10000 sp+8 ra-8, 10040 none, 10050 signal, 1005a none");
    app.eh.fde(cie, 0x10058, 64); // others' code
    CHECK(text(app.table()) == "10000 sp+8 ra-8, 10040 none, 10058 sp+8 ra-8, 10098 none");
    app = {};
    app.target.machine = EM_AARCH64;
    app.eh.fde(app.eh.cie(), 0x10040, 64); // the gap before
    std::copy(arm.begin(), arm.end(), app.code.begin());
    std::copy(arm.begin(), arm.end(), app.code.begin() + 0x90);
    CHECK(text(app.table()) == "10000 signal, 10008 none, 10040 odd, 10080 none, 1008f signal, 10098 none");
    app.eh = {};
    CHECK(app.table().rows.empty());
    app.code.resize(0x100); // as small as the vdso
    CHECK(text(app.table()) == "10000 signal, 10008 none");
    std::fill(app.code.begin(), app.code.end(), 0);
    CHECK(app.table().rows.empty());
}

TEST_CASE("unwind table: stacks end at the entry point and where threads begin") {
    CfiElf app;
    app.target.entry = 0x10100;
    const uint64_t cie = app.eh.cie();
    app.eh.fde(cie, 0x10000, 64);
    CHECK(text(app.table()) == "10000 sp+8 ra-8, 10040 none, 10100 end, 10140 none");
    CHECK(app.table().find(0x10100).flags == UNWIND_ADDED);
    CHECK(app.table().stats.functions == 1);
    app.eh.fde(cie, 0x10120, 64); // not further than the next function
    CHECK(text(app.table()) == "10000 sp+8 ra-8, 10040 none, 10100 end, 10120 sp+8 ra-8, 10160 none");
    for (const uint64_t entry : {0x10020u, 0x0u, 0x90000u}) { // somebody's; none; not code
        app.target.entry = entry;
        CHECK(text(app.table()) == "10000 sp+8 ra-8, 10040 none, 10120 sp+8 ra-8, 10160 none");
    }
    elf::Symbol clone;
    clone.name = "__clone", clone.value = 0x10200, clone.size = 32;
    elf::Symbol other = clone;
    other.name = "clone3", other.value = 0x10300;
    app.symbols = {clone, other};
    CHECK(text(app.table()) == "10000 sp+8 ra-8, 10040 none, 10120 sp+8 ra-8, 10160 none, 10200 end, 10220 none");
    app.eh = {};
    app.target.entry = 0x10100;
    CHECK(app.table().rows.empty()); // goes by frame pointers
}

TEST_CASE("unwind table: nor is the entry point's first instruction called, where its entry says so behind it") {
    CfiElf app;
    app.target.machine = EM_AARCH64;
    Cfi::Cie cie;
    cie.program = {0x0c, 31, 0};
    cie.column = 30;
    app.eh.fde(app.eh.cie(cie), 0x10000, 64, {kAdvance | 4, 0x07, 30});
    CHECK(text(app.table()) == "10000 sp+0, 10004 end, 10040 none"); // not a program's
    app.target.entry = 0x10000;
    CHECK(text(app.table()) == "10000 end, 10040 none");
    app.eh = {};
    app.eh.fde(app.eh.cie(cie), 0x10000, 64, {kAdvance | 8, 0x07, 30});
    CHECK(text(app.table()) == "10000 sp+0, 10008 end, 10040 none");
}

TEST_CASE("unwind table: a program's entry point ends stacks whatever its entry says, a library's doesn't") {
    CfiElf app;
    app.eh.fde(app.eh.cie(), 0x10000, 64, {kAdvance | 1, 0x0e, 16, kOffset | 6, 2}); // a _start that a C compiler made
    const std::string_view callable = "10000 sp+8 ra-8, 10001 sp+16 fp-16 ra-8, 10040 none";
    app.target.entry = 0x10000;
    CHECK(text(app.table()) == callable); // ld takes .text's first function for the entry point of a library
    CHECK(app.table().stats.framed == 1);
    app.target.type = ET_EXEC;
    CHECK(text(app.table()) == "10000 end, 10040 none");
    CHECK(app.table().stats.framed == 0);
    app.target.entry = 0x10001; // not where it begins
    CHECK(text(app.table()) == callable);
    app.target.entry = 0x10000;
    app.target.type = ET_DYN;
    for (const uint64_t flags : {uint64_t{DF_1_NOW}, uint64_t{DF_1_NOW | DF_1_PIE}}) {
        app.dynamic = {{.d_tag = DT_SONAME, .d_un = {1}}, {.d_tag = DT_FLAGS_1, .d_un = {flags}}};
        CHECK(text(app.table()) == (flags & DF_1_PIE ? "10000 end, 10040 none" : callable));
    }
    app.dynamic = {};
    app.interpreter = true;
    CHECK(text(app.table()) == "10000 end, 10040 none");
}

TEST_CASE("unwind table: a context that makecontext() made ends before the code that it returns to") {
    const Program mov = {0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff}, endbr64 = {0xf3, 0x0f, 0x1e, 0xfa};
    const Program arm = {0xe0, 0x03, 0x13, 0xaa, 0xc0, 0xf9, 0xff, 0xb5}, nop = {0x1f, 0x20, 0x03, 0xd5};
    for (const bool pad : {false, true}) {
        CfiElf app;
        const auto put = [&](size_t at, const Program &landing, const Program &code) {
            if (pad) std::copy(landing.begin(), landing.end(), app.code.begin() + static_cast<ptrdiff_t>(at));
            std::copy(code.begin(), code.end(), app.code.begin() + static_cast<ptrdiff_t>(at + (pad ? 4 : 0)));
        };
        put(0x60, endbr64, mov);
        const uint64_t cie = app.eh.cie();
        app.eh.fde(cie, 0x10000, 64);
        app.eh.fde(cie, 0x10060, 32);
        CHECK(text(app.table()) == "10000 sp+8 ra-8, 10040 none, 1005f end, 10060 sp+8 ra-8, 10080 none");
        CHECK(app.table().find(0x1005f).flags == UNWIND_ADDED);
        app.eh.fde(cie, 0x10050, 16); // whose last byte another function's call may be
        CHECK(text(app.table()) == "10000 sp+8 ra-8, 10040 none, 10050 sp+8 ra-8, 10080 none");
        app = {};
        app.target.machine = EM_AARCH64;
        put(0x60, nop, arm);
        const uint64_t other = app.eh.cie();
        app.eh.fde(other, 0x10000, 64, {0x0c, 31, 0, kRestore | 16});
        app.eh.fde(other, 0x10060, 32);
        CHECK(text(app.table()).find("1005f end, 10060 ") != std::string::npos);
        app.code[0x60 + (pad ? 11 : 7)] = 0xb4; // cbz
        CHECK(text(app.table()).find("end") == std::string::npos);
    }
}

TEST_CASE("unwind table: the stubs of arm64's PLT") {
    CfiElf app;
    app.target.machine = EM_AARCH64;
    app.code.resize(0x10000);
    Cfi::Cie cie;
    cie.program = {0x0c, 31, 0};
    cie.column = 30;
    app.eh.fde(app.eh.cie(cie), 0x10000, 64);
    app.plt.assign(16, 0xd503201f);
    CHECK(text(app.table()) == "10000 sp+0, 10040 none, 20000 sp+0, 20040 none");
    CHECK(app.table().find(0x20010).flags == (UNWIND_ADDED | UNWIND_RA_IN_LR));
    app.plt[0] = 0xa9bf7bf0;
    CHECK(text(app.table()) == "10000 sp+0, 10040 none, 20000 sp+0, 20004 sp+16 ra-8, 20020 sp+0, 20040 none");
    app.plt[0] = 0xd503245f; // bti c
    app.plt[1] = 0xa9bf7bf0;
    CHECK(text(app.table()) == "10000 sp+0, 10040 none, 20000 sp+0, 20008 sp+16 ra-8, 20020 sp+0, 20040 none");
    app.target.machine = EM_X86_64;
    CHECK(text(app.table()) == "10000 odd, 10040 none");
}

TEST_CASE("unwind table: encodings, versions, sections") {
    struct Form {
        const char *what;
        Program encoding;
        std::vector<std::byte> where; // 0x10000, 64
    };
    const auto bytes = [](auto start, auto size) {
        std::vector<std::byte> out;
        Cfi::put(out, start);
        Cfi::put(out, size);
        return out;
    };
    const uint64_t at = 0x80000 + 24 + 8; // of the FDE's address, with a CIE of 24 bytes before it
    const Form forms[] = {
        {"absptr", {0x00}, bytes(uint64_t{0x10000}, uint64_t{64})},
        {"uleb", {0x01}, bytes(Program{0x80, 0x80, 4}, uint8_t{64})},
        {"udata4", {0x03}, bytes(uint32_t{0x10000}, uint32_t{64})},
        {"udata8", {0x04}, bytes(uint64_t{0x10000}, uint64_t{64})},
        {"textrel udata2", {0x22}, bytes(uint16_t{0}, uint16_t{64})},
        {"datarel sdata4", {0x3b}, bytes(int32_t{-0x60000}, int32_t{64})},
        {"pcrel sdata8", {0x1c}, bytes(int64_t(0x10000 - at), int64_t{64})},
        {"pcrel sleb", {0x19}, bytes(Program{0xe0, 0xff, 0x63}, Program{0xc0, 0})},
        {"aligned", {0x50}, bytes(uint64_t{0x10000}, uint64_t{64})},
    };
    for (const Form &form : forms) {
        CAPTURE(std::string(form.what));
        CfiElf app;
        Cfi::Cie cie;
        cie.data = form.encoding;
        const uint64_t here = app.eh.cie(cie);
        REQUIRE(app.eh.bytes.size() == 24);
        app.eh.fde_raw(here, form.where, {});
        const unwind::Table table = app.table();
        CHECK(text(table) == "10000 sp+8 ra-8, 10040 none");
    }
    for (uint8_t encoding : {0xff, 0x9b, 0x4b, 0x7b, 0x05}) {
        CAPTURE(encoding);
        CfiElf app;
        Cfi::Cie cie;
        cie.data = {encoding};
        app.eh.fde(app.eh.cie(cie), 0x10000, 64);
        CHECK(app.table().stats.bad_entries == 1);
        CHECK(app.table().rows.empty());
    }
    for (uint8_t version : {1, 3, 4, 2, 5})
        for (bool wide : {false, true}) {
            CAPTURE(version);
            CAPTURE(wide);
            CfiElf app;
            app.debug.wide = wide;
            Cfi::Cie cie;
            cie.version = version;
            cie.augmentation = "";
            app.debug.fde_absolute(app.debug.cie(cie), 0x10000, 64, {kAdvance | 1, 0x0e, 16});
            CHECK(text(app.table()) == (version == 2 || version == 5 ? "" : "10000 sp+8 ra-8, 10001 sp+16 ra-8, 10040 none"));
        }
    CfiElf app;
    app.eh.wide = true;
    Cfi::Cie cie;
    cie.augmentation = "zPLR"; // a personality by pcrel|indirect sdata4, an LSDA by the same without indirect
    cie.data = {0x9b, 1, 2, 3, 4, 0x1b, 0x1b};
    app.eh.fde(app.eh.cie(cie), 0x10000, 64);
    CHECK(text(app.table()) == "10000 sp+8 ra-8, 10040 none");
    for (const char *unknown : {"zX", "eh", "R", "zRRRRRRRRRRRR"}) {
        CAPTURE(std::string(unknown));
        app = {};
        cie.augmentation = unknown;
        app.eh.fde(app.eh.cie(cie), 0x10000, 64);
        CHECK(app.table().stats.first_bad.ends_with(": rawbpf doesn't know its CIE's augmentation"));
    }
}

TEST_CASE("unwind table: .debug_frame fills in what .eh_frame lacks") {
    CfiElf app;
    app.eh.fde(app.eh.cie(), 0x10000, 16);
    Cfi::Cie cie;
    cie.version = 4;
    cie.augmentation = "";
    cie.program = {0x0c, 7, 24, 0x90, 1};
    const uint64_t at = app.debug.cie(cie);
    app.debug.fde_absolute(at, 0x10020, 16);
    app.debug.fde_absolute(at, 0x10000, 16); // .eh_frame's is the one that debuggers and exceptions use
    app.debug.fde_absolute(at, 0, 16);       // dropped by the linker: no fault
    app.debug.fde_absolute(at, UINT64_MAX - 1, 1);
    unwind::Table table = app.table();
    CHECK(text(table) == "10000 sp+8 ra-8, 10010 none, 10020 sp+24 ra-8, 10030 none");
    CHECK(table.stats.bad_entries == 0);
    CHECK(table.stats.functions == 2);
    app.debug.fde_absolute(at, 0x90000, 16);
    app.debug.fde_absolute(at, UINT64_MAX - 7, 16);
    CHECK(app.table().stats.bad_entries == 2);
    app.debug_flags = SHF_COMPRESSED;
    table = app.table();
    CHECK(text(table) == "10000 sp+8 ra-8, 10010 none");
    CHECK(table.stats.first_bad.starts_with("app: .debug_frame: offset 0x0: app: .debug_frame: compressed by method "));
}

TEST_CASE("unwind table: a .debug_frame that is compressed, in both ways") {
    CfiElf app;
    test::Cfi::Cie cie;
    cie.version = 4;
    cie.augmentation = "";
    app.debug.fde_absolute(app.debug.cie(cie), 0x10020, 16);
    const std::vector<std::byte> plain = app.debug.bytes;
    const std::string expected = text(app.table());
    std::vector<std::byte> stream; // zlib with one stored block
    const auto size = static_cast<uint16_t>(plain.size());
    Cfi::put(stream, test::Program{0x78, 0x01, 0x01, uint8_t(size), uint8_t(size >> 8), uint8_t(~size), uint8_t(~size >> 8)});
    stream.insert(stream.end(), plain.begin(), plain.end());
    uint32_t a = 1, b = 0;
    for (const std::byte byte : plain) a = (a + static_cast<uint32_t>(byte)) % 65521, b = (b + a) % 65521;
    Cfi::put(stream, test::Program{uint8_t(b >> 8), uint8_t(b), uint8_t(a >> 8), uint8_t(a)});
    app.debug.bytes = {};
    Cfi::put(app.debug.bytes, Elf64_Chdr{ELFCOMPRESS_ZLIB, 0, plain.size(), 8});
    app.debug.bytes.insert(app.debug.bytes.end(), stream.begin(), stream.end());
    app.debug_flags = SHF_COMPRESSED;
    CHECK(text(app.table()) == expected);
    app.debug.bytes.back() ^= std::byte{1};
    CHECK(app.table().stats.first_bad.find("the checksum is wrong") != std::string::npos);
    app.debug.bytes.resize(8);
    CHECK(app.table().stats.bad_entries == 1);

    app.debug_flags = 0;
    app.debug_name = ".zdebug_frame";
    app.debug.bytes = {};
    Cfi::put(app.debug.bytes, test::Program{'Z', 'L', 'I', 'B', 0, 0, 0, 0, 0, 0, uint8_t(size >> 8), uint8_t(size)});
    app.debug.bytes.insert(app.debug.bytes.end(), stream.begin(), stream.end());
    CHECK(text(app.table()) == expected);
    app.debug.bytes[0] = std::byte{'z'};
    CHECK(app.table().stats.bad_entries == 1);
}

TEST_CASE("unwind table: order, gaps, overlaps, terminators") {
    CfiElf app;
    const uint64_t cie = app.eh.cie();
    app.eh.fde(cie, 0x10100, 16, {0x0e, 32});
    app.eh.fde(cie, 0x10000, 0x40);
    Cfi::put(app.eh.bytes, uint32_t{0}); // a terminator in the middle
    app.eh.fde(cie, 0x10040, 16, {kAdvance | 1, 0x0e, 16});
    app.eh.fde(cie, 0x10050, 0);                              // of no size
    app.eh.fde(cie, 0x10108, 0x10, {kAdvance | 1, 0x0e, 40}); // into the first
    app.eh.fde(cie, 0x10109, 4, {0x0e, 48});
    app.eh.fde(cie, 0x10109, 8, {0x0e, 56});
    const unwind::Table table = app.table();
    // 10040: as before. 10109: two begin, the first is taken. What an outer one says behind an inner one is lost, not guessed.
    CHECK(text(table) ==
          "10000 sp+8 ra-8, 10041 sp+16 ra-8, 10050 none, 10100 sp+32 ra-8, 10108 sp+8 ra-8, 10109 sp+48 ra-8, 1010d none");
    CHECK(table.stats.bad_entries == 0);
    CHECK(table.find(0).kind == UNWIND_NONE);
    CHECK(text(table.find(0x10040)) == "sp+8 ra-8");
    CHECK(text(table.find(0x1004f)) == "sp+16 ra-8");
    CHECK(text(table.find(0x10050)) == "none");
    CHECK(text(table.find(0x10107)) == "sp+32 ra-8");
    CHECK(table.find(UINT64_MAX).kind == UNWIND_NONE);
    CHECK(table.rules[0].kind == UNWIND_NONE);
}

TEST_CASE("unwind table: pages of 64 KiB, each with a row at its beginning") {
    CfiElf app;
    const uint64_t cie = app.eh.cie();
    app.eh.fde(cie, 0x10010, 0x2fff0, {0x04, 0xf0, 0xff, 0, 0, 0x0e, 16}); // to the end; at 0x20000 its rule changes
    unwind::Table table = app.table();
    CHECK(text(table) == "10000 none, 10010 sp+8 ra-8, 20000 sp+16 ra-8, 30000 sp+16 ra-8, 40000 none");
    REQUIRE(table.pages.size() == 4);
    CHECK(table.base == 0x10000);
    CHECK(table.find(0x3ffff).cfa == 2);
    CHECK(table.bytes() == 5 * 4 + 4 * 8);
    app.eh = {};
    app.eh.fde(app.eh.cie(), 0x30008, 8); // two pages of which nothing is known
    table = app.table();
    CHECK(text(table) == "30000 none, 30008 sp+8 ra-8, 30010 none");
    REQUIRE(table.pages.size() == 3);
    CHECK(table.pages[0].rows == 0);
    CHECK(table.find(0x10000).kind == UNWIND_NONE);
    CHECK(table.find(0x30007).kind == UNWIND_NONE);
}

TEST_CASE("unwind table: a malformed function costs itself") {
    CfiElf app;
    uint64_t cie = app.eh.cie();
    app.eh.fde(cie, 0x10000, 16, {kAdvance | 1, 0x0e, 16});
    app.eh.fde(cie, 0x10010, 16, {kAdvance | 1, 0x3f});
    app.eh.fde(cie, 0x10020, 16);
    app.eh.fde(cie + 4, 0x10030, 16); // no CIE there
    app.eh.fde(cie, 0x10040, 16);
    unwind::Table table = app.table();
    // Before all: the rule of the function before doesn't reach into it.
    CHECK(text(table) ==
          "10000 sp+8 ra-8, 10001 sp+16 ra-8, 10010 none, 10020 sp+8 ra-8, 10030 none, 10040 sp+8 ra-8, 10050 none");
    CHECK(table.stats.bad_entries == 2);
    CHECK(table.stats.functions == 3);
    app = {};
    Cfi::Cie longer;
    longer.program.resize(1100);
    app.eh.fde(app.eh.cie(longer), 0x10000, 16);
    CHECK(app.table().stats.first_bad.ends_with("its CIE's program is too long"));
    // More rules than there are numbers.
    app = {};
    cie = app.eh.cie();
    for (uint32_t i = 0; i < 9000; ++i)
        app.eh.fde(cie, 0x10000 + i, 1,
                   {0x0e, static_cast<uint8_t>(0x80 | (i * 8 & 0x7f)), static_cast<uint8_t>(0x80 | (i >> 4 & 0x7f)),
                    static_cast<uint8_t>(i >> 11)});
    table = app.table();
    CHECK(table.rules.size() == UNWIND_RULES);
    CHECK(text(table.find(0x10000 + 8189)) == "sp+65512 ra-8");
    CHECK(text(table.find(0x10000 + 8190)) == "odd");
    CHECK(text(table.find(0x10000 + 8999)) == "odd");
}

TEST_CASE("unwind table: machines, and files without any") {
    CfiElf app;
    CHECK(app.table().rows.empty());
    CHECK(app.table().find(0x10000).kind == UNWIND_NONE);
    const auto error = [&] {
        const std::vector<std::byte> image = app.file();
        return unwind::build_table(elf::Elf::parse(image, "app").value()).error();
    };
    for (const elf::Target &target : {elf::Target{EM_S390, ET_DYN, true, false, 0},
                                      {EM_386, ET_DYN, false, false, 0},
                                      {EM_X86_64, ET_DYN, false, false, 0},
                                      {EM_AARCH64, ET_DYN, true, true, 0},
                                      {EM_X86_64, ET_REL, true, false, 0}}) {
        app.target = target;
        CHECK(error().kind == Errc::unsupported);
    }
}

TEST_CASE("unwind table: what sets up frame pointers is counted") {
    CfiElf app;
    uint64_t cie = app.eh.cie();
    app.eh.fde(cie, 0x10000, 16);
    app.eh.fde(cie, 0x10010, 16, {kAdvance | 1, 0x0e, 16, kOffset | 6, 2, kAdvance | 3, 0x0d, 6});
    app.eh.fde(cie, 0x10020, 16, {kAdvance | 1, 0x0e, 16, kOffset | 6, 2});
    app.eh.fde(cie, 0x10030, 16, {0x07, 16, kAdvance | 1, 0x0e, 16});
    CHECK(app.table().stats.framed == 2);
    CHECK(app.table().stats.frame_pointers == 1);
    app.eh = {};
    app.target.machine = EM_AARCH64;
    Cfi::Cie arm;
    arm.program = {0x0c, 31, 0};
    arm.column = 30;
    cie = app.eh.cie(arm);
    app.eh.fde(cie, 0x10000, 16, {kAdvance | 4, 0x0e, 32, kOffset | 29, 4, kOffset | 30, 3});
    app.eh.fde(cie, 0x10010, 16, {kAdvance | 4, 0x0e, 32, kOffset | 30, 4});
    CHECK(app.table().stats.framed == 2);
    CHECK(app.table().stats.frame_pointers == 1);
}

TEST_CASE("unwind table: files cut and flipped at every byte") {
    CfiElf app;
    app.code.resize(0x80, 0xcc);
    Cfi::Cie cie;
    cie.augmentation = "zPLR";
    cie.data = {0x9b, 1, 2, 3, 4, 0x1b, 0x1b};
    const uint64_t at = app.eh.cie(cie);
    app.eh.fde(at, 0x10000, 16, {kAdvance | 1, 0x0e, 16, 0x0a, kOffset | 6, 2, kAdvance | 3, 0x0d, 6, 0x0b});
    app.eh.fde(at, 0x10010, 16, {0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22});
    cie.version = 4;
    cie.augmentation = "";
    app.debug.fde_absolute(app.debug.cie(cie), 0x10020, 16, {0x10, 6, 2, 0x76, 0, 0x0f, 3, 0x76, 0x78, 0x06});
    const std::vector<std::byte> image = app.file();
    const auto look = [](Bytes bytes) {
        Result<elf::Elf> elf = elf::Elf::parse(bytes, "app");
        if (!elf) return;
        Result<unwind::Table> table = unwind::build_table(*elf);
        if (table) CHECK(table->stats.functions + table->stats.bad_entries <= 64);
    };
    for (size_t size = 0; size < image.size(); ++size) look(Bytes(image).first(size));
    std::vector<std::byte> flipped = image;
    for (size_t i = 0; i < image.size(); ++i)
        for (unsigned char bits : {0x01, 0x80, 0xff}) {
            flipped[i] ^= std::byte{bits};
            look(flipped);
            flipped[i] = image[i];
        }
}
