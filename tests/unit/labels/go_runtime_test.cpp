// Where a Go program has its goroutines, by code made for it; tests/cli/go_labels_test.py has real programs.
#include "programs/labels/go_runtime.h"

#include <string>
#include <utility>
#include <vector>

#include "programs/labels/x86_code.h"
#include "tests/support/test.h"
#include "tests/unit/languages/made_memory.h"
#include "tests/unit/symbols/small_elf.h"

using namespace rawbpf;
using namespace rawbpf::labels;

namespace {

using Code = std::string;

Code code(std::initializer_list<int> bytes) {
    Code out;
    for (const int byte : bytes) out += static_cast<char>(byte);
    return out;
}
Code number(int64_t value) { // 4 bytes
    Code out;
    for (int i = 0; i < 4; ++i) out += static_cast<char>(value >> (8 * i));
    return out;
}

// rax = g, by each way that linkers leave
Code load_g(int64_t at) { return code({0x64, 0x48, 0x8b, 0x04, 0x25}) + number(at); }
Code load_g_by_number(int64_t at) { return code({0x48, 0xc7, 0xc1}) + number(at) + code({0x64, 0x48, 0x8b, 0x01}); }
Code load_g_by_word(int64_t from_next) { return code({0x48, 0x8b, 0x0d}) + number(from_next) + code({0x64, 0x48, 0x8b, 0x01}); }
Code store_g() { return code({0x64, 0x48, 0x89, 0x01}); } // rax, by rcx
Code store_g(int64_t at) { return code({0x64, 0x48, 0x89, 0x04, 0x25}) + number(at); }
const Code kLoadM = code({0x48, 0x8b, 0x58, 0x30});                          // rbx = rax[0x30]
const Code kLoadG0 = code({0x48, 0x8b, 0x13});                               // rdx = rbx[0]
Code load_curg(int64_t at) { return code({0x48, 0x8b, 0x83}) + number(at); } // rax = rbx[at]
const Code kCall = code({0xe8, 0, 0, 0, 0}), kReturn = code({0xc3});

/// As runtime.systemstack has it, more or less: the thread's own stack's goroutine, and back.
Code switches(int64_t g = -8, int64_t curg = 0xc0) {
    return load_g(g) + kLoadM + kLoadG0 + kCall + load_g(g) + kLoadM + load_curg(curg) + store_g(g) + kReturn;
}
/// [rax + at] is compared with 1.
Code compares(int64_t at) { return code({0x55, 0x74, 0x02, 0x48, 0x83, 0xb8}) + number(at) + code({0x01}) + kReturn; }
/// r14 to the frame, a call, and back to rcx; rcx[at] = rax.
Code sets(int64_t at) {
    return code({0x48, 0x83, 0xec, 0x10, 0x4c, 0x89, 0x74, 0x24, 0x08, 0x74, 0x02}) + kCall +
           code({0x48, 0x8b, 0x4c, 0x24, 0x08, 0x48, 0x89, 0x81}) + number(at) + kReturn;
}

constexpr uint64_t kStep = 0x100;

using Functions = std::vector<std::pair<std::string, Code>>;
Functions usual() {
    return {{"main.main", kReturn},
            {"runtime.systemstack.abi0", switches()},
            {"runtime.printcreatedby", compares(0x98)},
            {"runtime/pprof.runtime_setProfLabel", sets(0x168)}};
}

/// A program with these functions, one behind the other, in the layout of Go 1.16, which says addresses as they are.
std::vector<std::byte> program(const Functions &functions, uint16_t machine = EM_X86_64) {
    std::string text, names, table, table_end;
    const auto add = [](std::string &to, uint64_t value, size_t width) {
        for (size_t i = 0; i < width; ++i) to += static_cast<char>(value >> (8 * i));
    };
    constexpr uint64_t kText = test::SmallElf::kText;
    const size_t count = functions.size(), pairs = (2 * count + 1) * 8;
    for (size_t i = 0; i < count; ++i) {
        const auto &[name, bytes] = functions[i];
        add(table, kText + i * kStep, 8), add(table, pairs + i * 16, 8);
        add(table_end, kText + i * kStep, 8), add(table_end, names.size(), 4), add(table_end, 0, 4);
        names += name + '\0';
        text += bytes;
        text.resize((i + 1) * kStep);
    }
    add(table, kText + count * kStep, 8);
    while (names.size() % 8 != 0) names += '\0';
    std::string out;
    add(out, 0xfffffffa, 4);
    out += std::string("\0\0\1\10", 4);
    const size_t head = 8 + 7 * 8;
    for (const uint64_t word :
         {uint64_t{count}, uint64_t{1}, uint64_t{head}, uint64_t{0}, uint64_t{0}, uint64_t{0}, uint64_t{head + names.size()}})
        add(out, word, 8);
    out += names + table + table_end;

    elf::Writer writer({machine, ET_EXEC, true, false, 0});
    elf::Section like;
    like.type = SHT_PROGBITS;
    like.flags = SHF_ALLOC | SHF_EXECINSTR;
    like.address = kText;
    like.alignment = 16;
    writer.add_segment(PT_LOAD, PF_R | PF_X, writer.add_section(".text", like, bytes_of(text)));
    elf::Section data;
    data.type = SHT_PROGBITS;
    data.alignment = 8;
    writer.add_section(".gopclntab", data, bytes_of(out));
    return writer.finish();
}

std::optional<GoRuntime> read(const Functions &functions, uint16_t machine = EM_X86_64) {
    const std::vector<std::byte> image = program(functions, machine);
    const auto file = elf::Elf::parse(image, "go");
    REQUIRE(file);
    return go_runtime(*file, image);
}

GoRuntime with_switches(const Code &bytes) {
    Functions functions = usual();
    functions[1].second = bytes;
    const auto found = read(functions);
    REQUIRE(found);
    return *found;
}

} // namespace

TEST_CASE("go labels: distances as code of the runtime has them") {
    const auto found = read(usual());
    REQUIRE(found);
    CHECK(found->why_not == "");
    CHECK(found->distance == uint64_t(-8));
    CHECK(!found->word);
    CHECK(found->m == 0x30);
    CHECK(found->curg == 0xc0);
    CHECK(found->number == 0x98);
    CHECK(found->labels == 0x168);
    CHECK(found->describe() == "g at -8 from the thread's pointer, its m at 48, the goroutine at 192 of that, its number at 152, "
                               "its labels at 360");
}

TEST_CASE("go labels: functions that aren't there, or are others") {
    Functions functions = usual();
    functions.pop_back(); // it sets no labels
    CHECK(read(functions)->labels == 0);
    CHECK(read(functions)->why_not == "");
    functions[2].second = compares(0x98) + compares(0xa0); // which of the two?
    CHECK(read(functions)->number == 0);
    functions.erase(functions.begin() + 1);
    CHECK(read(functions)->why_not.find("has no runtime.systemstack") != std::string::npos);
    functions = usual();
    functions[1].first = "runtime.systemstack_switch"; // another one
    CHECK(read(functions)->why_not.find("has no runtime.systemstack") != std::string::npos);
    CHECK(read(usual(), EM_AARCH64)->why_not.find("x86_64 only") != std::string::npos);
    for (const Code &bytes :
         {Code(), kReturn, switches(8), switches(0), switches(-8 << 20), switches(-8, 0), switches(-8, -8), switches(-8, 1 << 20),
          load_g(-8) + kLoadM + kLoadG0 + kCall + load_g(-16) + kLoadM + load_curg(0xc0) + store_g(-16), // two variables
          load_g(-8) + kLoadM + load_curg(0xc0) + store_g(-8)})                                          // no g0
        CHECK(with_switches(bytes).why_not.find("another one than rawbpf knows") != std::string::npos);

    elf::Writer writer({EM_X86_64, ET_EXEC, true, false, 0});
    const std::vector<std::byte> plain = writer.finish();
    const auto file = elf::Elf::parse(plain, "c");
    REQUIRE(file);
    CHECK(!go_runtime(*file, plain));
}

TEST_CASE("go labels: the thread's word by a number and by a word of the dynamic linker's") {
    const Code back = kLoadM + load_curg(0xc0) + store_g() + kReturn;
    GoRuntime found = with_switches(load_g_by_number(-0x50) + kLoadM + kLoadG0 + kCall + load_g_by_number(-0x50) + back);
    CHECK(found.why_not == "");
    CHECK(found.distance == uint64_t(-0x50));

    const Code first = load_g_by_word(0x1000), between = kLoadM + kLoadG0 + kCall;
    const auto far = static_cast<int64_t>(0x1000 - first.size() - between.size());
    found = with_switches(first + between + load_g_by_word(far) + back);
    CHECK(found.why_not == "");
    REQUIRE(found.word);
    const uint64_t word = test::SmallElf::kText + kStep + 7 + 0x1000;
    CHECK(*found.word == word);
    CHECK(with_switches(first + between + load_g_by_word(far + 8) + back).why_not != ""); // another word

    test::MadeMemory memory_made;
    const uint64_t bias = test::MadeMemory::kBase - test::SmallElf::kText;
    std::string why;
    const auto located = [&] {
        languages::Memory memory(memory_made);
        why.clear();
        return locate(found, bias, memory, why);
    };
    CHECK(!located());
    CHECK(why.find("hasn't written down yet") != std::string::npos);
    memory_made.put(bias + word, uint64_t{0x7f0000001000});
    CHECK(!located());
    memory_made.put(bias + word, uint64_t(-0x38));
    const auto process = located();
    REQUIRE(process);
    CHECK(process->offset == uint64_t(-0x38));
    CHECK(process->module == 0);
    CHECK(process->go_curg == 0xc0);
    CHECK(process->go_labels == 0x168);
    found.why_not = "because";
    CHECK(!located());
    CHECK(why == "because");
}

TEST_CASE("go labels: code that is cut, and any other bytes") {
    // Its own allocation: a sanitizer sees a byte too many.
    const Functions whole = usual();
    for (size_t function = 1; function < whole.size(); ++function)
        for (size_t size = 0; size <= whole[function].second.size(); ++size) {
            Functions functions = whole;
            functions[function].second.resize(size);
            functions[function].second.resize(kStep, '\xf4'); // hlt
            CHECK(read(functions));
        }
    uint64_t random = 1;
    for (int round = 0; round < 200; ++round) {
        Functions functions = whole;
        for (auto &[name, bytes] : functions)
            for (char &byte : bytes) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                if (random >> 60 == 0) byte = static_cast<char>(random >> 32);
            }
        const auto found = read(functions);
        REQUIRE(found);
        if (!found->why_not.empty()) continue;
        CHECK(found->curg > 0);
        CHECK(found->curg < 65536);
        CHECK(found->m < 65536);
    }
    // The file ends, or the table says more than there is.
    const std::vector<std::byte> image = program(whole);
    for (size_t size = 64; size < image.size(); size += 7) {
        const std::vector<std::byte> part(image.begin(), image.begin() + static_cast<ptrdiff_t>(size));
        if (const auto file = elf::Elf::parse(part, "go")) (void)go_runtime(*file, part);
    }
}

TEST_CASE("x86 code: lengths and operands") {
    struct Row {
        std::vector<int> bytes;
        int opcode, reg, rm, base, index;
        int64_t displacement, immediate;
    };
    constexpr int no = X86Instruction::kNone;
    const Row rows[] = {
        {{0x90}, 0x90, no, no, no, no, 0, 0},                                               // nop
        {{0x55}, 0x55, no, 5, no, no, 0, 0},                                                // push %rbp
        {{0x41, 0x57}, 0x57, no, 15, no, no, 0, 0},                                         // push %r15
        {{0x48, 0x89, 0xe5}, 0x89, 4, 5, no, no, 0, 0},                                     // mov %rsp,%rbp
        {{0x4c, 0x8b, 0x74, 0x24, 0x08}, 0x8b, 14, no, 4, no, 8, 0},                        // mov 8(%rsp),%r14
        {{0x49, 0x3b, 0x66, 0x10}, 0x3b, 4, no, 14, no, 16, 0},                             // cmp 16(%r14),%rsp
        {{0x48, 0x8b, 0x3c, 0x33}, 0x8b, 7, no, 3, 6, 0, 0},                                // mov (%rbx,%rsi),%rdi
        {{0x48, 0x8b, 0x04, 0xcd, 0xf0, 0xff, 0xff, 0xff}, 0x8b, 0, no, no, 1, -16, 0},     // mov -16(,%rcx,8),%rax
        {{0x83, 0x3d, 0x04, 0, 0, 0, 0xff}, 0x83, 7, no, no, no, 4, -1},                    // cmpl $-1,4(%rip)
        {{0x66, 0x81, 0xc1, 0x00, 0x80}, 0x81, 0, 1, no, no, 0, -32768},                    // add $0x8000,%cx
        {{0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}, 0xb8, no, 0, no, no, 0, 0x0807060504030201}, // movabs
        {{0xf7, 0xc1, 1, 0, 0, 0}, 0xf7, 0, 1, no, no, 0, 1},                               // test $1,%ecx
        {{0xf7, 0xd9}, 0xf7, 3, 1, no, no, 0, 0},                                           // neg %ecx
        {{0x74, 0xfe}, 0x74, no, no, no, no, 0, -2},                                        // je
        {{0x0f, 0x84, 1, 0, 0, 0}, 0x0f84, no, no, no, no, 0, 1},                           // je, far
        {{0x0f, 0xb6, 0x80, 1, 0, 0, 0}, 0x0fb6, 0, no, 0, no, 1, 0},                       // movzbl
        {{0x44, 0x0f, 0x11, 0x7c, 0x24, 0x18}, 0x0f11, 15, no, 4, no, 24, 0},               // movups %xmm15
        {{0x66, 0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0}, 0x0f1f, 0, no, 0, 0, 0, 0},            // nopw
        {{0xf0, 0x48, 0x0f, 0xb1, 0x0b}, 0x0fb1, 1, no, 3, no, 0, 0},                       // lock cmpxchg
        {{0x66, 0x0f, 0x3a, 0x0f, 0xc1, 0x08}, 0x3a0f, 0, 1, no, no, 0, 8},                 // palignr
        {{0xe8, 0xff, 0xff, 0xff, 0x7f}, 0xe8, no, no, no, no, 0, 0x7fffffff},              // call
    };
    for (const Row &row : rows) {
        std::vector<std::byte> bytes;
        for (const int byte : row.bytes) bytes.push_back(static_cast<std::byte>(byte));
        CAPTURE(row.opcode);
        const auto one = decode_x86(bytes);
        REQUIRE(one);
        CHECK(one->length == bytes.size());
        CHECK(one->opcode == row.opcode);
        CHECK(one->reg == row.reg);
        CHECK(one->rm == row.rm);
        CHECK(one->base == row.base);
        CHECK(one->index == row.index);
        CHECK(one->displacement == row.displacement);
        CHECK(one->immediate == row.immediate);
        for (size_t size = 0; size < bytes.size(); ++size) {
            const std::vector<std::byte> part(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
            CHECK(!decode_x86(part));
        }
    }
    const std::vector<std::byte> prefixes(64, std::byte{0x66}), unknown{std::byte{0xc5}, std::byte{0xf8}, std::byte{0x77}};
    CHECK(!decode_x86(prefixes));
    CHECK(!decode_x86(unknown)); // vzeroupper
    const std::vector<std::byte> by_fs{std::byte{0x64}, std::byte{0x48}, std::byte{0x8b}, std::byte{0x01}};
    CHECK(decode_x86(by_fs)->by_fs);
    CHECK(decode_x86(by_fs)->wide);
}
