// What a link is to others: pins that outlive it, updates, and bpftool's view of both, where there is a bpftool.
#include <csignal>
#include <cstdio>
#include <sys/wait.h>

#include "runtime/base/format.h"
#include "runtime/kernel/probes.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"
#include "tests/kernel/links/linking.h"
#include "tests/support/fds.h"

using namespace rawbpf;
using test::Loaded;

namespace {

#define NEEDS_PERF_LINKS()                                                                                                       \
    if (!has_program_type(BPF_PROG_TYPE_TRACEPOINT)) SKIP("needs CAP_BPF");                                                      \
    if (!has_feature(Feature::perf_link)) SKIP("needs links of perf events, 5.15")

// A bpf file system that only this process sees.
struct OwnBpffs {
    Fd fd;
    std::string path;
    OwnBpffs() {
        if (Result<Fd> made = sys::mount_detached("bpf")) {
            fd = std::move(*made);
            path = format("/proc/{}/fd/{}", getpid(), fd.get());
        }
    }
};

bool link_exists(uint32_t id) { return sys::fd_by_id(sys::ObjectKind::link, id).has_value(); }

// What it prints, or nothing where there is none.
std::string bpftool(const std::string &words) {
    std::string out;
    FILE *pipe = popen(("bpftool " + words + " 2>&1").c_str(), "r");
    if (!pipe) return out;
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, n);
    return pclose(pipe) == 0 ? out : "failed: " + out;
}

} // namespace

TEST_CASE("link: a pin outlives its link, and can be taken over") {
    NEEDS_PERF_LINKS();
    OwnBpffs bpffs;
    if (!bpffs.fd) SKIP("needs a bpf file system of its own (CAP_SYS_ADMIN)");
    const std::string pin = bpffs.path + "/link";
    Loaded loaded = test::load_one("run_1").value();
    uint32_t id = 0;
    {
        Link link = loaded.attach().value();
        id = link.info().value().id;
        REQUIRE(link.pin(pin));
        CHECK(link.pin(pin + "2").error().kind == Errc::invalid_argument);
        (void)getpgid(0);
        CHECK(loaded.run(1).count == 1);
    }
    CHECK(link_exists(id));
    (void)getpgid(0);
    CHECK(loaded.run(1).count == 2);
    {
        Link again = Link::open_pinned(pin).value();
        CHECK(again.info().value().id == id);
        REQUIRE(again.unpin());
        CHECK(link_exists(id));
        CHECK_FALSE(sys::exists(pin));
        REQUIRE(again.pin(pin));
        CHECK(again.detach());
        CHECK_FALSE(sys::exists(pin));
    }
    // The kernel lets go of a link a moment after its last descriptor.
    for (int i = 0; i < 200 && link_exists(id); ++i) usleep(5000);
    CHECK_FALSE(link_exists(id));
    (void)getpgid(0);
    CHECK(loaded.run(1).count == 2);
    CHECK(Link::open_pinned(pin).error().kind == Errc::not_found);
    REQUIRE(loaded.object.maps.at(0).pin(pin));
    CHECK_FALSE(Link::open_pinned(pin)); // a map is no link
    CHECK(sys::remove_file(pin));
}

TEST_CASE("link: nothing is left of a process that was killed") {
    NEEDS_PERF_LINKS();
    Loaded loaded = test::load_one("run_1").value();
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    const pid_t child = fork();
    if (child == 0) {
        Result<Link> link = loaded.attach();
        uint32_t id = link ? link->info().value().id : 0;
        (void)!write(ready[1], &id, sizeof id);
        pause();
        _exit(0);
    }
    uint32_t id = 0;
    REQUIRE(read(ready[0], &id, sizeof id) == sizeof id);
    CHECK(link_exists(id));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (int i = 0; i < 200 && link_exists(id); ++i) usleep(5000);
    CHECK_FALSE(link_exists(id));
    const uint64_t before = loaded.run(1).count;
    (void)getpgid(0);
    CHECK(loaded.run(1).count == before);
    close(ready[0]);
    close(ready[1]);
}

TEST_CASE("link: bpftool sees the same links, pins and updates") {
    NEEDS_PERF_LINKS();
    if (bpftool("version").find("bpftool v") == std::string::npos) SKIP("needs bpftool");
    Loaded loaded = test::load_one("run_1").value();
    Link link = loaded.attach().value();
    const LinkInfo info = link.info().value();
    const std::string show = format("link show id {}", info.id);
    std::string seen = bpftool(show);
    CHECK_MESSAGE(seen.find(format("{}: perf_event  prog {}", info.id, info.program_id)) != std::string::npos, seen);
    if (OwnBpffs bpffs; bpffs.fd) {
        REQUIRE(link.pin(bpffs.path + "/p"));
        seen = bpftool(format("link show pinned {}/p", bpffs.path));
        // bpftool 7.8 shows a pinned link and ends with 255 all the same.
        CHECK_MESSAGE(seen.find(format("{}: perf_event", info.id)) != std::string::npos, seen);
        REQUIRE(link.detach());
    } else {
        REQUIRE(link.detach());
    }
    for (int i = 0; i < 200 && link_exists(info.id); ++i) usleep(5000);
    CHECK(bpftool(show).starts_with("failed"));
    Loaded raw = test::load_one("run_2").value();
    Link tracepoint = raw.attach().value();
    seen = bpftool(format("link show id {}", tracepoint.info().value().id));
    CHECK_MESSAGE(seen.find("raw_tracepoint") != std::string::npos, seen);
    CHECK_MESSAGE(seen.find("tp 'sys_enter'") != std::string::npos, seen);
}
