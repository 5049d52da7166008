// Programs written in C with <rawbpf/bpf.h> (tests/header/*.bpf.c, compiled by clang at build time), loaded by our loader.
#include <cstring>
#include <linux/bpf.h>
#include <sched.h>
#include <string>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "asm/builder.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/kconfig.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/probes.h"
#include "runtime/object/elf_object.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/bpf.h"
#include "tests/support/test.h"

namespace rawbpf::inline v0 {
extern const std::span<const std::byte> header_hello, header_count, header_everything, header_reads;
}

using namespace rawbpf;

namespace {

Result<LoadedObject> load_object(std::string_view name, std::span<const std::byte> elf, const std::string &program = {}) {
    LoadOptions options;
    if (!program.empty()) options.programs = {program};
    return load(TRY(parse_object(elf, name)), options);
}

bool has_may_goto() {
    Builder b("probe");
    Code &f = b.program("socket", "p");
    auto end = f.label("end");
    f.may_goto(end);
    f.bind(end);
    f.ret(0);
    Built built = b.finish();
    return built && load(object_of(*built).value()).has_value();
}

bool kernel_has(std::string_view function) {
    Result<std::shared_ptr<const btf::Btf>> kernel = kernel_btf();
    return kernel && (*kernel)->find(function, btf::Kind::func).has_value();
}

#define NEEDS_BPF()                                                                                                              \
    if (!has_program_type(BPF_PROG_TYPE_SOCKET_FILTER)) SKIP("needs CAP_BPF")

} // namespace

TEST_CASE("rawbpf/bpf.h: a student's programs load") {
    NEEDS_BPF();
    for (auto [name, elf] : {std::pair("hello", header_hello), std::pair("count", header_count)}) {
        INFO(name);
        Result<LoadedObject> object = load_object(name, elf);
        REQUIRE_MESSAGE(object, object.error().message() << object.error().log);
        CHECK(object->programs.size() == 1);
    }
}

TEST_CASE("rawbpf/bpf.h: every macro's code passes the verifier") {
    NEEDS_BPF();
    if (!has_feature(Feature::kernel_btf)) SKIP("needs the kernel's BTF (CONFIG_DEBUG_INFO_BTF)");
    Result<ObjectSpec> spec = parse_object(header_everything, "everything");
    REQUIRE_MESSAGE(spec, spec.error().message());
    int tried = 0;
    for (const ProgramSpec &program : spec->programs) {
        if (program.name == "loops" && !kernel_has("bpf_iter_num_new")) continue;       // 6.4
        if (program.name == "enough" && !has_may_goto()) continue;                      // 6.9
        if (program.name == "packets" && !has_helper(BPF_PROG_TYPE_XDP, 177)) continue; // bpf_trace_vprintk, 5.16
        if (program.type == BPF_PROG_TYPE_KPROBE && !has_program_type(BPF_PROG_TYPE_KPROBE)) continue;
        INFO(program.name);
        Result<LoadedObject> object = load_object("everything", header_everything, program.name);
        if (!object && program.type == BPF_PROG_TYPE_TRACING &&
            (object.error().kind == Errc::permission || object.error().kind == Errc::unsupported))
            continue; // some kernels are built, or locked, without fentry
        if (!object && program.name == "configured" && !kernel_config()) continue; // neither /boot/config-... nor /proc/config.gz
        CHECK_MESSAGE(object, object.error().message() << object.error().log);
        ++tried;
    }
    CHECK(tried >= 3);
}

TEST_CASE("rawbpf/bpf.h: the CO-RE macros read what is there") {
    NEEDS_BPF();
    if (!has_feature(Feature::kernel_btf)) SKIP("needs the kernel's BTF (CONFIG_DEBUG_INFO_BTF)");
    if (!has_helper(BPF_PROG_TYPE_RAW_TRACEPOINT, 165)) SKIP("needs bpf_snprintf, 5.13");
    Result<LoadedObject> object = load_object("reads", header_reads);
    REQUIRE_MESSAGE(object, object.error().message() << object.error().log);
    char comm[16] = {};
    prctl(PR_GET_NAME, comm);

    struct Seen { // as in reads.bpf.c
        int pid, tgid, parent, leader_of_parent;
        char comm[16], comm_str[16];
        int comm_str_length;
        unsigned reset_on_fork;
        unsigned comm_size, has_comm, has_nothing, type_exists, type_missing, enumerator_exists;
        unsigned printed_length;
        char printed[32];
    };
    Map *bss = nullptr;
    for (Map &map : object->maps)
        if (map.name().ends_with(".bss")) bss = &map;
    REQUIRE(bss != nullptr);

    const int before = sched_getscheduler(0);
    for (bool reset : {false, true}) {
        sched_param parameters{};
        REQUIRE(sched_setscheduler(0, SCHED_OTHER | (reset ? SCHED_RESET_ON_FORK : 0), &parameters) == 0);
        sys::ProgTestRunAttr attr;
        attr.prog_fd = static_cast<uint32_t>(object->programs[0].fd.get());
        Result<void> ran = sys::prog_test_run(attr);
        REQUIRE_MESSAGE(ran, ran.error().message());
        const Seen seen = bss->get<uint32_t, Seen>(0).value();
        CHECK(seen.pid == syscall(SYS_gettid));
        CHECK(seen.tgid == getpid());
        CHECK(seen.parent == getppid());
        CHECK(seen.leader_of_parent == getppid());
        CHECK(std::string(seen.comm) == comm);
        CHECK(std::string(seen.comm_str) == comm);
        CHECK(seen.comm_str_length == static_cast<int>(std::strlen(comm)) + 1);
        CHECK((seen.reset_on_fork != 0) == reset);
        CHECK(seen.comm_size == 16);
        CHECK(seen.has_comm == 1);
        CHECK(seen.has_nothing == 0);
        CHECK(seen.type_exists == 1);
        CHECK(seen.type_missing == 0);
        CHECK(seen.enumerator_exists == 1);
        CHECK(std::string(seen.printed) == "42 and more");
        CHECK(seen.printed_length == 12);
    }
    sched_param parameters{};
    CHECK(sched_setscheduler(0, before, &parameters) == 0);
}
