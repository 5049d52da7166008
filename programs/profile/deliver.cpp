#include "programs/profile/deliver.h"

#include <algorithm>
#include <cstring>

#include "programs/session/locator.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::profile {

namespace {

constexpr size_t kBatch = 256;

// A wait's kernel stack begins in our own program: what the kernel called to get there says nothing of why the thread waits.
void begin_at_schedule(std::vector<FramePtr> &kernel) {
    constexpr size_t kMostBefore = 6;
    for (size_t i = 0; i < std::min(kMostBefore, kernel.size()); ++i) {
        if (!kernel[i]->symbol.starts_with("__schedule")) continue;
        kernel.erase(kernel.begin(), kernel.begin() + static_cast<ptrdiff_t>(i));
        return;
    }
}

} // namespace

bool Deliverer::truncated(int32_t bytes, uint32_t node, uint8_t ending) const {
    const size_t sent = static_cast<size_t>(std::max(bytes, 0)) / 8;
    size_t kept = 0;
    if (sent >= most_frames_) tree_.walk(node, [&](uint32_t) { ++kept; });
    return session::is_cut(ending, kept == 0 ? sent : kept, most_frames_); // none kept: nobody wanted the frames
}

bool Deliverer::user_truncated(const processes::InternedSample &sample) const {
    return truncated(sample.user_bytes, sample.user, sample.ending);
}

void Deliverer::add(const processes::InternedSample &sample, uint64_t count) {
    switch (delivery_) {
    case Delivery::each: pending_.push_back(sample); break;
    case Delivery::counted: counts_.add(sample, count); break;
    case Delivery::none: break;
    }
    if (truncated(sample.kernel_bytes, sample.kernel, processes::kNoEnding) || user_truncated(sample)) truncated_ += count;
    ends_.add(sample.ending, count);
    if (sample.kernel_bytes < 0) kernel_unreadable_ += count;
    if (sample.user_bytes < 0 && !sample.kernel_thread) user_unreadable_ += count;
    shown_ += count;
}

std::vector<uint32_t> Deliverer::kernel_stacks() const {
    std::vector<uint32_t> nodes;
    for (const processes::InternedSample &sample : pending_) nodes.push_back(sample.kernel);
    return nodes;
}

Result<void> Deliverer::flush(uint64_t now_ns) {
    if (delivery_ != Delivery::each || pending_.empty()) return {};
    if (names_ && !kernel_names_.ready(kernel_stacks(), now_ns, pending_.front().t_ns)) return {};
    return emit();
}

Result<void> Deliverer::emit() {
    if (pending_.empty()) return {};
    if (names_) kernel_names_.name(kernel_stacks());
    std::vector<NamedSample> batch;
    for (size_t at = 0; at < pending_.size(); at += kBatch) {
        batch.clear();
        for (size_t i = at; i < std::min(pending_.size(), at + kBatch); ++i) {
            batch.push_back(name(pending_[i]));
            count_incomplete(pending_[i], 1);
        }
        TRY(sink_.samples(batch));
    }
    pending_.clear();
    return {};
}

Result<void> Deliverer::finish() {
    TRY(emit());
    TRY(emit_counted());
    namer_.clear();
    return {};
}

Result<void> Deliverer::emit_counted() {
    if (counts_.entries().empty()) return {};
    if (names_) namer_.name_all();
    std::vector<CountedSample> batch;
    const auto &entries = counts_.entries();
    for (size_t at = 0; at < entries.size(); at += kBatch) {
        batch.clear();
        for (size_t i = at; i < std::min(entries.size(), at + kBatch); ++i) {
            batch.push_back({name(entries[i].first), entries[i].count, entries[i].weight});
            count_incomplete(entries[i].first, entries[i].count);
        }
        TRY(sink_.stacks(batch));
    }
    counts_.clear();
    return {};
}

NamedSample Deliverer::name(const processes::InternedSample &sample) {
    NamedSample out;
    out.t_ns = sample.t_ns > clock_.start_ns ? sample.t_ns - clock_.start_ns : 0;
    out.wall_ns = clock_.start_wall_ns + out.t_ns;
    out.pid = sample.pid;
    out.tid = sample.tid;
    out.cpu = sample.cpu;
    out.weight = sample.weight;
    if (label_sets_) out.labels = (*label_sets_)[sample.labels];
    out.comm.assign(sample.comm, strnlen(sample.comm, sizeof sample.comm));
    out.kernel_bytes = static_cast<uint32_t>(std::max(sample.kernel_bytes, 0));
    out.user_bytes = static_cast<uint32_t>(std::max(sample.user_bytes, 0));
    out.kernel_missed = sample.kernel_bytes < 0;
    out.user_missed = sample.user_bytes < 0 && !sample.kernel_thread;
    out.user_end = processes::user_end(sample.ending);
    if (!names_) return out;
    out.kernel.reserve(out.kernel_bytes / 8);
    out.user.reserve(out.user_bytes / 8);
    tree_.walk(sample.kernel, [&](uint32_t place) { namer_.add_frames(place, out.kernel); });
    if (waits_) begin_at_schedule(out.kernel);
    tree_.walk(sample.user, [&](uint32_t place) { namer_.add_frames(place, out.user); });
    return out;
}

void Deliverer::count_incomplete(const processes::InternedSample &sample, uint64_t count) {
    if (names_ && !user_truncated(sample)) early_.add(namer_, tree_, sample.user, sample.ending, count);
}

std::vector<std::pair<std::string, uint64_t>> Deliverer::degraded() const {
    return {{"stack_truncated", truncated_},
            {"user_stack_unreadable", user_unreadable_},
            {"kernel_stack_unreadable", kernel_unreadable_},
            {"user_stack_ended_early", early_.count()}};
}

} // namespace rawbpf::inline v0::profile
