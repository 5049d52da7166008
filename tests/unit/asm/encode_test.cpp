// The encoder and the printer against LLVM: golden.inc holds what llvm-mc 19 assembles and prints (golden.py makes it). What LLVM
// 19 doesn't know is written here by hand from the kernel's uapi/linux/bpf.h and RFC 9669.
#include "asm/encode.h"

#include <cstring>
#include <set>
#include <string>

#include "asm/print.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

struct Golden {
    const char *form;
    int dst, src;
    long off;
    long long imm;
    const char *bytes, *text, *hex;
};

const Golden kFromLlvm[] = {
#include "golden.inc"
};

const Golden kByHand[] = {
    {"ja32", 0, 0, 0, 70000, "0600000070110100", "gotol +70000", "gotol +0x11170"},
    {"ja32", 0, 0, 0, -70000, "0600000090eefeff", "gotol -70000", "gotol -0x11170"},
    {"gotox", 3, 0, 0, 0, "0d03000000000000", "gotox r3", "gotox r3"},
    {"call_local", 0, 0, 0, 5, "8510000005000000", "call +5", "call +0x5"},
    // LLVM writes both calls with a sign; here a sign means a function of the program.
    {"call", 0, 0, 0, 0xdeadbeef, "85000000efbeadde", "call 3735928559", "call 0xdeadbeef"},
    {"call_local", 0, 0, 0, -2, "85100000feffffff", "call -2", "call -0x2"},
    {"call_kfunc", 0, 0, 0, 1234, "85200000d2040000", "call kfunc 1234", "call kfunc 0x4d2"},
    {"call_kfunc", 0, 0, 2, 1234, "85200200d2040000", "call kfunc 1234 module 2", "call kfunc 0x4d2 module 0x2"},
    {"lddw_map", 1, 0, 0, 7, "18110000070000000000000000000000", "r1 = map 7 ll", "r1 = map 0x7 ll"},
    {"lddw_value", 2, 0, 0, (16ll << 32) + 7, "18220000070000000000000010000000", "r2 = map_value 68719476743 ll",
     "r2 = map_value 0x1000000007 ll"},
    {"lddw_btf", 3, 0, 0, 99, "18330000630000000000000000000000", "r3 = btf_id 99 ll", "r3 = btf_id 0x63 ll"},
    {"lddw_function", 4, 0, 0, 12, "184400000c0000000000000000000000", "r4 = function 12 ll", "r4 = function 0xc ll"},
    {"lddw_map_index", 5, 0, 0, 1, "18550000010000000000000000000000", "r5 = map_index 1 ll", "r5 = map_index 0x1 ll"},
    {"lddw_value_index", 6, 0, 0, 1, "18660000010000000000000000000000", "r6 = map_value_index 1 ll",
     "r6 = map_value_index 0x1 ll"},
    {"ldindb", 0, 7, 0, 14, "507000000e000000", "r0 = *(u8 *)skb[r7 + 14]", "r0 = *(u8 *)skb[r7 + 0xe]"},
    {"ldindh", 0, 7, 0, 0, "4870000000000000", "r0 = *(u16 *)skb[r7]", "r0 = *(u16 *)skb[r7]"},
    {"ldindw", 0, 7, 0, 0, "4070000000000000", "r0 = *(u32 *)skb[r7]", "r0 = *(u32 *)skb[r7]"},
    {"load_acquire8", 1, 2, 4, 0, "d321040000010000", "w1 = load_acquire((u8 *)(r2 + 4))", "w1 = load_acquire((u8 *)(r2 + 0x4))"},
    {"load_acquire16", 1, 2, 4, 0, "cb21040000010000", "w1 = load_acquire((u16 *)(r2 + 4))",
     "w1 = load_acquire((u16 *)(r2 + 0x4))"},
    {"load_acquire32", 1, 2, 4, 0, "c321040000010000", "w1 = load_acquire((u32 *)(r2 + 4))",
     "w1 = load_acquire((u32 *)(r2 + 0x4))"},
    {"load_acquire64", 1, 2, -8, 0, "db21f8ff00010000", "r1 = load_acquire((u64 *)(r2 - 8))",
     "r1 = load_acquire((u64 *)(r2 - 0x8))"},
    {"store_release8", 1, 2, 4, 0, "d321040010010000", "store_release((u8 *)(r1 + 4), w2)",
     "store_release((u8 *)(r1 + 0x4), w2)"},
    {"store_release16", 1, 2, 4, 0, "cb21040010010000", "store_release((u16 *)(r1 + 4), w2)",
     "store_release((u16 *)(r1 + 0x4), w2)"},
    {"store_release32", 1, 2, 4, 0, "c321040010010000", "store_release((u32 *)(r1 + 4), w2)",
     "store_release((u32 *)(r1 + 0x4), w2)"},
    {"store_release64", 10, 2, -8, 0, "db2af8ff10010000", "store_release((u64 *)(r10 - 8), r2)",
     "store_release((u64 *)(r10 - 0x8), r2)"},
};

std::string bytes_of(const Encoded &encoded) {
    std::string out;
    unsigned char raw[16];
    std::memcpy(raw, &encoded.insn, 8);
    std::memcpy(raw + 8, &encoded.second, 8);
    for (int i = 0; i < (is_wide(encoded.insn) ? 16 : 8); ++i) {
        out += "0123456789abcdef"[raw[i] >> 4];
        out += "0123456789abcdef"[raw[i] & 15];
    }
    return out;
}

void check(const Golden &row) {
    INFO(row.form << " " << row.text);
    Encoded encoded = encode(row.form, {row.dst, row.src, row.off, row.imm});
    REQUIRE(encoded);
    CHECK(bytes_of(encoded) == row.bytes);
    const Insn slots[] = {encoded.insn, encoded.second};
    CHECK(print(slots) == row.text);
    PrintStyle hex;
    hex.hex = true;
    CHECK(print(slots, hex) == row.hex);
    const Form *form = find_form(encoded.insn);
    REQUIRE(form != nullptr);
    CHECK(form->name == row.form);
}

Problem problem(std::string_view form, const Operands &operands) { return encode(form, operands).problem; }

// Everything works at compile time; a program can be a constant.
constexpr Insn kReturnZero[] = {encode("mov", {.dst = 0, .imm = 0}).insn, encode("exit", {}).insn};
static_assert(kReturnZero[0].code == 0xb7 && kReturnZero[1].code == 0x95);
static_assert(encode("mov", {.dst = 10, .imm = 0}).problem == Problem::read_only);
static_assert(encode("lddw", {.dst = 1, .imm = 0x123456789abcdef0}).second.imm == 0x12345678);

} // namespace

TEST_CASE("encode: bytes and text as llvm-mc has them") {
    for (const Golden &row : kFromLlvm) check(row);
}

TEST_CASE("encode: what LLVM 19 doesn't know") {
    for (const Golden &row : kByHand) check(row);
}

TEST_CASE("encode: every form is in one of the two tables, has its own name and its own bytes") {
    std::set<std::string> tested, names;
    for (const Golden &row : kFromLlvm) tested.insert(row.form);
    for (const Golden &row : kByHand) tested.insert(row.form);
    for (const Form &form : isa::kForms) {
        INFO(std::string(form.name));
        CHECK(tested.count(std::string(form.name)) == 1);
        CHECK(names.insert(std::string(form.name)).second);
        Operands operands;
        if (form.fields() & kImm) operands.imm = 1;
        Encoded encoded = encode(form, operands);
        REQUIRE(encoded);
        CHECK(find_form(encoded.insn) == &form);
        CHECK(find_form(form.name) == &form);
        CHECK((form.cpu >= 1 && form.cpu <= 5));
    }
}

TEST_CASE("encode: registers") {
    CHECK(problem("mov", {.dst = 11}) == Problem::no_such_register);
    CHECK(problem("mov", {.dst = -1}) == Problem::no_such_register);
    CHECK(problem("mov_reg", {.dst = 1, .src = 16}) == Problem::no_such_register);
    CHECK(problem("mov_reg", {.dst = 1, .src = 10}) == Problem::none);
    for (const char *form : {"mov", "add32", "neg", "be16", "ldxw", "lddw", "movsx8", "load_acquire8", "addr_space_cast"})
        CHECK(problem(form, {.dst = 10}) == Problem::read_only);
    CHECK(problem("atomic_fetch_add", {.dst = 1, .src = 10}) == Problem::read_only);
    CHECK(problem("xchg32", {.dst = 1, .src = 10}) == Problem::read_only);
    CHECK(problem("stxdw", {.dst = 10, .src = 1, .off = -8}) == Problem::none);
    CHECK(problem("exit", {.dst = 1}) == Problem::not_an_operand);
    CHECK(problem("mov", {.dst = 1, .src = 2}) == Problem::not_an_operand);
    CHECK(problem("nonsense", {}) == Problem::not_an_operand);
}

TEST_CASE("encode: offsets") {
    for (const char *form : {"ldxb", "stxb", "ja", "jeq_reg", "may_goto"}) {
        CHECK(problem(form, {.off = 32767}) == Problem::none);
        CHECK(problem(form, {.off = -32768}) == Problem::none);
        CHECK(problem(form, {.off = 32768}) == Problem::offset_range);
        CHECK(problem(form, {.off = -32769}) == Problem::offset_range);
        CHECK(problem(form, {.off = int64_t{1} << 40}) == Problem::offset_range);
    }
    CHECK(problem("ja32", {.imm = 2147483647}) == Problem::none);
    CHECK(problem("ja32", {.imm = 2147483648}) == Problem::immediate_range);
}

TEST_CASE("encode: immediates keep their value or are refused") {
    CHECK(problem("mov", {.dst = 1, .imm = 2147483647}) == Problem::none);
    CHECK(problem("mov", {.dst = 1, .imm = 2147483648}) == Problem::immediate_range);
    CHECK(problem("mov", {.dst = 1, .imm = 0x1ffffffff}) == Problem::immediate_range);
    CHECK(problem("mov", {.dst = 1, .imm = -2147483648ll}) == Problem::none);
    CHECK(problem("mov", {.dst = 1, .imm = -2147483649ll}) == Problem::immediate_range);
    CHECK(problem("and", {.dst = 1, .imm = 0xffffffff}) == Problem::immediate_range); // would keep all 64 bits
    CHECK(problem("and32", {.dst = 1, .imm = 0xffffffff}) == Problem::none);
    CHECK(problem("jeq32", {.dst = 1, .imm = 0x100000000}) == Problem::immediate_range);
    CHECK(problem("stb", {.imm = 255}) == Problem::none);
    CHECK(problem("stb", {.imm = -128}) == Problem::none);
    CHECK(problem("stb", {.imm = 256}) == Problem::value_range);
    CHECK(problem("sth", {.imm = 65536}) == Problem::value_range);
    CHECK(problem("sth", {.imm = -32769}) == Problem::value_range);
    CHECK(problem("stw", {.imm = 0xffffffff}) == Problem::none);
    CHECK(problem("stw", {.imm = 0x100000000}) == Problem::value_range);
    CHECK(problem("stdw", {.imm = 0xffffffff}) == Problem::immediate_range); // would store ones above
    CHECK(problem("lddw", {.dst = 1, .imm = INT64_MIN}) == Problem::none);
    for (int64_t imm : {int64_t{0}, int64_t{0xffffffff}, int64_t{INT32_MIN}})
        CHECK(problem("addr_space_cast", {.dst = 1, .imm = imm}) == Problem::none);
    for (int64_t imm : {int64_t{0x100000000}, int64_t{INT32_MIN} - 1, INT64_MAX})
        CHECK(problem("addr_space_cast", {.dst = 1, .imm = imm}) == Problem::address_space);
    CHECK(problem("lsh", {.dst = 1, .imm = 63}) == Problem::none);
    CHECK(problem("lsh", {.dst = 1, .imm = 64}) == Problem::shift_range);
    CHECK(problem("arsh32", {.dst = 1, .imm = 32}) == Problem::shift_range);
    CHECK(problem("rsh", {.dst = 1, .imm = -1}) == Problem::shift_range);
    for (const char *form : {"div", "mod", "sdiv", "smod", "div32", "smod32"}) {
        CHECK(problem(form, {.dst = 1, .imm = 0}) == Problem::zero_divisor);
        CHECK(problem(form, {.dst = 1, .imm = 1}) == Problem::none);
    }
}

TEST_CASE("encode: the words name the number, the form and the way out") {
    auto words = [](std::string_view name, const Operands &operands) {
        const Form &form = *find_form(name);
        return describe(encode(form, operands).problem, form, operands);
    };
    CHECK(words("mov", {.dst = 1, .imm = 5000000000}) ==
          "5000000000 doesn't fit in `rN = number`, which takes -2147483648 to 2147483647; load_imm64 takes any 64-bit number");
    CHECK(
        words("and", {.dst = 1, .imm = 0xffffffff}) ==
        "4294967295 doesn't fit in `rN &= number`, which takes -2147483648 to 2147483647 (it would be sign-extended to 64 bits); "
        "use a 32-bit register, or load_imm64 and a register");
    CHECK(words("stb", {.imm = 256}) == "256 doesn't fit in 8 bits, which `*(u8 *)(...) = number` stores");
    CHECK(words("call", {.imm = 5000000000}) == "5000000000 doesn't fit in `call`, which takes -2147483648 to 4294967295");
    CHECK(words("addr_space_cast", {.dst = 1, .src = 2, .imm = int64_t{65536} << 16}) ==
          "4294967296 isn't two address spaces, to << 16 | from, each of them 0 to 65535");
    CHECK(words("lsh32", {.dst = 1, .imm = 99}) == "a shift by 99; it may be 0 to 31");
    CHECK(words("ldxw", {.dst = 1, .off = 40000}) == "the offset 40000 is out of range; it may be -32768 to 32767");
    CHECK(words("ja", {.off = 40000}) == "the jump is 40000 instructions long; goto reaches -32768 to 32767, gotol further");
}

TEST_CASE("find_form: reserved fields must be zero, unknown opcodes are none") {
    CHECK(find_form(Insn{0x95, 1, 0, 0, 0}) == nullptr);
    CHECK(find_form(Insn{0x95, 0, 0, 0, 7}) == nullptr);
    CHECK(find_form(Insn{0xb7, 1, 2, 0, 7}) == nullptr);
    CHECK(find_form(Insn{0x85, 0, 3, 0, 7}) == nullptr);
    CHECK(find_form(Insn{0xdb, 1, 2, 0, 0x77}) == nullptr);
    CHECK(find_form(Insn{0xbf, 1, 2, 24, 0}) == nullptr);
    CHECK(find_form(Insn{}) == nullptr);
    const Insn unknown[] = {{0xff, 1, 2, 3, 4}};
    CHECK(print(unknown) == ".8byte 0x00000004000321ff");
    const Insn cut[] = {{0x18, 1, 0, 0, 5}};
    CHECK(print(cut) == ".8byte 0x0000000500000118");
    CHECK(print(std::span<const Insn>()) == "");
}

TEST_CASE("print, find_form: any eight bytes are printed, and forms that are found encode back to the same bytes") {
    uint64_t state = 88172645463325252;
    auto next = [&] { // xorshift
        state ^= state << 13;
        state ^= state >> 7;
        return state ^= state << 17;
    };
    int valid = 0;
    for (int i = 0; i < 1000000; ++i) {
        const uint64_t raw = next(), more = next();
        Insn slots[2];
        std::memcpy(static_cast<void *>(&slots[0]), &raw, 8);
        slots[0].code = static_cast<uint8_t>(i);        // every opcode equally often
        if (more & 1) slots[0].off = 0;                 // reserved fields are often zero in what is valid
        if (more & 2) slots[0].src = more >> 8 & 3;     //
        if (more & 4) slots[0].imm = more >> 16 & 0xf1; // the numbers of the atomics among them
        if (more & 8) slots[0].dst = 0;
        slots[1] = Insn{0, 0, 0, 0, static_cast<int32_t>(more >> 32)};
        REQUIRE_FALSE(print(slots).empty());
        const Form *form = find_form(slots[0]);
        if (form == nullptr) {
            REQUIRE(print(slots).starts_with(".8byte 0x"));
            continue;
        }
        Operands operands;
        const uint8_t fields = form->fields();
        if (fields & kDst) operands.dst = slots[0].dst;
        if (fields & kSrc) operands.src = slots[0].src;
        if (fields & kOff) operands.off = slots[0].off;
        if (fields & kImm) operands.imm = slots[0].imm;
        if (form->shape == Shape::load_wide)
            operands.imm =
                static_cast<int64_t>(static_cast<uint32_t>(slots[0].imm) | uint64_t{static_cast<uint32_t>(slots[1].imm)} << 32);
        if (form->shape == Shape::store_imm && form->bits < 32) continue; // the upper bits of imm are ignored there
        Encoded encoded = encode(*form, operands);
        if (!encoded) continue; // r11 to r15, r10 as a result, an oversized shift, a division by zero
        ++valid;
        REQUIRE(encoded.insn == slots[0]);
        if (is_wide(slots[0])) REQUIRE(encoded.second == slots[1]);
    }
    CHECK(valid > 20000);
}
