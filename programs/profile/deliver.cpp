// Delivery. Naming kernel frames means a pass over /proc/kallsyms, ten megabytes of text that the kernel has to print: some tens
// of milliseconds. So a sample with an unknown kernel address waits, in numbered form (64 bytes), until a pass is affordable:
// passes take at most a twentieth of the time, and no sample waits for more than two seconds. After the first seconds nearly
// every address is known and samples go straight through.
#include "programs/profile/deliver.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/stable_sort.h"
#include "runtime/sys/clock.h"

namespace rawbpf::inline v0::profile {

namespace {

constexpr uint64_t kPassShare = 20;
constexpr uint64_t kLongestWaitNs = 2'000'000'000;
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

bool Deliverer::truncated(int32_t bytes, uint32_t node) const {
    if (bytes < most_bytes_) return false;
    int32_t kept = 0;
    tree_.walk(node, [&](uint32_t) { kept += 8; });
    return kept == 0 || kept >= most_bytes_; // 0: nobody wanted the frames
}

bool Deliverer::user_truncated(const processes::InternedSample &sample) const {
    if (processes::by_tables(sample.ending)) return sample.ending == UNWIND_ENDED_DEPTH;
    return truncated(sample.user_bytes, sample.user);
}

void Deliverer::add(const processes::InternedSample &sample, uint64_t count) {
    switch (delivery_) {
    case Delivery::each: pending_.push_back(sample); break;
    case Delivery::counted: counts_.add(sample, count); break;
    case Delivery::none: break;
    }
    if (truncated(sample.kernel_bytes, sample.kernel) || user_truncated(sample)) truncated_ += count;
    ends_.add(sample.ending, count);
    if (sample.kernel_bytes < 0) kernel_unreadable_ += count;
    if (sample.user_bytes < 0 && !sample.kernel_thread) user_unreadable_ += count;
    shown_ += count;
}

std::vector<uint32_t> Deliverer::unnamed_kernel_places() {
    std::vector<uint32_t> places;
    for (const processes::InternedSample &sample : pending_) {
        tree_.walk(sample.kernel, [&](uint32_t place) {
            if (!namer_.named(place)) places.push_back(place);
        });
    }
    stable_sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
    return places;
}

Result<void> Deliverer::flush(uint64_t now_ns) {
    if (delivery_ != Delivery::each || pending_.empty()) return {};
    if (names_) {
        const std::vector<uint32_t> unnamed = unnamed_kernel_places();
        if (!unnamed.empty()) {
            const bool affordable = kernel_passed_at_ == 0 || now_ns - kernel_passed_at_ >= kPassShare * kernel_pass_ns_;
            const bool waited = now_ns > pending_.front().t_ns + kLongestWaitNs;
            if (!affordable && !waited) return {};
            const uint64_t start = sys::monotonic_ns();
            namer_.name_kernel(unnamed);
            kernel_passed_at_ = now_ns;
            kernel_pass_ns_ = sys::monotonic_ns() - start;
        }
    }
    return emit();
}

Result<void> Deliverer::emit() {
    if (pending_.empty()) return {};
    if (names_) namer_.name_kernel(unnamed_kernel_places());
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
