// Tracepoints and raw tracepoints, on a system call that only this test makes (of this process: the programs filter).
#include <cstring>

#include "runtime/base/format.h"
#include "runtime/kernel/probes.h"
#include "runtime/link/iterator.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "tests/kernel/links/linking.h"
#include "tests/support/fds.h"

using namespace rawbpf;
using test::Loaded;

#define NEEDS_BPF()                                                                                                              \
    if (!has_program_type(BPF_PROG_TYPE_TRACEPOINT)) SKIP("needs CAP_BPF")

namespace {
void call_getpgid(int times) {
    for (int i = 0; i < times; ++i) (void)getpgid(0);
}
} // namespace

TEST_CASE("link: a tracepoint, with a cookie, until the link is dropped") {
    NEEDS_BPF();
    if (!has_feature(Feature::cookie)) SKIP("needs cookies, 5.15");
    Loaded loaded = test::load_one("run_0").value();
    {
        AttachOptions options;
        options.cookie = 0x1122334455667788;
        Link link = loaded.attach(options).value();
        CHECK(link.what() == "tracepoint syscalls/sys_enter_getpgid");
        CHECK(link.attached());
        call_getpgid(3);
        CHECK(loaded.run(0).count == 3);
        CHECK(loaded.run(0).cookie == options.cookie);
        CHECK(link.info().value().type == LinkType::PERF_EVENT);
        CHECK(link.info().value().program_id == sys::prog_info(loaded.program().fd.get()).value().id);
        Link moved = std::move(link);
        CHECK_FALSE(link.attached()); // NOLINT: that is the point
        call_getpgid(1);
        CHECK(loaded.run(0).count == 4);
        CHECK(moved.detach());
        call_getpgid(1);
        CHECK(loaded.run(0).count == 4);
    }
}

TEST_CASE("link: a tracepoint that isn't there: the nearest ones") {
    NEEDS_BPF();
    Loaded loaded = test::load_one("run_1").value();
    for (auto [target, near] : {std::pair("syscalls/sys_enter_getpgidd", "sys_enter_getpgid"),
                                {"sched/sys_enter_getpgid", "syscalls/sys_enter_getpgid"},
                                {"schedd/nothing", "sched"}}) {
        AttachOptions options;
        options.target = target;
        Result<Link> link = loaded.attach(options);
        REQUIRE_FALSE(link);
        CHECK(link.error().kind == Errc::not_found);
        CHECK_MESSAGE(link.error().hint.find(near) != std::string::npos, link.error().hint);
    }
    for (const char *target : {"sched", "/sched", "sched/", "a/b/c", "../../etc/x", "sched/.."}) {
        AttachOptions options;
        options.target = target;
        CHECK(loaded.attach(options).error().kind == Errc::invalid_argument);
    }
}

TEST_CASE("link: a raw tracepoint") {
    NEEDS_BPF();
    Loaded loaded = test::load_one("run_2").value();
    auto before = test::open_descriptors();
    {
        Link link = loaded.attach().value();
        CHECK(link.what() == "raw_tp sys_enter");
        call_getpgid(5);
        CHECK(loaded.run(2).count >= 5);
        CHECK(link.info().value().type == LinkType::RAW_TRACEPOINT);
        Error refused = link.update(loaded.program().fd.get()).error();
        CHECK(refused.hint.find("RAW_TRACEPOINT") != std::string::npos);
    }
    CHECK(test::open_descriptors() == before);
    AttachOptions options;
    options.target = "sched_swich";
    Error error = loaded.attach(options).error();
    CHECK(error.kind == Errc::not_found);
    CHECK_MESSAGE(error.hint.find("sched_switch") != std::string::npos, error.hint);
}

TEST_CASE("link: an iterator prints when it is read") {
    NEEDS_BPF();
    if (probe_attach_type(BPF_TRACE_ITER).support != Support::yes) SKIP("needs iterators, 5.8");
    Result<Loaded> loaded = test::load_one("list_maps");
    REQUIRE_MESSAGE(loaded, loaded.error().message());
    Link link = loaded->attach().value();
    CHECK(link.info().value().type == LinkType::ITER);
    std::string text = read_iterator(link).value();
    CHECK(text.find(format("map {}\n", sys::map_info(loaded->object.maps.at(0).fd()).value().id)) != std::string::npos);
    CHECK(read_iterator(link, 3).error().kind == Errc::no_memory);
    Loaded other = test::load_one("run_2").value();
    CHECK(read_iterator(other.attach().value()).error().kind == Errc::invalid_argument);
}
