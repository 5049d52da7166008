// What older kernels lack, and what is done instead: the real thing each time, on the kernel at hand, and a look at the system
// calls. Where the feature is missing its fallback must have been taken, and where it is there it must not. tests/vm/README.md
// lists which kernel needs which.
//
// Whether the kernel has the feature is asked beside the product's own probes where a plain system call can answer it.
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "asm/builder.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/btf_load.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/probes.h"
#include "runtime/link/attach.h"
#include "runtime/link/perf_event.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/describe.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/perf.h"
#include "runtime/sys/uapi.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"

using namespace rawbpf;

extern "C" {
__attribute__((noinline)) int fallbacktest_one(int x) {
    asm volatile("");
    return x + 1;
}
__attribute__((noinline)) int fallbacktest_two(int x) {
    asm volatile("");
    return x + 2;
}
}

namespace {

/// Every system call while it lives.
class Watch final : public sys::Observer {
  public:
    struct Seen {
        long number;
        std::string text; ///< the narrator's; empty for calls that it leaves out
        long result;
    };
    std::vector<Seen> all;

    Watch() : before_(sys::observe(this)) {}
    ~Watch() override { sys::observe(before_); }
    Watch(const Watch &) = delete;
    Watch &operator=(const Watch &) = delete;
    void after(const sys::Call &call, long result) override {
        all.push_back({call.number, sys::is_narrated(call) ? sys::describe(call, result) : std::string(), result});
    }
    [[nodiscard]] size_t succeeded(std::string_view part) const { return count(part, true); }
    [[nodiscard]] size_t failed(std::string_view part) const { return count(part, false); }
    [[nodiscard]] size_t made(long number) const {
        size_t n = 0;
        for (const Seen &seen : all) n += seen.number == number;
        return n;
    }

  private:
    [[nodiscard]] size_t count(std::string_view part, bool good) const {
        size_t n = 0;
        for (const Seen &seen : all) n += (seen.result >= 0) == good && seen.text.find(part) != std::string::npos;
        return n;
    }
    sys::Observer *before_;
};

#define NEEDS_BPF()                                                                                                              \
    if (!has_program_type(BPF_PROG_TYPE_KPROBE)) SKIP("needs CAP_BPF and CAP_PERFMON")

/// A program that counts its runs in this process, in an array of one element.
struct Counter {
    ObjectSpec spec;
    LoadedObject object;

    [[nodiscard]] uint64_t count() { return object.find_map("runs")->get<uint32_t, uint64_t>(0).value(); }
    [[nodiscard]] Result<Link> attach(const AttachOptions &options = {}) {
        return attach_program(spec, object, object.programs.at(0), options);
    }
};

Result<Counter> counter(const std::string &section, bool asks_cookie = false) {
    Builder b("fallback");
    auto runs = b.array<uint64_t>("runs", 1);
    auto cookies = b.array<uint64_t>("cookies", 1);
    Code &f = b.program(section, "p");
    auto key = f.stack<uint32_t>("key");
    auto cookie = f.stack<uint64_t>("cookie");
    f.mov(r6, r1);
    f.store<uint32_t>(key, 0);
    f.call(helper::get_current_pid_tgid);
    f.rsh(r0, 32);
    f.if_(r0 == runtime(static_cast<int32_t>(getpid())), [&] {
        f.lookup(runs, key, [&] {
            f.mov(r1, 1);
            f.atomic_add<uint64_t>(r0, r1);
        });
        if (asks_cookie) {
            f.call(helper::get_attach_cookie, r6);
            f.store<uint64_t>(cookie, r0);
            f.call(helper::map_update_elem, cookies, key, cookie, BPF_ANY);
        }
    });
    f.ret(0);
    Built built = b.finish();
    if (!built) return fail(Errc::internal, "{}", built.report());
    Counter out;
    out.spec = TRY(object_of(*built));
    out.object = TRY(load(out.spec));
    return out;
}

uint64_t last_cookie(Counter &c) { return c.object.find_map("cookies")->get<uint32_t, uint64_t>(0).value(); }

bool notes_say(const std::vector<std::string> &notes, std::string_view words) {
    for (const std::string &note : notes)
        if (note.find(words) != std::string::npos) return true;
    return false;
}

bool has_attach_type(uint32_t type) { return probe_attach_type(type).support == Support::yes; }

} // namespace

TEST_CASE("fallback: the limit of locked memory, which maps count against before 5.11, is raised only when that helps") {
    NEEDS_BPF();
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_MEMLOCK, &before) == 0);
    const rlimit low{64 << 10, before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_MEMLOCK, &low) == 0);
    sys::MapCreateAttr attr;
    attr.map_type = BPF_MAP_TYPE_ARRAY;
    attr.key_size = 4;
    attr.value_size = 1 << 20;
    attr.max_entries = 1;
    const long plain = syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr);
    const bool counted = plain < 0 && errno == EPERM;
    if (plain >= 0) close(static_cast<int>(plain));
    REQUIRE((plain >= 0 || counted));
    size_t limits = 0, refused = 0;
    {
        Watch watch;
        Result<Fd> map = sys::map_create(attr);
        REQUIRE_MESSAGE(map, map.error().message());
        limits = watch.made(SYS_prlimit64);
        refused = watch.failed("BPF_MAP_CREATE");
    }
    rlimit now{};
    REQUIRE(getrlimit(RLIMIT_MEMLOCK, &now) == 0);
    CHECK((now.rlim_cur > low.rlim_cur) == counted);
    CHECK((limits > 0) == counted);
    CHECK(refused == (counted ? 1 : 0));
    // Refused for another reason it is put back.
    REQUIRE(setrlimit(RLIMIT_MEMLOCK, &low) == 0);
    attr.map_type = BPF_MAP_TYPE_STRUCT_OPS; // without a type of value: EINVAL, not EPERM
    CHECK_FALSE(sys::map_create(attr));
    REQUIRE(getrlimit(RLIMIT_MEMLOCK, &now) == 0);
    CHECK(now.rlim_cur == low.rlim_cur);
    CHECK(setrlimit(RLIMIT_MEMLOCK, &before) == 0);
}

TEST_CASE("fallback: a clock runs a program by ioctl where perf events have no links (before 5.15)") {
    NEEDS_BPF();
    const bool links = has_feature(Feature::perf_link);
    Counter counted = counter("perf_event").value();
    forget_features(); // as in a process that has asked nothing yet
    SamplingEvent event;
    event.frequency = 999;
    event.pid = 0;
    for (bool first : {true, false}) {
        Watch watch;
        Result<PerfEventLink> clock = PerfEventLink::open(event, counted.object.programs[0].fd.get());
        REQUIRE_MESSAGE(clock, clock.error().message());
        CHECK(watch.succeeded("BPF_LINK_CREATE") == (links ? 1 : 0));
        CHECK(watch.failed("BPF_LINK_CREATE") == (!links && first ? 1 : 0)); // it isn't asked twice
        CHECK(watch.succeeded("PERF_EVENT_IOC_SET_BPF") == (links ? 0 : 1));
        const uint64_t runs = counted.count();
        REQUIRE(clock->enable());
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (counted.count() < runs + 3 && std::chrono::steady_clock::now() < end)
            for (volatile int i = 0; i < 1000000;) i = i + 1;
        CHECK(counted.count() >= runs + 3);
    }
    CHECK(has_feature(Feature::perf_link) == links);
}

TEST_CASE("fallback: without bpf_get_attach_cookie() (before 5.15) the program and the attachment say so") {
    NEEDS_BPF();
    if (!sys::exists("/sys/bus/event_source/devices/uprobe/type")) SKIP("needs uprobes (CONFIG_UPROBE_EVENTS)");
    const std::string section = "uprobe//proc/self/exe:fallbacktest_one";
    AttachOptions options;
    options.cookie = 4711;
    Result<Counter> asking = counter(section, true);
    Counter silent = counter(section).value();
    Result<Link> link = asking ? asking->attach(options) : silent.attach(options);
    if (has_feature(Feature::cookie)) {
        REQUIRE_MESSAGE(asking, asking.error().message() << asking.error().log);
        REQUIRE_MESSAGE(link, link.error().message());
        (void)fallbacktest_one(1);
        CHECK(last_cookie(*asking) == options.cookie);
        return;
    }
    REQUIRE_FALSE(asking);
    INFO(asking.error().message(), asking.error().hint, asking.error().log);
    CHECK(asking.error().kind == Errc::rejected);
    CHECK((asking.error().message() + asking.error().hint).find("bpf_get_attach_cookie") != std::string::npos);
    CHECK((asking.error().message() + asking.error().hint).find("5.15") != std::string::npos);
    REQUIRE_FALSE(link);
    CHECK(link.error().kind == Errc::unsupported);
    CHECK(link.error().message().find("5.15") != std::string::npos);
    // And without one it is attached all the same.
    Link plain = silent.attach().value();
    (void)fallbacktest_one(1);
    CHECK(silent.count() == 1);
}

TEST_CASE("fallback: functions by pattern are single uprobes where there is no uprobe.multi (before 6.6)") {
    NEEDS_BPF();
    if (!sys::exists("/sys/bus/event_source/devices/uprobe/type")) SKIP("needs uprobes (CONFIG_UPROBE_EVENTS)");
    const bool multi = has_attach_type(uapi::BPF_TRACE_UPROBE_MULTI), cookies = has_feature(Feature::cookie);
    auto before = test::open_descriptors();
    for (const char *kind : {"uprobe.multi", "uretprobe.multi"}) {
        CAPTURE(kind);
        Counter counted = counter(format("{}//proc/self/exe:fallbacktest_*", kind)).value();
        Watch watch;
        Result<Link> link = counted.attach();
        REQUIRE_MESSAGE(link, link.error().message());
        CHECK(link->places() == 2);
        CHECK(notes_say(link->notes(), "no uprobe.multi") == !multi);
        CHECK(watch.succeeded("perf_event_open") == (multi ? 0 : 2));
        (void)fallbacktest_one(1);
        (void)fallbacktest_two(1);
        (void)fallbacktest_two(1);
        CHECK(counted.count() == 3);
        CHECK(link->detach());
        (void)fallbacktest_one(1);
        CHECK(counted.count() == 3);
    }
    if (cookies) { // each place keeps its own
        Counter counted = counter("uprobe.multi", true).value();
        AttachOptions options;
        options.target = "/proc/self/exe";
        options.functions = {"fallbacktest_two", "fallbacktest_one"};
        options.cookies = {22, 11};
        Link link = counted.attach(options).value();
        (void)fallbacktest_one(1);
        CHECK(last_cookie(counted) == 11);
        (void)fallbacktest_two(1);
        CHECK(last_cookie(counted) == 22);
    }
    CHECK(test::open_descriptors() == before);
}

TEST_CASE("fallback: functions by pattern are single kprobes where there is no kprobe.multi (before 5.18, or no fprobes)") {
    NEEDS_BPF();
    if (!sys::exists("/sys/bus/event_source/devices/kprobe/type")) SKIP("needs kprobes (CONFIG_KPROBE_EVENTS)");
    const bool multi = has_attach_type(uapi::BPF_TRACE_KPROBE_MULTI);
    for (const char *kind : {"kprobe.multi", "kretprobe.multi"}) {
        CAPTURE(kind);
        Counter counted = counter(format("{}/*_sys_getpgid", kind)).value();
        Watch watch;
        Result<Link> link = counted.attach();
        REQUIRE_MESSAGE(link, link.error().message() << "; " << link.error().hint);
        CHECK(notes_say(link->notes(), "no kprobe.multi") == !multi);
        CHECK((watch.succeeded("perf_event_open") > 0) == !multi);
        CHECK((watch.succeeded("BPF_TRACE_KPROBE_MULTI") > 0) == multi);
        for (int i = 0; i < 3; ++i) (void)getpgid(0);
        const uint64_t runs = counted.count();
        CHECK(runs >= 3);
        CHECK(link->detach());
        (void)getpgid(0);
        CHECK(counted.count() == runs);
    }
}

TEST_CASE("fallback: an event that needs more of perf_event_attr than this kernel knows is refused, with both sizes") {
    // What the kernel says itself of an attribute that is too long for any.
    sys::PerfEventAttr attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.bits = sys::kPerfDisabled | sys::kPerfExcludeKernel;
    attr.size = 1 << 20;
    REQUIRE(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) == -1);
    REQUIRE(errno == E2BIG);
    const uint32_t known = attr.size;
    REQUIRE(known >= 112);
    attr.size = 0;
    REQUIRE(sys::perf_event_open(attr, 0, -1));
    struct Field {
        const char *name;
        uint32_t end; ///< of the attribute, when this is set
        void (*set)(sys::PerfEventAttr &);
    };
    const Field fields[] = {{"sig_data, 5.13", 128, [](sys::PerfEventAttr &a) { a.sig_data = 1; }},
                            {"config3, 6.3", 136, [](sys::PerfEventAttr &a) { a.config3 = 1; }}};
    for (const Field &field : fields) {
        CAPTURE(field.name);
        sys::PerfEventAttr longer = attr;
        field.set(longer);
        Watch watch;
        Result<Fd> event = sys::perf_event_open(longer, 0, -1);
        if (known >= field.end) {
            CHECK_MESSAGE(event, event.error().message());
        } else {
            REQUIRE_FALSE(event);
            CHECK(event.error().kind == Errc::unsupported);
            CHECK(event.error().message().find(format("has {} bytes", known)) != std::string::npos);
            CHECK(event.error().message().find(format("needs {}", field.end)) != std::string::npos);
        }
        CHECK(watch.made(SYS_perf_event_open) == 1); // cut off, it would be another event
    }
}

TEST_CASE("fallback: the kernel's BTF is read where it can't be mapped (before 6.16)") {
    if (!has_feature(Feature::kernel_btf)) SKIP("needs " + std::string(feature_name(Feature::kernel_btf)));
    const int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    void *at = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    const bool can_map = at != MAP_FAILED;
    if (can_map) munmap(at, 4096);
    close(fd);
    Watch watch;
    auto own = kernel_btf("/sys/kernel/btf/vmlinux");
    REQUIRE(own);
    CHECK((*own)->find("task_struct", btf::Kind::struct_));
    CHECK(watch.failed("mmap(") == (can_map ? 0 : 1));
    CHECK(watch.succeeded("MAP_ANONYMOUS") == (can_map ? 0 : 1));
}

TEST_CASE("fallback: types of a kind that this kernel doesn't know are replaced, and nothing else is") {
    NEEDS_BPF();
    if (!has_feature(Feature::btf)) SKIP("needs " + std::string(feature_name(Feature::btf)));
    struct Kind {
        const char *name;
        btf::TypeId (*add)(btf::Writer &, btf::TypeId number);
    };
    const Kind kinds[] = {
        {"FUNC with a linkage, 5.6", [](btf::Writer &w, btf::TypeId n) { return w.add_func("f", w.add_func_proto(n, {}), 1); }},
        {"FLOAT, 5.13", [](btf::Writer &w, btf::TypeId) { return w.add_float("double", 8); }},
        {"DECL_TAG, 5.16",
         [](btf::Writer &w, btf::TypeId n) {
             return w.add_decl_tag("tag", w.add_struct("s", 4, {{"m", n, 0}}), -1);
         }},
        {"TYPE_TAG, 5.17", [](btf::Writer &w, btf::TypeId n) { return w.add_ptr(w.add_type_tag("kptr", n)); }},
        {"ENUM64, 6.0",
         [](btf::Writer &w, btf::TypeId) {
             return w.add_enum("big", 8, {{"A", 1}, {"B", 1LL << 40}});
         }},
        {"signed ENUM, 6.0",
         [](btf::Writer &w, btf::TypeId) {
             return w.add_enum("small", 4, {{"C", -1}}, true);
         }},
        {"an optional DATASEC, 6.9",
         [](btf::Writer &w, btf::TypeId n) {
             return w.add_datasec("?.struct_ops", 4, {{w.add_var("v", n, 1), 0, 4}});
         }},
    };
    for (const Kind &kind : kinds) {
        CAPTURE(kind.name);
        btf::Writer w;
        const btf::TypeId n = w.add_int("int", 4, true);
        (void)kind.add(w, n);
        // What comes behind it must keep its number: the program's function and its line.
        const btf::TypeId context = w.add_ptr(w.add_fwd("__sk_buff"));
        const btf::TypeId function = w.add_func("main", w.add_func_proto(n, {{"skb", context}}), 0);
        const uint32_t file = w.string("test.bpf.c"), text = w.string("return 7;");
        ObjectSpec spec;
        spec.name = "kinds.bpf.o";
        spec.btf = w.finish();
        ProgramSpec program;
        program.name = "main";
        program.section = "socket";
        program.type = BPF_PROG_TYPE_SOCKET_FILTER;
        program.insns = {{0xb7, 0, 0, 0, 7}, {0x95, 0, 0, 0, 0}};
        program.func_info = {{0, function}};
        program.line_info = {{0, file, text, 1 << 10 | 1}};
        spec.programs.push_back(program);
        const bool taken = sys::btf_load(spec.btf).has_value();
        Result<LoadedObject> object = load(spec);
        REQUIRE_MESSAGE(object, object.error().message() << object.error().log);
        CHECK(object->btf);
        INFO((object->notes.empty() ? std::string("no notes") : object->notes.front()));
        CHECK(object->notes.size() == (taken ? 0 : 1));
        CHECK(notes_say(object->notes, "kinds of BTF were replaced") == !taken);
        sys::ProgInfo info = sys::prog_info(object->programs.at(0).fd.get()).value();
        CHECK(info.btf_id != 0); // it has its function and line information
    }
}

TEST_CASE("fallback: a verifier log of any length comes whole, with and without log_true_size (6.4)") {
    NEEDS_BPF();
    ProgramSpec program;
    program.name = "long";
    program.section = "socket";
    program.type = BPF_PROG_TYPE_SOCKET_FILTER;
    for (int i = 0; i < 3000; ++i) program.insns.push_back({0xb7, static_cast<uint8_t>(i % 6), 0, 0, i}); // rN = i
    program.insns.push_back({0xb7, 0, 0, 0, 0});
    program.insns.push_back({0x95, 0, 0, 0, 0});
    ObjectSpec spec;
    spec.name = "long.bpf.o";
    spec.programs.push_back(program);
    LoadOptions options;
    options.log_level = 2;
    Watch watch;
    Result<LoadedObject> object = load(spec, options);
    REQUIRE_MESSAGE(object, object.error().message());
    const std::string &log = object->programs.at(0).log;
    CHECK(log.size() > 64 << 10);
    CHECK(log.find("processed 3002 insns") != std::string::npos);
    std::vector<std::string> attempts;
    for (const Watch::Seen &seen : watch.all)
        if (seen.text.find("BPF_PROG_LOAD") != std::string::npos) attempts.push_back(seen.text);
    REQUIRE(attempts.size() >= 2);
    auto number = [](const std::string &text, std::string_view name) -> unsigned long {
        const size_t found = text.find(name);
        return found == std::string::npos ? 0 : std::strtoul(text.c_str() + found + name.size(), nullptr, 10);
    };
    const unsigned long told = number(attempts[0], "log_true_size=");
    if (told > 0) { // exactly as much as the kernel said
        CHECK(attempts.size() == 2);
        CHECK(number(attempts[1], "log_size=") == told);
        CHECK(told >= log.size());
    } else {
        CHECK(number(attempts[1], "log_size=") == 8 * number(attempts[0], "log_size="));
    }
}

TEST_CASE("fallback: BTF from a file, where the kernel's own isn't to be seen") {
    NEEDS_BPF();
    if (!has_feature(Feature::kernel_btf)) SKIP("needs " + std::string(feature_name(Feature::kernel_btf)));
    Result<std::string> bytes = sys::read_file("/sys/kernel/btf/vmlinux");
    REQUIRE(bytes);
    char path[] = "/tmp/rawbpf-test-btf-XXXXXX";
    const int file = mkstemp(path);
    REQUIRE(file >= 0);
    REQUIRE(sys::write_all(file, bytes->data(), bytes->size()));
    close(file);
    // In a child with mounts of its own, so that nobody else misses it. What it found out is its exit status.
    const pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount("none", "/sys/kernel/btf", "tmpfs", 0, nullptr) != 0)
            _exit(77);
        ProgramSpec program;
        program.name = "tgid";
        program.section = "socket";
        program.type = BPF_PROG_TYPE_SOCKET_FILTER;
        program.insns = {{0xb7, 0, 0, 0, 0}, {0x95, 0, 0, 0, 0}};
        program.field_references = {{0, "task_struct.tgid", 0}};
        ObjectSpec spec;
        spec.name = "hidden.bpf.o";
        spec.programs.push_back(program);
        forget_features();
        if (has_feature(Feature::kernel_btf)) _exit(10);
        Result<LoadedObject> without = load(spec);
        if (without) _exit(11);
        if (without.error().kind != Errc::unsupported || without.error().hint.find("file") == std::string::npos) _exit(12);
        LoadOptions options;
        options.btf_path = path;
        Result<LoadedObject> object = load(spec, options);
        if (!object) _exit(13);
        unsigned char packet[64] = {};
        sys::ProgTestRunAttr attr;
        attr.prog_fd = static_cast<uint32_t>(object->programs.at(0).fd.get());
        attr.data_in = sys::reg(packet);
        attr.data_size_in = sizeof packet;
        attr.repeat = 1;
        if (!sys::prog_test_run(attr)) _exit(14);
        auto given = kernel_btf(path);
        if (!given) _exit(15);
        const btf::Type task = (*given)->type((*given)->find("task_struct", btf::Kind::struct_).value()).value();
        for (uint32_t i = 0; i < task.vlen; ++i) {
            const btf::Member member = (*given)->member(task, i).value();
            if (member.name == "tgid") _exit(member.bit_offset / 8 == attr.retval && attr.retval > 0 ? 0 : 16);
        }
        _exit(17);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    unlink(path);
    REQUIRE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) SKIP("needs a mount namespace of its own (CAP_SYS_ADMIN)");
    CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("fallback: a module's functions are found in its BTF, and where there is none (before 5.11) that is said") {
    NEEDS_BPF();
    if (!has_feature(Feature::kernel_btf)) SKIP("needs " + std::string(feature_name(Feature::kernel_btf)));
    // dummy is a network driver with a module of its own; ./dev vm loads it.
    if (!sys::exists("/sys/module/dummy")) SKIP("needs a module to look into: dummy");
    ProgramSpec program;
    program.name = "p";
    program.section = "fentry/dummy:dummy_xmit";
    program.type = BPF_PROG_TYPE_TRACING;
    program.expected_attach_type = BPF_TRACE_FENTRY;
    program.attach_target = "dummy:dummy_xmit";
    program.needs_attach_btf = true;
    program.insns = {{0xb7, 0, 0, 0, 0}, {0x95, 0, 0, 0, 0}};
    ObjectSpec spec;
    spec.name = "module.bpf.o";
    spec.programs.push_back(program);
    Result<LoadedObject> object = load(spec);
    if (sys::exists("/sys/kernel/btf/dummy")) {
        REQUIRE_MESSAGE(object, object.error().message() << object.error().log);
        return;
    }
    REQUIRE_FALSE(object);
    CHECK(object.error().kind == Errc::not_found);
    INFO(object.error().message(), "; ", object.error().hint);
    CHECK(object.error().message().find("dummy") != std::string::npos);
    CHECK(object.error().hint.find("5.11") != std::string::npos);
}
