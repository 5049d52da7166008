// What a count means. The program counts by addresses, and an address means what is mapped there at the time. So:
//
//   * A key holds what tells images apart: the process's number, when it began, how many programs it has executed. A count never
//     reaches over an exec, nor from a process to the next one with its number; and whether a process is wanted doesn't change in
//     between, so the verdict on the record is the verdict on its count.
//   * Within an image, mappings come and go. Nearly always new ones lie where nothing was, and then old stacks mean what they
//     meant. When one replaces another (a library unloaded, another loaded in its place), the process table says so, and
//     everything begins anew. What was sampled between the change and the news of it, a tenth of a second at most, in a stack
//     that is the same address by address, counts as the old one. That is the one thing that counting does less exactly than
//     sending each sample.
//
// Nothing is lost or counted twice while programs run. Counts only grow: reading a map (in batches, BPF_MAP_LOOKUP_BATCH, 5.6)
// takes nothing out of it, and what is new is the difference to the last time. To forget, the whole map is changed for an empty
// one: the kernel's update of a map of maps returns when no program uses the old one any more, so after that its counts are
// final.
//
//      records in the rings    ----A----B--------A'--------->      A' : the first sample of A in the second map
//      maps                     [ first: A 7, B 2 | second: A 3 ]
//
// A record may still be in its ring when its count is read. In the current map the difference is taken next time; the counts of
// an old map wait in early_ for their record, the next one with that key: the stack is the same.
//
// A record that was lost between the ring and here (a full backlog) was perhaps the first of its kind, and the program won't send
// another. So a while after such a loss the map is changed as well, and the counts of the old one wait in early_.
//
// Counting pays when stacks repeat. Where two of three samples of the last thousand were new (a compiler: each process is), the
// outer map is emptied, and the program sends everything, without computing keys, for some seconds; then it is tried again.
//
// Memory in the kernel: 72 bytes a stack and 16 a bucket, some 0.8 MB for 8192 stacks. Here 112 bytes for each that was met.
#include "programs/session/stack_counting.h"

#include <algorithm>
#include <utility>

#include <linux/bpf.h>

#include "programs/capture/counting_dsl.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/probes.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::session {

namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kJudged = 1024; // samples
constexpr uint64_t kFirstPause = 5 * kSecond, kLongestPause = 80 * kSecond;

} // namespace

std::optional<std::string> why_not_counted() {
    for (Feature feature : {Feature::bpf_loop, Feature::kernel_btf})
        if (Result<void> there = need(feature); !there) return there.error().message();
    return std::nullopt;
}

Result<void> StackCounts::start(LoadedObject &object, uint32_t stacks, bool always) {
    always_ = always;
    outer_ = object.find_map("counted_stacks");
    stacks_ = stacks;
    return outer_ ? begin() : Result<void>();
}

Result<void> StackCounts::begin() {
    sys::Because why("equal stacks are counted in the kernel: an empty map for them");
    Map fresh = TRY(Map::create(stack_counts_spec(stacks_)));
    const uint32_t slot = 0;
    const auto fd = static_cast<uint32_t>(fresh.fd());
    TRY(outer_->update(&slot, &fd));
    current_ = std::move(fresh);
    return {};
}

Result<void> StackCounts::end() {
    sys::Because why("no more counting: when this returns, no CPU uses the map of counts");
    const uint32_t slot = 0;
    TRY(outer_->erase(&slot));
    const Map old = std::move(*current_);
    current_.reset();
    TRY(read(old, true));
    known_ = {};
    index_.clear();
    return {};
}

uint32_t StackCounts::find(uint64_t key) const {
    return index_.find(processes::mix(key), [&](uint32_t id) { return known_[id].key == key; });
}

void StackCounts::add(const Known &known, uint64_t more) {
    counted_ += more;
    repeats_ += more;
    receive_(known.wanted ? &known.sample : nullptr, more);
}

void StackCounts::met(uint64_t key, const processes::InternedSample *sample) {
    if (!outer_) return;
    ++records_;
    if (key == 0) return;
    Known known;
    known.key = key;
    known.wanted = sample != nullptr;
    if (sample) known.sample = *sample;
    if (auto early = early_.find(key); early != early_.end()) {
        add(known, early->second);
        early_.erase(early);
    }
    if (!current_) return;
    const uint32_t id = find(key);
    if (id != processes::IdIndex::kNone) { // two CPUs met it at the same time, or it is of another map
        known.seen = known_[id].seen;
        known_[id] = known;
        return;
    }
    index_.add(processes::mix(key), static_cast<uint32_t>(known_.size()),
               [&](uint32_t other) { return processes::mix(known_[other].key); });
    known_.push_back(known);
}

Result<void> StackCounts::read(const Map &counts, bool last) {
    sys::Because why("how often each stack was seen again");
    const Map::Entries entries = TRY(counts.read_all());
    for (size_t i = 0; i < entries.count; ++i) {
        const auto key = load<uint64_t>(entries.keys.data() + i * sizeof(uint64_t));
        const auto value = load<StackCount>(entries.values.data() + i * sizeof(StackCount));
        if (value.count == 0) continue;
        const uint32_t id = find(key);
        if (id == processes::IdIndex::kNone) {
            if (last) early_[key] += value.count;
            continue;
        }
        Known &known = known_[id];
        if (value.count == known.seen) continue;
        add(known, value.count - known.seen);
        known.seen = value.count;
    }
    return {};
}

Result<void> StackCounts::start_anew() {
    if (!current_) return {};
    Map old = std::move(*current_);
    current_.reset();
    TRY(begin());
    TRY(read(old, true));
    known_ = {};
    index_.clear();
    return {};
}

Result<void> StackCounts::judge(uint64_t now_ns) {
    const uint64_t samples = repeats_ + records_;
    if (samples < kJudged || always_) return {};
    const bool worth_it = repeats_ * 3 >= samples;
    repeats_ = records_ = 0;
    if (worth_it) {
        pause_ns_ = 0;
        return {};
    }
    pause_ns_ = pause_ns_ == 0 ? kFirstPause : std::min(2 * pause_ns_, kLongestPause);
    resume_ns_ = now_ns + pause_ns_;
    ++pauses_;
    return end();
}

Result<void> StackCounts::tick(uint64_t now_ns, uint64_t remaps) {
    if (!outer_) return {};
    const bool again = lost_ != asked_ && now_ns - asked_ns_ >= kSecond; // not at each tick while there is no room
    if (again) asked_ = lost_, asked_ns_ = now_ns;
    if (remaps != std::exchange(remaps_, remaps) || again) TRY(start_anew());
    if (!current_) {
        if (now_ns < resume_ns_) return {};
        repeats_ = records_ = 0;
        read_ns_ = now_ns;
        return begin();
    }
    if (read_ns_ == 0) read_ns_ = now_ns;
    const bool full = known_.size() * 4 >= size_t{stacks_} * 3;
    if (!full && now_ns - read_ns_ < kSecond) return {};
    read_ns_ = now_ns;
    TRY(read(*current_, false));
    TRY(judge(now_ns));
    return full && current_ ? start_anew() : Result<void>();
}

Result<void> StackCounts::finish() { return current_ ? read(*current_, true) : Result<void>(); }

uint64_t StackCounts::unknown() const {
    uint64_t sum = 0;
    for (const auto &entry : early_) sum += entry.second;
    return sum;
}

} // namespace rawbpf::inline v0::session
