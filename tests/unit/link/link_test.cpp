// Links on a kernel that is played: what is asked, what is undone, what is left open when a call fails.
#include <tuple>

#include "runtime/link/link.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/fail.h"
#include "runtime/base/long_step.h"
#include "runtime/kernel/probes.h"
#include "runtime/link/attach.h"
#include "runtime/link/attaching.h"
#include "runtime/link/bisect.h"
#include "runtime/link/event.h"
#include "runtime/link/names.h"
#include "runtime/link/tracefs.h"
#include "runtime/sys/perf.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/test.h"

using namespace rawbpf;
using test::FakeKernel;

namespace {

// A loaded object with one program of that section, in the played kernel.
struct One {
    ObjectSpec spec;
    LoadedObject object;
    explicit One(const std::string &section) {
        object.programs.emplace_back();
        Program &program = object.programs.back();
        program.name = "p";
        program.section = section;
        if (const SectionKind *kind = find_section_kind(section)) // as the loader does
            program.expected_attach_type = static_cast<uint32_t>(kind->attach_type);
        sys::ProgLoadAttr attr;
        program.fd = sys::prog_load(attr).value();
    }
    Result<Link> attach(const AttachOptions &options = {}) { return attach_program(spec, object, object.programs[0], options); }
};

bool has_line(const FakeKernel &kernel, std::string_view text) {
    for (const std::string &line : kernel.lines)
        if (line.find(text) != std::string::npos) return true;
    return false;
}

} // namespace

TEST_CASE("link: patterns") {
    for (auto [pattern, text, yes] : {std::tuple("vfs_*", "vfs_read", true),
                                      {"vfs_*", "xvfs_read", false},
                                      {"*", "", true},
                                      {"", "", true},
                                      {"", "a", false},
                                      {"a?c", "abc", true},
                                      {"a?c", "ac", false},
                                      {"*read*", "do_readv", true},
                                      {"a*b*c", "aXbXbXc", true},
                                      {"a*b*c", "aXbX", false},
                                      {"**", "x", true},
                                      {"?*", "", false}})
        CHECK_MESSAGE(matches_pattern(pattern, text) == yes, pattern << " " << text);
    std::string stars(60, '*'), as(200, 'a'); // what backtracking without bounds would never end
    CHECK_FALSE(matches_pattern(stars + "b", as));
    CHECK(matches_pattern("a*a*a*a*a*a*a*a*a*a*a*a*a*a*a", as));
    CHECK_FALSE(matches_pattern("a*a*a*a*a*a*a*a*a*a*a*a*a*a*ab", as));
}

TEST_CASE("link: a module and a name in it") {
    for (auto [target, module, name, given] : {std::tuple("vfs_*", "", "vfs_*", false),
                                               {"nf_nat:nf_nat_*", "nf_nat", "nf_nat_*", true},
                                               {"vmlinux:vfs_read", "", "vfs_read", true},
                                               {":x", "", "x", true},
                                               {"a:", "a", "", true}}) {
        const ModuleAndName split = split_module(target);
        CHECK(split.module == module);
        CHECK(split.name == name);
        CHECK(split.given == given);
    }
}

TEST_CASE("link: what no trampoline can be put on, by its prototype") {
    btf::Writer writer;
    const btf::TypeId number = writer.add_int("int", 4, true), wide = writer.add_int("__int128", 16, true);
    const btf::TypeId small = writer.add_struct("small", 16, {{"a", wide, 0}});
    const btf::TypeId large = writer.add_struct("large", 24, {{"a", wide, 0}});
    const btf::TypeId alias = writer.add_typedef("large_t", large);
    auto function = [&](const char *name, btf::TypeId result,
                        const std::vector<std::pair<std::string_view, btf::TypeId>> &params) {
        return writer.add_func(name, writer.add_func_proto(result, params), 0);
    };
    const std::vector<std::pair<std::string_view, btf::TypeId>> many(12, {"x", number});
    std::vector<std::pair<std::string_view, btf::TypeId>> more(13, {"x", number});
    const btf::TypeId none = function("none", 0, {}),
                      plain = function("plain", wide, {{"a", small}, {"b", writer.add_ptr(large)}}),
                      twelve = function("twelve", number, many), thirteen = function("thirteen", number, more),
                      printk = function("printk", number, {{"format", number}, {"", 0}}),
                      returns = function("returns", alias, {}), takes = function("takes", 0, {{"i", number}, {"what", alias}});
    const std::vector<std::byte> bytes = writer.finish();
    const btf::Btf types = btf::Btf::parse(bytes, "t").value();
    auto why = [&](btf::TypeId id) { return why_no_trampoline(types, types.type(id).value()).value(); };
    for (const btf::TypeId good : {none, plain, twelve}) CHECK(why(good) == "");
    CHECK(why(thirteen) == "has 13 arguments, and 12 are the most");
    CHECK(why(printk) == "a variable number of arguments");
    CHECK(why(returns) == "returns a struct");
    CHECK(why(takes) == "argument what is larger than two registers");
}

TEST_CASE("link: fentry.multi hands over BTF ids and cookies; a program is for one module") {
    FakeKernel kernel;
    One one("fentry.multi/vfs_*");
    AttachOptions options;
    options.functions = {"vfs_write", "vfs_read"};
    options.cookies = {1, 2};
    std::vector<uint32_t> ids;
    std::vector<uint64_t> cookies;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number == __NR_bpf && c.args[0] == BPF_LINK_CREATE) {
            const auto &attr = *reinterpret_cast<const sys::LinkCreateAttr *>(c.args[1]);
            const size_t n = attr.tracing_multi.cnt;
            const auto *first = reinterpret_cast<const uint32_t *>(attr.tracing_multi.ids);
            ids.assign(first, first + n);
            const auto *with = reinterpret_cast<const uint64_t *>(attr.tracing_multi.cookies);
            cookies.assign(with, with + n);
        }
        return std::nullopt;
    };
    Result<std::shared_ptr<const btf::Btf>> types = kernel_btf();
    if (!types) SKIP("needs the kernel's BTF");
    CHECK(one.attach(options).value().places() == 2);
    CHECK(ids == std::vector{*(*types)->find("vfs_write", btf::Kind::func), *(*types)->find("vfs_read", btf::Kind::func)});
    CHECK(cookies == std::vector<uint64_t>{1, 2});
    CHECK(has_line(kernel, "tracing_multi.cnt=2"));
    options.cookies = {1};
    CHECK(one.attach(options).error().kind == Errc::invalid_argument);
    options.cookies = {};
    options.functions = {"_printk"};
    CHECK(one.attach(options).error().message().find("_printk: a variable number of arguments") != std::string::npos);
    options = {};
    options.target = "dummy:dummy_*";
    const Error error = one.attach(options).error();
    CHECK(error.kind == Errc::invalid_argument);
    CHECK(error.message().find("loaded for functions of the kernel itself") != std::string::npos);
    CHECK(error.hint == "name the module in the section: fentry.multi/MODULE:PATTERN");
    // A kernel that has no such links.
    options = {};
    options.functions = {"vfs_read"};
    kernel.script = nullptr;
    kernel.refuse(BPF_LINK_CREATE, EINVAL);
    CHECK(one.attach(options).error().kind == Errc::unsupported);
}

TEST_CASE("link: hints for what doesn't fit where it should go") {
    FakeKernel kernel;
    AttachOptions options;
    options.interface = 1; // lo
    kernel.refuse(BPF_LINK_CREATE, ENXIO);
    Error error = One("netkit/peer").attach(options).error();
    CHECK_MESSAGE(error.hint.find("isn't a netkit device") != std::string::npos, error.hint);
    kernel.refuse(BPF_LINK_CREATE, EINVAL);
    error = One("iter.s/bpf_map").attach().error();
    CHECK_MESSAGE(error.hint.find("section iter instead of iter.s") != std::string::npos, error.hint);
    CHECK(One("iter/bpf_map").attach().error().hint.find("iter.s") == std::string::npos);
}

TEST_CASE("link: the nearest names") {
    NearestNames near("vfs_raed");
    for (const char *name : {"vfs_read", "vfs_write", "ksys_read", "vfs_readv", "vfs_read", "vfs_seed"}) near.see(name);
    CHECK(near.hint().starts_with("did you mean vfs_read"));
    CHECK(near.hint().find("ksys") == std::string::npos);
    NearestNames longer("do_exit");
    longer.see("do_exit.part.0");
    CHECK(longer.hint() == "did you mean do_exit.part.0?");
    NearestNames none("xyz");
    none.see("completely_different");
    none.see("");
    none.see(std::string(5000, 'x'));
    CHECK(none.hint().empty());
}

TEST_CASE("link: halving finds the places to blame, and no others") {
    auto run = [](size_t count, std::vector<size_t> bad, size_t most = 64) {
        int tries = 0;
        auto attach = [&](const std::vector<size_t> &places) -> Result<Fd> {
            ++tries;
            for (size_t place : places)
                for (size_t one : bad)
                    if (place == one) return fail_os(EINVAL, "place {}", place);
            return Fd();
        };
        auto done = attach_all_but_bad(
            count, attach, [](const Error &e) { return e.os == EINVAL; }, most);
        return std::pair(std::move(done), tries);
    };
    for (auto bad : {std::vector<size_t>{}, {0}, {999}, {3, 500, 501, 998}, {0, 1, 2, 3, 4, 5, 6, 7}}) {
        auto [done, tries] = run(1000, bad);
        REQUIRE(done);
        CHECK(done->attached.size() == 1000 - bad.size());
        REQUIRE(done->failed.size() == bad.size());
        for (size_t i = 0; i < bad.size(); ++i) CHECK(done->failed[i].index == bad[i]);
        CHECK(tries <= static_cast<int>(2 + bad.size() * 22));
    }
    CHECK_FALSE(run(3, {0, 1, 2}).first);            // nothing is left
    CHECK_FALSE(run(100, {1, 2, 3, 4, 5}, 3).first); // too many for it to be the places
    // Another error is nobody's fault: one try.
    int tries = 0;
    auto denied = attach_all_but_bad(
        10, [&](const std::vector<size_t> &) -> Result<Fd> { return ++tries, fail_os(EPERM, "no"); },
        [](const Error &e) { return e.os == EINVAL; });
    CHECK(denied.error().os == EPERM);
    CHECK(tries == 1);
    // Each half works, the whole doesn't.
    auto whole = attach_all_but_bad(
        4,
        [&](const std::vector<size_t> &places) -> Result<Fd> {
            return places.size() == 4 ? Result<Fd>(fail_os(EINVAL, "")) : Fd();
        },
        [](const Error &) { return true; });
    CHECK(whole.error().os == EINVAL);
    CHECK(describe_passed_over({}, 3, [](size_t) { return ""; }).empty());
    std::vector<PassedOver> failed;
    failed.push_back({1, os_error(EINVAL, "x")});
    CHECK(describe_passed_over(failed, 3, [](size_t i) { return format("f{}", i); }) == "skipped 1 of 3: f1 (EINVAL)");
}

TEST_CASE("link: every call that fails leaves nothing open") {
    for (const char *section : {"cgroup/connect4", "raw_tp/sched_switch", "fentry/vfs_read", "iter/task", "xdp"}) {
        INFO(section);
        for (int n = 1; n < 12; ++n) {
            FakeKernel kernel;
            kernel.script = [](const sys::Call &call) -> std::optional<long> {
                if (call.number == __NR_bpf && call.args[0] == BPF_RAW_TRACEPOINT_OPEN) return ::dup(1); // some descriptor
                return std::nullopt;
            };
            bool failed;
            {
                One one(section);
                AttachOptions options;
                options.target_fd = 7;
                options.interface = 1;
                options.cookie = std::string_view(section).starts_with("fentry") ? 1 : 0;
                kernel.fail(n, ENOMEM);
                Result<Link> link = one.attach(options);
                failed = kernel.failed();
                CHECK((link.has_value() || failed)); // some failures only cost a name in a message
            }
            CHECK(kernel.leaks() == "");
            if (!failed) break;
        }
    }
}

TEST_CASE("link: a cookie on a kernel before 5.15 is refused, and nothing is left") {
    forget_features();
    {
        FakeKernel kernel;
        kernel.refuse(BPF_LINK_CREATE, EINVAL);
        Fd event = sys::perf_event_open({}, 0, -1).value();
        One one("perf_event");
        AttachOptions options;
        options.target_fd = event.get();
        kernel.script = [&](const sys::Call &call) -> std::optional<long> {
            if (call.number == __NR_fcntl) return ::dup(1);
            return std::nullopt;
        };
        Link link = one.attach(options).value();
        CHECK(link.fd() == -1);
        CHECK(link.notes().size() == 1);
        CHECK(has_line(kernel, "PERF_EVENT_IOC_SET_BPF"));
        CHECK(link.pin("/sys/fs/bpf/x").error().kind == Errc::unsupported);
        CHECK(link.update(5).error().kind == Errc::unsupported);
        CHECK(link.info().error().kind == Errc::unsupported);
        options.cookie = 9;
        Error error = one.attach(options).error();
        CHECK(error.kind == Errc::unsupported);
        CHECK_MESSAGE(error.hint.find("bpf_get_func_ip") != std::string::npos, error.hint);
    }
    forget_features();
}

TEST_CASE("link: pin, unpin, detach; moving keeps one owner") {
    FakeKernel kernel;
    std::vector<std::string> removed;
    kernel.script = [&](const sys::Call &call) -> std::optional<long> {
        if (call.number != __NR_unlinkat) return std::nullopt;
        removed.emplace_back(reinterpret_cast<const char *>(call.args[1]));
        return 0;
    };
    {
        One one("cgroup/connect4");
        AttachOptions options;
        options.target_fd = 7;
        Link link = one.attach(options).value();
        CHECK(link.unpin().error().kind == Errc::invalid_argument);
        REQUIRE(link.pin("/sys/fs/bpf/mine"));
        CHECK(link.pin("/sys/fs/bpf/again").error().kind == Errc::invalid_argument);
        CHECK(has_line(kernel, "BPF_OBJ_PIN, {pathname=\"/sys/fs/bpf/mine\""));
        Link moved;
        moved = std::move(link);
        CHECK_FALSE(link.attached()); // NOLINT: that is the point
        CHECK(moved.detach());
        CHECK(removed == std::vector<std::string>{"/sys/fs/bpf/mine"});
        CHECK(has_line(kernel, "BPF_LINK_DETACH"));
        CHECK_FALSE(moved.attached());
    }
    CHECK(kernel.leaks() == "");
    int undone = 0;
    {
        Link link;
        link.undo_by([&]() -> Result<void> { return ++undone, Result<void>(); });
        Link moved = std::move(link);
        CHECK(moved.attached());
    }
    CHECK(undone == 1);
    {
        Link link;
        link.undo_by([&]() -> Result<void> { return ++undone, fail(Errc::kernel, "it stays"); });
        CHECK(link.detach().error().message().find("it stays") != std::string::npos);
    }
    CHECK(undone == 2);
}

TEST_CASE("link: what is asked of the kernel, by the section's kind") {
    FakeKernel kernel;
    AttachOptions options;
    options.target_fd = 7;
    options.interface = 3;
    kernel.script = [](const sys::Call &call) -> std::optional<long> { // attachments without a link keep a descriptor
        return call.number == __NR_fcntl ? std::optional<long>(::dup(1)) : std::nullopt;
    };
    for (auto [section, text] : {std::pair("cgroup/connect4", "target_fd=7"),
                                 {"xdp", "target_ifindex=3"},
                                 {"tcx/egress", "target_ifindex=3"},
                                 {"tc", "attach_type=BPF_TCX_INGRESS"},
                                 {"netkit/primary", "attach_type=BPF_NETKIT_PRIMARY"},
                                 {"netkit/peer", "target_ifindex=3"},
                                 {"lsm_cgroup/socket_bind", "attach_type=BPF_LSM_CGROUP"},
                                 {"lsm_cgroup/socket_bind", "target_fd=7"},
                                 {"lirc_mode2", "attach_type=BPF_LIRC_MODE2"},
                                 {"lirc_mode2", "BPF_PROG_ATTACH"},
                                 {"fsession/vfs_read", "BPF_RAW_TRACEPOINT_OPEN"},
                                 {"sk_lookup", "target_fd=7"}}) {
        One one(section);
        kernel.lines.clear();
        CHECK_MESSAGE(one.attach(options), std::string(section));
        std::string lines;
        for (const std::string &line : kernel.lines) lines += line + "\n";
        CHECK_MESSAGE(has_line(kernel, text), format("{} wants {}: {}", section, text, lines));
    }
    // A reuseport group takes its program by setsockopt: not narrated, but seen here.
    kernel.script = [](const sys::Call &call) -> std::optional<long> {
        if (call.number == __NR_fcntl) return ::dup(1);
        if (call.number != __NR_setsockopt) return std::nullopt;
        CHECK(call.args[1] == SOL_SOCKET);
        CHECK((call.args[2] == SO_ATTACH_REUSEPORT_EBPF || call.args[2] == SO_DETACH_REUSEPORT_BPF));
        return 0;
    };
    {
        One group("sk_reuseport");
        Result<Link> link = group.attach(options);
        CHECK_MESSAGE(link, link.error().message());
    }
    kernel.script = nullptr;
    options.egress = true;
    One tc("classifier");
    CHECK(tc.attach(options));
    CHECK(has_line(kernel, "attach_type=BPF_TCX_EGRESS"));
    One unknown("krpobe/vfs_read");
    CHECK(unknown.attach().error().message().find("kprobe/") != std::string::npos);
    One nowhere("kprobe");
    CHECK(nowhere.attach().error().kind == Errc::invalid_argument);
}

TEST_CASE("link: every section name has a way to be attached, or a reason why not") {
    for (const SectionKind &kind : section_kinds()) {
        Program program;
        program.section = std::string(kind.name) + (kind.target == SectionTarget::none ? "" : "/x");
        const bool alone = attaches_by_itself(program);
        const bool needs = !attachment_needs(kind.attachment).empty();
        CHECK_MESSAGE(alone != (needs || kind.attachment == Attachment::struct_ops), kind.name);
    }
}

// Events of tracepoints take the kernel 35 ms each, one after the other; their programs must not run on meanwhile.
TEST_CASE("link: many tracepoints are stopped at once, and taken down later, step by step") {
    FakeKernel kernel;
    int waited = 0;
    std::string open_then;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number != __NR_membarrier) return {};
        ++waited;
        open_then = kernel.leaks();
        return 0;
    };
    const auto event = [] { return sys::perf_event_open({}, -1, 0).value(); };
    const auto link = [] { return sys::link_create({}).value(); };
    constexpr uint32_t kMany = 3;
    std::vector<Link> links(kMany + 2);
    for (uint32_t i = 0; i < kMany; ++i) links[i].add(link(), event(), true);
    links[kMany].add(Fd(), event()); // before 5.15: the event holds the program
    links[kMany + 1].add(link());    // all functions that match a pattern
    Link::stop_together(links);
    CHECK(waited == 1);
    CHECK(open_then.find("(link)") == std::string::npos); // what is waited for can't begin again
    const std::string open_now = kernel.leaks();
    size_t events = 0;
    for (size_t at = 0; (at = open_now.find("(perf event)", at)) != std::string::npos; ++at) ++events;
    CHECK_MESSAGE(events == kMany, open_now);
    CHECK(open_now.find("(link)") == std::string::npos);

    static std::vector<LongStep::State> seen;
    seen.clear();
    LongStep::listen([] { seen.push_back(LongStep::now()); });
    Link::drop_together(std::move(links));
    LongStep::listen(nullptr);
    CHECK(kernel.leaks() == "");
    REQUIRE(seen.size() == 1 + kMany);
    for (uint32_t i = 0; i <= kMany; ++i) {
        CHECK(std::string_view(seen[i].doing) == "detaching");
        CHECK(seen[i].done == i);
        CHECK(seen[i].total == kMany);
    }
}

TEST_CASE("link: a tracepoint's program runs by its link") {
    if (!tracepoint_id("sched/sched_switch")) SKIP("tracefs can't be read");
    FakeKernel kernel;
    {
        One one("tracepoint/sched/sched_switch");
        std::vector<Link> links;
        links.push_back(one.attach().value());
        Link::stop_together(links);
        CHECK(kernel.leaks().find("(perf event)") != std::string::npos);
        CHECK(kernel.leaks().find("(link)") == std::string::npos);
    }
    CHECK(kernel.leaks() == "");
}
