// The sink of `profile` and `report`: opens the output first, renders samples as they come, and prints the outcome.
//
// Streaming formats are flushed with every batch, at most ten times a second: a reader of a pipe sees samples soon, and a busy
// machine makes one write(2) for many lines.
#include "cli/view.h"

#include "cli/formats.h"
#include "programs/render/ledger.h"
#include "programs/render/run_cost.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::cli {

ViewOptions view_options(const Arguments &a, const ViewIds &ids) {
    ViewOptions view;
    view.format = *render::format_named(a.text(ids.format)); // the table allows only names that exist
    view.output = a.text(ids.output);
    view.render.stacks = a.has(ids.ps);
    view.render.delimiter = a.has(ids.delimiter);
    view.render.threads = a.has(ids.per_thread);
    view.render.title = a.text(ids.title);
    view.render.icicle = a.has(ids.icicle);
    view.render.color = view.output.empty() && color_wanted(a.text(ids.color), 1);
    return view;
}

Result<std::unique_ptr<View>> View::open(const ViewOptions &options) {
    Output output = TRY(Output::open(options.output));
    std::unique_ptr<View> view(new View(options, std::move(output)));
    view->renderer_ = TRY(make_renderer(options.format, options.render, view->output_.writer()));
    return view;
}

Result<void> View::start(const RunInfo &run) {
    TRY(output_.empty());
    output_.keep();
    renderer_->begin(run);
    return output_.writer().flush();
}

Result<void> View::samples(std::span<const NamedSample> samples) {
    for (const NamedSample &sample : samples) renderer_->sample(sample, sample.weight);
    return output_.writer().flush();
}

Result<void> View::stacks(std::span<const CountedSample> stacks) {
    for (const CountedSample &stack : stacks) renderer_->sample(stack.sample, stack.weight);
    return output_.writer().flush();
}

namespace {
render::RunCost cost_of(const Outcome &outcome) {
    render::RunCost cost;
    cost.seconds = static_cast<double>(outcome.elapsed_ns) / 1e9;
    cost.bpf_runs = outcome.cost.bpf_runs;
    cost.bpf_ns = outcome.cost.bpf_ns;
    cost.cpu_seconds = static_cast<double>(outcome.cost.cpu_ns) / 1e9;
    cost.memory_bytes = outcome.cost.rss_anon_bytes;
    cost.table_bytes = outcome.cost.table_bytes;
    cost.ring_bytes = outcome.cost.ring_bytes;
    cost.ended_early = outcome.ended_early;
    cost.advice = outcome.advice;
    return cost;
}
} // namespace

Result<void> View::finish(const Outcome &outcome) {
    Ledger ledger = outcome.ledger;
    ledger.elapsed_ns = outcome.elapsed_ns;
    ledger.cost = cost_of(outcome);
    renderer_->end(ledger);
    return output_.writer().flush();
}

void ProgressLine::show(const Progress &progress) {
    if (!wanted_ || progress.seconds < next_) return;
    next_ = progress.seconds + 0.25;
    std::string line = "\r\x1b[K" + render::progress_text(progress.seconds, progress.samples, progress.processes);
    if (progress.lost > 0) append(line, "  {} lost", render::grouped(progress.lost));
    if (!note_.empty()) append(line, "  {}", printable_lines(note_));
    say_as_is(line);
    shown_ = true;
}

void ProgressLine::clear() {
    if (shown_) say_as_is("\r\x1b[K");
    shown_ = false;
}

void append_advice(std::string &text, std::string_view who, const std::vector<render::StackAdvice> &advice) {
    for (const render::StackAdvice &one : advice) {
        append(text, "{}: warning: ", who);
        render::append_printable(text, one.sentence());
        text += '\n';
    }
}

void say_outcome(std::string_view who, const Outcome &outcome, const std::string &workload, bool quiet, bool verbose) {
    std::string text;
    for (const std::string &warning : outcome.warnings) append(text, "{}: warning: {}\n", who, warning);
    append_advice(text, who, outcome.advice);
    if (outcome.workload_status && (!quiet || *outcome.workload_status != "exited with status 0")) {
        append(text, "{}: ", who);
        render::append_printable(text, workload);
        append(text, " {}\n", *outcome.workload_status);
    }
    if (!quiet) {
        const render::RunCost cost = cost_of(outcome);
        text += render::ledger_text(who, outcome.run, outcome.ledger, cost, outcome.run.waits() ? "wait" : "sample");
        if (verbose && outcome.cost.armed_ns > 0)
            append(text, "  armed after {}\n", render::duration_text(static_cast<double>(outcome.cost.armed_ns) / 1e9));
        if (verbose)
            for (const std::string &note : outcome.languages) append(text, "  languages   {}\n", note);
        if (verbose && !outcome.cost.counting.empty()) append(text, "  counting    {}\n", outcome.cost.counting);
    }
    say(text);
}

} // namespace rawbpf::inline v0::cli
