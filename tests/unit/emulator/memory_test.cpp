// Bounds to the byte, and what a fault says.
#include "tests/unit/emulator/emulated.h"

using namespace rawbpf;
using namespace rawbpf::test;

namespace {
bool says(const std::string &text, std::string_view part) {
    if (text.find(part) != std::string::npos) return true;
    MESSAGE(text);
    return false;
}
} // namespace

TEST_CASE("emulator: memory may be used to its last byte, and no further") {
    std::vector<std::byte> memory(12);
    const Insn exit = i("exit");
    for (int size : {1, 2, 4, 8}) {
        const char *load = size == 1 ? "ldxb" : size == 2 ? "ldxh" : size == 4 ? "ldxw" : "ldxdw";
        const char *store = size == 1 ? "stb" : size == 2 ? "sth" : size == 4 ? "stw" : "stdw";
        for (int off = -9; off <= 14; ++off) {
            const bool inside = off >= 0 && off + size <= 12;
            CHECK(fault({i(load, {.dst = 0, .src = 1, .off = off}), exit}, memory).empty() == inside);
            CHECK(fault({i(store, {.dst = 1, .off = off}), exit}, memory).empty() == inside);
        }
    }
    CHECK(says(fault({i("mov"), i("ldxdw", {.dst = 0, .src = 1, .off = 8}), exit}, memory),
               "main: instruction 1 (r0 = *(u64 *)(r1 + 8)): can't read 8 bytes at r1 + 8 = 0x10000008: 4 bytes past the end of "
               "memory, which has 12 bytes"));
    CHECK(says(fault({i("stb", {.dst = 1, .off = 12}), exit}, memory), "right behind the end of memory, which has 12 bytes"));
    CHECK(says(fault({i("stb", {.dst = 1, .off = 14}), exit}, memory), "2 bytes behind the end of memory"));
    CHECK(says(fault({i("stxw", {.dst = 1, .src = 0, .off = -3}), exit}, memory), "3 bytes before the start of memory"));
}

TEST_CASE("emulator: null pointers, numbers, the stack's ends") {
    const Insn exit = i("exit");
    CHECK(says(fault({i("mov", {.dst = 3}), i("ldxb", {.dst = 0, .src = 3, .off = 24}), exit}), "a null pointer plus 24"));
    CHECK(says(fault({i("mov", {.dst = 3}), i("ldxb", {.dst = 0, .src = 3, .off = -8}), exit}), "a null pointer minus 8"));
    CHECK(says(fault({i("mov", {.dst = 3, .imm = -1000000000}), i("ldxb", {.dst = 0, .src = 3}), exit}), "no memory"));
    CHECK(fault({i("stdw", {.dst = 10, .off = -512}), i("stdw", {.dst = 10, .off = -8}), exit}).empty());
    CHECK(says(fault({i("stdw", {.dst = 10, .off = -513}), exit}), "1 byte before the start of the stack of frame 0"));
    CHECK(says(fault({i("stw", {.dst = 10, .off = -2}), exit}), "2 bytes past the end of the stack of frame 0, which has 512"));
    CHECK(says(fault({i("ldxb", {.dst = 0, .src = 10}), exit}), "right behind the end of the stack of frame 0"));
    // A function's frame ends with it: its caller gets its r10, and may not use it.
    CHECK(says(fault({i("call_local", {.imm = 2}), i("ldxb", {.dst = 0, .src = 0, .off = -1}), exit,
                      i("mov_reg", {.dst = 0, .src = 10}), exit}),
               "the stack of frame 1, which doesn't exist"));
    // A callee may use its caller's.
    CHECK(run({i("stdw", {.dst = 10, .off = -8, .imm = 7}), i("mov_reg", {.dst = 1, .src = 10}), i("call_local", {.imm = 1}),
               exit, i("ldxdw", {.dst = 0, .src = 1, .off = -8}), exit})
              .value() == 7);
}

TEST_CASE("emulator: map values have bounds of their own") {
    ObjectSpec spec = spec_of({});
    spec.programs[0].insns.clear();
    const uint32_t map = add_map(spec, "small", BPF_MAP_TYPE_ARRAY, 4, 12, 4);
    load_map(spec, 1, map);
    auto &code = spec.programs[0].insns;
    code.push_back(i("stw", {.dst = 10, .off = -4, .imm = 2}));
    code.push_back(i("mov_reg", {.dst = 2, .src = 10}));
    code.push_back(i("add", {.dst = 2, .imm = -4}));
    code.push_back(i("call", {.imm = 1}));
    const size_t at = code.size();
    code.push_back(Insn{});
    code.push_back(i("exit"));
    code[at] = i("stdw", {.dst = 0, .off = 4, .imm = 1});
    CHECK(run(spec).has_value());
    code[at] = i("stdw", {.dst = 0, .off = 8, .imm = 1});
    Result<uint64_t> past = run(spec);
    REQUIRE(!past);
    CHECK(says(past.error().message(), "4 bytes past the end of element 2 of map small, which has 12 bytes"));
    code[at] = i("ldxb", {.dst = 0, .src = 1}); // the map itself
    Result<uint64_t> itself = run(spec);
    REQUIRE(!itself);
    CHECK(says(itself.error().message(), "a map itself"));
}

TEST_CASE("emulator: read-only data can't be written, and large memory is one piece") {
    ObjectSpec spec = spec_of({});
    auto &program = spec.programs[0];
    MapSpec &rodata = spec.maps[add_map(spec, "test.rodata", BPF_MAP_TYPE_ARRAY, 4, 8, 1)];
    rodata.data_section = ".rodata";
    rodata.flags = BPF_F_RDONLY_PROG;
    rodata.contents.assign(8, std::byte{5});
    Fixup &fixup = program.fixups.emplace_back();
    fixup.kind = Fixup::Kind::map_value;
    fixup.offset = 3;
    program.insns = {i("lddw_value", {.dst = 1}), Insn{}, i("ldxb", {.dst = 0, .src = 1, .off = 4}), i("exit")};
    CHECK(run(spec).value() == 5);
    program.insns[2] = i("stb", {.dst = 1});
    Result<uint64_t> written = run(spec);
    REQUIRE(!written);
    CHECK(says(written.error().message(), ".rodata is read-only"));

    std::vector<std::byte> large(40 << 20); // three slots
    CHECK(run({i("mov_reg", {.dst = 3, .src = 1}), i("add", {.dst = 3, .imm = (16 << 20) - 4}), i("stdw", {.dst = 3, .imm = -1}),
               i("ldxdw", {.dst = 0, .src = 3}), i("add_reg", {.dst = 1, .src = 2}), i("stb", {.dst = 1, .off = -1, .imm = 9}),
               i("exit")},
              large)
              .value() == ~uint64_t{0});
    CHECK(large[(16 << 20) + 3] == std::byte{0xff});
    CHECK(large.back() == std::byte{9});
}
