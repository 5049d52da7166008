// See flame_chart.h for the picture. A thread's outermost span has its name, so that a trace is about somebody; each stretch of
// running is a trace of its own: a thread that isn't seen for two periods has slept, or was filtered.
#include "programs/export/flame_chart.h"

#include <algorithm>

namespace rawbpf::inline v0::telemetry {
namespace {

constexpr size_t kMostThreads = 65536;

} // namespace

void FlameChart::end_from(Thread &thread, size_t depth, uint64_t at) {
    while (thread.calls.size() > depth) {
        Call call = std::move(thread.calls.back());
        thread.calls.pop_back();
        call.span.end = std::max(at, call.span.start);
        call.span.set("rawbpf.samples", call.samples);
        ++made_;
        give_(call.span);
    }
}

void FlameChart::begin(Thread &thread, const StackSample &sample, const std::string &name, uint64_t at) {
    Call call;
    const bool outermost = thread.calls.empty();
    call.span.trace_id = outermost ? make_trace_id(ids_) : thread.calls.front().span.trace_id;
    call.span.span_id = make_span_id(ids_);
    if (!outermost) call.span.parent = thread.calls.back().span.span_id;
    call.span.name = name;
    call.span.start = at;
    call.span.set("process.pid", int64_t{sample.pid});
    call.span.set("thread.id", int64_t{sample.tid});
    thread.calls.push_back(std::move(call));
}

void FlameChart::sample(const StackSample &sample) {
    if (threads_.size() >= kMostThreads && threads_.find(sample.tid) == threads_.end()) end();
    Thread &thread = threads_[sample.tid];
    const uint64_t now = std::max(sample.time, thread.last);
    const uint64_t until = std::min(now, thread.last + period_); // how long the last sample stands for what it saw
    if (now - thread.last > 2 * period_) end_from(thread, 0, until);
    const bool renamed = thread.calls.empty() || thread.calls[0].span.name != sample.comm;
    if (renamed) {
        end_from(thread, 0, until);
        begin(thread, sample, std::string(sample.comm), now);
    }
    size_t same = 0;
    while (same < sample.frames.size() && same + 1 < thread.calls.size() &&
           thread.calls[same + 1].span.name == sample.frames[same])
        ++same;
    end_from(thread, same + 1, now - thread.last > period_ ? until : now);
    for (size_t i = same; i < sample.frames.size(); ++i) begin(thread, sample, sample.frames[i], now);
    for (Call &call : thread.calls) ++call.samples;
    thread.last = now;
}

void FlameChart::end_silent(uint64_t before) {
    for (auto at = threads_.begin(); at != threads_.end();) {
        Thread &thread = at->second;
        if (thread.last >= before) {
            ++at;
            continue;
        }
        end_from(thread, 0, thread.last + period_);
        at = threads_.erase(at);
    }
}

void FlameChart::end() {
    for (auto &[tid, thread] : threads_) end_from(thread, 0, thread.last + period_);
    threads_.clear();
}

} // namespace rawbpf::inline v0::telemetry
