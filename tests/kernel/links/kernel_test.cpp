// kprobes, trampolines, LSM, struct_ops: refused on many development machines, at home in guests. Each counts what this process
// does.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include "runtime/base/fail.h"
#include "runtime/kernel/probes.h"
#include "runtime/kernel/target_program.h"
#include "runtime/link/kernel_functions.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "tests/kernel/links/linking.h"
#include "tests/support/fds.h"

using namespace rawbpf;
using test::Loaded;

namespace {

void call_getpgid(int times) {
    for (int i = 0; i < times; ++i) (void)getpgid(0);
}
void read_something() {
    char byte;
    int fd = open("/proc/version", O_RDONLY | O_CLOEXEC);
    (void)!pread(fd, &byte, 1, 0);
    close(fd);
}
const char *getpgid_function() {
    static const std::string name = std::string(kHost.wrapper) + "sys_getpgid";
    return name.c_str();
}

#define NEEDS_KPROBES()                                                                                                          \
    if (!has_program_type(BPF_PROG_TYPE_KPROBE)) SKIP("needs CAP_BPF and CAP_PERFMON");                                          \
    if (!sys::exists("/sys/bus/event_source/devices/kprobe/type")) SKIP("needs kprobes (CONFIG_KPROBE_EVENTS)")
#define NEEDS_ATTACH(type, words)                                                                                                \
    if (probe_attach_type(type).support != Support::yes) SKIP("needs " words)

} // namespace

TEST_CASE("link: no kprobes in this kernel: said so") {
    if (!has_program_type(BPF_PROG_TYPE_KPROBE)) SKIP("needs CAP_BPF and CAP_PERFMON");
    if (sys::exists("/sys/bus/event_source/devices/kprobe/type")) SKIP("needs a kernel without kprobes");
    Loaded loaded = test::load_one("run_3").value();
    Error error = loaded.attach().error();
    CHECK(error.kind == Errc::unsupported);
    CHECK(error.hint.find("CONFIG_KPROBE_EVENTS") != std::string::npos);
}

TEST_CASE("link: kprobe and kretprobe, with offset and cookie") {
    NEEDS_KPROBES();
    Loaded entry = test::load_one(has_feature(Feature::cookie) ? "run_3" : "run_25").value(),
           back = test::load_one("run_4").value();
    const size_t slot = has_feature(Feature::cookie) ? 3 : 25;
    AttachOptions options;
    options.target = getpgid_function();
    options.cookie = slot == 3 ? 5 : 0;
    auto before = test::open_descriptors();
    {
        Link link = entry.attach(options).value();
        AttachOptions there;
        there.target = getpgid_function();
        Link at_return = back.attach(there).value();
        call_getpgid(3);
        CHECK(entry.run(slot).count == 3);
        CHECK(back.run(4).count == 3);
        CHECK(entry.run(slot).cookie == options.cookie);
        CHECK(link.places() == 1);
        if (has_feature(Feature::perf_link))
            CHECK(link.info().value().type == LinkType::PERF_EVENT);
        else
            CHECK(link.pin("/sys/fs/bpf/x").error().kind == Errc::unsupported);
    }
    CHECK(test::open_descriptors() == before);
    call_getpgid(1);
    CHECK(entry.run(slot).count == 3);
    options.target = format("{}+0x0", getpgid_function());
    Link at_zero = entry.attach(options).value();
    call_getpgid(1);
    CHECK(entry.run(slot).count == 4);
}

TEST_CASE("link: kprobes that can't be, and why") {
    NEEDS_KPROBES();
    Loaded loaded = test::load_one("run_25").value(), back = test::load_one("run_4").value();
    auto attach = [&](Loaded &which, const std::string &target) {
        AttachOptions options;
        options.target = target;
        Result<Link> link = which.attach(options);
        return link ? Error() : std::move(link).error();
    };
    CHECK(loaded.attach().error().kind == Errc::invalid_argument); // SEC("kprobe") alone
    Error missing = attach(loaded, "vfs_reda");
    CHECK_MESSAGE(missing.kind == Errc::not_found, missing.message());
    CHECK_MESSAGE(missing.hint.find("vfs_read") != std::string::npos, missing.hint);
    CHECK(attach(loaded, "vfs_read+x").kind == Errc::invalid_argument);
    CHECK(attach(loaded, "+0x10").kind == Errc::invalid_argument);
    CHECK(attach(back, "vfs_read+0x10").kind == Errc::invalid_argument);
    Error past = attach(loaded, "vfs_read+0x100000"); // a kernel may take it, if an instruction starts there
    CHECK((past.context.empty() || !past.hint.empty()));
#ifdef __x86_64__
    Error forbidden = attach(loaded, "do_int3");
    if (forbidden.kind != Errc::not_found) {
        CHECK_MESSAGE(forbidden.kind == Errc::unsupported, forbidden.message());
        if (sys::exists("/sys/kernel/debug/kprobes/blacklist"))
            CHECK_MESSAGE(forbidden.hint.find("NOKPROBE") != std::string::npos, forbidden.hint);
    }
#endif
}

TEST_CASE("link: a kprobe on a name that several functions have") {
    NEEDS_KPROBES();
    // Some static function's name that stands for a few: which one differs from kernel to kernel.
    std::string name;
    size_t places = 0;
    for (const char *candidate :
         {"bpf_prog_load", "t_next", "t_stop", "t_start", "s_next", "m_next", "m_start", "c_start", "name_show"}) {
        Result<std::vector<KernelFunction>> found = find_kernel_functions(candidate);
        if (found && found->size() > 1 && found->size() < 20) {
            name = candidate;
            places = found->size();
            break;
        }
    }
    if (name.empty()) SKIP("needs a function name that is used twice");
    Loaded loaded = test::load_one("run_25").value();
    AttachOptions options;
    options.target = name;
    Result<Link> link = loaded.attach(options);
    REQUIRE_MESSAGE(link, link.error().message());
    // Before 6.6 the kernel takes the first and says nothing.
    CHECK((link->places() == places || link->places() == 1));
    if (link->places() > 1) CHECK(link->notes().at(0).find(format("{} functions have that name", places)) != std::string::npos);
}

TEST_CASE("link: ksyscall finds the architecture's name") {
    NEEDS_KPROBES();
    if (!has_feature(Feature::cookie)) SKIP("needs cookies, 5.15");
    Loaded entry = test::load_one("run_8").value(), back = test::load_one("run_9").value();
    Link link = entry.attach().value(), at_return = back.attach().value();
    CHECK(link.what() == format("ksyscall getpgid ({})", getpgid_function()));
    call_getpgid(2);
    CHECK(entry.run(8).count == 2);
    CHECK(back.run(9).count == 2);
    AttachOptions options;
    options.target = "getpgidd";
    Error error = entry.attach(options).error();
    CHECK(error.kind == Errc::not_found);
    CHECK_MESSAGE(error.hint.find("getpgid") != std::string::npos, error.hint);
}

TEST_CASE("link: kprobe.multi by pattern; what is passed over is said") {
    NEEDS_KPROBES();
    if (!has_feature(Feature::cookie)) SKIP("needs cookies, 5.15");
    Loaded entry = test::load_one("run_5").value();
    AttachOptions options;
    options.cookie = 9;
    Result<Link> link = entry.attach(options);
    REQUIRE_MESSAGE(link, link.error().message());
    CHECK(link->places() > 10);
    read_something();
    CHECK(entry.run(5).count > 0);
    CHECK(entry.run(5).cookie == 9);
    const bool real = probe_attach_type(uapi::BPF_TRACE_KPROBE_MULTI).support == Support::yes;
    if (real) {
        CHECK(link->info().value().type == LinkType::KPROBE_MULTI);
    } else { // the fallback: as many kprobes
        bool said = false;
        for (const std::string &note : link->notes()) said |= note.find("no kprobe.multi") != std::string::npos;
        CHECK(said);
    }
    for (const std::string &note : link->notes()) MESSAGE(note);
    options.target = "vfs_nothing_of_that_name*";
    CHECK(entry.attach(options).error().kind == Errc::not_found);
    options = {};
    options.functions = {"vfs_read", "vfs_write"};
    options.cookies = {1, 2};
    link->detach().value();
    Link chosen = entry.attach(options).value();
    CHECK(chosen.places() == 2);
    read_something();
    CHECK(entry.run(5).cookie == 1);
    options.functions = {"vfs_read", "no_such_function_at_all"};
    options.cookies = {};
    CHECK(entry.attach(options).error().kind == Errc::not_found);
}

TEST_CASE("link: kretprobe.multi and sessions") {
    NEEDS_KPROBES();
    Loaded back = test::load_one("run_6").value();
    {
        Result<Link> link = back.attach();
        REQUIRE_MESSAGE(link, link.error().message());
        read_something();
        char byte;
        int fd = open("/proc/version", O_RDONLY | O_CLOEXEC);
        (void)!read(fd, &byte, 1);
        close(fd);
        CHECK(back.run(6).count > 0);
    }
    NEEDS_ATTACH(uapi::BPF_TRACE_KPROBE_SESSION, "kprobe sessions, 6.10");
    Loaded session = test::load_one("run_7").value();
    Link link = session.attach().value();
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    (void)!write(null, "x", 1);
    close(null);
    CHECK(session.run(7).count >= 2);
    CHECK(session.run(7).count % 2 == 0); // in and out
}

TEST_CASE("link: fentry, fexit, fmod_ret, tp_btf") {
    if (!has_program_type(BPF_PROG_TYPE_TRACING)) SKIP("needs CAP_BPF and CAP_PERFMON");
    NEEDS_ATTACH(BPF_TRACE_FENTRY, "BPF trampolines");
    Loaded exit = test::load_one("run_17").value();
    {
        Loaded reads = test::load_one("run_20").value();
        Link link = reads.attach().value();
        CHECK(link.what() == "fentry vfs_read");
        CHECK(link.info().value().type == LinkType::TRACING);
        char byte;
        int fd = open("/proc/version", O_RDONLY | O_CLOEXEC);
        (void)!read(fd, &byte, 1);
        close(fd);
        CHECK(reads.run(20).count > 0);
        CHECK(link.detach());
    }
    // bpf_fentry_test1 runs when a tracing program is test-run.
    auto test_run = [&] {
        sys::ProgTestRunAttr attr;
        attr.prog_fd = static_cast<uint32_t>(exit.program().fd.get());
        return sys::prog_test_run(attr);
    };
    Link link = exit.attach().value();
    REQUIRE(test_run());
    CHECK(exit.run(17).count >= 1);
    if (Result<Loaded> entry = test::load_one("run_16")) { // asks for a cookie
        AttachOptions options;
        options.cookie = 321;
        Result<Link> with = entry->attach(options);
        if (with) {
            REQUIRE(test_run());
            CHECK(entry->run(16).cookie == 321);
        } else { // 5.15 to 5.18 have the helper, but not here
            CHECK(with.error().kind == Errc::unsupported);
            CHECK(with.error().message().find("5.19") != std::string::npos);
        }
    }
    // What may be modified: functions for error injection, which distributions leave out; since 6.3 also this one, by name.
    if (Result<Loaded> modify = test::load_one("run_18")) {
        Link modified = modify->attach().value();
        CHECK(modified.attached());
    } else {
        CHECK_MESSAGE(modify.error().message().find("not modifiable") != std::string::npos, modify.error().message());
    }
}

TEST_CASE("link: tp_btf") {
    if (!has_program_type(BPF_PROG_TYPE_TRACING)) SKIP("needs CAP_BPF and CAP_PERFMON");
    NEEDS_ATTACH(BPF_TRACE_RAW_TP, "tracepoints by BTF");
    Result<Loaded> typed = test::load_one("run_15");
    REQUIRE_MESSAGE(typed, typed.error().message());
    Link tracepoint = typed->attach().value();
    call_getpgid(1);
    CHECK(typed->run(15).count > 0);
}

TEST_CASE("link: fsession and fentry.multi, where a kernel has them") {
    if (!has_program_type(BPF_PROG_TYPE_TRACING)) SKIP("needs tracing programs, 5.5");
    NEEDS_ATTACH(static_cast<uint32_t>(AttachType::TRACE_FSESSION), "fsession programs, 7.0");
    Loaded session = test::load_one("run_55").value();
    Link link = session.attach().value();
    CHECK(link.info().value().type == LinkType::TRACING);
    if (probe_attach_type(static_cast<uint32_t>(AttachType::TRACE_FENTRY_MULTI)).support != Support::yes) return;
    Loaded multi = test::load_one("run_56").value();
    CHECK(multi.attach().value().places() > 1);
    // Some of these have a variable number of arguments, or are none that the kernel lets trampolines be put on.
    AttachOptions options;
    options.target = "*printk*";
    Result<Link> some = multi.attach(options);
    REQUIRE_MESSAGE(some, some.error().message());
    CHECK(some->places() > 1);
    std::string notes;
    for (const std::string &note : some->notes()) notes += note + "\n";
    CHECK_MESSAGE(notes.find("a variable number of arguments") != std::string::npos, notes);
    options = {};
    options.functions = {"vfs_read", "vfs_write"};
    options.cookies = {1, 2};
    CHECK(multi.attach(options).value().places() == 2);
    options.functions = {"vfs_read", "no_such_function_at_all"};
    options.cookies = {};
    Error error = multi.attach(options).error();
    CHECK_MESSAGE(error.message().find("no_such_function_at_all: not in the BTF") != std::string::npos, error.message());
}

TEST_CASE("link: LSM hooks") {
    if (!has_program_type(BPF_PROG_TYPE_LSM)) SKIP("needs LSM programs, 5.7");
    NEEDS_ATTACH(BPF_LSM_MAC, "LSM programs that can be attached (CONFIG_BPF_LSM, trampolines)");
    Result<Loaded> loaded = test::load_one("run_19");
    REQUIRE_MESSAGE(loaded, loaded.error().message());
    Link link = loaded->attach().value();
    if (Result<std::string> active = sys::read_file("/sys/kernel/security/lsm");
        active && active->find("bpf") == std::string::npos)
        return; // attached, but the kernel asks no BPF: it isn't among its active modules
    if (!sys::exists("/sys/kernel/security/lsm")) return;
    CHECK(chroot("/") == 0);
    CHECK(loaded->run(19).count == 1);
}

TEST_CASE("link: a struct_ops map is registered as long as its link") {
    if (!has_program_type(BPF_PROG_TYPE_STRUCT_OPS)) SKIP("needs struct_ops programs, 5.6");
    NEEDS_ATTACH(uapi::BPF_STRUCT_OPS, "struct_ops links, 6.4");
    NEEDS_ATTACH(BPF_TRACE_FENTRY, "BPF trampolines");
    Result<Loaded> loaded = [&]() -> Result<Loaded> {
        Loaded out;
        out.spec = TRY(parse_object(ops_object, "ops.bpf.o"));
        out.object = TRY(load(out.spec));
        return out;
    }();
    if (!loaded && loaded.error().kind == Errc::permission) SKIP("needs struct_ops programs, which are refused here");
    REQUIRE_MESSAGE(loaded, loaded.error().message());
    auto choose = [] {
        int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int done = setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, "rawbpf_linked", 13);
        close(s);
        return done;
    };
    CHECK(choose() != 0);
    {
        Result<Attached> attached = attach_object(loaded->spec, loaded->object);
        REQUIRE_MESSAGE(attached, attached.error().message());
        REQUIRE(attached->links.size() == 1);
        CHECK(attached->links[0].what() == "struct_ops rawbpf_linked");
        CHECK(attached->links[0].info().value().type == LinkType::STRUCT_OPS);
        CHECK(choose() == 0);
        CHECK(attach_struct_ops(loaded->spec, loaded->object, "nothing").error().kind == Errc::not_found);
    }
    CHECK(choose() != 0);
    Link again = attach_struct_ops(loaded->spec, loaded->object, "rawbpf_linked").value(); // the map is filled already
    CHECK(choose() == 0);
}

TEST_CASE("link: freplace takes the place of another program's function") {
    if (!has_program_type(BPF_PROG_TYPE_EXT)) SKIP("needs extension programs, 5.6");
    NEEDS_ATTACH(BPF_TRACE_FENTRY, "BPF trampolines");
    auto parsed = [] { return parse_object(replace_object, "replace.bpf.o").value(); };
    LoadOptions options;
    options.programs = {"entry"};
    LoadedObject target = load(parsed(), options).value();
    const Program &entry = target.programs.at(0);
    auto run = [&] {
        uint8_t packet[64] = {};
        sys::ProgTestRunAttr attr;
        attr.prog_fd = static_cast<uint32_t>(entry.fd.get());
        attr.data_in = sys::reg(packet);
        attr.data_size_in = sizeof packet;
        return sys::prog_test_run(attr) ? attr.retval : ~0U;
    };
    CHECK(run() == 1);
    options.programs = {"instead"};
    CHECK(load(parsed(), options).error().kind == Errc::unsupported); // of which program?
    options.target_program = entry.fd.get();
    ObjectSpec spec = parsed();
    Result<LoadedObject> loaded = load(spec, options);
    REQUIRE_MESSAGE(loaded, loaded.error().message() << loaded.error().log);
    {
        Link link = attach_program(spec, *loaded, loaded->programs.at(0)).value();
        CHECK(link.what() == "freplace answer");
        CHECK(run() == 42);
        CHECK_FALSE(attach_program(spec, *loaded, loaded->programs.at(0))); // its place is taken
    }
    CHECK(run() == 1);
    spec.find_program("instead")->attach_target = "no_such_function";
    CHECK(load(spec, options).error().kind == Errc::not_found);
}

TEST_CASE("loader: a loaded program by its id, its name and its pin") {
    if (!has_program_type(BPF_PROG_TYPE_SCHED_CLS)) SKIP("needs CAP_BPF");
    LoadOptions options;
    auto loaded = [&] {
        ObjectSpec spec = parse_object(replace_object, "replace.bpf.o").value();
        for (ProgramSpec &program : spec.programs)
            if (program.section == "tc") options.programs = {program.name = format("entry_{}", getpid())}; // nobody else's
        return load(spec, options).value();
    };
    const LoadedObject one = loaded();
    const Program &program = one.programs.at(0);
    auto id_of = [](const Fd &fd) { return sys::prog_info(fd.get()).value().id; };
    const uint32_t id = id_of(program.fd);
    CHECK(id_of(find_loaded_program(format("{}", id)).value()) == id);
    CHECK(id_of(find_loaded_program(program.name).value()) == id);
    CHECK(find_loaded_program("0").error().kind == Errc::not_found);
    CHECK(find_loaded_program("rawbpf_nobody").error().message() == "no program called rawbpf_nobody is loaded");
    CHECK(find_loaded_program("").error().kind == Errc::not_found);
    CHECK(find_loaded_program("/").error().kind != Errc::internal);
    const LoadedObject two = loaded();
    const Error several = find_loaded_program(program.name).error();
    CHECK(several.kind == Errc::invalid_argument);
    CHECK(several.message().find(format("{}", id)) != std::string::npos);
}
