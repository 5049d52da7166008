// Where functions return: instruction by instruction, and what Go's functions begin with.
#include "runtime/link/return_instructions.h"

#include <elf.h>

#include "tests/support/test.h"

using namespace rawbpf;

namespace {

std::vector<std::byte> code(std::initializer_list<int> values) {
    std::vector<std::byte> out;
    for (const int value : values) out.push_back(std::byte(value));
    return out;
}

} // namespace

TEST_CASE("return instructions: lengths of x86_64's instructions, as objdump has them") {
    const std::vector<std::vector<std::byte>> whole = {
        code({0xc3}),
        code({0xf3, 0xc3}),
        code({0xc2, 0x08, 0x00}),
        code({0x48, 0x89, 0xe5}),
        code({0x48, 0x8b, 0x6c, 0x24, 0x38}),                         // mov rbp, [rsp + 56]
        code({0x48, 0x8d, 0x0d, 0x20, 0x8a, 0x01, 0x00}),             // lea rcx, [rip + N]
        code({0x48, 0x8b, 0x04, 0xc5, 0xc3, 0xc3, 0xc3, 0xc3}),       // mov rax, [rax * 8 + N]
        code({0x48, 0xc7, 0x40, 0x08, 0xc3, 0x00, 0x00, 0x00}),       // mov qword [rax + 8], N
        code({0x66, 0xc7, 0x44, 0x24, 0x10, 0xc3, 0xc3}),             // mov word [rsp + 16], N
        code({0x48, 0xb8, 0xc3, 1, 2, 3, 4, 5, 6, 7}),                // movabs rax, N
        code({0x66, 0xb8, 0xc3, 0x00}),                               // mov ax, N
        code({0xa8, 0xc3}),                                           // test al, N
        code({0xf6, 0xc1, 0xc3}),                                     // test cl, N
        code({0xf6, 0xd1}),                                           // not cl
        code({0x48, 0xf7, 0xc1, 0xc3, 0x00, 0x00, 0x00}),             // test rcx, N
        code({0x48, 0xf7, 0xd1}),                                     // not rcx
        code({0x0f, 0x86, 0xc3, 0x00, 0x00, 0x00}),                   // jbe
        code({0xe8, 0xc3, 0xc3, 0xc3, 0xc3}),                         // call
        code({0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00}), // nop
        code({0x66, 0x0f, 0x3a, 0x0f, 0xc1, 0x08}),                   // palignr
        code({0x66, 0x0f, 0x38, 0x00, 0xc1}),                         // pshufb
        code({0xc5, 0xf8, 0x77}),                                     // vzeroupper
        code({0xc4, 0xe3, 0x7d, 0x46, 0xf8, 0x31}),                   // vperm2i128
        code({0xc4, 0xe2, 0x7d, 0x18, 0x05, 0xc3, 0xc3, 0xc3, 0xc3}), // vbroadcastss
        code({0x62, 0xf1, 0x7d, 0x48, 0x6f, 0x44, 0x24, 0x01}),       // vmovdqa32 zmm0, [rsp + 64]
        code({0xf0, 0x48, 0x0f, 0xb1, 0x0b}),                         // lock cmpxchg
        code({0x64, 0x48, 0x8b, 0x0c, 0x25, 0xf8, 0xff, 0xff, 0xff}), // mov rcx, fs:-8
    };
    for (const std::vector<std::byte> &one : whole) {
        CAPTURE(static_cast<int>(one[0]));
        std::vector<std::byte> longer = one;
        longer.resize(one.size() + 16, std::byte{0xcc});
        CHECK(x86_instruction_length(longer) == one.size());
        for (size_t cut = 0; cut < one.size(); ++cut) CHECK(x86_instruction_length(Bytes(one).first(cut)) == 0);
    }
}

TEST_CASE("return instructions: a c3 inside of an instruction is none") {
    const auto body =
        code({0xa8, 0xc3, 0xc3, 0x48, 0xb8, 0xc3, 1, 2, 3, 4, 5, 6, 7, 0xf3, 0xc3, 0xe8, 0xc3, 0, 0, 0, 0xc2, 8, 0});
    const auto found = return_instructions(body, EM_X86_64);
    REQUIRE(found.has_value());
    CHECK(*found == std::vector<uint64_t>{2, 13, 20});
    // What isn't known, or is cut, says nothing of the whole.
    CHECK_FALSE(return_instructions(code({0xc3, 0x06}), EM_X86_64).has_value());
    CHECK_FALSE(return_instructions(code({0xc3, 0xe8, 0x00}), EM_X86_64).has_value());
    const auto arm = code({0xc0, 0x03, 0x5f, 0xd6, 0x1f, 0x20, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6}); // ret; nop; ret
    CHECK(return_instructions(arm, EM_AARCH64) == std::vector<uint64_t>{0, 8});
}

TEST_CASE("return instructions: where the instruction begins that a byte belongs to") {
    const auto function = code({0x55, 0x48, 0x89, 0xe5, 0xb8, 0xc3, 0x00, 0x00, 0x00, 0x06, 0xc3}); // 06: none of 64-bit mode
    const uint64_t begins[] = {0, 1, 1, 1, 4, 4, 4, 4, 4};
    for (uint64_t at = 0; at < std::size(begins); ++at) CHECK(instruction_with(function, at, EM_X86_64) == begins[at]);
    for (uint64_t at : {9u, 10u, 11u, 100u}) CHECK(instruction_with(function, at, EM_X86_64) == std::nullopt);
    CHECK(instruction_with(function, 5, EM_AARCH64) == 4u);
    CHECK(instruction_with(function, 1, EM_RISCV) == std::nullopt);
    CHECK(instruction_with({}, 0, EM_X86_64) == std::nullopt);
}

TEST_CASE("return instructions: Go's stack check") {
    CHECK(go_stack_check(code({0x49, 0x3b, 0x66, 0x10, 0x0f, 0x86, 1, 2, 3, 4}), EM_X86_64) == 10);
    CHECK(go_stack_check(code({0x49, 0x3b, 0x66, 0x10, 0x76, 0x20}), EM_X86_64) == 6);
    CHECK(go_stack_check(code({0x4c, 0x8d, 0x64, 0x24, 0xd0, 0x4d, 0x3b, 0x66, 0x10, 0x0f, 0x86, 1, 2, 3, 4}), EM_X86_64) == 15);
    CHECK(go_stack_check(code({0x4c, 0x8d, 0xa4, 0x24, 0x28, 0xff, 0xff, 0xff, 0x4d, 0x3b, 0x66, 0x10, 0x76, 1}), EM_X86_64) ==
          14);
    CHECK(go_stack_check(code({0x64, 0x48, 0x8b, 0x0c, 0x25, 0xf8, 0xff, 0xff, 0xff, 0x48, 0x3b, 0x61, 0x10, 0x76, 1}),
                         EM_X86_64) == 15);
    CHECK(go_stack_check(code({0x48, 0x83, 0xec, 0x18}), EM_X86_64) == 0);
    CHECK(go_stack_check(code({0x49, 0x3b, 0x66, 0x10, 0x0f, 0x86, 1}), EM_X86_64) == 0);
    // ldr x16, [x28, 16]; mov x17, sp; cmp x17, x16; b.ls
    CHECK(go_stack_check(code({0x90, 0x0b, 0x40, 0xf9, 0xf1, 0x03, 0x00, 0x91, 0x3f, 0x02, 0x10, 0xeb, 0x09, 0x02, 0x00, 0x54}),
                         EM_AARCH64) == 16);
    CHECK(go_stack_check(code({0xfd, 0x7b, 0xbf, 0xa9}), EM_AARCH64) == 0);
}
