// Two streams have to be read as one: samples come through the BPF ring, news of processes through perf rings, one a CPU. Within
// a perf ring the records are in order; across rings only their clocks say. The rule that makes it exact: read the samples up to
// some point, and before a sample of time t is looked at, apply the news up to t. A ring read after t was taken holds all news up
// to t.
#include "programs/processes/process_events.h"

#include <algorithm>

#include <sys/sysmacros.h>

#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/cpus.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/runnable.h"

namespace rawbpf::inline v0::processes {

Result<void> ProcessEvents::open(const Options &options) {
    sys::Because why("what processes map, fork, exec: so that addresses keep their names after a process has ended");
    for (int cpu : TRY(online_cpus())) {
        SidebandOptions ring;
        ring.pid = options.follow;
        ring.cpu = cpu;
        ring.inherit = ring.enable_on_exec = options.follow >= 0;
        ring.build_ids = false; // the inode says the same, and /proc/PID/maps says it, too
        ring.bytes = options.ring_bytes;
        if (options.at_once) ring.wakeup_bytes = 1;
        rings_.push_back(TRY(SidebandRing::open(ring)));
    }
    gather();
    return {};
}

void ProcessEvents::take(const SidebandRecord &record) {
    const auto seen = [](uint32_t pid) { return pid != 0 && pid != UINT32_MAX; }; // else of a pid namespace that isn't ours
    Event event{};
    event.t_ns = record.t_ns;
    if (auto *map = std::get_if<MapRecord>(&record.what)) {
        event.kind = Event::Kind::map;
        event.pid = map->pid;
        event.region.start = map->address;
        event.region.end = map->address + map->length;
        event.region.file_offset = map->offset;
        event.region.path = map->file;
        event.region.device = makedev(map->device_major, map->device_minor);
        event.region.inode = map->inode;
    } else if (auto *comm = std::get_if<CommRecord>(&record.what)) {
        if (!comm->exec) return;
        event.kind = Event::Kind::exec;
        event.pid = comm->pid;
    } else if (auto *task = std::get_if<TaskRecord>(&record.what)) {
        if (task->exit)
            event.kind = task->tid == task->pid ? Event::Kind::exit : Event::Kind::thread_exit;
        else
            event.kind = task->pid == task->parent_pid ? Event::Kind::thread : Event::Kind::fork;
        event.pid = task->pid;
        event.parent = task->parent_pid;
    } else {
        return;
    }
    if (!seen(event.pid)) return;
    event.order = taken_++;
    queue_.push_back(std::move(event));
}

void ProcessEvents::gather() {
    gathered_ns_ = sys::monotonic_ns();
    const uint64_t before = taken_;
    for (SidebandRing &ring : rings_) ring.consume([this](const SidebandRecord &record) { take(record); });
    if (taken_ == before) return;
    stable_sort(queue_, [](const Event &a, const Event &b) { return a.t_ns != b.t_ns ? a.t_ns < b.t_ns : a.order < b.order; });
}

void ProcessEvents::apply(uint64_t until_ns, ProcessTable &table) {
    for (; !queue_.empty() && queue_.front().t_ns <= until_ns; queue_.pop_front()) {
        const Event &event = queue_.front();
        switch (event.kind) {
        case Event::Kind::map: table.map(event.pid, event.region); break;
        case Event::Kind::exec: table.exec(event.pid, event.t_ns); break;
        case Event::Kind::fork: table.fork(event.parent, event.pid); break;
        case Event::Kind::thread: table.thread(event.pid); break;
        case Event::Kind::exit: table.exit(event.pid, true, event.t_ns); break;
        case Event::Kind::thread_exit: table.exit(event.pid, false, event.t_ns); break;
        }
    }
    if (const uint64_t now = lost(); now != lost_applied_) {
        lost_applied_ = now;
        table.doubt();
    }
    if (!rings_.empty()) table.told_until(until_ns);
}

size_t ProcessEvents::bytes() const {
    size_t sum = 0;
    for (const SidebandRing &ring : rings_) sum += ring.bytes();
    return sum;
}

uint64_t ProcessEvents::lost() const {
    uint64_t sum = 0;
    for (const SidebandRing &ring : rings_) sum += ring.lost();
    return sum;
}

void want_family(ProcessTable &table, const std::vector<int> &pids, bool children) {
    const auto want = [&](const std::vector<int> &which) {
        for (const int pid : which) table.want_now(static_cast<uint32_t>(pid), children, sys::monotonic_ns());
    };
    want(pids);
    if (children) want(sys::descendants(pids));
}

} // namespace rawbpf::inline v0::processes
