// The loader against a fake kernel: order and content of the calls, and every call failing once.
#include "runtime/kernel/loader.h"
#include "runtime/kernel/near_names.h"
#include "runtime/kernel/permission_error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/base/fail.h"
#include "runtime/btf/btf.h"
#include "runtime/kernel/probes.h"
#include "runtime/kernel/stats.h"
#include "runtime/kernel/tail_call.h"
#include "runtime/link/perf_event.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/test.h"

using namespace rawbpf;
using test::FakeKernel;

namespace {

MapSpec map_spec(std::string name, uint32_t type, uint32_t key, uint32_t value, uint32_t entries) {
    MapSpec spec;
    spec.name = std::move(name);
    spec.type = type;
    spec.key_size = key;
    spec.value_size = value;
    spec.max_entries = entries;
    return spec;
}

Fixup fixup(uint32_t insn, Fixup::Kind kind, uint32_t map, uint32_t offset = 0) {
    Fixup out;
    out.insn = insn;
    out.kind = kind;
    out.map = map;
    out.offset = offset;
    return out;
}

// Two programs; a ring, a hash, constants and a prog array; BTF.
ObjectSpec example() {
    ObjectSpec spec;
    spec.name = "example.bpf.o";
    spec.license = "Dual MIT/GPL";
    spec.maps.push_back(map_spec("events", BPF_MAP_TYPE_RINGBUF, 0, 0, 4096));
    spec.maps.push_back(map_spec("unused", BPF_MAP_TYPE_HASH, 4, 4, 16));
    spec.maps.push_back(map_spec("counts", BPF_MAP_TYPE_HASH, 4, 8, 16));
    MapSpec constants = map_spec("example.rodata", BPF_MAP_TYPE_ARRAY, 4, 8, 1);
    constants.data_section = ".rodata";
    constants.contents = {std::byte{1}, std::byte{2}};
    constants.freeze = true;
    spec.maps.push_back(constants);
    MapSpec programs = map_spec("programs", BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 2);
    programs.slots = {{0, "second"}};
    spec.maps.push_back(programs);

    ProgramSpec first;
    first.name = "first";
    first.section = "perf_event";
    first.type = BPF_PROG_TYPE_PERF_EVENT;
    first.insns = {{0x18, 1, 0, 0, 0}, {}, {0x18, 2, 0, 0, 0}, {},
                   {0x18, 3, 0, 0, 0}, {}, {0xb7, 0, 0, 0, 0}, {0x95, 0, 0, 0, 0}};
    first.fixups = {fixup(0, Fixup::Kind::map_fd, 0), fixup(2, Fixup::Kind::map_value, 3, 4), fixup(4, Fixup::Kind::map_fd, 4)};
    ProgramSpec second = first;
    second.name = "second";
    second.fixups = {fixup(0, Fixup::Kind::map_fd, 2)};
    spec.programs = {first, second};

    btf::Writer w;
    btf::TypeId n = w.add_int("int", 4, true);
    btf::TypeId f = w.add_func("first", w.add_func_proto(n, {}), 1);
    (void)f;
    spec.btf = w.finish();
    spec.programs[0].func_info = {{0, f}};
    return spec;
}

} // namespace

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

TEST_CASE("loader: a refused command stops the load; a refused BTF doesn't") {
    for (uint32_t command : {BPF_MAP_CREATE, BPF_PROG_LOAD, BPF_MAP_UPDATE_ELEM, BPF_MAP_FREEZE})
        for (int os : {EPERM, EINVAL, ENOMEM, E2BIG}) {
            CAPTURE(command);
            CAPTURE(os);
            forget_features();
            FakeKernel kernel;
            kernel.refuse(command, os);
            Result<LoadedObject> r = load(example());
            REQUIRE_FALSE(r.has_value());
            CHECK(r.error().context.starts_with("example.bpf.o: "));
            if (os == EPERM) CHECK(r.error().kind == Errc::permission);
            CHECK(kernel.leaks() == "");
        }
    FakeKernel kernel;
    kernel.refuse(BPF_BTF_LOAD, EINVAL);
    {
        LoadedObject object = load(example()).value();
        CHECK_FALSE(object.btf);
        CHECK(object.programs.size() == 2);
        REQUIRE(object.notes.size() == 1);
        CHECK(object.notes[0].find("without BTF") != std::string::npos);
    }
    CHECK(kernel.leaks() == "");
    forget_features();
}

TEST_CASE("loader: without privileges the capabilities are named") {
    forget_features();
    FakeKernel kernel;
    kernel.refuse(BPF_BTF_LOAD, EPERM);
    kernel.refuse(BPF_MAP_CREATE, EPERM);
    kernel.refuse(BPF_PROG_LOAD, EPERM);
    Error error = load(example()).error();
    CHECK(error.kind == Errc::permission);
    CHECK(error.hint.find("CAP_BPF") != std::string::npos);
    CHECK(error.hint.find("cap_perfmon") != std::string::npos);
    forget_features();
}

TEST_CASE("loader: the capability that is short is named, by the type of program") {
    auto with = [](std::initializer_list<sys::Capability> list) {
        sys::Capabilities out;
        for (sys::Capability one : list) out.effective |= uint64_t{1} << static_cast<unsigned>(one);
        return out;
    };
    using sys::Capability;
    const uint32_t xdp[] = {BPF_PROG_TYPE_XDP}, kprobe[] = {BPF_PROG_TYPE_KPROBE}, socket[] = {BPF_PROG_TYPE_SOCKET_FILTER};
    const uint32_t both[] = {BPF_PROG_TYPE_XDP, BPF_PROG_TYPE_KPROBE};
    CHECK(missing_privileges(xdp, with({Capability::bpf, Capability::perfmon}), true) ==
          "needs CAP_BPF, CAP_NET_ADMIN (CAP_SYS_ADMIN before Linux 5.8), lacks CAP_NET_ADMIN: run as root, or: setcap "
          "cap_bpf,cap_net_admin+ep FILE");
    CHECK(missing_privileges(xdp, with({Capability::bpf, Capability::net_admin}), true).empty());
    CHECK(missing_privileges(kprobe, with({Capability::bpf}), true).find("lacks CAP_PERFMON:") != std::string::npos);
    CHECK(missing_privileges(kprobe, with({Capability::perfmon}), true).find("lacks CAP_BPF:") != std::string::npos);
    CHECK(missing_privileges(both, {}, true).find("lacks CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN:") != std::string::npos);
    CHECK(missing_privileges(socket, with({Capability::bpf}), true).empty());
    CHECK(missing_privileges({}, {}, true).find("needs CAP_BPF (") != std::string::npos);
    CHECK(missing_privileges(both, with({Capability::sys_admin}), true).empty());
    CHECK(missing_privileges(both, with({Capability::sys_admin}), false).find("user namespace") != std::string::npos);
}

TEST_CASE("loader: a verifier's refusal carries the log, the place and a hint") {
    FakeKernel kernel;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number != __NR_bpf || c.args[0] != BPF_PROG_LOAD) return {};
        auto *attr = reinterpret_cast<sys::ProgLoadAttr *>(c.args[1]);
        if (c.args[2] > 48 && attr->log_level != 0)
            std::strcpy(reinterpret_cast<char *>(attr->log_buf),
                        "0: R1=ctx() R10=fp0\n; x = *p; @ example.bpf.c:7\n"
                        "6: (61) r0 = *(u32 *)(r1 +0)\nR1 invalid mem access 'scalar'\n");
        return -EACCES;
    };
    ObjectSpec spec = example();
    spec.notes = {".data: an address is left as the file has it"};
    Error error = load(spec).error();
    CHECK(error.kind == Errc::rejected);
    CHECK(error.hint.ends_with("\n.data: an address is left as the file has it"));
    CHECK(error.message() ==
          "example.bpf.o: program first (perf_event): the verifier refused instruction 6 (r0 = *(u32 *)(r1 +0))\n"
          "example.bpf.c:7: R1 invalid mem access 'scalar'\n"
          "  7 | x = *p;\n"
          "  R1 = ctx(): the context");
    CHECK(error.hint.find("bpf_probe_read_kernel") != std::string::npos);
    CHECK(error.log.starts_with("0: R1=ctx()"));
    CHECK(kernel.count(BPF_PROG_LOAD) == 2);
    CHECK(kernel.leaks() == "");
}

// A loop that the verifier follows to its limit: a log of many megabytes, and seconds for each time that it is asked.
TEST_CASE("loader: a refusal asks the verifier twice, however long its log") {
    const std::string_view reason = "BPF program is too large. Processed 1000001 insn\n";
    for (const bool keeps_end : {true, false}) { // 6.4 keeps the log's end and tells its size, older ones keep its start
        CAPTURE(keeps_end);
        std::vector<std::pair<uint32_t, uint32_t>> asked; // level, size
        FakeKernel kernel;
        kernel.script = [&](const sys::Call &c) -> std::optional<long> {
            if (c.number != __NR_bpf || c.args[0] != BPF_PROG_LOAD) return {};
            auto *attr = reinterpret_cast<sys::ProgLoadAttr *>(c.args[1]);
            const bool logs = c.args[2] > offsetof(sys::ProgLoadAttr, log_true_size);
            asked.emplace_back(logs ? attr->log_level : 0, logs ? attr->log_size : 0);
            if (!logs) return -E2BIG;
            std::string log;
            while ((attr->log_level & uapi::BPF_LOG_LEVEL1) != 0 && log.size() < attr->log_size)
                log += "3: (07) r6 += 1\n4: (05) goto pc-2\n";
            const bool fits = log.empty();
            log += reason;
            const std::string_view kept =
                std::string_view(log).substr(fits || !keeps_end ? 0 : log.size() - attr->log_size + 1, attr->log_size - 1);
            char *to = reinterpret_cast<char *>(attr->log_buf);
            to[kept.copy(to, kept.size())] = 0;
            if (keeps_end) attr->log_true_size = static_cast<uint32_t>(log.size());
            return fits ? -E2BIG : -ENOSPC;
        };
        const Error error = load(example()).error();
        CHECK(error.kind == Errc::rejected);
        CHECK(error.os == E2BIG);
        CHECK_MESSAGE(error.message().find("BPF program is too large") != std::string::npos, error.message());
        // What has no room isn't known.
        CHECK((error.message().find("followed it at least ") != std::string::npos) == keeps_end);
        REQUIRE(asked.size() == (keeps_end ? 2 : 3));
        CHECK(asked[0].first == 0);
        CHECK(asked[1].first == uapi::BPF_LOG_LEVEL1);
        CHECK(asked[1].second >= 16'000'000);
        if (!keeps_end) CHECK(asked[2].first == uapi::BPF_LOG_STATS); // the reason, without the way there
        CHECK(kernel.leaks() == "");
        const auto shown = std::count_if(kernel.lines.begin(), kernel.lines.end(),
                                         [](const std::string &line) { return line.find("BPF_PROG_LOAD") != std::string::npos; });
        CHECK(shown == static_cast<std::ptrdiff_t>(asked.size()));
    }
}

TEST_CASE("loader: a program that a slot of a map doesn't take") {
    FakeKernel kernel;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number != __NR_bpf || c.args[0] != BPF_MAP_UPDATE_ELEM) return {};
        auto *attr = reinterpret_cast<const sys::MapElemAttr *>(c.args[1]);
        const bool slot = *reinterpret_cast<const uint32_t *>(attr->value) >= 1'000'000; // a descriptor of the played kernel
        return slot ? std::optional<long>(-EINVAL) : std::nullopt;
    };
    Error error = load(example()).error();
    CHECK_MESSAGE(error.message().find("slot 0, second: map programs:") != std::string::npos, error.message());
    CHECK(error.hint.find("programs of one array agree in all of these") != std::string::npos);
    CHECK(kernel.leaks() == "");
}

TEST_CASE("loader: on kernels that don't print it, the source line's place comes from the object") {
    ObjectSpec spec = example();
    btf::Writer w;
    btf::TypeId n = w.add_int("int", 4, true);
    btf::TypeId f = w.add_func("first", w.add_func_proto(n, {}), 1);
    uint32_t file = w.string("example.bpf.c"), a = w.string("int first(void *ctx)"), b = w.string("    x = *p;");
    spec.btf = w.finish();
    spec.programs[0].func_info = {{0, f}};
    spec.programs[0].line_info = {{0, file, a, 3 << 10 | 1}, {5, file, b, 9 << 10 | 5}};
    spec.programs[0].subprograms = {{0, "first"}, {4, "helper"}};
    FakeKernel kernel;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number != __NR_bpf || c.args[0] != BPF_PROG_LOAD) return {};
        auto *attr = reinterpret_cast<sys::ProgLoadAttr *>(c.args[1]);
        CHECK(attr->line_info_cnt == 2);
        CHECK(attr->line_info_rec_size == 16);
        if (attr->log_level != 0)
            std::strcpy(reinterpret_cast<char *>(attr->log_buf), "6: (61) r0 = *(u32 *)(r1 +0)\nR1 invalid mem access 'inv'\n");
        return -EACCES;
    };
    Error error = load(spec).error();
    CHECK(error.message().find("instruction 6 (r0 = *(u32 *)(r1 +0)) in function helper\nexample.bpf.c:9:5: R1 invalid") !=
          std::string::npos);
    CHECK(error.message().find("\n  9 |     x = *p;\n    |     ^") != std::string::npos);
}

TEST_CASE("loader: a poisoned CO-RE relocation is named") {
    ObjectSpec spec = example();
    spec.programs[0].poisoned = {{6, "struct task_struct has no field `foo`"}};
    FakeKernel kernel;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number != __NR_bpf || c.args[0] != BPF_PROG_LOAD) return {};
        auto *attr = reinterpret_cast<sys::ProgLoadAttr *>(c.args[1]);
        if (c.args[2] > 48 && attr->log_level != 0)
            std::strcpy(reinterpret_cast<char *>(attr->log_buf),
                        "6: (85) call unknown#195896080\ninvalid func unknown#195896080\n");
        return -EINVAL;
    };
    Error error = load(spec).error();
    CHECK(error.kind == Errc::rejected);
    CHECK(error.message().find("CO-RE: struct task_struct has no field `foo`") != std::string::npos);
    CHECK(error.hint.find("bpf_core_field_exists") != std::string::npos);
}

TEST_CASE("loader: registers of another machine are called so") {
    const auto said = registers_of_another_machine;
    CHECK(
        said("struct user_pt_regs is unknown to this kernel", "x86_64") ==
        "struct user_pt_regs holds registers of aarch64, s390x, loongarch64, and this machine is x86_64: compile the object for "
        "it, with -D__TARGET_ARCH_x86");
    CHECK(said("struct pt_regs has no field di", "aarch64") ==
          "di of struct pt_regs holds registers of x86_64, and this machine is aarch64: compile the object for it, with "
          "-D__TARGET_ARCH_arm64");
    CHECK(said("struct pt_regs has no field regs[3]", "x86_64").starts_with("regs of struct pt_regs holds registers of aarch64"));
    // This machine's own, something else, and a machine that we have no word for.
    CHECK(said("struct pt_regs has no field di", "x86_64").empty());
    CHECK(said("struct user_pt_regs is unknown to this kernel", "aarch64").empty());
    CHECK(said("struct pt_regs has no field nonsense", "x86_64").empty());
    CHECK(said("struct task_struct has no field regs", "x86_64").empty());
    CHECK(said("enum di has no value di", "x86_64").empty());
    CHECK(said("struct pt_regs has no field di", "mips64").ends_with("compile the object for it"));
    CHECK(said("", "").empty());
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
    CHECK(error.message().find("values of 16 bytes, the programs were made for values of 8 bytes") != std::string::npos);
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

TEST_CASE("tail calls: an array's refusal says in which property the program differs") {
    FakeKernel kernel;
    sys::ProgInfo info;
    info.type = BPF_PROG_TYPE_PERF_EVENT;
    info.jited_prog_len = 100;
    std::string owner = "pos:\t0\nmap_type:\t3\nowner_prog_type:\t2\nowner_jited:\t1\n";
    int refused_with = EINVAL;
    bool is_program = true;
    size_t given = 0;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number == __NR_openat && std::string(reinterpret_cast<const char *>(c.args[1])).starts_with("/proc/self/fdinfo/")) {
            given = 0;
            return {1'000'600};
        }
        if (c.number == __NR_close) return 0;
        if (c.number == __NR_read) {
            const size_t n = std::min<size_t>(owner.size() - given, c.args[2]);
            std::memcpy(reinterpret_cast<void *>(c.args[1]), owner.data() + given, n);
            given += n;
            return {static_cast<long>(n)};
        }
        if (c.number != __NR_bpf) return {};
        if (c.args[0] == BPF_MAP_UPDATE_ELEM && refused_with) return {-refused_with};
        if (c.args[0] == BPF_OBJ_GET_INFO_BY_FD) {
            if (!is_program) return {-EBADF};
            std::memcpy(reinterpret_cast<void *>(reinterpret_cast<sys::InfoAttr *>(c.args[1])->info), &info, sizeof info);
            return 0;
        }
        return {};
    };
    Map array = Map::create(map_spec("jumps", BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 2)).value();
    const auto why = [&](const Program *jumper = nullptr, const Program *to = nullptr, uint32_t slot = 1) {
        const Result<void> done = put_program(array, slot, 77, jumper, to);
        REQUIRE_FALSE(done.has_value());
        CHECK(done.error().kind == Errc::invalid_argument);
        return done.error().message() + "; " + done.error().hint;
    };
    CHECK(why().find("the array is for programs of type BPF_PROG_TYPE_KPROBE, this one is of type BPF_PROG_TYPE_PERF_EVENT") !=
          std::string::npos);
    info.type = BPF_PROG_TYPE_KPROBE;
    info.jited_prog_len = 0;
    CHECK(why().find("compiled to machine code (jited), this one is interpreted") != std::string::npos);
    info.jited_prog_len = 100;
    CHECK(why().find("or it calls bpf_override_return") != std::string::npos);
    Program one, many;
    one.name = "one";
    one.section = "uprobe";
    one.type = many.type = BPF_PROG_TYPE_KPROBE;
    many.name = "many";
    many.section = "uprobe.multi";
    many.expected_attach_type = 48;
    CHECK(why(&one, &many)
              .find("one (uprobe) jumps through the array and has the expected attach type none, many (uprobe.multi) has "
                    "BPF_TRACE_UPROBE_MULTI") != std::string::npos);
    owner.clear(); // a kernel that doesn't tell
    info.type = BPF_PROG_TYPE_TRACEPOINT;
    CHECK(why(&one).find("one jumps through the array and is of type BPF_PROG_TYPE_KPROBE") != std::string::npos);
    is_program = false;
    CHECK(why().find("descriptor 77 is no BPF program") != std::string::npos);
    CHECK(why(nullptr, nullptr, 2).find("there is no slot 2, it has 2") != std::string::npos);
    refused_with = 0;
    CHECK(put_program(array, 0, 77).has_value());
    Map other = Map::create(map_spec("counts", BPF_MAP_TYPE_HASH, 4, 8, 2)).value();
    const Result<void> hash = put_program(other, 0, 77);
    REQUIRE_FALSE(hash.has_value());
    CHECK(hash.error().message().find("is no prog array, but BPF_MAP_TYPE_HASH") != std::string::npos);
}

TEST_CASE("stats: descriptor where there is one, the sysctl is only for kernels without") {
    FakeKernel kernel;
    {
        RunStats stats = RunStats::enable().value();
        CHECK(kernel.leaks() != "");
    }
    CHECK(kernel.leaks() == "");
    kernel.refuse(BPF_ENABLE_STATS, EPERM);
    CHECK(RunStats::enable().error().kind == Errc::permission);
    CHECK(kernel.leaks() == "");
}

TEST_CASE("stats: before 5.8 the sysctl is switched on, and off again if it was off") {
    for (bool was_on : {false, true}) {
        CAPTURE(was_on);
        FakeKernel kernel;
        kernel.refuse(BPF_ENABLE_STATS, EINVAL);
        std::string setting = was_on ? "1\n" : "0\n";
        std::vector<std::string> written;
        size_t at = 0;
        kernel.script = [&](const sys::Call &c) -> std::optional<long> {
            switch (c.number) {
            case __NR_openat:
                CHECK(std::string(reinterpret_cast<const char *>(c.args[1])) == "/proc/sys/kernel/bpf_stats_enabled");
                at = 0;
                return 1'000'700; // a descriptor of its own, not counted
            case __NR_read: {
                std::memcpy(reinterpret_cast<void *>(c.args[1]), setting.data() + at, setting.size() - at);
                return static_cast<long>(setting.size() - std::exchange(at, setting.size()));
            }
            case __NR_write:
                written.emplace_back(reinterpret_cast<const char *>(c.args[1]), c.args[2]);
                setting = written.back();
                return static_cast<long>(c.args[2]);
            default: return {};
            }
        };
        {
            RunStats stats = RunStats::enable().value();
            RunStats moved = std::move(stats);
            CHECK(setting == "1\n");
        }
        CHECK(written == (was_on ? std::vector<std::string>{} : std::vector<std::string>{"1\n", "0\n"}));
    }
}
