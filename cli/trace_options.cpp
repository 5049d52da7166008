#include "cli/trace_options.h"

#include <algorithm>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/running.h"
#include "cli/starting.h"
#include "cli/trace_groups.h"
#include "programs/capture/memory_shares.h"
#include "runtime/base/fail.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::cli::tracing {
namespace {

constexpr uint32_t kStackCounts = 16384; // different stacks: 1.5 MB

std::vector<uint32_t> numbers(const std::vector<int> &list) { return {list.begin(), list.end()}; }

} // namespace

trace::Format format_of(const Arguments &a) { return trace::format_named(a.text(option("format"))); }
// -f folded is two things: with --stack how often each stack, else the times of calls.
bool wants_stacks(const Arguments &a) { return a.has(option("stack")) || format_of(a) == trace::Format::stacks; }
bool counts_stacks(const Arguments &a) {
    return format_of(a) == trace::Format::stacks || (format_of(a) == trace::Format::folded && a.has(option("stack")));
}
bool has_call_times(const Arguments &a) { return format_of(a) == trace::Format::folded && !counts_stacks(a); }

namespace {

// What a recording has no room for.
Result<void> check_recorded(const Arguments &a) {
    if (!a.has(option("record"))) return {};
    if (wants_groups(a))
        return wrong_usage("--record keeps events, and groups are added up without any", "-f json -o FILE keeps groups");
    if (wants_spans(a, kSpanIds)) return wrong_usage("--record keeps events, not spans", "--spans -f json -o FILE keeps spans");
    if (a.has(option("list")))
        return wrong_usage("--list attaches nothing, so there is nothing to record", "leave one of them out");
    return {};
}

} // namespace

Result<CommandOutput> check(const Arguments &a) {
    if (a.has(option("pid")) && !a.workload().empty())
        return wrong_usage("--pid and -- COMMAND exclude each other",
                           "with -- COMMAND, rawbpf traces only the command and what it starts");
    if (a.operands().empty() && !a.has(option("pid")))
        return wrong_usage("TARGET is missing", "give a file, or a process with -p PID");
    TRY(check_no_children(a, option("no-children"), option("pid"), true));
    TRY(check_ready_fd(a, option("ready-fd")));
    TRY(check_as_root(a, option("as-root")));
    CommandOutput command_output = TRY(place_command_output(a, output_ids(kOptions)));
    TRY(check_record(a, output_ids(kOptions), lines_ids(kOptions)));
    TRY(check_recorded(a));
    TRY(check_groups(a));
    TRY(check_spans(a, kSpanIds));
    if (a.has(option("min-duration")) && (a.has(option("graph")) || a.has(option("returns"))))
        return wrong_usage("--min-duration shows a call at its end, --graph and --returns show it at its beginning",
                           "leave one of them out");
    if (a.has(option("count")) && (a.has(option("show")) || a.has(option("stack"))))
        return wrong_usage("--count shows no events");
    const std::string_view shape = a.text(option("format"));
    TRY(check_labels(a, option("label"), shape));
    if (a.has(option("label")) && (a.has(option("count")) || wants_groups(a)))
        return wrong_usage("--label is about events, and counts and groups show none",
                           "-f folded --stack counts stacks by label");
    if (a.has(option("label")) && wants_spans(a, kSpanIds))
        return wrong_usage("--label is about events, and spans have no place for labels", "-f json without --spans has them");
    if (a.has(option("count")) && wants_stacks(a))
        return wrong_usage(format("-f {} counts stacks, and --count takes none", shape), "leave --count out");
    for (const Id about : {option("lines"), option("inline"), option("unwind"), option("unwind-memory"), option("depth"),
                           option("native"), option("language")})
        if (a.has(about) && !wants_stacks(a) && !groups_by_stack(a))
            return wrong_usage(format("--{} is about stacks, and trace takes none without --stack", kOptions[about.index].name),
                               "add --stack, or --by stack");
    if (a.has(option("count")) && shape == "folded")
        return wrong_usage("-f folded needs the times of calls, and --count keeps none", "leave --count out");
    if (a.has(option("count")) && shape == "chrome")
        return wrong_usage("-f chrome draws events, and --count shows none", "use -f text, json or protobuf");
    if (has_call_times(a) && (a.has(option("errors")) || a.has(option("min-duration"))))
        return wrong_usage("-f folded needs all calls with their returns", "leave --errors and --min-duration out");
    const std::string_view file = a.text(option("output"));
    if ((shape == "protobuf" || shape == "pprof") && (file.empty() || file == "-") && !a.has(option("list")) && is_terminal(1))
        return wrong_usage(format("-f {} is binary, and standard output is a terminal", shape),
                           "write it to a file with -o FILE, or pipe it to another program");
    if (a.has(option("graph")) && shape != "text")
        return wrong_usage(format("--graph is only for -f text, not for -f {}", shape), "-f chrome draws calls as bars");
    if (a.has(option("count")) && a.has(option("latency"))) return wrong_usage("--count keeps no times", "leave one of them out");
    if (a.has(option("count")) && a.has(option("max-events"))) return wrong_usage("--count shows no events to end after");
    return command_output;
}

Result<trace::TraceOptions> trace_options(const Arguments &a) {
    trace::TraceOptions o;
    const bool usdt = a.command().name == kUsdtTrace.name;
    if (usdt && a.operands().empty()) o.probes.emplace_back("usdt::"); // all of the process's
    for (std::string_view probe : a.operands()) o.probes.push_back(usdt ? format("usdt:{}", probe) : std::string(probe));
    if (const std::vector<int> pids = a.pids(option("pid")); pids.size() == 1) o.match.pid = pids[0];
    if (a.has(option("types"))) {
        static trace::KnownProbes known = trace::KnownProbes::built_in();
        for (std::string_view file : a.all(option("types"))) {
            const std::string path(file);
            TRY(known.add(TRY(sys::read_file(path)), path));
        }
        o.match.known = &known;
    }
    o.filter = a.text(option("filter"));
    for (std::string_view shown : a.all(option("show"))) o.shows.emplace_back(shown);
    o.cgroup = a.text(option("cgroup"));
    if (a.has(option("pidns"))) o.pidns = a.pid(option("pidns"));
    if (a.has(option("mntns"))) o.mntns = a.pid(option("mntns"));
    trace::ProgramOptions &program = o.program;
    if (wants_groups(a)) program.aggregate = TRY(group_options(a));
    program.mode = a.has(option("count")) || program.aggregate ? trace::Mode::count : trace::Mode::events;
    program.results = a.has(option("returns")) || a.has(option("graph")) || a.has(option("latency")) || a.has(option("errors")) ||
                      a.has(option("min-duration"));
    const bool folded = has_call_times(a);
    // A span begins with a call, so that those within it know their parent; where the kernel decides by the return, it pairs.
    program.goroutines = wants_spans(a, kSpanIds);
    const bool spans = program.goroutines && !std::all_of(o.probes.begin(), o.probes.end(),
                                                          [](const std::string &probe) { return probe.starts_with("usdt:"); });
    program.results |= folded || spans;
    const bool both = a.has(option("returns")) || a.has(option("graph")) || folded ||
                      (spans && !a.has(option("errors")) && !a.has(option("min-duration")));
    if (program.mode == trace::Mode::count && both && !a.has(option("errors")) && !a.has(option("min-duration")))
        program.results = false; // calls are counted, not their ends
    program.calls = both || !program.results;
    program.pair = program.results && !both;
    program.execs = true;
    const bool by_stack = groups_by_stack(a);
    program.stack = wants_stacks(a) || by_stack;
    if (counts_stacks(a) || by_stack) o.stack_counts = kStackCounts;
    if (const auto drawn = render::format_named(a.text(option("format"))); drawn && counts_stacks(a))
        o.threads_apart = !render::aggregates(*drawn);
    program.ring_bytes = static_cast<uint32_t>(memory_shares().events_ring);
    if (const uint32_t ring = TRY(ring_bytes(a, option("ring")))) program.ring_bytes = ring;
    o.unwind = TRY(unwind_choice(a, unwind_ids(kOptions)));
    o.labels = label_keys(a, option("label"));
    o.copies = true;
    o.backlog = TRY(backlog_bytes(a, option("backlog")));
    o.thread = true;
    program.text_bytes = static_cast<uint16_t>(a.count(option("string")) / 8 * 8);
    trace::Filters &filters = program.filters;
    filters.pids = numbers(a.pids(option("pid")));
    filters.children = !a.has(option("no-children"));
    filters.tids = numbers(a.pids(option("tid")));
    filters.uids = TRY(a.users(option("uid")));
    filters.comm = a.text(option("comm"));
    filters.errors = a.has(option("errors"));
    if (a.has(option("max-events"))) filters.most_events = a.count(option("max-events"));
    if (a.has(option("min-duration"))) filters.min_duration = static_cast<uint64_t>(a.seconds(option("min-duration")) * 1e9);
    if (a.has(option("sample"))) filters.one_in = a.count(option("sample"));
    o.match.results = program.results;
    o.match.signatures = program.mode == trace::Mode::events || !o.filter.empty() || program.aggregate;
    o.match.allow_unwind_risk = a.has(option("allow-unwind-risk"));
    o.match.signature = a.text(option("sig"));
    return o;
}

} // namespace rawbpf::inline v0::cli::tracing
