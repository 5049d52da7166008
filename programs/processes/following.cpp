// The order in tick() makes it exact: news is taken before the
// records are read, so a record that was sent before its process went on to another program has been read by the time that the
// news of it is acted upon.
//
// News of one process can come through two rings, one a CPU, and what is taken from the second may be older than what was taken
// from the first. So what is a millisecond old is acted upon, and what is fresher waits: but not in a command's first steps,
// where a millisecond is the difference between its first calls with tables and without.
#include "programs/processes/following.h"

#include <algorithm>

#include "runtime/base/fail.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/epoll.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/runnable.h"

namespace rawbpf::inline v0::processes {
namespace {

constexpr uint64_t kInFlightNs = 20'000'000; // records of that age may still be on their way to us
constexpr uint64_t kFreshNs = 1'000'000;     // the same, where the next stack waits for it
constexpr uint64_t kSweepNs = 1'000'000'000;
constexpr uint64_t kLeastTickNs = 1'000'000;
// V8's heap is read so soon after a sample: a young function lives no longer where garbage is collected often.
constexpr int kMovesMs = 10;
// An interpreter's frames are learnt from a process that still runs what was sampled: a request takes some milliseconds.
constexpr int kLearningMs = 2;
constexpr uint64_t kFirstStepsNs = 20'000'000; // of a command: its exec, its libraries

} // namespace

Result<void> Following::watch(int workload) {
    chooses_ = workload >= 0;
    if (chooses_) table_.want(static_cast<uint32_t>(workload));
    return open(workload, chooses_);
}

Result<void> Following::watch(const std::vector<int> &pids, bool children, bool at_once) {
    chooses_ = true;
    TRY(open(-1, at_once));
    want_family(table_, pids, children);
    return {};
}

Result<void> Following::open(int workload, bool at_once) {
    ProcessEvents::Options options;
    options.follow = workload;
    options.at_once = at_once && unwinds();
    sys::Because why("what processes map, fork and exec: names for the stacks of short-lived ones");
    TRY(events_.open(options));
    if (options.at_once) pause_ = TRY(sys::epoll_create());
    table_.all_changes_are_told();
    watching_ = true;
    return {};
}

Result<void> Following::want(uint32_t pid) {
    const uint64_t now = sys::monotonic_ns();
    table_.look_at(pid, now);
    TRY(unwinding_.want(pid, now));
    labels_.want(pid);
    scripts_.look(now);
    return {};
}

Result<void> Following::want_running(uint64_t most_ns) {
    if (!unwinds()) return {};
    const sys::RealtimePriority urgent("tables of what runs are made before the first samples come");
    const uint64_t until_ns = sys::monotonic_ns() + most_ns;
    for (const int pid : sys::runnable_processes(sys::monotonic_ns() + most_ns / 3))
        table_.follow(static_cast<uint32_t>(pid), sys::monotonic_ns());
    while (!TRY(unwinding_.update(sys::monotonic_ns())) && sys::monotonic_ns() < until_ns) {
    }
    return {};
}

void Following::first_steps() {
    hurry_until_ns_ = sys::monotonic_ns() + kFirstStepsNs;
    if (unwinds()) urgent_.emplace();
}

Result<void> Following::add_to(int epoll, uint64_t data) const {
    for (const SidebandRing &ring : events_.rings()) TRY(sys::epoll_add(epoll, ring.poll_fd(), EPOLLIN | EPOLLET, data));
    return {};
}

int Following::wait_ms(int usual) const {
    if (unwinds() && js_.any()) usual = std::min(usual, kMovesMs);
    if (scripts_.learning(sys::monotonic_ns())) usual = std::min(usual, kLearningMs);
    return unwinds() && (events_.waiting() || unwinding_.waiting()) ? std::min(usual, 1) : usual;
}

uint64_t Following::in_flight_ns(uint64_t now_ns) const {
    return now_ns < hurry_until_ns_ ? 0 : unwinds() ? kFreshNs : kInFlightNs;
}

uint64_t Following::gather() {
    if (!watching_) return sys::monotonic_ns();
    events_.gather();
    return events_.gathered_ns();
}

void Following::apply(uint64_t t_ns) {
    if (!watching_) return;
    if (t_ns > events_.gathered_ns()) events_.gather();
    if (!events_.due(t_ns)) { // as nearly always: it is asked for each address of each event
        table_.told_until(t_ns);
        return;
    }
    ++changes_;
    events_.apply(t_ns, table_);
}

void Following::apply_news(uint64_t until_ns) {
    read_ns_ = behind_ns_ == 0 ? until_ns : std::min(until_ns, behind_ns_);
    const uint64_t fresh = in_flight_ns(until_ns);
    if (!watching_ || read_ns_ <= fresh) return;
    changes_ += events_.due(read_ns_ - fresh);
    events_.apply(read_ns_ - fresh, table_);
}

Result<bool> Following::settle(uint64_t until_ns) {
    apply_news(until_ns);
    return unwinding_.update(sys::monotonic_ns());
}

// A storm of processes wakes us with each of their mappings.
Result<void> Following::pace() {
    const uint64_t now = sys::monotonic_ns();
    if (!pause_ || now < hurry_until_ns_ || now - ticked_ns_ >= kLeastTickNs) return {};
    std::vector<epoll_event> none(1);
    (void)TRY(sys::epoll_wait(pause_.get(), none, 1));
    return {};
}

Result<void> Following::end_tick() {
    const uint64_t now = ticked_ns_ = sys::monotonic_ns();
    if (now > hurry_until_ns_) urgent_.reset();
    scripts_.look(now);
    TRY(labels_.tick(now, read_ns_));
    if (now < swept_ns_ + kSweepNs) return {};
    table_.sweep();
    swept_ns_ = now;
    return {};
}

std::vector<std::string> Following::warnings() const {
    std::vector<std::string> out = labels_.warnings();
    for (std::string &warning : unwinding_.warnings()) out.push_back(std::move(warning));
    for (std::string &warning : scripts_.warnings()) out.push_back(std::move(warning));
    out.insert(out.end(), symbols_.warnings().begin(), symbols_.warnings().end());
    for (std::string &java : java_.warnings()) out.push_back(std::move(java));
    for (std::string &js : js_.warnings()) out.push_back(std::move(js));
    return out;
}

} // namespace rawbpf::inline v0::processes
