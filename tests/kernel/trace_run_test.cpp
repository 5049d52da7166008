// A whole trace as a call of the library, as the command line makes it.
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "programs/trace/run.h"
#include "tests/kernel/trace_child.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::trace;
using namespace rawbpf::test;

namespace {

constexpr uint64_t kSeen = 5; // calls

// A child that calls the traced function when it is told to.
struct Caller {
    int go = -1;
    pid_t pid = -1;
    Caller() {
        int pipe_[2];
        REQUIRE(pipe(pipe_) == 0);
        pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0) {
            char byte = 0;
            close(pipe_[1]);
            if (read(pipe_[0], &byte, 1) == 1)
                for (uint64_t i = 0; i < kSeen; ++i) (void)rawbpf_traced_leaf(static_cast<long>(i), "");
            _exit(0);
        }
        close(pipe_[0]);
        go = pipe_[1];
    }
    ~Caller() {
        close(go); // one that nobody has told to go sees the end
        waitpid(pid, nullptr, 0);
    }
};

struct News final : RunNews {
    int opened_ = 0, attached_ = 0, over_ = 0, go = -1;
    size_t places = 0, written = 1; // when all was found; when all was attached
    const std::string *out = nullptr;
    Result<void> opened(const Tracer &tracer) override {
        ++opened_;
        places = tracer.places().size();
        return {};
    }
    Result<void> attached() override {
        ++attached_;
        written = out->size();
        CHECK(write(go, "", 1) == 1);
        return {};
    }
    void over() override { ++over_; }
};

struct Ran {
    std::string text;
    News news;
    Result<RunEnd> end = fail(Errc::internal, "it hasn't run");
};

// The run of a child's calls; `options` say how.
Ran ran(RunOptions options) {
    Caller caller;
    Ran out;
    options.tracer.probes = {own("rawbpf_traced_leaf")};
    options.tracer.match.signature = "long (long number)";
    options.tracer.program.filters.pids = {static_cast<uint32_t>(caller.pid)};
    options.observed.pids = {caller.pid};
    options.command = {"a", "test"};
    render::Writer writer(out.text);
    out.news.go = caller.go, out.news.out = &out.text;
    out.end = run_trace(std::move(options), writer, out.news);
    return out;
}

#define REQUIRE_RUN(ran)                                                                                                         \
    if (!(ran).end && (ran).end.error().kind == Errc::unsupported) SKIP("needs uprobes: " + (ran).end.error().message());        \
    REQUIRE_MESSAGE((ran).end.has_value(), ((ran).end ? std::string() : (ran).end.error().message()))

} // namespace

TEST_CASE("trace: a whole run is a call of the library, which tells what happens") {
    const Ran events = ran({});
    REQUIRE_RUN(events);
    const RunEnd &end = *events.end;
    CHECK(events.news.opened_ == 1);
    CHECK(events.news.places == 1);
    CHECK(events.news.written == 0);
    CHECK(events.news.attached_ == 1);
    CHECK(events.news.over_ == 1);
    CHECK(end.ending == "the process has ended");
    CHECK(end.run.command == std::vector<std::string>{"a", "test"});
    CHECK(end.ledger.shown == kSeen);
    CHECK(end.ledger.adds_up());
    CHECK(end.places.find("rawbpf_traced_leaf") != std::string::npos);
    for (uint64_t i = 0; i < kSeen; ++i) CHECK(events.text.find(format("rawbpf_traced_leaf(number={})", i)) != std::string::npos);
    REQUIRE(end.tracer);
    end.tracer->detach();
}

TEST_CASE("trace: a run ends after so many events, and the rest is in its ledger") {
    RunOptions options;
    options.tracer.program.filters.most_events = 2;
    const Ran few = ran(std::move(options));
    REQUIRE_RUN(few);
    const Ledger &ledger = few.end->ledger;
    CHECK(ledger.shown == 2);
    CHECK(ledger.adds_up());
}

TEST_CASE("trace: a run shows the groups of its events once, at the end") {
    RunOptions options;
    options.tracer.program.mode = Mode::count;
    options.tracer.program.aggregate.emplace();
    options.tracer.program.aggregate->by = parse_group_keys("comm").value();
    options.groups.count = true;
    options.groups.format = GroupFormat::csv;
    const Ran groups = ran(std::move(options));
    REQUIRE_RUN(groups);
    CHECK(groups.end->ledger.shown == kSeen);
    CHECK(groups.end->ledger.adds_up());
    CHECK_MESSAGE(groups.text.find(format(",{}", kSeen)) != std::string::npos, groups.text);
}

TEST_CASE("trace: a run that can't be says so before anything is attached") {
    std::string text;
    render::Writer writer(text);
    News news;
    news.out = &text;
    RunOptions wrong;
    wrong.tracer.probes = {own("no_such_function_of_rawbpf")};
    const Result<RunEnd> refused = run_trace(std::move(wrong), writer, news);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().kind == Errc::not_found);
    RunOptions nobody;
    nobody.tracer.probes = {own("rawbpf_traced_leaf")};
    nobody.tracer.program.filters.tids = {0x7fffffff};
    const Result<RunEnd> missing = run_trace(std::move(nobody), writer, news);
    REQUIRE_FALSE(missing.has_value());
    CHECK(missing.error().message() == "there is no thread 2147483647");
    CHECK(news.opened_ == 0);
    CHECK(news.attached_ == 0);
    CHECK(text.empty());
}
