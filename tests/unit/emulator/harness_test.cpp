// The harness for BPF_PROG_TEST_RUN, tried on the emulator: the program does the same, and leaves r0 in a map.
#include "runtime/object/harness.h"
#include "tests/unit/emulator/emulated.h"

using namespace rawbpf;
using namespace rawbpf::test;

namespace {
uint64_t result_of(const ObjectSpec &wrapped) {
    auto machine = emulator::Machine::create(wrapped).value();
    REQUIRE(machine->enter(0));
    Result<uint64_t> ran = machine->run();
    REQUIRE_MESSAGE(ran, (ran ? "" : ran.error().message()));
    for (const auto &map : machine->maps())
        if (map->name() == kHarnessResult) {
            uint64_t r0 = 0;
            std::memcpy(&r0, machine->memory().find(map->address(), 8, false), 8);
            return r0;
        }
    return 0;
}
} // namespace

TEST_CASE("harness: memory, length, two exits and calls in both directions") {
    // main: r0 = f(r1, r2); if it is 4 return it negated, else as it is. f returns its length; g is called by f.
    const ObjectSpec spec =
        spec_of({i("call_local", {.imm = 4}), i("jeq", {.dst = 0, .off = 1, .imm = 4}), i("exit"), i("neg", {.dst = 0}),
                 i("exit"), /* f */ i("mov_reg", {.dst = 0, .src = 2}), i("call_local", {.imm = 1}), i("exit"),
                 /* g */ i("ldxb", {.dst = 3, .src = 1, .off = 1}), i("add_reg", {.dst = 0, .src = 3}), i("exit")});
    std::vector<std::byte> memory = {std::byte{9}, std::byte{1}, std::byte{9}};
    HarnessOptions options;
    options.contents = memory;
    CHECK(result_of(harness(spec, 0, options).value()) == static_cast<uint64_t>(-4));
    memory[1] = std::byte{3};
    CHECK(result_of(harness(spec, 0, options).value()) == 6);
    options.contents = {};
    const ObjectSpec empty = spec_of({i("mov_reg", {.dst = 0, .src = 1}), i("or_reg", {.dst = 0, .src = 2}), i("exit")});
    CHECK(result_of(harness(empty, 0, options).value()) == 0);
    CHECK(!harness(spec, 1, options));
}

TEST_CASE("harness: references, lines and functions move along; a distant exit takes a long jump") {
    ObjectSpec spec = spec_of({});
    auto &program = spec.programs[0];
    program.insns.clear();
    for (int n = 0; n < 40000; ++n) program.insns.push_back(i("add", {.dst = 2, .imm = 1}));
    program.insns.insert(program.insns.begin(), {i("jeq", {.dst = 2, .off = 1, .imm = 77}), i("exit")});
    program.insns.push_back(i("mov_reg", {.dst = 0, .src = 2}));
    program.insns.push_back(i("exit"));
    program.line_info = {{0, 1, 1, 1}, {2, 1, 1, 2}};
    program.func_info = {{0, 1}};
    HarnessOptions options;
    std::vector<std::byte> memory(76);
    options.contents = memory;
    ObjectSpec wrapped = harness(spec, 0, options).value();
    CHECK(wrapped.programs[0].line_info[0].insn == 0);
    CHECK(wrapped.programs[0].line_info[1].insn == 5);
    CHECK(wrapped.programs[0].insns[4].code == 0x06); // gotol
    CHECK(result_of(wrapped) == 0);
    memory.resize(77);
    options.contents = memory;
    CHECK(result_of(harness(spec, 0, options).value()) == 40077);
}
