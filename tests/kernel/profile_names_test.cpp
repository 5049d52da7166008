// Names where they are hard to come by: on another machine, of a file that was deleted, below another root.
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs/profile/capture.h"
#include "runtime/base/format.h"
#include "runtime/symbols/maps.h"
#include "runtime/symbols/symbols.h"
#include "runtime/sys/file.h"
#include "tests/kernel/profile_workload.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::processes;
using namespace rawbpf::profile;

[[gnu::noinline]] void hot_a(long n); // profile_workload.cpp

namespace {

struct ProgramFolder : test::Folder {
    /// This test binary, copied there.
    void copy_self(const std::string &to) const {
        const std::string whole = path + to;
        (void)!std::system(
            ("mkdir -p $(dirname " + whole + ") && cp /proc/" + std::to_string(getpid()) + "/exe " + whole).c_str());
    }
};

/// One sample whose leaf is a few bytes into hot_a, in a module that the capture calls /opt/app.
std::string capture_of(const std::string &build_id) {
    const auto maps = symbols::read_maps(getpid()).value();
    const uint64_t address = reinterpret_cast<uintptr_t>(&hot_a) + 4;
    StackTree tree;
    ModuleTable modules;
    CaptureWriter writer(-1);
    writer.begin({});
    FrameLocation place;
    place.module = modules.intern({"/opt/app", 1, 1, ModuleKind::file, build_id});
    place.address = address;
    place.file_offset = maps.find(address)->offset_of(address);
    InternedSample sample;
    sample.user_bytes = 8;
    sample.user = tree.intern_node(kNone, tree.intern_place(place));
    writer.sample(sample, tree, modules);
    Outcome outcome;
    outcome.ledger.fired = outcome.ledger.shown = 1;
    writer.end(outcome);
    return writer.take();
}

struct Keep : Sink {
    std::vector<CountedSample> all;
    Result<void> samples(std::span<const NamedSample> some) override {
        for (const NamedSample &sample : some) all.push_back({sample, 1});
        return {};
    }
    Result<void> stacks(std::span<const CountedSample> some) override {
        all.insert(all.end(), some.begin(), some.end());
        return {};
    }
    [[nodiscard]] double share(std::string_view function) const {
        uint64_t in = 0, of = 0;
        for (const CountedSample &sample : all) {
            of += sample.count;
            for (const FramePtr &frame : sample.sample.user) {
                if (frame->symbol.find(function) == std::string::npos) continue;
                in += sample.count;
                break;
            }
        }
        return of ? static_cast<double>(in) / static_cast<double>(of) : 0;
    }
};

struct Named {
    std::string symbol, warning;
};

Named name_it(const std::string &capture, const std::string &symfs) {
    Keep sink;
    ReportOptions options;
    options.symfs = symfs;
    auto outcome = report_capture(bytes_of(capture), "test.rec", options, sink);
    REQUIRE_MESSAGE(outcome, outcome.error().message());
    REQUIRE(sink.all.size() == 1);
    return {sink.all[0].sample.user.at(0)->symbol, outcome->warnings.empty() ? "" : outcome->warnings[0]};
}

bool unable(const Error &error) { return error.kind == Errc::permission || error.kind == Errc::unsupported; }

} // namespace

TEST_CASE("report: files are found by path and by build-id, and never those of another build") {
    const std::string id = symbols::read_build_id("/proc/self/exe").value_or("");
    if (id.empty()) SKIP("the tests were linked without a build-id");
    const std::string capture = capture_of(id);

    Named named = name_it(capture, "");
    CHECK(named.symbol.empty());
    CHECK(named.warning.find("/opt/app isn't here") != std::string::npos);

    ProgramFolder by_path;
    by_path.copy_self("/opt/app");
    named = name_it(capture, by_path.path);
    CHECK(named.symbol == "hot_a(long)");
    CHECK(named.warning.empty());

    ProgramFolder by_id;
    by_id.copy_self("/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug");
    CHECK(name_it(capture, by_id.path).symbol == "hot_a(long)");

    std::string other = id;
    other[5] = other[5] == '0' ? '1' : '0';
    named = name_it(capture_of(other), by_path.path);
    CHECK(named.symbol.empty());
    CHECK(named.warning.find("another build-id") != std::string::npos);
    CHECK(named.warning.find(by_path.path) != std::string::npos);
}

// Without the kernel's functions: on one slow CPU naming them takes longer than the workloads below live.
TEST_CASE("profile: a program that is deleted while it runs keeps its names") {
    ProgramFolder folder;
    folder.copy_self("/app");
    for (Delivery delivery : {Delivery::each, Delivery::counted}) {
        folder.copy_self("/app");
        ProfileOptions options;
        options.frequency = 499;
        options.delivery = delivery;
        options.kernel_stacks = false;
        // The shell removes it when it has started, and the names are wanted when it has ended.
        options.workload = {
            "sh", "-c",
            format("RAWBPF_TEST_WORKLOAD=split:1500 {0}/app & n=0; until [ \"$(readlink /proc/$!/exe)\" = {0}/app ] || "
                   "[ $n = 100 ]; do n=$((n + 1)); sleep 0.02; done; rm {0}/app; wait",
                   folder.path)};
        Keep sink;
        auto outcome = run_profile(options, sink);
        if (!outcome && unable(outcome.error())) SKIP(outcome.error().message());
        REQUIRE_MESSAGE(outcome, outcome.error().message());
        CHECK(!sys::exists(folder.path + "/app"));
        CHECK(sink.share("split_body") > 0.5);
    }
}

TEST_CASE("profile: a program below another root is named with that root's files") {
    ProgramFolder root;
    root.copy_self("/bin/app");
    // What it needs to start, where the dynamic linker looks for it.
    (void)!std::system(("for f in $(ldd /proc/" + std::to_string(getpid()) + "/exe | grep -o '/[^ ]*'); do mkdir -p " +
                        root.path + "$(dirname $f) && cp -L $f " + root.path + "$f; done")
                           .c_str());
    for (Delivery delivery : {Delivery::each, Delivery::counted}) {
        ProfileOptions options;
        options.frequency = 499;
        options.delivery = delivery;
        options.kernel_stacks = false;
        options.workload = {"env", "RAWBPF_TEST_WORKLOAD=split:1500", "chroot", root.path, "/bin/app"};
        // Its root can be looked into while it lives: its files are held from when their unwind tables are read.
        Keep sink;
        auto outcome = run_profile(options, sink);
        if (!outcome && unable(outcome.error())) SKIP(outcome.error().message());
        REQUIRE_MESSAGE(outcome, outcome.error().message());
        if (outcome->workload_status != "exited with status 0") SKIP("needs chroot(1) and the right to use it");
        CHECK(sink.share("split_body") >
              0.2); // the rest, on a starved machine: the dynamic linker, and what came before its mappings were known
    }
}
