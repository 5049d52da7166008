// Questions in one line: `rawbpf trace PROBE --by comm --hist duration --top 10 --every 1s`. The kernel adds up; this reads its
// map at the end, with --every after each interval, and on a terminal once a second.
#include "cli/trace_groups.h"

#include <algorithm>

#include "cli/running.h"
#include "cli/trace_options.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"
#include "runtime/sys/terminal.h"

namespace rawbpf::inline v0::cli::tracing {
namespace {

constexpr uint64_t kUsualNs = 1'000'000'000;

struct MeasureRow {
    Id option;
    trace::Measure::Kind kind;
};
constexpr MeasureRow kMeasures[] = {
    {option("sum"), trace::Measure::Kind::sum},   {option("avg"), trace::Measure::Kind::average},
    {option("min"), trace::Measure::Kind::least}, {option("max"), trace::Measure::Kind::most},
    {option("hist"), trace::Measure::Kind::log2}, {option("lhist"), trace::Measure::Kind::linear},
};

bool has_measure(const Arguments &a) {
    return std::any_of(std::begin(kMeasures), std::end(kMeasures), [&](const MeasureRow &row) { return a.has(row.option); });
}

} // namespace

bool wants_groups(const Arguments &a) { return a.has(option("by")) || has_measure(a); }

bool groups_by_stack(const Arguments &a) {
    if (!a.has(option("by"))) return false;
    Result<std::vector<trace::GroupKey>> keys = trace::parse_group_keys(a.text(option("by")));
    if (!keys) return false;
    trace::AggregateOptions asked;
    asked.by = std::move(*keys);
    return asked.by_stack();
}

Result<void> check_groups(const Arguments &a) {
    const std::string_view shape = a.text(option("format"));
    if (!wants_groups(a)) {
        for (const Id about : {option("top"), option("every"), option("keys")})
            if (a.has(about))
                return wrong_usage(format("--{} is about groups of events, and there are none", kOptions[about.index].name),
                                   "--by KEYS --count");
        if (shape == "csv" || shape == "prometheus")
            return wrong_usage(format("-f {} shows groups of events, and there are none", shape), "--by KEYS --count");
        return {};
    }
    if (!has_measure(a) && !a.has(option("count")))
        return wrong_usage("--by says what events are told apart by, and not what is wanted of them",
                           "add --count, --sum X, --avg X, --min X, --max X, --hist X or --lhist X,FROM,TO,STEP");
    if (a.has(option("keys")) && !a.has(option("by"))) return wrong_usage("--keys without --by: there is one group", "--by KEYS");
    for (const Id other : {option("returns"), option("graph"), option("latency"), option("show"), option("stack"),
                           option("max-events"), option("spans"), option("otlp"), option("prometheus")})
        if (a.has(other))
            return wrong_usage(format("--{} is about single events, and groups have none", kOptions[other.index].name),
                               "leave one of them out");
    if (shape != "text" && shape != "json" && shape != "csv" && shape != "prometheus")
        return wrong_usage(format("-f {} doesn't show groups of events", shape), "text, json, csv and prometheus do");
    if (a.has(option("every")) && shape == "prometheus")
        return wrong_usage("-f prometheus shows counters since the start, and --every those of intervals", "leave --every out");
    if (a.has(option("every")) && a.seconds(option("every")) < 0.01) return wrong_usage("--every is 10ms at least");
    return {};
}

Result<trace::AggregateOptions> group_options(const Arguments &a) {
    trace::AggregateOptions out;
    if (a.has(option("by"))) out.by = TRY_IN(trace::parse_group_keys(a.text(option("by"))), "--by");
    for (const MeasureRow &row : kMeasures)
        for (const std::string_view text : a.all(row.option))
            out.measures.push_back(TRY_IN(trace::parse_measure(row.kind, text), "--{}", kOptions[row.option.index].name));
    if (a.has(option("keys"))) out.keys = static_cast<uint32_t>(a.count(option("keys")));
    if (a.has(option("string")))
        out.text_bytes = static_cast<uint32_t>(std::min<uint64_t>((a.count(option("string")) + 7) / 8 * 8, trace::kMostGroupKey));
    return out;
}

GroupRun::GroupRun(const Arguments &a, const trace::Tracer &tracer, const RunInfo &run, const std::vector<std::string> &functions,
                   trace::GroupStacks *stacks, const btf::Btf *kernel, Output &output, uint64_t start_ns, bool live)
    : tracer_(tracer), run_(run), functions_(functions), stacks_(stacks), kernel_(kernel), output_(output),
      count_(a.has(option("count"))), live_(live), by_interval_(a.has(option("every"))),
      top_(a.has(option("top")) ? a.count(option("top")) : SIZE_MAX), start_ns_(start_ns),
      every_ns_(by_interval_ ? static_cast<uint64_t>(a.seconds(option("every")) * 1e9) : kUsualNs),
      due_ns_(start_ns + every_ns_) {
    switch (format_of(a)) {
    case trace::Format::json: format_ = trace::GroupFormat::json; break;
    case trace::Format::csv: format_ = trace::GroupFormat::csv; break;
    case trace::Format::prometheus: format_ = trace::GroupFormat::prometheus; break;
    default: break;
    }
}

Result<void> GroupRun::tick(uint64_t now_ns) {
    if (now_ns < due_ns_ || (!by_interval_ && !live_)) return {};
    due_ns_ = std::max(due_ns_ + every_ns_, now_ns); // late: the next one is in full
    return show(now_ns, false);
}

Result<void> GroupRun::finish(uint64_t now_ns) { return show(now_ns, true); }

Result<void> GroupRun::show(uint64_t now_ns, bool last) {
    const trace::AggregateOptions &options = *tracer_.aggregate();
    const trace::GroupLayout &layout = *tracer_.group_layout();
    std::vector<trace::GroupRow> rows = TRY(tracer_.groups());
    trace::GroupView::Interval interval{++intervals_, now_ns - start_ns_, run_.start_wall_ns + (now_ns - start_ns_)};
    trace::GroupView view{options, layout, functions_};
    view.kernel = kernel_;
    view.count = count_;
    view.top = top_;
    view.first = first_;
    if (by_interval_) {
        std::vector<trace::GroupRow> all = rows;
        rows = trace::groups_since(options, before_, rows);
        before_ = std::move(all);
        view.interval = &interval;
    }
    if (stacks_) {
        rows = stacks_->name(options, layout, std::move(rows));
        view.stack = [&](uint64_t number) -> const trace::NamedStack & { return stacks_->get(number); };
    }
    trace::sort_groups(options, layout, count_, rows);
    const sys::TerminalSize size = live_ ? sys::terminal_size(1) : sys::TerminalSize{};
    if (live_ && !last && !view.interval) view.top = std::min<size_t>(view.top, std::max<int>(size.rows, 8) - 4);
    std::string text;
    trace::append_groups(text, format_, view, rows);
    first_ = false;
    if (!live_) {
        output_.writer().write(text);
        return output_.writer().flush();
    }
    std::string out;
    if (drawn_) append(out, "\x1b[{}A\x1b[J", drawn_); // up, and clear to the end
    drawn_ = 0;
    size_t lines = 0;
    const size_t most = last ? SIZE_MAX : static_cast<size_t>(std::max<int>(size.rows, 8) - 2);
    for (std::string_view rest = text; !rest.empty() && lines < most; ++lines) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        out += last ? std::string(line) : render::cut(line, static_cast<size_t>(std::max<int>(size.columns, 20) - 1));
        out += '\n';
    }
    if (!last) drawn_ = static_cast<uint32_t>(lines);
    output_.writer().write(out);
    return output_.writer().flush();
}

} // namespace rawbpf::inline v0::cli::tracing
