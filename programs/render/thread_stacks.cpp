// Samples of a thread in the order of time, at 24 bytes each, with the stacks as a tree:
//
//      thread 4243 split     1.2 ms main;hot_a     2.2 ms main;hot_a     3.2 ms main;hot_b ...
//
// The profiler hands samples over nearly in the order of time, so they are put in order at the end. A recording of days has more
// samples than memory: from a limit on equal stacks of a thread become one, with a count, and the memory needed is that of the
// distinct stacks again. Who shows the result can ask which it is.
#include "programs/render/thread_stacks.h"

#include <algorithm>

#include "runtime/base/format.h"
#include "runtime/base/stable_sort.h"

namespace rawbpf::inline v0::render {
namespace {

constexpr size_t kKnownFrames = 65536;
constexpr size_t kMostOrigins = 1 << 20; // 100 MB

void append_bytes(std::string &out, uint64_t number) {
    for (int i = 0; i < 8; ++i) out += static_cast<char>(number >> 8 * i);
}

} // namespace

uint32_t ThreadStacks::labels_id(const LabelsPtr &labels) {
    if (!labels) return 0;
    const auto [at, fresh] = label_ids_.try_emplace(*labels, static_cast<uint32_t>(labels_.size()));
    if (fresh) labels_.push_back(labels);
    return at->second;
}

uint32_t ThreadStacks::note(uint32_t caller, const std::string &name) {
    auto [at, fresh] = notes_.try_emplace(name, static_cast<uint32_t>(frames_.size()));
    if (fresh) frames_.push_back(std::make_shared<Frame>(Frame{.symbol = name, .module = {}, .build_id = {}}));
    return descend(caller, at->second);
}

uint32_t ThreadStacks::frame_id(const FramePtr &frame) {
    if (auto at = known_.find(frame.get()); at != known_.end()) return at->second;
    if (known_.size() >= kKnownFrames) {
        known_.clear();
        holders_.clear();
    }
    scratch_.assign(1, frame->kernel ? 'k' : frame->inlined ? 'i' : 'u');
    // A frame without a name is its function, or what its module is, wherever it is.
    append_bytes(scratch_, frame->symbol.empty() ? frame->function_offset : 0);
    if (options_.addresses || (frame->symbol.empty() && frame->module.empty())) append_bytes(scratch_, frame->address);
    if (options_.addresses) append_bytes(scratch_, frame->file_offset), append_bytes(scratch_, uint64_t{frame->line});
    const std::string none;
    for (const std::string *text :
         {&frame->symbol, &frame->module, &frame->build_id, options_.addresses ? &frame->file : &none}) {
        append_bytes(scratch_, text->size());
        scratch_ += *text;
    }
    auto [at, fresh] = frame_ids_.try_emplace(scratch_, static_cast<uint32_t>(frames_.size()));
    if (fresh) frames_.push_back(frame);
    known_.emplace(frame.get(), at->second);
    holders_.push_back(frame);
    return at->second;
}

uint32_t ThreadStacks::descend(uint32_t caller, uint32_t frame) {
    auto [at, fresh] = callees_.try_emplace(uint64_t{caller} << 32 | frame, static_cast<uint32_t>(nodes_.size()));
    if (fresh) nodes_.push_back({caller, frame});
    return at->second;
}

uint32_t ThreadStacks::origin_id(const TraceOrigin &s) {
    if (s.event.empty() && !s.context) return 0;
    // So many contexts are kept apart; of later ones it is only known what happened.
    const std::optional<uint64_t> context = origins_.size() < kMostOrigins ? s.context : std::nullopt;
    scratch_.assign(s.event);
    if (context) append_bytes(scratch_, *context);
    auto [at, fresh] = origin_ids_.try_emplace(scratch_, static_cast<uint32_t>(origins_.size()));
    if (fresh) origins_.push_back({s.event, context, 0});
    return at->second;
}

void ThreadStacks::put(uint32_t thread, const Run &run) {
    std::vector<Run> &runs = threads_[thread].runs;
    if (options_.counted) {
        auto [at, fresh] =
            counted_.try_emplace(RunKey{thread, run.node, run.origin, run.labels}, static_cast<uint32_t>(runs.size()));
        if (!fresh) {
            Run &before = runs[at->second];
            before.count += run.count;
            before.weight += run.weight;
            before.t_ns = std::min(before.t_ns, run.t_ns);
            return;
        }
    }
    runs.push_back(run);
    ++runs_;
}

void ThreadStacks::count_instead() {
    options_.counted = true;
    runs_ = 0;
    for (uint32_t i = 0; i < threads_.size(); ++i) {
        const std::vector<Run> runs = std::exchange(threads_[i].runs, {});
        for (const Run &run : runs) put(i, run);
    }
}

void ThreadStacks::add(const NamedSample &s, uint64_t count, const TraceOrigin &origin) {
    uint32_t node = kNone;
    if (s.labels && !options_.labels)
        for (const auto &[key, value] : *s.labels) node = note(node, format("{}={}", key, value));
    if (s.user_missed && s.user.empty()) node = note(node, "[Missed User Stack]");
    for (auto frame = s.user.rbegin(); frame != s.user.rend(); ++frame) node = descend(node, frame_id(*frame));
    if (s.kernel_missed && s.kernel.empty()) node = note(node, "[Missed Kernel Stack]");
    for (auto frame = s.kernel.rbegin(); frame != s.kernel.rend(); ++frame) node = descend(node, frame_id(*frame));
    if (node == kNone) node = note(node, "[unknown]");

    scratch_.clear();
    append_bytes(scratch_, uint64_t{s.pid} << 32 | s.tid);
    scratch_ += s.comm;
    auto [at, fresh] = thread_ids_.try_emplace(scratch_, static_cast<uint32_t>(threads_.size()));
    if (fresh)
        threads_.push_back({.pid = s.pid, .tid = s.tid, .comm = s.comm, .runs = {}, .first_ns = s.t_ns, .last_ns = s.t_ns});
    Thread &thread = threads_[at->second];
    thread.first_ns = std::min(thread.first_ns, s.t_ns);
    thread.last_ns = std::max(thread.last_ns, s.t_ns);
    put(at->second, {s.t_ns, node, origin_id(origin), options_.labels ? labels_id(s.labels) : 0, count, origin.weight});
    if (!options_.counted && runs_ > options_.most_samples) count_instead();
}

void ThreadStacks::finish() {
    for (Thread &thread : threads_) stable_sort(thread.runs, [](const Run &a, const Run &b) { return a.t_ns < b.t_ns; });
    stable_sort(threads_, [](const Thread &a, const Thread &b) {
        if (a.pid != b.pid) return a.pid < b.pid;
        if (a.tid != b.tid) return a.tid < b.tid;
        return a.first_ns < b.first_ns;
    });
}

} // namespace rawbpf::inline v0::render
