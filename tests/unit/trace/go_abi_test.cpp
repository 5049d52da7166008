// Where Go's compiler puts what a function takes: a table for each architecture, its lines worked out by hand from
// src/cmd/compile/abi-internal.md.
#include "programs/trace/go_abi.h"

#include "asm/builder.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::trace;

namespace {

GoSignature read(std::string_view text) {
    Result<GoSignature> signature = parse_go_signature(text);
    if (!signature) FAIL(signature.error().message());
    return *signature;
}

// "i0 i1 f0 s8": registers of either kind, bytes on the stack; one group a variable.
std::string text_of(const std::vector<GoAssigned> &variables) {
    std::string out;
    for (const GoAssigned &one : variables) {
        if (&one != variables.data()) out += " | ";
        for (size_t i = 0; i < one.words.size(); ++i) {
            const GoWord &word = one.words[i];
            constexpr std::string_view kKinds = "ifs?"; // as GoWord::In has them
            const char kind = kKinds[static_cast<size_t>(word.in)];
            out += (i ? " " : "") + std::string(1, kind) + std::to_string(word.at);
        }
    }
    return out;
}

struct Row {
    const char *signature, *x86_64, *arm64, *stack;
};

const Row kRows[] = {
    {"(a int, s string, b []byte, e error)", "i0 | i1 i2 | i3 i4 i5 | i6 i7", "i0 | i1 i2 | i3 i4 i5 | i6 i7",
     "s0 | s8 s16 | s24 s32 s40 | s48 s56"},
    {"(a int8, b bool, c int16, d uint32, e int8)", "i0 | i1 | i2 | i3 | i4", "i0 | i1 | i2 | i3 | i4", "s0 | s1 | s2 | s4 | s8"},
    {"(a float64, b int, c float32, d complex128)", "f0 | i0 | f1 | f2 f3", "f0 | i0 | f1 | f2 f3", "s0 | s8 | s16 | s24 s32"},
    // A structure goes field by field, one in another too.
    {"(p struct{X int32; In struct{S string; F float64}}, q int)", "i0 i1 i2 f0 | i3", "i0 i1 i2 f0 | i3", "s0 s8 s16 s24 | s32"},
    // Arrays: of one element that element, of more the stack, wherever they are; of none nothing.
    {"(a [1]int, b [2]int, c int, d struct{A [2]int8; B int}, e [0]int, f string)", "i0 | s0 s8 | i1 | s16 s17 s24 |  | i2 i3",
     "i0 | s0 s8 | i1 | s16 s17 s24 |  | i2 i3", "s0 | s8 s16 | s24 | s32 s33 s40 |  | s48 s56"},
    // What doesn't fit as a whole is on the stack; what is behind it is tried again.
    {"(a, b, c, d, e, f, g, h int, s string, i int, j int)", "i0 | i1 | i2 | i3 | i4 | i5 | i6 | i7 | s0 s8 | i8 | s16",
     "i0 | i1 | i2 | i3 | i4 | i5 | i6 | i7 | i8 i9 | i10 | i11",
     "s0 | s8 | s16 | s24 | s32 | s40 | s48 | s56 | s64 s72 | s80 | s88"},
    {"(m map[string]int, c chan int, f func(int) error, p *main.T, u unsafe.Pointer)", "i0 | i1 | i2 | i3 | i4",
     "i0 | i1 | i2 | i3 | i4", "s0 | s8 | s16 | s24 | s32"},
    {"(z struct{}, a int)", " | i0", " | i0", " | s0"},
};

} // namespace

TEST_CASE("go abi: each parameter's words") {
    for (const Row &row : kRows) {
        CAPTURE(std::string(row.signature));
        const GoSignature signature = read(row.signature);
        CHECK(text_of(assign_go(signature, go_register_abi(Arch::x86_64)).parameters) == std::string(row.x86_64));
        CHECK(text_of(assign_go(signature, go_register_abi(Arch::arm64)).parameters) == std::string(row.arm64));
        CHECK(text_of(assign_go(signature, {}).parameters) == std::string(row.stack));
    }
}

TEST_CASE("go abi: results have all registers again, and stand behind the parameters on the stack") {
    const GoSignature signature = read("func (s *srv) Handle(id int8, key string) (n int, err error)");
    REQUIRE(signature.parameters.size() == 3);
    CHECK(signature.parameters[0].name == "s");
    CHECK(text_of(assign_go(signature, go_register_abi(Arch::x86_64)).results) == "i0 | i1 i2");
    CHECK(text_of(assign_go(signature, {}).parameters) == "s0 | s8 | s16 s24");
    CHECK(text_of(assign_go(signature, {}).results) == "s32 | s40 s48");
    const GoSignature odd = read("(a int8) int8");
    CHECK(text_of(assign_go(odd, {}).results) == "s8");
}

TEST_CASE("go abi: sixteen floats more than there are registers") {
    const GoSignature signature = read("(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p float64, q int)");
    const auto places = assign_go(signature, go_register_abi(Arch::x86_64)).parameters;
    CHECK(text_of({places[14], places[15], places[16]}) == "f14 | s0 | i0");
}

// As DWARF of Go before 1.25 has it, without those that are called `_`.
TEST_CASE("go abi: parameters on the stack behind others that nobody named") {
    const auto found = [](std::string_view text, std::vector<std::optional<GoVariable::Known>> known, const GoAbi &abi) {
        GoSignature signature = read(text);
        for (size_t i = 0; i < known.size(); ++i) signature.parameters[i].known = known[i];
        return text_of(assign_go(signature, abi).parameters);
    };
    const auto at = [](uint32_t bytes, bool whole) { return GoVariable::Known{{GoWord::In::stack, 8, bytes}, 0, whole}; };
    const GoAbi registers = go_register_abi(Arch::x86_64);
    CHECK(found("(b [2]int, c int)", {at(24, true), {}}, registers) == "s24 s32 | i0");
    CHECK(found("(b int, c int)", {at(8, false), at(16, false)}, registers) == "s8 | s16");
    CHECK(found("(b, c int)", {at(8, true), {}}, registers) == "i0 | i1"); // where it is kept, not where it came
    CHECK(found("(b, c int)", {at(8, true), at(24, true)}, {}) == "s8 | s24");
    // Of a text one word was found: it begins where what is before it ends, or nobody knows.
    CHECK(found("(b int, c string)", {at(8, false), at(24, false)}, registers) == "s8 | s16 s24");
    CHECK(found("(b int, c string)", {at(8, false), at(40, false)}, registers) == "s8 | ?40 ?48");
    GoSignature signature = read("(c string)");
    signature.parameters[0].known = at(16, false);
    Signature shown;
    (void)describe_go_call(signature, registers, shown);
    REQUIRE(shown.parameters.size() == 2);
    CHECK(shown.parameters[0].type.show == Show::unavailable);
    CHECK(shown.parameters[1].is_length);
}

TEST_CASE("go abi: by the version of Go") {
    CHECK_FALSE(go_passes_in_registers("go1.16.15", Arch::x86_64));
    CHECK(go_passes_in_registers("go1.17", Arch::x86_64));
    CHECK_FALSE(go_passes_in_registers("go1.17", Arch::arm64));
    CHECK(go_passes_in_registers("go1.18.1", Arch::arm64));
    CHECK(go_passes_in_registers("go1.26.0", Arch::x86_64));
    CHECK(go_passes_in_registers("devel go1.22-0123abcd", Arch::x86_64));
    CHECK_FALSE(go_passes_in_registers("go1.17.5 X:noregabi", Arch::x86_64));
}

TEST_CASE("go signature: what is shown of each parameter") {
    const GoSignature go = read("(key string, buf []byte, xs []int32, e error, v any, f float64, it struct{I int8; S string})");
    Signature out;
    const GoCall call = describe_go_call(go, go_register_abi(Arch::x86_64), out);
    REQUIRE(out.known);
    REQUIRE(call.arguments.size() == out.parameters.size());
    struct Shown {
        const char *name;
        Show show;
        bool hidden;
    };
    const Shown shown[] = {{"key", Show::counted, false},    {"key_len", Show::integer, true}, {"buf", Show::counted, false},
                           {"buf_len", Show::integer, true}, {"buf_cap", Show::integer, true}, {"xs", Show::go_slice, false},
                           {"xs_len", Show::integer, true},  {"xs_cap", Show::integer, true},  {"e", Show::go_interface, false},
                           {"e_data", Show::address, true},  {"v", Show::go_any, false},       {"v_data", Show::address, true},
                           {"f", Show::unavailable, false},  {"it.I", Show::integer, false},   {"it.S", Show::counted, false},
                           {"it.S_len", Show::integer, true}};
    REQUIRE(out.parameters.size() == std::size(shown));
    for (size_t i = 0; i < std::size(shown); ++i) {
        CAPTURE(shown[i].name);
        CHECK(out.parameters[i].name == shown[i].name);
        CHECK(out.parameters[i].type.show == shown[i].show);
        CHECK(out.parameters[i].is_length == shown[i].hidden);
    }
    CHECK(out.parameters[13].type.size == 1);
    // On the stack a float can be read.
    (void)describe_go_call(go, {}, out);
    CHECK(out.parameters[12].type.show == Show::real);
}

TEST_CASE("go signature: a value is shown whole or not at all") {
    const GoSignature go = read("(a, b, c, d, e, f, g, h, i string, big [23]int, j string)");
    Signature out;
    const GoCall call = describe_go_call(go, go_register_abi(Arch::x86_64), out);
    CHECK(call.arguments.size() <= kMostGoWords);
    CHECK(call.arguments.size() == out.parameters.size());
    CHECK_FALSE(out.parameters.back().type.show == Show::counted);
}

TEST_CASE("go signature: what isn't Go's") {
    struct Wrong {
        const char *text, *message;
    };
    const Wrong wrong[] = {{"int fd", "name before the type"},
                           {"const char *path", "name before the type"},
                           {"void *s, unsigned long n", "name before the type"},
                           {"long (int fd)", "isn't a function's name"},
                           {"a item", "type `item` isn't known"},
                           {"func(a int", "never closed"},
                           {"a struct{X int", "never closed"},
                           {"a []", "a type is expected"},
                           {"a [99999999999]int", "as long as that"},
                           {"a int,", "a type is expected"},
                           {"a, b", "isn't known"},
                           {"a int) error", "isn't expected"},
                           {"********************int", "nested too deep"}};
    for (const Wrong &one : wrong) {
        CAPTURE(std::string(one.text));
        const Result<GoSignature> read = parse_go_signature(one.text);
        REQUIRE_FALSE(read.has_value());
        CHECK(read.error().kind == Errc::invalid_argument);
        CHECK(read.error().message().find(one.message) != std::string::npos);
    }
    const GoSignature list = read("int, string, *List[int]");
    CHECK(list.parameters.size() == 3);
    CHECK_FALSE(list.results_known);
}
