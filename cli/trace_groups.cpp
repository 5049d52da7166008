#include "cli/trace_groups.h"

#include <algorithm>

#include "cli/running.h"
#include "cli/trace_options.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::cli::tracing {
namespace {

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

trace::GroupsShown groups_shown(const Arguments &a) {
    trace::GroupsShown out;
    switch (format_of(a)) {
    case trace::Format::json: out.format = trace::GroupFormat::json; break;
    case trace::Format::csv: out.format = trace::GroupFormat::csv; break;
    case trace::Format::prometheus: out.format = trace::GroupFormat::prometheus; break;
    default: break;
    }
    out.count = a.has(option("count"));
    if (a.has(option("top"))) out.top = a.count(option("top"));
    if (a.has(option("every"))) out.every_ns = static_cast<uint64_t>(a.seconds(option("every")) * 1e9);
    return out;
}

} // namespace rawbpf::inline v0::cli::tracing
