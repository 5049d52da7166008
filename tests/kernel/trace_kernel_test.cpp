// The tracer in the kernel: system calls, tracepoints, kernel functions, and what can't be traced.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "programs/trace/tracer.h"
#include "runtime/base/format.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/probes.h"
#include "runtime/link/attach.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "tests/kernel/trace_child.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::trace;
using namespace rawbpf::test;

TEST_CASE("trace: system calls, with arguments and errors") {
    TraceOptions options = of({"syscall:getpgid"});
    options.program.results = true;
    options.program.calls = false;
    options.program.filters.errors = true;
    std::string missing;
    const auto work = [](int i) { (void)syscall(SYS_getpgid, i % 2 ? 0 : -1); };
    const std::optional<Traced> seen = traced(options, work, missing);
    if (!seen) SKIP("needs tracepoints of system calls: " + missing);
    REQUIRE(seen->lines.size() == kCalls / 2);
    CHECK(seen->lines[0] == "getpgid = -3 (ESRCH) of (-1)");
    CHECK(seen->counts[0].counts.fired >= kCalls); // others call it, too
}

TEST_CASE("trace: a tracepoint's fields by their names") {
    TraceOptions options = of({"tracepoint:sched:sched_process_exit"});
    options.filter = "prio > 1 && comm != \"init\""; // comm: the record's own
    std::string missing;
    const std::optional<Traced> seen = traced(
        options, [](int) {}, missing);
    if (!seen) SKIP("needs tracepoints: " + missing);
    REQUIRE(seen->lines.size() == 1);
    CHECK(seen->lines[0].starts_with("sched_process_exit(\""));
}

TEST_CASE("trace: the end of a process that the workload started is seen") {
    TraceOptions options = of({"tracepoint:sched:sched_process_exit"});
    std::string missing;
    const auto work = [](int i) {
        if (i >= 20) return;
        const int child = fork();
        if (child == 0) _exit(0);
        waitpid(child, nullptr, 0);
    };
    const std::optional<Traced> seen = traced(options, work, missing);
    if (!seen) SKIP("needs tracepoints: " + missing);
    CHECK(seen->lines.size() == 21);
}

TEST_CASE("trace: kernel functions, by whatever way this kernel has, right to the call") {
#if defined(__x86_64__)
    const std::string function = "__x64_sys_getpgid";
#else
    const std::string function = "__arm64_sys_getpgid";
#endif
    TraceOptions options = of({function});
    options.program.mode = Mode::count;
    std::string missing;
    const auto work = [](int) { (void)syscall(SYS_getpgid, 0); };
    const std::optional<Traced> seen = traced(options, work, missing);
    if (!seen) SKIP("needs kprobes or fentry: " + missing);
    CHECK(count_of(*seen, function) == kCalls);
}

// Where an instruction begins is the kernel's to say: it decodes the function and refuses what lies between two.
TEST_CASE("trace: kprobes inside a kernel function, right to the call, at the first places where an instruction begins") {
#if defined(__x86_64__)
    const std::string function = "__x64_sys_getpgid";
    constexpr int kStep = 1;
#else
    const std::string function = "__arm64_sys_getpgid";
    constexpr int kStep = 4;
#endif
    if (!sys::exists("/sys/bus/event_source/devices/kprobe/type")) SKIP("needs kprobes (CONFIG_KPROBE_EVENTS)");
    const auto inside = [&](int offset) { return format("{}+{:#x}", function, offset); };
    const auto open = [](std::vector<std::string> probes, int workload) {
        TraceOptions options = of(std::move(probes));
        options.program.mode = Mode::count;
        options.workload = workload;
        options.program.filters.children = true;
        Result<std::unique_ptr<Tracer>> tracer = Tracer::open(options);
        REQUIRE_MESSAGE(tracer, tracer.error().message(), " ", tracer.error().log);
        return std::move(*tracer);
    };
    constexpr int kWanted = 2, kFurthest = 64; // behind the first one or two nothing branches yet
    std::vector<int> found;
    size_t refused = 0;
    {
        const auto any = open({"kprobe:" + inside(kStep)}, getpid());
        const ObjectSpec spec = object_of(any->unit()).value();
        const Program *program = any->object().find_program("trace_0");
        REQUIRE(program);
        for (int offset = kStep; offset < kFurthest && found.size() < kWanted; offset += kStep) {
            AttachOptions how;
            how.target = inside(offset);
            const Result<Link> link = attach_program(spec, any->object(), *program, how);
            if (link) {
                found.push_back(offset);
                continue;
            }
            ++refused; // arm64's kernels refuse what ftrace may change, too
            INFO(link.error().message(), " ", link.error().hint);
            CHECK((link.error().os == EILSEQ || link.error().os == EINVAL));
            CHECK(link.error().hint.find("instruction") != std::string::npos);
        }
    }
    INFO(refused);
    REQUIRE(found.size() == kWanted);
    test::Child child([] {
        for (int i = 0; i < kCalls; ++i) (void)syscall(SYS_getpgid, 0);
    });
    const auto tracer = open({"kprobe:" + function, "kprobe:" + inside(found[0]), "kprobe:" + inside(found[1])}, child.pid);
    const Result<void> attached = tracer->attach();
    REQUIRE_MESSAGE(attached, attached.error().message(), " ", attached.error().hint);
    child.run();
    REQUIRE(tracer->finish([](const Event &) {}).has_value());
    const Result<std::vector<PlaceCounts>> counts = tracer->counts();
    REQUIRE(counts);
    REQUIRE(tracer->places().size() == 3);
    for (size_t i = 0; i < 3; ++i) {
        CHECK(tracer->places()[i].function == (i == 0 ? function : inside(found[i - 1])));
        CHECK(counts->at(i).shown == kCalls);
    }
}

TEST_CASE("trace: a kernel function by its bare name, with its arguments and result") {
    TraceOptions options = of({"vfs_read"});
    options.program.results = true;
    options.match.results = true;
    std::string missing;
    const auto work = [](int) {
        static const int fd = open("/dev/zero", O_RDONLY);
        char bytes[7];
        (void)!read(fd, bytes, sizeof bytes);
    };
    const std::optional<Traced> seen = traced(options, work, missing);
    if (!seen) SKIP("needs kprobes or fentry: " + missing);
    if (!kernel_btf()) SKIP("needs the kernel's BTF, 5.4");
    // The child waits for its word by a read, which may begin before the probes stand.
    REQUIRE(seen->lines.size() >= 2 * kCalls);
    const std::string &last_call = seen->lines[seen->lines.size() - 2];
    CHECK(last_call.starts_with("vfs_read(/dev/zero, 0x"));
    CHECK(last_call.find(", 7, 0x") != std::string::npos);
    CHECK(seen->lines.back().starts_with("vfs_read = 7"));
}

TEST_CASE("trace: kprobes read arguments, kretprobes results; names and types are BTF's") {
    TraceOptions options = of({"kprobe:do_sys_openat2"});
    options.program.results = true;
    std::string missing;
    const auto work = [](int i) {
        // On the stack: a literal's page may not be there yet, and a kprobe can't wait for it.
        char path[16];
        snprintf(path, sizeof path, "%s", i % 2 ? "/dev/null" : "/no such file");
        __asm__ volatile("" : : "r"(path) : "memory");
        close(static_cast<int>(syscall(SYS_openat, -100, path, 0, 0)));
    };
    const std::optional<Traced> seen = traced(options, work, missing);
    if (!seen) SKIP("needs kprobes: " + missing);
    if (!kernel_btf()) SKIP("needs the kernel's BTF, 5.4");
    REQUIRE(seen->lines.size() == 2 * kCalls);
    CHECK(seen->lines[0].starts_with("do_sys_openat2(-100, \"/no such file\", "));
    CHECK(seen->lines[1] == "do_sys_openat2 = -2 (ENOENT)");
    CHECK(seen->lines[2].starts_with("do_sys_openat2(-100, \"/dev/null\", "));
    CHECK(seen->lines[3].starts_with("do_sys_openat2 = "));
}

TEST_CASE("trace: a struct file * is shown as its path, mounts crossed") {
    TraceOptions options = of({"kprobe:vfs_read"});
    std::string missing;
    const auto work = [](int i) {
        if (i > 9) return;
        const int fd = open("/proc/self/status", 0);
        char byte = 0;
        (void)!read(fd, &byte, 1);
        close(fd);
        int ends[2];
        if (pipe(ends) != 0 || write(ends[1], "x", 1) != 1) return;
        (void)!read(ends[0], &byte, 1);
        close(ends[0]);
        close(ends[1]);
    };
    const std::optional<Traced> seen = traced(options, work, missing);
    if (!seen) SKIP("needs kprobes: " + missing);
    if (!kernel_btf()) SKIP("needs the kernel's BTF, 5.4");
    size_t files = 0, pipes = 0;
    for (const std::string &line : seen->lines) {
        files += line.starts_with("vfs_read(/proc/") && line.find("/status, 0x") != std::string::npos;
        pipes += line.starts_with("vfs_read(pipefs:");
    }
    CHECK(files == 10);
    CHECK(pipes >= 10);
}

// How many instructions the verifier takes is the same on any machine. There is a program for each form that the records of
// system calls have, fifty, and walks from dentry to dentry, and from frame to frame, in most of them.
TEST_CASE("trace: the verifier goes through the programs of all system calls not much more than once") {
    if (!has_feature(Feature::bpf_loop)) SKIP("needs bpf_loop, 5.17");
    if (!kernel_btf()) SKIP("needs the kernel's BTF, 5.4");
    for (const bool stack : {false, true}) {
        INFO(stack);
        TraceOptions options = of({"syscall:*"});
        options.program.stack = stack;
        options.copies = true;
        const Result<std::unique_ptr<Tracer>> tracer = Tracer::open(options);
        if (!tracer && tracer.error().kind == Errc::unsupported) SKIP("needs tracepoints of system calls");
        REQUIRE_MESSAGE(tracer, tracer.error().message() << tracer.error().log);
        uint64_t verified = 0, insns = 0, walk_paths = 0;
        for (const Program &program : (*tracer)->object().programs) {
            const auto info = sys::prog_info(program.fd.get());
            REQUIRE(info);
            verified += info->verified_insns;
            insns += info->xlated_prog_len / 8;
        }
        for (const Function &function : (*tracer)->unit().functions) walk_paths += function.name == "trace_path";
        CHECK(walk_paths == 1);
        CHECK(verified >= insns / 2); // 5.16
        CHECK(verified <= 2 * insns);
    }
}

TEST_CASE("trace: what a filter can read through a kernel structure") {
    TraceOptions options = of({"kprobe:vfs_read"});
    options.filter = "file->f_inode->i_size == 0 && count == 1";
    std::string missing;
    const auto work = [](int i) {
        const int fd = open(i % 2 ? "/proc/self/stat" : "/proc/self/exe", 0);
        char byte = 0;
        (void)!read(fd, &byte, 1);
        close(fd);
    };
    const std::optional<Traced> seen = traced(options, work, missing);
    if (!seen) SKIP("needs kprobes and BTF: " + missing);
    CHECK(seen->lines.size() == kCalls / 2);
}

TEST_CASE("trace: what can't be is said") {
    const auto wrong = [](std::vector<std::string> probes, std::string filter = {}) {
        TraceOptions options = of(std::move(probes));
        options.filter = std::move(filter);
        Result<std::unique_ptr<Tracer>> tracer = Tracer::open(options);
        return tracer ? std::string("nothing is wrong") : tracer.error().message() + "|" + tracer.error().hint;
    };
    // A filter that needs the return is held to the same rules as what asks for returns.
    TraceOptions returns = of({own("rawbpf_traced_leaf")});
    returns.program.results = returns.match.results = true;
    const Result<std::unique_ptr<Tracer>> refused = Tracer::open(returns);
    CHECK(wrong({own("rawbpf_traced_leaf")}, "ret < 0") ==
          (refused ? "nothing is wrong" : refused.error().message() + "|" + refused.error().hint));
    returns.program.filters.min_duration = 1;
    returns.match.allow_unwind_risk = true;
    CHECK_FALSE(Tracer::open(returns)); // calls as they begin, and how long they took
    CHECK(wrong({own("rawbpf_traced_leav")}).find("rawbpf_traced_leaf") != std::string::npos);
    CHECK(wrong({"uprobe:/no/such/file:f"}).find("No such file") != std::string::npos);
    CHECK(wrong({own("rawbpf_traced_leaf")}, "arg0 == ").find("the filter ends\n  arg0 == \n") != std::string::npos);
    CHECK(wrong({own("rawbpf_traced_leaf")}, "file->x == 1").find("has no file") != std::string::npos);
    CHECK(wrong({"tracepoint:sched:sched_process_exit"}, "ret < 0").find("are points in time") != std::string::npos);
    CHECK(wrong({"tracepoint:sched:sched_process_exit"}, "duration > 1us").find("are points in time") != std::string::npos);
    CHECK(wrong({own("rawbpf_traced_leaf")}, "comm > 3").find("a text is only compared with a text") != std::string::npos);
    CHECK(wrong({"usdt:/proc/self/exe:rawbpf:plcaes"}).find("places") != std::string::npos);
    CHECK(wrong({"usdt:/proc/self/exe:rawbpf:places"}, "nothing == 1").find("has no nothing") != std::string::npos);
    CHECK(wrong({"usdt:/proc/self/exe:rawbpf:places"}, "ret < 0").find("are points in time") != std::string::npos);
    CHECK(wrong({"kpobe:x"}).find("no kind of probe") != std::string::npos);
}
