// The loader against a fake kernel: order and content of the calls, and every call failing once.
#include "runtime/kernel/loader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/base/fail.h"
#include "runtime/kernel/probes.h"
#include "runtime/link/perf_event.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/test.h"
#include "tests/unit/kernel/loader_sample.h"

using namespace rawbpf;
using test::example;
using test::FakeKernel;
using test::fixup;
using test::map_spec;

TEST_CASE("loader: makes what the programs need, patches it in, and gives it all back") {
    FakeKernel kernel;
    std::vector<std::vector<Insn>> loaded;
    std::vector<sys::ProgLoadAttr> attrs;
    std::vector<std::pair<uint32_t, std::vector<uint8_t>>> updates;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number != __NR_bpf) return {};
        if (c.args[0] == BPF_PROG_LOAD) {
            sys::ProgLoadAttr attr;
            std::memcpy(&attr, reinterpret_cast<void *>(c.args[1]), c.args[2]);
            const Insn *insns = reinterpret_cast<const Insn *>(attr.insns);
            loaded.emplace_back(insns, insns + attr.insn_cnt);
            attrs.push_back(attr);
        }
        if (c.args[0] == BPF_MAP_UPDATE_ELEM) {
            auto *attr = reinterpret_cast<const sys::MapElemAttr *>(c.args[1]);
            auto *value = reinterpret_cast<const uint8_t *>(attr->value);
            updates.emplace_back(attr->map_fd, std::vector<uint8_t>(value, value + 4));
        }
        return {};
    };
    {
        LoadedObject object = load(example()).value();
        CHECK(kernel.count(BPF_MAP_CREATE) == 5);
        CHECK(kernel.count(BPF_BTF_LOAD) == 1);
        CHECK(kernel.count(BPF_PROG_LOAD) == 2);
        CHECK(kernel.count(BPF_MAP_FREEZE) == 1);
        CHECK(object.find_map("unused") != nullptr); // for whoever loads it
        REQUIRE(object.maps.size() == 5);
        CHECK(object.maps[0].name() == "events");
        CHECK(object.notes.empty());
        REQUIRE(loaded.size() == 2);
        CHECK((loaded[0][0].src == BPF_PSEUDO_MAP_FD));
        CHECK(loaded[0][0].imm == object.find_map("events")->fd());
        CHECK((loaded[0][2].src == BPF_PSEUDO_MAP_VALUE));
        CHECK(loaded[0][2].imm == object.find_map("example.rodata")->fd());
        CHECK(loaded[0][3].imm == 4);
        CHECK(loaded[1][0].imm == object.find_map("counts")->fd());
        CHECK(attrs[0].prog_btf_fd == static_cast<uint32_t>(object.btf.get()));
        CHECK(attrs[0].func_info_cnt == 1);
        CHECK(attrs[0].log_level == 0);
        CHECK(attrs[1].prog_btf_fd == 0); // it has no function information
        REQUIRE(updates.size() == 2);     // the constants, and a slot of the prog array
        CHECK(updates[0].second == std::vector<uint8_t>{1, 2, 0, 0});
        uint32_t slot = 0;
        std::memcpy(&slot, updates[1].second.data(), 4);
        CHECK(slot == static_cast<uint32_t>(object.find_program("second")->fd.get()));
        CHECK(object.find_program("first")->section == "perf_event");
    }
    CHECK(kernel.leaks() == "");
    // Nothing was probed: the calls are those of the object itself.
    CHECK(kernel.calls() == 1 + 5 + 2 + 1 + 2);
}

TEST_CASE("loader: a jump table is filled and frozen before its program is loaded, and the program keeps it") {
    FakeKernel kernel;
    std::vector<std::string> order;
    std::vector<Insn> loaded;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number != __NR_bpf) return {};
        if (c.args[0] == BPF_MAP_CREATE) {
            sys::MapCreateAttr attr;
            std::memcpy(&attr, reinterpret_cast<void *>(c.args[1]), std::min<size_t>(c.args[2], sizeof attr));
            order.push_back(
                format("{} {} {} {} {}", attr.map_type, attr.key_size, attr.value_size, attr.max_entries, attr.map_name));
        } else if (c.args[0] == BPF_MAP_UPDATE_ELEM) {
            auto *attr = reinterpret_cast<const sys::MapElemAttr *>(c.args[1]);
            auto *value = reinterpret_cast<const uint32_t *>(attr->value);
            order.push_back(format("[{}] = {} {} {} {}", *reinterpret_cast<const uint32_t *>(attr->key), value[0], value[1],
                                   value[2], value[3]));
        } else if (c.args[0] == BPF_MAP_FREEZE) {
            order.emplace_back("freeze");
        } else if (c.args[0] == BPF_PROG_LOAD) {
            sys::ProgLoadAttr attr;
            std::memcpy(&attr, reinterpret_cast<void *>(c.args[1]), c.args[2]);
            const Insn *insns = reinterpret_cast<const Insn *>(attr.insns);
            loaded.assign(insns, insns + attr.insn_cnt);
            order.emplace_back("load");
        }
        return {};
    };
    ObjectSpec spec;
    ProgramSpec program;
    program.name = "switch";
    program.section = "socket";
    program.type = BPF_PROG_TYPE_SOCKET_FILTER;
    program.insns = {{0x18, 1, 0, 0, 0}, {}, {0x79, 1, 1, 0, 0}, {0x0d, 1, 0, 0, 0}, {0xb7, 0, 0, 0, 0}, {0x95, 0, 0, 0, 0}};
    program.jump_tables = {{5, 4}};
    program.fixups = {fixup(0, Fixup::Kind::jump_table, 0, 8)};
    spec.programs = {program};
    std::vector<LoadAttempt> attempts;
    LoadOptions options;
    options.attempts = &attempts;
    {
        const LoadedObject object = load(spec, options).value();
        CHECK(object.maps.empty());
        CHECK(order == std::vector<std::string>{"34 4 16 2 .jumptables", "[0] = 5 0 0 0", "[1] = 4 0 0 0", "freeze", "load"});
        CHECK((loaded[0].src == BPF_PSEUDO_MAP_VALUE));
        CHECK(loaded[0].imm >= 1'000'000); // the fake kernel's descriptor
        CHECK(loaded[1].imm == 8);
        // The hash has no descriptor in it.
        ProgramSpec numbered = program;
        numbered.insns[0] = {0x18, 1, BPF_PSEUDO_MAP_VALUE, 0, 0};
        numbered.insns[1].imm = 8;
        numbered.fixups.clear();
        REQUIRE(attempts.size() == 1);
        CHECK(attempts[0].insn_hash == insn_hash(numbered, 0));
    }
    CHECK(kernel.leaks() == "");
    spec.programs[0].jump_tables.clear();
    CHECK(load(spec).error().message().find("refers to jump table 0 of 0") != std::string::npos);
}

TEST_CASE("loader: a map that no program refers to and that can't be made is told, and stops nothing") {
    FakeKernel kernel;
    kernel.script = [](const sys::Call &c) -> std::optional<long> {
        if (c.number != __NR_bpf || c.args[0] != BPF_MAP_CREATE) return {};
        return reinterpret_cast<const sys::MapCreateAttr *>(c.args[1])->max_entries == 77 ? std::optional<long>(-ENOMEM)
                                                                                          : std::nullopt;
    };
    ObjectSpec spec = example();
    spec.maps[1].max_entries = 77;
    MapSpec outer = map_spec("outer", BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 2);
    outer.slots = {{0, "unused"}, {1, "counts"}};
    spec.maps.push_back(outer); // nobody refers to it either
    {
        const LoadedObject object = load(spec).value();
        CHECK(object.maps.size() == 5);
        REQUIRE(object.notes.size() == 1);
        CHECK(object.notes[0].starts_with("map unused: not made, and no program refers to it: "));
    }
    CHECK(kernel.leaks() == "");
    spec.programs[0].fixups[0].map = 1; // now somebody does
    CHECK(load(spec).error().os == ENOMEM);
    CHECK(kernel.leaks() == "");
}

TEST_CASE("loader: only the programs asked for, with their maps") {
    FakeKernel kernel;
    LoadOptions options;
    options.programs = {"second"};
    LoadedObject object = load(example(), options).value();
    CHECK(object.programs.size() == 1);
    CHECK(object.maps.size() == 1);
    CHECK(object.find_map("counts") != nullptr);
    options.programs = {"third"};
    Error error = load(example(), options).error();
    CHECK(error.kind == Errc::not_found);
    CHECK(error.message() == "example.bpf.o: no program third; there are: first, second");
    // A program that isn't loaded by itself ("?" sections) is loaded when asked for.
    ObjectSpec spec = example();
    for (ProgramSpec &program : spec.programs) program.autoload = false;
    CHECK(load(spec).value().programs.empty());
    options.programs = {"first"};
    CHECK(load(spec, options).value().programs.size() == 1);
}

TEST_CASE("loader: every call fails once, with every errno: an error with a context, and nothing left open") {
    // How many calls there are when nothing fails.
    int calls = 0;
    {
        FakeKernel kernel;
        LoadedObject object = load(example()).value();
        SamplingEvent event;
        event.cpu = 0;
        PerfEventLink link = PerfEventLink::open(event, object.programs[0].fd.get()).value();
        REQUIRE(link.enable().has_value());
        calls = kernel.calls();
    }
    REQUIRE(calls >= 10);
    int errors = 0;
    for (int os : {EPERM, ENOMEM, EINVAL, EMFILE, E2BIG, EACCES, ENOSPC, EAGAIN, EINTR, EBUSY, 524})
        for (int n = 1; n <= calls; ++n) {
            CAPTURE(os);
            CAPTURE(n);
            forget_features();
            FakeKernel kernel;
            kernel.fail(n, os);
            {
                auto all = [&]() -> Result<void> {
                    LoadedObject object = TRY(load(example()));
                    SamplingEvent event;
                    event.cpu = 0;
                    PerfEventLink link = TRY(PerfEventLink::open(event, object.programs[0].fd.get()));
                    return link.enable();
                };
                Result<void> r = all();
                CHECK(kernel.failed());
                if (!r) {
                    ++errors;
                    CHECK(r.error().context.size() > 10);
                    CHECK(r.error().kind != Errc::internal);
                }
            }
            CHECK(kernel.leaks() == "");
        }
    CHECK(errors > calls); // most of them; BTF and a log are optional, interrupted calls are repeated
    forget_features();
}

TEST_CASE("loader: line information that the kernel refuses is left out") {
    FakeKernel kernel;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number != __NR_bpf || c.args[0] != BPF_PROG_LOAD) return {};
        auto *attr = reinterpret_cast<sys::ProgLoadAttr *>(c.args[1]);
        if (c.args[2] < 80 || attr->prog_btf_fd == 0) return {};
        if (attr->log_level != 0)
            std::strcpy(reinterpret_cast<char *>(attr->log_buf), "number of funcs in func_info doesn't match\n");
        return -EINVAL;
    };
    {
        LoadedObject object = load(example()).value();
        REQUIRE(object.notes.size() == 1);
        CHECK(object.notes[0].find("func_info") != std::string::npos);
    }
    CHECK(kernel.leaks() == "");
}

TEST_CASE("loader: hostile specs are refused, not followed") {
    FakeKernel kernel;
    ObjectSpec spec = example();
    spec.programs[0].fixups[0].map = 99;
    CHECK(load(spec).error().kind == Errc::bad_input);
    spec = example();
    spec.programs[0].fixups[0].insn = 7; // exit, and the last one
    CHECK(load(spec).error().kind == Errc::bad_input);
    spec = example();
    spec.programs[0].fixups[0].insn = 0xffffffff;
    CHECK(load(spec).error().kind == Errc::bad_input);
    spec = example();
    spec.maps[3].contents.resize(9);
    spec.maps[3].contents[8] = std::byte{1};
    CHECK(load(spec).error().kind == Errc::bad_input);
    spec = example();
    spec.maps[2].data_section = ".kconfig";
    spec.externs.push_back({"CONFIG_HZ", ".kconfig", true, false, 1, 4, 4, 6}); // the map has 8 bytes
    spec.programs[1].fixups[0].map = 2;
    CHECK(load(spec).error().message().find("extern CONFIG_HZ") != std::string::npos);
    spec = example();
    spec.maps[4].slots = {{0, "nobody"}};
    CHECK(load(spec).error().message().find("nobody") != std::string::npos);
    CHECK(kernel.leaks() == "");
    CHECK(load(ObjectSpec{}).value().programs.empty());
}

TEST_CASE("loader: each step is said in words") {
    FakeKernel kernel;
    LoadedObject object = load(example()).value();
    std::string all;
    for (const std::string &line : kernel.lines) all += line + "\n";
    CAPTURE(all);
    for (const char *why :
         {"# types and line positions", "# map events: the ring that records come out of",
          "# map example.rodata: the global variables of section .rodata", "# the initial values of example.rodata",
          "# example.rodata is constant from now on", "# program first: the verifier checks it", "# slot 0 of programs: second"})
        CHECK(all.find(why) != std::string::npos);
    for (const std::string &line : kernel.lines) CHECK(line.find("   # ") != std::string::npos);
}

TEST_CASE("loader: a map of somebody else's is used when it fits") {
    FakeKernel kernel;
    sys::MapInfo info;
    info.type = BPF_MAP_TYPE_HASH;
    info.key_size = 4;
    info.value_size = 8;
    info.max_entries = 16;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number == __NR_fcntl) return {1'000'500};
        if (c.number == __NR_bpf && c.args[0] == BPF_OBJ_GET_INFO_BY_FD) {
            std::memcpy(reinterpret_cast<void *>(reinterpret_cast<sys::InfoAttr *>(c.args[1])->info), &info, sizeof info);
            return 0;
        }
        if (c.number == __NR_close) return 0;
        return {};
    };
    LoadOptions options;
    options.programs = {"second"};
    options.replace_maps = {{"counts", 3}};
    LoadedObject object = load(example(), options).value();
    CHECK(kernel.count(BPF_MAP_CREATE) == 0);
    CHECK(object.maps[0].fd() == 1'000'500);
    info.value_size = 16;
    Error error = load(example(), options).error();
    CHECK(error.kind == Errc::invalid_argument);
    CHECK(error.message().find("values of 16 bytes, the programs were compiled for values of 8 bytes") != std::string::npos);
    info.type = BPF_MAP_TYPE_PERCPU_ARRAY;
    info.key_size = 8;
    info.max_entries = 1;
    info.map_flags = BPF_F_NO_PREALLOC;
    error = load(example(), options).error();
    for (const char *theirs : {"BPF_MAP_TYPE_PERCPU_ARRAY", "keys of 8 bytes", "values of 16 bytes", "1 entries", "flags 0x1",
                               "BPF_MAP_TYPE_HASH", "keys of 4 bytes", "values of 8 bytes", "16 entries", "flags 0x0"})
        CHECK_MESSAGE(error.message().find(theirs) != std::string::npos, error.message(), " lacks ", theirs);
    options.replace_maps = {{"count", 3}};
    error = load(example(), options).error();
    CHECK(error.kind == Errc::not_found);
    CHECK(error.message().find("no map count to replace; there are: events, unused, counts") != std::string::npos);
}
