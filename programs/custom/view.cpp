// Text and JSON are a trace at a time, as they come, and so are other tools' formats, which the render stage writes; folded, svg
// and top count equal stacks as numbers, which is cheap at a hundred thousand a second, and name each stack once at the end.
//
// Names of the kernel's functions take a pass over all of its symbols, some tens of milliseconds. Traces at uprobes have no
// kernel frames; samples have. So what has an unknown one waits, and with it all behind it, until passes take a twentieth of the
// time at most.
#include "programs/custom/view.h"

#include <algorithm>
#include <cstring>

#include "programs/render/json_line.h"
#include "programs/render/ledger.h"
#include "programs/render/text.h"
#include "programs/render/tool_formats.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/sys/clock.h"

namespace rawbpf::inline v0::custom {
namespace {

constexpr size_t kMostWaiting = 16384;

constexpr std::string_view kOrigins[] = {"sampling", "uprobe", "off_cpu", "custom"};
std::string_view name_of(Origin origin) { return kOrigins[static_cast<size_t>(origin)]; }

std::string upper(std::string_view text) {
    std::string out(text);
    for (char &c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return out;
}

} // namespace

size_t View::KeyHash::operator()(const Key &key) const {
    const uint64_t nodes = uint64_t{key.kernel} << 32 | key.user,
                   rest = uint64_t{key.labels} << 34 ^ (uint64_t{key.pid} << 2 | static_cast<uint64_t>(key.origin));
    return (nodes * 0x9e3779b97f4a7c15 ^ rest) * 0xff51afd7ed558ccd ^ std::hash<std::string>{}(key.comm);
}

View::View(const ViewOptions &options, TraceNames &names, const RunInfo &run, uint64_t start_ns, render::Writer &writer)
    : options_(options), names_(names), run_(run), start_ns_(start_ns), writer_(writer),
      tally_(options.guarded, options.off_cpu) {}

Result<void> View::start() {
    if (options_.json) {
        if (!render::writes_json()) return fail(Errc::unsupported, "this build writes no JSON");
        render::append_json_header(writer_.text(), run_);
    } else if (options_.format) {
        render::RenderOptions how = options_.render;
        how.traces.current = &origin_;
        if (options_.off_cpu) how.traces.weight = "off_cpu";
        renderer_ = TRY(render::make_any_renderer(*options_.format, how, writer_));
        renderer_->begin(run_);
    }
    return writer_.flush();
}

void View::trace(const LocatedTrace &trace) {
    const Record &head = trace.head;
    tally_.add(trace);
    if (!trace.cut && trace.user != processes::kNone) ++user_ends_[uint64_t{trace.user} << 8 | trace.ending];
    if (is_weighed(options_.format)) {
        using Weight = ViewOptions::Weight;
        const Origin weighed = options_.weight == Weight::context ? Origin::custom : Origin::off_cpu;
        const uint64_t weight = options_.weight == Weight::count ? 1 : head.origin == weighed ? head.context : 0;
        const Key key{head.pid, trace.kernel, trace.user, trace.labels, head.origin, head.comm, trace.missed};
        sums_.try_emplace(key, Sum{0, sums_.size()}).first->second.weight += weight;
        if (names_.full()) hand_over_sums();
        return;
    }
    waiting_.push_back(trace);
    if (waiting_.size() >= kMostWaiting) drain();
}

std::vector<uint32_t> View::kernel_stacks() const {
    std::vector<uint32_t> nodes;
    for (const LocatedTrace &trace : waiting_) nodes.push_back(trace.kernel);
    return nodes;
}

void View::show_waiting() {
    names_.name_kernel(kernel_stacks());
    for (const LocatedTrace &trace : waiting_) show(trace);
    waiting_.clear();
    if (names_.full()) forget_stacks();
}

Result<void> View::flush(uint64_t now_ns) {
    if (!waiting_.empty() && names_.kernel_ready(kernel_stacks(), now_ns, waiting_.front().head.t_ns)) show_waiting();
    return writer_.flush();
}

void View::show(const LocatedTrace &trace) {
    Named named = names_.name(trace);
    if (renderer_) {
        origin_ = {name_of(trace.head.origin), {}, 0};
        if (trace.head.origin == Origin::custom) origin_.context = trace.head.context;
        if (trace.head.origin == Origin::off_cpu) origin_.weight = trace.head.context;
        return renderer_->sample(sample(trace, std::move(named)));
    }
    if (options_.json)
        json(trace, named);
    else
        text(trace, named);
    writer_.commit();
}

NamedSample View::sample(const LocatedTrace &trace, Named &&named) const {
    const Record &head = trace.head;
    NamedSample out;
    out.t_ns = head.t_ns > start_ns_ ? head.t_ns - start_ns_ : 0;
    out.wall_ns = run_.start_wall_ns + out.t_ns;
    out.pid = head.pid;
    out.tid = head.tid;
    out.cpu = head.cpu;
    out.comm = head.comm;
    out.labels = names_.labels(trace.labels);
    out.kernel = std::move(named.kernel);
    out.user = std::move(named.user);
    out.user_missed = trace.missed && out.kernel.empty();
    return out;
}

void View::text(const LocatedTrace &trace, const Named &named) {
    std::string &out = writer_.text();
    const Record &head = trace.head;
    uint64_t &number = numbered_[static_cast<size_t>(head.origin)];
    append(out, "=== {} Trace #{} (Hash: {}) ===\n", upper(name_of(head.origin)), ++number, stack_hash(named.kernel, named.user));
    if (head.origin == Origin::custom) append(out, "Context Value: {} ({:#x})\n", head.context, head.context);
    if (head.origin == Origin::off_cpu)
        append(out, "Off-CPU Time: {} ({} ns)\n", render::duration_text(static_cast<double>(head.context) / 1e9), head.context);
    append(out, "PID: {}, TID: {}, CPU: {}\n", head.pid, head.tid, head.cpu);
    if (const LabelsPtr labels = names_.labels(trace.labels)) {
        out += "Labels: ";
        render::append_labels(out, *labels);
        out += '\n';
    }
    if (trace.missed) append(out, "User stack: {}\n", "unreadable");
    const size_t frames = named.kernel.size() + named.user.size();
    append(out, "Stack trace ({} frame{}):\n", frames, frames == 1 ? "" : "s");
    size_t index = 0;
    for (const std::vector<FramePtr> *stack : {&named.kernel, &named.user})
        for (const FramePtr &frame : *stack) {
            append(out, "  #{}: ", index++);
            render::append_printable(out, frame->symbol.empty() ? "[unknown]" : frame->symbol);
            if (frame->kernel) {
                append(out, "+{:#x} [", frame->symbol_offset);
                render::append_printable(out, frame->module.empty() ? "kernel" : frame->module);
                out += "]\n";
            } else if (frame->module.empty()) {
                append(out, " [{:#x}]\n", frame->address);
            } else {
                out += " [";
                render::append_printable(out, render::base_name(frame->module));
                append(out, "+{:#x}]", frame->file_offset ? frame->file_offset : frame->address);
                if (frame->inlined) out += " (inlined)";
                if (!frame->file.empty()) {
                    out += ' ';
                    render::append_printable(out, frame->file);
                    if (frame->line) append(out, ":{}", frame->line);
                }
                out += '\n';
            }
        }
    out += '\n';
}

void View::json(const LocatedTrace &trace, const Named &named) {
    const Record &head = trace.head;
    const uint64_t t_ns = head.t_ns > start_ns_ ? head.t_ns - start_ns_ : 0;
    render::JsonLine line(writer_.text(), "trace");
    line.text("origin", name_of(head.origin));
    if (head.origin == Origin::custom)
        line.hex("context", head.context);
    else
        line.null("context");
    if (head.origin == Origin::off_cpu) line.number("off_cpu_ns", head.context);
    line.text("hash", stack_hash(named.kernel, named.user));
    line.text("time", render::rfc3339(run_.start_wall_ns + t_ns)).number("t_ns", t_ns);
    line.text("comm", head.comm).number("pid", head.pid).number("tid", head.tid).number("cpu", head.cpu);
    render::append_json_frames(line.raw("kernel"), named.kernel);
    render::append_json_frames(line.raw("user"), named.user);
    if (const std::string_view end = processes::user_end(trace.ending); !end.empty()) line.text("user_end", end);
    if (const LabelsPtr labels = names_.labels(trace.labels)) render::append_json_labels(line.raw("labels"), *labels);
}

// Names each distinct stack, and forgets the numbers. The order is that of the traces, whatever their numbers are: a report's are
// others.
void View::hand_over_sums() {
    std::vector<const std::pair<const Key, Sum> *> all(sums_.size());
    for (const auto &one : sums_) all[one.second.order] = &one;
    std::vector<uint32_t> kernel;
    for (const auto *one : all) kernel.push_back(one->first.kernel);
    names_.name_kernel(kernel);
    for (const auto *one : all) {
        const auto &[key, sum] = *one;
        if (sum.weight == 0) continue; // contexts of zero
        LocatedTrace stack;
        stack.kernel = key.kernel;
        stack.user = key.user;
        Named named = names_.name(stack);
        NamedSample sample;
        sample.pid = key.pid;
        sample.comm = key.comm;
        sample.labels = names_.labels(key.labels);
        sample.kernel = std::move(named.kernel);
        sample.user = std::move(named.user);
        sample.user_missed = key.missed && sample.kernel.empty();
        if (options_.origins) {
            auto origin = std::make_shared<Frame>();
            origin->symbol = format("[{}]", name_of(key.origin));
            (sample.user.empty() && !sample.kernel.empty() ? sample.kernel : sample.user).push_back(std::move(origin));
        }
        renderer_->sample(sample, sum.weight);
    }
    sums_.clear();
    forget_stacks();
}

void View::forget_stacks() {
    count_ends();
    names_.clear();
}

void View::count_ends() {
    for (const auto &[key, count] : user_ends_)
        names_.count_end(static_cast<uint32_t>(key >> 8), static_cast<uint8_t>(key & 0xff), count);
    user_ends_.clear();
}

void View::drain() {
    if (is_weighed(options_.format))
        hand_over_sums();
    else if (!waiting_.empty())
        show_waiting();
    count_ends();
}

Result<void> View::finish(const Ledger &ledger) {
    drain();
    if (renderer_) renderer_->end(ledger);
    if (options_.json) render::append_json_ledger(writer_.text(), ledger);
    return writer_.flush();
}

Ledger ledger_of(const CustomTracer &tracer, const Counts &counts, uint64_t shown, uint64_t filtered) {
    Ledger out;
    // Of others' programs nothing is known before they jump.
    const uint64_t custom =
        tracer.only_own() ? counts.external : counts.entered + counts.lost_tail_call + counts.lost_context_map;
    out.fired = custom + counts.sampled + counts.off_cpu;
    out.shown = shown;
    out.filtered = counts.filtered + filtered;
    out.lost = {{"ring_full", counts.lost_ring_full}};
    const std::pair<const char *, uint64_t> rare[] = {{"tail_call_failed", counts.lost_tail_call},
                                                      {"context_map_full", counts.lost_context_map},
                                                      {"no_context_of_its_thread", counts.lost_context},
                                                      {"interrupted_too_deep", counts.lost_scratch},
                                                      {"too_many_threads_off_cpu", counts.lost_off_cpu_map},
                                                      {"malformed", tracer.malformed()},
                                                      {"backlog_full", tracer.backlog_full()},
                                                      {"stopped_by_signal", tracer.left_out()}};
    for (const auto &[reason, n] : rare)
        if (n) out.lost.emplace_back(reason, n);
    if (counts.end_unseen) out.waits = {{"end_not_seen", counts.end_unseen}};
    return out;
}

} // namespace rawbpf::inline v0::custom
