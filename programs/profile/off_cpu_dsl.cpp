// What the profiler has of its own at the scheduler's switch (capture/off_cpu_dsl.cpp): whose waits, the times in front of the
// record, and copies of stacks.
//
// A process that has just begun is walked by frame pointers, since its tables aren't there yet, and its first wait may be its
// longest: a shell's for what it runs. A slot has no room for a copy of the stack. So the copy goes into a ring at once, as a
// record of its own that says whose wait it belongs to, and user space has the frames before the wait is over.
//
// Whose waits? A process in profile_pids, and (follow) all that it starts. The news of forks that user space reads come too late
// for a child of a millisecond, so here the kernel's own tracepoints tell: at a fork the child's number goes into
// profile_followed, at the last thread's exit out. Both are numbers of the kernel, while profile_pids has those of our pid
// namespace.
//
// sched_process_fork: (parent, child); sched_process_exit: (task).
#include "programs/profile/off_cpu_dsl.h"

#include <cstddef>
#include <cstdlib>
#include <optional>

#include <linux/bpf.h>

#include "asm/builder.h"
#include "programs/capture/off_cpu_dsl.h"
#include "programs/identity_dsl.h"
#include "programs/languages/walk_dsl.h"
#include "programs/profile/profile_dsl.h"
#include "programs/unwind/unwinder.h"

namespace rawbpf::inline v0 {

namespace {

constexpr int kHeadAt = -static_cast<int>(sizeof(OffCpuHead)); // from the record
constexpr int kStateAt = kHeadAt - static_cast<int>(sizeof(WaitingWalk));
static_assert(sizeof(OffCpuHead) % 8 == 0);
constexpr uint32_t kCopyValue = sizeof(WaitingWalk) + sizeof(OffCpuHead) + sizeof(ProfileRecord) + Unwinder::kCopyBytes;

constexpr OffCpuCounters kCounters{.switch_ns = offsetof(OffCpuCounts, switch_ns),
                                   .end_unseen = offsetof(OffCpuCounts, end_unseen),
                                   .lost_no_room = offsetof(OffCpuCounts, lost_no_room),
                                   .lost_ring_full = offsetof(OffCpuCounts, lost_ring_full),
                                   .begun = offsetof(OffCpuCounts, begun),
                                   .preempted = offsetof(OffCpuCounts, preempted),
                                   .too_short = offsetof(OffCpuCounts, too_short)};

struct Generator {
    Builder &b;
    const OffCpuProgram &options;
    const UnwindProgramOptions *unwind;
    bool languages;
    const LabelParts *labels;
    const ProfileConfig &config = options.config;
    const Rings rings{b, "profile_ring", PROFILE_RINGS, 1 << 18};
    MapRef counts = b.percpu_array<OffCpuCounts>("profile_counts", 1);
    std::optional<MapRef> pids{}, followed{}, cgroup{}, copies{};
    uint64_t half_of_ring = uint64_t{config.wakeup_bytes} * 2; // more than that is never filled with copies
    std::optional<Unwinder> unwinder{};
    std::optional<LanguageWalk> language_walk{};
    std::optional<LabelReading> label_reading{};

    void maps() {
        if (config.filter_pid) pids = b.hash<uint32_t, uint8_t>("profile_pids", 1024);
        if (options.follow) followed = b.hash<uint32_t, uint8_t>("profile_followed", kMostFollowed);
        if (config.filter_cgroup) cgroup = b.cgroup_array("profile_cgroup", 1);
        if (unwind) unwinder.emplace(b, *unwind);
        if (unwind && languages) language_walk.emplace(b);
        if (labels) label_reading.emplace(b, *labels);
        // Room for frames before the copy, too: none are sent, but the verifier is told of them by copy_stack().
        const uint32_t copy = kCopyValue + (RAWBPF_STACK_FRAMES + user_frames(unwind)) * static_cast<uint32_t>(sizeof(uint64_t));
        if (unwind && unwind->copies && half_of_ring >= copy)
            copies = b.map(BPF_MAP_TYPE_PERCPU_ARRAY, "profile_copies", 4, copy, 1);
    }

    static Mem record(size_t offset) { return r8 + runtime(static_cast<int64_t>(offset)); }
    static Mem head(size_t offset) { return r8 + runtime(kHeadAt + static_cast<int64_t>(offset)); }

    // `now`: by what can change while a process lives, too: its cgroup, its name.
    void choose(Code &f, const ThreadNumbers &n, Label stranger, bool now = true) const {
        const Label wanted = f.label("wanted");
        if (config.pidns_ino)
            ids_of_namespace(f, {config.pidns_dev, config.pidns_ino}, n.of_namespace, n.pid, n.tid, [&] { f.jump(stranger); });
        if (followed) {
            f.call(helper::map_lookup_elem, *followed, n.group);
            f.jump_if(r0 != 0, wanted);
        }
        if (pids) {
            f.call(helper::map_lookup_elem, *pids, n.pid);
            f.jump_if(r0 == 0, stranger);
        }
        f.bind(wanted);
        if (config.comm[0] && now) jump_unless_named(f, config, stranger);
        if (cgroup && now) {
            f.call(helper::current_task_under_cgroup, *cgroup, 0);
            f.jump_if(r0 != 1, stranger);
        }
    }

    void at_switch() {
        OffCpuTool tool{"profile", "profile", counts, kCounters, count_plainly, rings};
        tool.wake_bytes = config.wakeup_bytes;
        tool.lead_bytes = sizeof(OffCpuHead);
        tool.fixed_bytes = sizeof(ProfileRecord);
        tool.threads = options.threads;
        tool.wide_state = options.wide_state;
        tool.want_kernel = config.want_kernel != 0;
        tool.want_user = config.want_user != 0;
        tool.min_wait_ns = options.min_wait_ns;
        tool.unwinder = unwinder ? &*unwinder : nullptr;
        tool.unwind = unwind;
        if (language_walk) language_walk->join(tool);
        if (label_reading) label_reading->join(tool);
        tool.choose = [this](Code &f, const ThreadNumbers &n, Label stranger) { choose(f, n, stranger); };
        tool.back = [](Code &f) {
            f.store<uint64_t>(head(offsetof(OffCpuHead, back_ns)), r0);
            f.sub(r0, r9);
            f.store<uint64_t>(head(offsetof(OffCpuHead, waited_ns)), r0);
        };
        if (copies)
            tool.walked = [this](Code &f, const Unwinder::WalkPlace &place, const Slot &zero) { send_copy(f, place, zero); };
        off_cpu_program(b, tool);
    }

    // Of a stack that no table was there for: the wait's numbers and the copy. r6 and r9 are gone, r8 is no longer the slot's.
    void send_copy(Code &f, const Unwinder::WalkPlace &place, const Slot &zero) {
        const Label none = f.label("no copy is sent");
        unwinder->jump_if_walked(f, place, none);
        f.mov(r9, r8);
        f.call(helper::map_lookup_elem, *copies, zero);
        f.jump_if(r0 == 0, none);
        f.mov(r8, r0);
        f.add(r8, runtime(-kStateAt));
        const auto bring = [&](size_t at, size_t bytes, int64_t base) {
            for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
                f.load<uint64_t>(r1, r9 + runtime(base + static_cast<int64_t>(at + i)));
                f.store<uint64_t>(r8 + runtime(base + static_cast<int64_t>(at + i)), r1);
            }
        };
        bring(0, sizeof(ProfileRecord), 0);
        bring(offsetof(UnwindState, at), 2 * sizeof(uint32_t), kStateAt); // and the ending
        bring(offsetof(UnwindState, guessed), sizeof(uint64_t), kStateAt);
        bring(offsetof(UnwindState, entered), sizeof(uint64_t), kStateAt);
        bring(offsetof(UnwindState, since_ns), sizeof(uint64_t), kStateAt);
        bring(offsetof(UnwindState, leaf), sizeof(UnwindRegisters), kStateAt);
        f.mov(r1, 0);
        f.store<uint32_t>(record(offsetof(RecordHead, kernel_bytes)), r1);
        f.store<uint32_t>(record(offsetof(RecordHead, user_bytes)), r1);
        f.load<uint64_t>(r1, record(offsetof(RecordHead, t_ns)));
        f.store<uint64_t>(head(offsetof(OffCpuHead, back_ns)), r1);
        f.load_imm64(r1, OFF_CPU_STACK);
        f.store<uint64_t>(head(offsetof(OffCpuHead, waited_ns)), r1);
        f.mov(r0, 0);
        f.mov(r9, 0);
        unwinder->copy_stack(f, place, [&](Label full) { rings.jump_if_fuller(f, half_of_ring, full); });
        f.load<uint32_t>(r1, r8 + runtime(kStateAt + static_cast<int>(offsetof(UnwindState, ending))));
        f.store<uint32_t>(record(offsetof(RecordHead, ending)), r1);
        f.and_(r1, UNWIND_COPIED);
        f.jump_if(r1 == 0, none);
        f.add(r9, sizeof(OffCpuHead) + sizeof(ProfileRecord));
        rings.send(f, head(0), config.wakeup_bytes);
        f.bind(none);
    }

    void at_fork() const {
        Code &f = b.program("raw_tp/sched_process_fork", "profile_fork");
        const ThreadNumbers n = ThreadNumbers::in(f);
        const Slot zero = f.stack<uint32_t>("zero"), child = f.stack<uint32_t>("child"), one = f.stack<uint8_t>("one");
        const Label done = f.label("done");
        f.argument(r6, r1, 2);
        find_counts(f, counts, zero, done);
        n.load(f);
        choose(f, n, done, false); // a child can be moved into the cgroup, and have another name
        f.read_field<uint32_t>(r8, r6, "task_struct.tgid");
        f.load<uint32_t>(r1, n.group);
        f.jump_if(r8 == r1, done); // a thread
        f.store<uint32_t>(child, r8);
        f.store<uint8_t>(one, 1);
        f.call(helper::map_update_elem, *followed, child, one, BPF_ANY);
        f.if_(r0 != 0, [&] { count_plainly(f, RAWBPF_AT(r7, OffCpuCounts, not_followed)); });
        f.bind(done);
        f.ret(0);
    }
    // Numbers are used again, so who ends is forgotten: with its last thread, which the kernel has counted off before this.
    void at_exit() const {
        Code &f = b.program("raw_tp/sched_process_exit", "profile_exit");
        const Slot group = f.stack<uint32_t>("group");
        const Label done = f.label("done");
        f.argument(r6, r1, 1);
        f.read_field<uint32_t>(r7, r6, "task_struct.signal->live.counter");
        f.jump_if(r7 != 0, done);
        f.call(helper::get_current_pid_tgid);
        f.rsh(r0, 32);
        f.store<uint32_t>(group, r0);
        f.call(helper::map_delete_elem, *followed, group);
        f.bind(done);
        f.ret(0);
    }
};

} // namespace

Unit off_cpu_unit(const OffCpuProgram &options, const UnwindProgramOptions *unwind, bool languages, const LabelParts *labels) {
    Builder b("profile_off_cpu");
    Generator make{b, options, unwind, languages, labels};
    make.maps();
    make.at_switch();
    if (make.followed) {
        make.at_fork();
        make.at_exit();
    }
    Built built = b.finish();
    if (!built) std::abort(); // a mistake in this file; the unit tests build every configuration
    return std::move(*built);
}

} // namespace rawbpf::inline v0
