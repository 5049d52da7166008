// Names of events.
#include "programs/profile/event.h"

#include <linux/perf_event.h>

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::profile;

TEST_CASE("profile event: the names that there are") {
    CHECK(parse_event("cpu-clock").value().kind == EventKind::clock);
    CHECK(parse_event("cycles").value().kind == EventKind::cycles);
    CHECK(!parse_event("cycles").value().counts());
    const Event faults = parse_event("page-faults").value();
    CHECK(faults.kind == EventKind::software);
    CHECK(faults.config == PERF_COUNT_SW_PAGE_FAULTS);
    CHECK(faults.counts());
    CHECK(parse_event("minor-faults").value().config == PERF_COUNT_SW_PAGE_FAULTS_MIN);
    CHECK(parse_event("major-faults").value().config == PERF_COUNT_SW_PAGE_FAULTS_MAJ);
    CHECK(parse_event("context-switches").value().config == PERF_COUNT_SW_CONTEXT_SWITCHES);
    CHECK(parse_event("cpu-migrations").value().config == PERF_COUNT_SW_CPU_MIGRATIONS);
    for (const char *text : {"tracepoint:sched:sched_switch", "sched:sched_switch"}) {
        const Event event = parse_event(text).value();
        CHECK(event.kind == EventKind::tracepoint);
        CHECK(event.name == "sched:sched_switch");
        CHECK(event.tracepoint() == "sched/sched_switch");
    }
}

TEST_CASE("profile event: what isn't one is refused, with what there is") {
    for (const char *text : {"", "page-fault", "PAGE-FAULTS", "page-faults ", "nonsense"}) {
        CAPTURE(text);
        auto event = parse_event(text);
        REQUIRE(!event);
        CHECK(event.error().kind == Errc::invalid_argument);
        CHECK(event.error().message().find("major-faults") != std::string::npos);
    }
    CHECK(parse_event("page-fault").error().hint.find("page-faults") != std::string::npos);
    for (const char *text : {"tracepoint:", "tracepoint:sched", "sched:", ":sched_switch", "sched:sched_switch:x",
                             "tracepoint:a:b/c", "a:../../etc", "sched:sched switch", "tracepoint:tracepoint:a:b"}) {
        CAPTURE(text);
        auto event = parse_event(text);
        REQUIRE(!event);
        CHECK(event.error().kind == Errc::invalid_argument);
        CHECK(event.error().hint.find("CATEGORY:NAME") != std::string::npos);
    }
}
