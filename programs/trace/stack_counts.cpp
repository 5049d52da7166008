#include "programs/trace/stack_counts.h"

#include <cstring>
#include <utility>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0::trace {

StackCounts::StackCounts(EventNames &names, render::Renderer &to, RunInfo run, uint64_t start_ns)
    : names_(names), to_(to), run_(std::move(run)), start_ns_(start_ns),
      counts_([this](const processes::InternedSample *sample, uint64_t more) {
          if (sample) take_counted(*sample, more);
      }) {
    run_.event = "events";
    run_.period = 1;
    to_.begin(run_);
}

// Without news of what is mapped, what a count means isn't known.
Result<void> StackCounts::count_in_kernel(Tracer &tracer, Names &live) {
    const StackCountingOptions *counting = tracer.counting();
    if (!counting || !live.following().watching()) return {};
    tracer_ = &tracer;
    live_ = &live;
    constexpr bool kAlways = true; // a record that isn't sent is kilobytes that aren't copied, and none that is lost
    return counts_.start(tracer.object(), counting->stacks, kAlways);
}

void StackCounts::add(const Event &event) {
    processes::InternedSample sample = names_.locate(event);
    sample.labels = names_.labels_of(event);
    last_ns_ = sample.t_ns;
    // Its interpreter's frames are missing: none of its kind is counted as this one is.
    if (event.language_number() != 0 && event.language.empty())
        ++cut_;
    else
        counts_.met(event.key(), &sample);
    take(sample, 1);
}

void StackCounts::take(const processes::InternedSample &sample, uint64_t count) {
    if (sample.user_bytes < 0) unreadable_ += count;
    table_.add(sample, count);
}

void StackCounts::take_counted(const processes::InternedSample &sample, uint64_t more) {
    tracer_->counted(sample.origin, more);
    take(sample, more);
    live_->seen_again(sample, more);
}

Result<void> StackCounts::tick(uint64_t now_ns) {
    if (tracer_) counts_.lost(tracer_->refused() + cut_);
    if (live_) TRY(counts_.tick(now_ns, live_->following().table().remaps() + live_->following().labels().changes()));
    if (!names_.full()) return {};
    TRY(counts_.start_anew()); // its samples are numbers of the tree
    draw();
    return {};
}

Result<void> StackCounts::stop() {
    TRY(counts_.finish());
    draw();
    return {};
}

void StackCounts::draw() {
    names_.name_all();
    for (const processes::CountTable::Entry &entry : table_.entries()) {
        const processes::InternedSample &first = entry.first;
        NamedStack stack = names_.name(first, entry.count);
        NamedSample sample;
        sample.t_ns = first.t_ns > start_ns_ ? first.t_ns - start_ns_ : 0;
        sample.wall_ns = run_.start_wall_ns + sample.t_ns;
        sample.pid = first.pid;
        sample.tid = first.tid;
        sample.cpu = first.cpu;
        sample.labels = names_.label_sets()[first.labels];
        sample.comm.assign(first.comm, strnlen(first.comm, sizeof first.comm));
        sample.kernel = std::move(stack.kernel);
        sample.user = std::move(stack.user);
        sample.user_missed = first.user_bytes < 0;
        to_.sample(sample, entry.count);
    }
    table_.clear();
    names_.forget();
}

void StackCounts::finish(Ledger ledger) {
    draw();
    if (ledger.elapsed_ns == 0) ledger.elapsed_ns = last_ns_ > start_ns_ ? last_ns_ - start_ns_ : 0;
    to_.end(ledger);
}

} // namespace rawbpf::inline v0::trace
