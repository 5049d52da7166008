// Argument specs: every form of every machine, what can't be fetched, and neighbours that keep their places.
#include "runtime/usdt/arguments.h"

#include <elf.h>

#include "tests/support/test.h"
#include "tests/unit/usdt/notes_elf.h"

using namespace rawbpf;
using usdt::Argument;
using usdt::OperandKind;

namespace {

struct Row {
    std::string_view spec, type, location;
};
void check_all(uint16_t machine, std::initializer_list<Row> rows) {
    for (const Row &row : rows) {
        const Argument a = usdt::parse_argument(row.spec, machine);
        CAPTURE(row.spec);
        CHECK(a.problem == "");
        CHECK(usdt::type_name(a) == row.type);
        CHECK(usdt::location_text(a) == row.location);
    }
}
void check_refused(uint16_t machine, std::initializer_list<std::pair<std::string_view, std::string_view>> rows) {
    for (const auto &[spec, why] : rows) {
        const Argument a = usdt::parse_argument(spec, machine);
        CAPTURE(spec);
        CHECK(a.problem.find(why) != std::string_view::npos);
        CHECK(!a.problem.empty());
    }
}

} // namespace

TEST_CASE("usdt arguments: x86_64 and i386") {
    check_all(EM_X86_64, {{"-4@%eax", "s32", "eax"},
                          {"8@%rsp", "u64", "rsp"},
                          {"2@%r11w", "u16", "r11w"},
                          {"1@%sil", "u8", "sil"},
                          {"1@%ah", "u8", "ah"},
                          {"4@$71", "u32", "71"},
                          {"-4@$-9", "s32", "-9"},
                          {"8@$-1", "u64", "0xffffffffffffffff"},
                          {"8@$18446744073709551615", "u64", "0xffffffffffffffff"},
                          {"-4@-20(%rbp)", "s32", "*(rbp - 20)"},
                          {"8@(%rdi)", "u64", "*(rdi)"},
                          {"8@0x10(%rdi)", "u64", "*(rdi + 16)"},
                          {"1@-96(%rbp,%rax,8)", "u8", "*(rbp + rax * 8 - 96)"},
                          {"1@(%rbp,%r15)", "u8", "*(rbp + r15)"},
                          {"8@4(,%rax,8)", "u64", "*(rax * 8 + 4)"},
                          {"4@ 8 ( %eax , %ebx , 2 )", "u32", "*(eax + ebx * 2 + 8)"},
                          {"8f@8(%rsp)", "f64", "*(rsp + 8)"},
                          {"4f@%rax", "f32", "rax"},
                          {"8@2+2(%rax)", "u64", "*(rax + 4)"}});
    check_all(EM_386, {{"-4@%eax", "s32", "eax"}, {"4@8(%esp)", "u32", "*(esp + 8)"}, {"4@$7", "u32", "7"}});
    const Argument high = usdt::parse_argument("1@%ch", EM_X86_64);
    CHECK(high.location.base.offset == 88);
    CHECK(high.location.base.shift == 8);
    CHECK(high.location.base.bits == 8);
    check_refused(EM_X86_64, {{"8@%xmm0", "floating point register"},
                              {"8f@%xmm15", "floating point register"},
                              {"8@%fs:0xfffffffffffffffc", "thread-local"},
                              {"3@%eax", "size"},
                              {"16@%rax", "size"},
                              {"2f@%eax", "size"},
                              {"-9223372036854775808@%rax", "size"},
                              {"8@", "doesn't understand its location"},
                              {"@%rax", "size and @"},
                              {"%rax", "size and @"},
                              {"8", "size and @"},
                              {"8@%", "no register"},
                              {"8@%r16", "no register"},
                              {"8@$", "doesn't understand its location"},
                              {"8@5", "doesn't understand its location"},
                              {"8@(%rax", "doesn't understand its location"},
                              {"8@()", "doesn't understand its location"},
                              {"8@(%rax,%rbx,3)", "doesn't understand its location"},
                              {"8@(%rax,%nothing)", "no register"},
                              {"8@%rax!", "doesn't understand its location"},
                              {"8@4+(%rax)", "doesn't understand its location"},
                              {"8@a+b(%rip)", "doesn't understand its location"},
                              {"8@-a(%rip)", "doesn't understand its location"},
                              {"8@counter(%rip)", "symbol"},
                              {"8@counter@GOTPCREL(%rip)", "linker"},
                              {"8@%lo(counter)(%rax)", "no register"}});
}

TEST_CASE("usdt arguments: arm64") {
    check_all(EM_AARCH64, {{"-8@x4", "s64", "x4"},
                           {"-4@w30", "s32", "w30"},
                           {"8@sp", "u64", "sp"},
                           {"4@5", "u32", "5"},
                           {"-4@-1", "s32", "-1"},
                           {"8@xzr", "u64", "0"},
                           {"-4@wzr", "s32", "0"},
                           {"-4@[sp, 96]", "s32", "*(sp + 96)"},
                           {"-4@[x29,-8]", "s32", "*(x29 - 8)"},
                           {"8@[x0, #16]", "u64", "*(x0 + 16)"},
                           {"8@[x0]", "u64", "*(x0)"},
                           {"8@[x0, x1]", "u64", "*(x0 + x1)"},
                           {"8@[x0, x1, lsl 3]", "u64", "*(x0 + x1 * 8)"},
                           {"8@[x0, w1, sxtw #3]", "u64", "*(x0 + w1 * 8)"},
                           {"1@[x2, w3, uxtw]", "u8", "*(x2 + w3)"},
                           {"8f@[sp, 8]", "f64", "*(sp + 8)"}});
    CHECK(usdt::parse_argument("8@[x0, w1, sxtw 3]", EM_AARCH64).location.index_signed);
    CHECK(!usdt::parse_argument("8@[x0, w1, uxtw 3]", EM_AARCH64).location.index_signed);
    check_refused(EM_AARCH64, {{"8@x31", "no register"},
                               {"8@x", "no register"},
                               {"8@x1x", "no register"},
                               {"8f@d0", "floating point"},
                               {"4f@s31", "floating point"},
                               {"8@[x0", "doesn't understand its location"},
                               {"8@[x0, 8]!", "doesn't understand its location"},
                               {"8@[x0], 8", "doesn't understand its location"},
                               {"8@[x0, w1]", "doesn't understand its location"},
                               {"8@[x0, x1, lsl 16]", "doesn't understand its location"},
                               {"8@[x0, x1, ror 1]", "doesn't understand its location"},
                               {"8@[q0]", "floating point"},
                               {"8@[x1, #:lo12:counter]", "symbol"},
                               {"8@(x0)", "doesn't understand its location"}});
}

TEST_CASE("usdt arguments: 32-bit ARM") {
    check_all(EM_ARM, {{"4@r0", "u32", "r0"},
                       {"-4@#5", "s32", "5"},
                       {"-4@#-5", "s32", "-5"},
                       {"4@[r7, #12]", "u32", "*(r7 + 12)"},
                       {"-4@[fp, #-16]", "s32", "*(fp - 16)"},
                       {"4@[r0]", "u32", "*(r0)"}, // a register like others
                       {"1@[sp, #7]", "u8", "*(sp + 7)"},
                       {"4@[r3, r2]", "u32", "*(r3 + r2)"},
                       {"4@[r3, r2, lsl #2]", "u32", "*(r3 + r2 * 4)"},
                       {"8@[sp]", "u64", "*(sp)"}});
    struct Offset {
        std::string_view name;
        int offset;
    };
    for (const Offset &row :
         {Offset{"r0", 0}, {"r7", 28}, {"sl", 40}, {"fp", 44}, {"ip", 48}, {"sp", 52}, {"lr", 56}, {"pc", 60}}) {
        const usdt::Register found = usdt::find_register(EM_ARM, row.name);
        CHECK_MESSAGE((found.offset == row.offset && found.bits == 32 && found.word == 4), row.name);
    }
    check_refused(EM_ARM, {{"8@r4", "two registers"},
                           {"4@r16", "no register"},
                           {"4f@s0", "floating point"},
                           {"8f@d7", "floating point"},
                           {"4@[r7, #12", "doesn't understand its location"}});
}

TEST_CASE("usdt arguments: riscv64 and s390x") {
    check_all(EM_RISCV, {{"8@a0", "u64", "a0"},
                         {"-4@5", "s32", "5"},
                         {"-4@zero", "s32", "0"},
                         {"8@-24(s0)", "u64", "*(s0 - 24)"},
                         {"8@(sp)", "u64", "*(sp)"},
                         {"4@t6", "u32", "t6"}});
    struct Offset {
        std::string_view name;
        int offset;
    };
    for (const Offset &row : {Offset{"ra", 8},
                              {"sp", 16},
                              {"t0", 40},
                              {"t2", 56},
                              {"s0", 64},
                              {"fp", 64},
                              {"s1", 72},
                              {"a0", 80},
                              {"a7", 136},
                              {"s2", 144},
                              {"s11", 216},
                              {"t3", 224},
                              {"t6", 248},
                              {"x31", 248}})
        CHECK_MESSAGE(usdt::find_register(EM_RISCV, row.name).offset == row.offset, row.name);
    check_refused(EM_RISCV, {{"8f@fa0", "floating point"},
                             {"8@a8", "no register"},
                             {"8@t7", "no register"},
                             {"8@s12", "no register"},
                             {"4@%lo(counter)(a5)", "symbol"}});
    check_all(EM_S390, {{"8@%r2", "u64", "r2"},
                        {"-4@-5", "s32", "-5"},
                        {"4@160(%r15)", "u32", "*(r15 + 160)"},
                        {"8@8(%r1,%r2)", "u64", "*(r2 + r1 + 8)"},
                        {"8@16(%r0)", "u64", "*(0x10)"}});
    CHECK(usdt::find_register(EM_S390, "r15").offset == 144);
    check_refused(EM_S390, {{"8f@%f0", "floating point"}, {"8@%r16", "no register"}, {"8@r2", "no register"}});
    check_refused(EM_SPARCV9, {{"8@%i0", "this machine"}});
}

TEST_CASE("usdt arguments: one that can't be read shifts nothing") {
    auto specs = [](std::string_view text, uint16_t machine = EM_X86_64) {
        std::vector<std::string> out;
        for (const Argument &a : usdt::parse_arguments(text, machine)) out.emplace_back(a.spec);
        return out;
    };
    using List = std::vector<std::string>;
    CHECK(specs("-4@%eax 8@-96(%rbp,%rax,8) 4@$5") == List{"-4@%eax", "8@-96(%rbp,%rax,8)", "4@$5"});
    CHECK(specs("8@x1 4@[sp, 96] 4@7", EM_AARCH64) == List{"8@x1", "4@[sp, 96]", "4@7"});
    CHECK(specs("8@[x0 8@x1 -4@w2", EM_AARCH64) == List{"8@[x0", "8@x1", "-4@w2"});
    CHECK(specs("8@(%rax  8f@%xmm0\t1@%al") == List{"8@(%rax", "8f@%xmm0", "1@%al"});
    CHECK(specs("nonsense 8@%rax )] 8@%rbx") == List{"nonsense", "8@%rax", ")]", "8@%rbx"});
    CHECK(specs("   ").empty());
    CHECK(specs("8@[x0, 12 8@", EM_AARCH64) == List{"8@[x0, 12", "8@"});
}

TEST_CASE("usdt arguments: symbols are told from the program counter") {
    test::NotesElf program;
    program.symbols = {{"counter", 0x4010}};
    std::vector<std::byte> image = program.file({{}});
    auto resolved = [&](std::string_view spec, uint16_t machine) {
        const elf::Elf elf = elf::Elf::parse(image, "app").value();
        Argument a = usdt::parse_argument(spec, machine);
        usdt::resolve(elf, {{&a, 0x1010}});
        return a;
    };
    for (std::string_view spec : {"4@counter(%rip)", "4@0+counter(%rip)", "4@counter+0(%rip)", "4@counter"}) {
        const Argument a = resolved(spec, EM_X86_64);
        CAPTURE(spec);
        CHECK(a.problem == "");
        CHECK(a.location.kind == OperandKind::in_memory);
        CHECK(a.location.base.offset == 128);
        CHECK(a.location.displacement == 0x3000);
        CHECK(usdt::location_text(a) == "*(counter)");
    }
    CHECK(resolved("4@8+counter(%rip)", EM_X86_64).location.displacement == 0x3008);
    CHECK(usdt::location_text(resolved("4@counter-8(%rip)", EM_X86_64)) == "*(counter - 8)");
    const Argument address = resolved("8@$counter+4", EM_X86_64);
    CHECK(address.location.kind == OperandKind::address);
    CHECK(address.location.displacement == 0x3004);
    CHECK(usdt::location_text(address) == "&(counter + 4)");
    CHECK(resolved("4@nothing(%rip)", EM_X86_64).problem.find("doesn't define") != std::string_view::npos);
    CHECK(resolved("8@counter(,%rax,8)", EM_X86_64).problem.find("position-independent") != std::string_view::npos);
    const Argument from_got = resolved("-4@8+counter@GOTOFF(%ebx)", EM_386);
    CHECK(from_got.problem == "");
    CHECK(from_got.location.base.offset == 128); // the program counter is as good, and needs no %ebx
    CHECK(from_got.location.displacement == 0x3008);
    CHECK(usdt::location_text(from_got) == "*(counter + 8)");
    CHECK(!usdt::parse_argument("4@counter@GOT(%ebx)", EM_386).problem.empty());
    program.target.type = ET_EXEC;
    image = program.file({{}});
    CHECK(resolved("8@counter(,%rax,8)", EM_X86_64).location.displacement == 0x4010);

    program.target = {EM_AARCH64, ET_DYN, true, false, 0};
    program.symbols = {{"counter", 0x4ff8}};
    image = program.file({{}});
    const Argument low = resolved("4@[x1, #:lo12:counter]", EM_AARCH64);
    CHECK(low.problem == "");
    CHECK(low.location.displacement == 0xff8);
    CHECK(usdt::location_text(low) == "*(x1 + lo12(counter))");
    CHECK(resolved("4@[x1, :lo12:counter+16]", EM_AARCH64).location.displacement == 8);
    program.target = {EM_RISCV, ET_DYN, true, false, 0};
    image = program.file({{}});
    CHECK(resolved("4@%lo(counter)(a5)", EM_RISCV).location.displacement == -8);
}
