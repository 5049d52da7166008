// Samples become spans.
#include "programs/export/flame_chart.h"

#include "runtime/base/format.h"
#include "tests/support/test.h"
#include "tests/unit/export/events.h"

using namespace rawbpf;
using namespace rawbpf::telemetry;

namespace {

struct Chart {
    test::CountingIds ids;
    std::vector<Span> spans;
    FlameChart chart{ids, 10, [this](const Span &span) { spans.push_back(span); }};
    void sample(uint32_t tid, uint64_t time, std::vector<std::string> frames, std::string_view comm = "work") {
        chart.sample({5, tid, comm, time, frames});
    }
    // "leaf 1000..1020 (2)", a span a line
    [[nodiscard]] std::string text() const {
        std::string out;
        for (const Span &span : spans)
            append(out, "{} {}..{} ({})\n", span.name, span.start, span.end, test::number_of(span, "rawbpf.samples"));
        return out;
    }
};

} // namespace

TEST_CASE("flame chart: what stays on the stack is one span") {
    Chart c;
    c.sample(7, 1000, {"main", "work", "leaf"});
    c.sample(7, 1010, {"main", "work", "leaf"});
    c.sample(7, 1020, {"main", "work", "other"});
    c.chart.end();
    CHECK(c.text() ==
          "leaf 1000..1020 (2)\nother 1020..1030 (1)\nwork 1000..1030 (3)\nmain 1000..1030 (3)\nwork 1000..1030 (3)\n");
    CHECK(c.chart.made() == 5);
    const Span &leaf = c.spans[0], &work = c.spans[2], &main = c.spans[3], &thread = c.spans[4];
    CHECK(leaf.parent == work.span_id);
    CHECK(work.parent == main.span_id);
    CHECK(main.parent == thread.span_id);
    CHECK_FALSE(is_set(thread.parent));
    for (const Span &span : c.spans) CHECK(span.trace_id == thread.trace_id);
    CHECK(test::number_of(leaf, "process.pid") == 5);
    CHECK(test::number_of(leaf, "thread.id") == 7);
}

TEST_CASE("flame chart: a pause ends everything, a period after the last sample") {
    Chart c;
    c.sample(7, 1000, {"main"});
    c.sample(7, 1020, {"main"}); // one sample may be missing
    c.sample(7, 1041, {"main"});
    CHECK(c.text() == "main 1000..1030 (2)\nwork 1000..1030 (2)\n");
    c.sample(7, 1056, {"other"}); // what came between isn't known
    c.chart.end();
    CHECK(c.text() ==
          "main 1000..1030 (2)\nwork 1000..1030 (2)\nmain 1041..1051 (1)\nother 1056..1066 (1)\nwork 1041..1066 (2)\n");
    CHECK(c.spans[4].trace_id != c.spans[1].trace_id);
}

TEST_CASE("flame chart: threads, their names, recursion, times out of order") {
    Chart c;
    c.sample(7, 1000, {"f", "f"});
    c.sample(8, 1000, {"g"});
    c.sample(7, 995, {"f"}); // at 1000, as it were
    CHECK(c.text() == "f 1000..1000 (1)\n");
    c.sample(7, 1010, {"f"}, "renamed");
    c.sample(7, 1020, {}, "renamed");
    CHECK(c.text() == "f 1000..1000 (1)\nf 1000..1010 (2)\nwork 1000..1010 (2)\nf 1010..1020 (1)\n");
    c.chart.end_silent(1015);
    CHECK(c.text().ends_with("g 1000..1010 (1)\nwork 1000..1010 (1)\n"));
    CHECK(c.chart.made() == 6);
    c.chart.end();
    CHECK(c.text().ends_with("renamed 1010..1030 (2)\n"));
    c.chart.end();
    CHECK(c.chart.made() == 7);
}
