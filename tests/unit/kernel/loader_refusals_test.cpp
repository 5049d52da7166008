// What the loader says when the kernel refuses: which capability is short, what the verifier meant, where in the source.
#include "runtime/kernel/loader.h"

#include <algorithm>
#include <cerrno>

#include "runtime/btf/btf.h"
#include "runtime/kernel/near_names.h"
#include "runtime/kernel/permission_error.h"
#include "runtime/kernel/probes.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/test.h"
#include "tests/unit/kernel/loader_sample.h"

using namespace rawbpf;
using test::example;
using test::FakeKernel;

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
    CHECK(error.hint.find("All programs of one array must agree in these") != std::string::npos);
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
