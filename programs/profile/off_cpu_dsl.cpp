// One switch, two threads: `current` leaves, `next` comes.
//
//      leaves:  why? --> runnable (preempted): counted, and no more      back:  its slot says since when
//                    --> dead: its slot is given back                           --> too short: counted
//                    --> waits: stacks, time --> its slot                       --> else the slot goes into a ring
//
// The thread that comes isn't the current one yet, so its stacks couldn't be taken then. Those of the one that leaves can: in the
// kernel it stands in the scheduler, and its user registers lie where it entered the kernel.
//
// A slot is a value of profile_off: | what the walk keeps | back, waited | record | kernel frames | user frames |. The record is
// put together in place, there is no copy. Nobody else looks at it meanwhile: a thread is on one CPU at a time, and a switch of
// it is over before another CPU can take it. A slot lives as long as its thread: made of profile_blank at its first wait, given
// back when it dies, since entering it in the map and taking it out each time would cost as much as the stack.
//
// A program at a raw tracepoint runs whatever else does: one at the tracepoint the kernel leaves out on a CPU
// where another of that kind was interrupted, or bpf(2) on a map. But a kernel may keep the switches of some threads to
// itself (seen: those from an agent of the virtual machine's to ours, which no tracer was told of). Then the slot still says
// "away" when its thread leaves again, which can't be. It came back after the last switch of this CPU that was seen: that is its
// wait's end, and it is sent then.
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
//      r6  the context, while a slot is sent the wake-up flag    r7  this CPU's counts    r8  the record in the slot    r9  bytes of frames
//
// raw_tp/sched_switch: (preempt, prev, next), whatever follows; sched_process_fork: (parent, child); sched_process_exit: (task).
// The kernel's BTF says where in a task its state and its numbers are. Ring buffers: 5.8.
#include "programs/profile/off_cpu_dsl.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <linux/bpf.h>

#include "asm/builder.h"
#include "programs/capture/identity_dsl.h"
#include "programs/capture/task_state.h"
#include "programs/profile/profile_dsl.h"
#include "programs/unwind/unwinder.h"

namespace rawbpf::inline v0 {

namespace {

constexpr int kHeadAt = -static_cast<int>(sizeof(OffCpuHead)); // from the record
using Walk = UnwindScratch<128>;                               // a small window, as each thread has its own
constexpr int kStateAt = kHeadAt - static_cast<int>(sizeof(Walk));
constexpr int kFramesAt = sizeof(ProfileRecord);
static_assert(sizeof(Walk) % 8 == 0 && sizeof(OffCpuHead) % 8 == 0);
constexpr uint32_t kCopyValue = sizeof(Walk) + sizeof(OffCpuHead) + sizeof(ProfileRecord) + Unwinder::kCopyBytes;

uint32_t user_frames(const UnwindProgramOptions *unwind) {
    return std::max<uint32_t>(PROFILE_MAX_FRAMES, unwind ? unwind->depth : 0);
}

void count(Code &f, Mem counter) { // r1 is gone
    f.load<uint64_t>(r1, counter);
    f.add(r1, 1);
    f.store<uint64_t>(counter, r1);
}

struct Generator {
    Builder &b;
    const OffCpuProgram &options;
    const UnwindProgramOptions *unwind;
    const ProfileConfig &config = options.config;
    uint32_t record_at = off_cpu_head_at(unwind) + sizeof(OffCpuHead);
    uint32_t most_frames = PROFILE_MAX_FRAMES + user_frames(unwind);
    std::vector<MapRef> rings{};
    MapRef counts = b.percpu_array<OffCpuCounts>("profile_counts", 1);
    std::optional<MapRef> pids{}, followed{}, cgroup{}, copies{};
    uint64_t half_of_ring = uint64_t{config.wakeup_bytes} * 2; // more than that is never filled with copies
    std::optional<Unwinder> unwinder{};

    void maps() {
        for (int i = 0; i < PROFILE_RINGS; ++i) rings.push_back(b.ringbuf("profile_ring_" + std::to_string(i), 1 << 18));
        if (config.filter_pid) pids = b.hash<uint32_t, uint8_t>("profile_pids", 1024);
        if (options.follow) followed = b.hash<uint32_t, uint8_t>("profile_followed", kMostFollowed);
        if (config.filter_cgroup) cgroup = b.cgroup_array("profile_cgroup", 1);
        if (unwind) unwinder.emplace(b, *unwind);
        // Room for frames before the copy, too: none are sent, but the verifier is told of them by copy_stack().
        const uint32_t copy = kCopyValue + most_frames * static_cast<uint32_t>(sizeof(uint64_t));
        if (unwind && unwind->copies && half_of_ring >= copy)
            copies = b.map(BPF_MAP_TYPE_PERCPU_ARRAY, "profile_copies", 4, copy, 1);
    }

    static Mem record(size_t offset) { return r8 + runtime(static_cast<int64_t>(offset)); }
    static Mem head(size_t offset) { return r8 + runtime(kHeadAt + static_cast<int64_t>(offset)); }

    // r7 = this CPU's counts; r0 to r5 are gone.
    void find_counts(Code &f, const Slot &zero, Label done) const {
        f.store<uint32_t>(zero, 0);
        f.call(helper::map_lookup_elem, counts, zero);
        f.jump_if(r0 == 0, done);
        f.mov(r7, r0);
    }

    // The current thread, as the kernel numbers it and as we do. To `stranger` where it isn't wanted.
    struct Numbers {
        Slot key, group;   ///< the kernel's: of the thread, of its process
        Slot pid, tid;     ///< ours
        Slot of_namespace; ///< struct bpf_pidns_info
    };
    static Numbers numbers(Code &f) {
        return {f.stack<uint32_t>("key"), f.stack<uint32_t>("group"), f.stack<uint32_t>("pid"), f.stack<uint32_t>("tid"),
                f.stack<bpf_pidns_info>("numbers")};
    }
    static void identify(Code &f, const Numbers &n) {
        f.call(helper::get_current_pid_tgid);
        f.store<uint32_t>(n.key, r0);
        f.store<uint32_t>(n.tid, r0);
        f.rsh(r0, 32);
        f.store<uint32_t>(n.group, r0);
        f.store<uint32_t>(n.pid, r0);
    }
    // `now`: by what can change while a process lives, too: its cgroup, its name.
    void choose(Code &f, const Numbers &n, Label stranger, bool now = true) const {
        const Label wanted = f.label("wanted");
        if (config.pidns_ino) {
            load_ids_of_namespace(f, {config.pidns_dev, config.pidns_ino}, n.of_namespace);
            f.jump_if(r0 != 0, stranger);
            take_ids(f, n.of_namespace, n.pid, n.tid);
        }
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

    // r8 = the record of the slot of that thread; to `none` where it has no slot.
    void find_slot(Code &f, MapRef off, const Slot &key, Label none) const {
        f.call(helper::map_lookup_elem, off, key);
        f.jump_if(r0 == 0, none);
        f.mov(r8, r0);
        f.add(r8, runtime(record_at));
    }
    // Where the program goes on when a slot has been sent whose thread is about to leave again.
    struct Late {
        Slot context, last_switch; ///< u64: r6; the time of the switch before this one
        Slot which;                ///< u64: 1 + an index of `resume`; 0: the thread that comes is sent
        Label send;
        std::vector<Label> resume{};
    };
    // It can't be away: it is here.
    static void check_returned(Code &f, Late &late) {
        const Label here = f.label("returned");
        f.load<uint64_t>(r1, record(offsetof(ProfileRecord, t_ns)));
        f.jump_if(r1 == 0, here);
        count(f, RAWBPF_AT(r7, OffCpuCounts, end_unseen));
        late.resume.push_back(here);
        f.mov(r1, runtime(static_cast<int64_t>(
                      late.resume.size()))); // a constant that is stored without a register is forgotten (to 6.2)
        f.store<uint64_t>(late.which, r1);
        f.jump(late.send);
        f.bind(here);
        f.load<uint64_t>(r6, late.context);
    }

    void at_switch() {
        const MapRef off = b.map(BPF_MAP_TYPE_HASH, "profile_off", 4, record_at + kFramesAt + most_frames * 8, options.threads);
        const MapRef blank = b.map(BPF_MAP_TYPE_ARRAY, "profile_blank", 4, record_at + kFramesAt + most_frames * 8, 1);
        Code &f = b.program("raw_tp/sched_switch", "profile");
        const Numbers n = numbers(f);
        const Slot zero = f.stack<uint32_t>("zero"), next = f.stack<uint32_t>("next");
        const Label done = f.label("done"), arrives = f.label("arrives"), blocks = f.label("blocks"), ready = f.label("slot");
        const Label no_room = f.label("no room"), dies = f.label("dies"), stays = f.label("stays"), first = f.label("first");
        const Label runs_on = f.label("runs on");
        Late late{f.stack<uint64_t>("context"), f.stack<uint64_t>("last switch"), f.stack<uint64_t>("late"), f.label("send")};
        f.mov(r6, r1);
        find_counts(f, zero, done);
        f.store<uint64_t>(late.context, r6);
        f.mov(r1, 0);
        f.store<uint64_t>(late.which, r1);
        f.call(helper::ktime_get_ns);
        f.load<uint64_t>(r1, RAWBPF_AT(r7, OffCpuCounts, switch_ns));
        f.store<uint64_t>(late.last_switch, r1);
        f.store<uint64_t>(RAWBPF_AT(r7, OffCpuCounts, switch_ns), r0);
        identify(f, n);
        f.load<uint32_t>(r1, n.key);
        f.jump_if(r1 == 0, arrives); // an idle CPU's thread waits for nothing
        f.argument(r8, r6, 2);
        read_state(f, r9, r8, options.wide_state);
        f.mov(r1, r9);
        f.and_(r1, kTaskDead);
        f.jump_if(r1 != 0, dies);
        choose(f, n, arrives);
        f.argument(r1, r6, 1);
        f.and_(r1, 1);
        f.jump_if(r1 != 0, runs_on); // preempted, perhaps on its way to wait
        f.jump_if(r9 != 0, blocks);
        f.bind(runs_on);
        count(f, RAWBPF_AT(r7, OffCpuCounts, preempted));
        find_slot(f, off, n.key, arrives);
        check_returned(f, late);
        f.jump(arrives);

        f.bind(dies);
        find_slot(f, off, n.key, stays);
        check_returned(f, late);
        f.call(helper::map_delete_elem, off, n.key);
        f.bind(stays);
        f.jump(arrives);

        f.bind(blocks);
        count(f, RAWBPF_AT(r7, OffCpuCounts, begun));
        find_slot(f, off, n.key, first);
        check_returned(f, late);
        f.jump(ready);
        f.bind(first);
        f.call(helper::map_lookup_elem, blank, zero);
        f.jump_if(r0 == 0, no_room);
        f.mov(r3, r0);
        f.call(helper::map_update_elem, off, n.key, r3, BPF_ANY);
        f.jump_if(r0 != 0, no_room);
        find_slot(f, off, n.key, no_room);
        f.jump(ready);
        f.bind(no_room);
        count(f, RAWBPF_AT(r7, OffCpuCounts, lost_no_room));
        f.jump(arrives);
        f.bind(ready);
        capture(f, n, zero);
        f.load<uint64_t>(r6, late.context);

        f.bind(arrives);
        f.argument(r8, r6, 3);
        f.read_field<uint32_t>(r1, r8, "task_struct.pid");
        f.store<uint32_t>(next, r1);
        find_slot(f, off, next, done);
        f.jump(late.send); // into a loop only a jump may lead (check_cfg() of kernel/bpf/verifier.c, to 6.2)
        f.bind(late.send);
        send(f, late, done);
        f.bind(done);
        f.ret(0);
    }

    void capture(Code &f, const Numbers &n, const Slot &zero) {
        f.call(helper::ktime_get_ns);
        f.store<uint64_t>(record(offsetof(ProfileRecord, t_ns)), r0);
        f.load<uint32_t>(r1, n.pid);
        f.store<uint32_t>(record(offsetof(ProfileRecord, pid)), r1);
        f.load<uint32_t>(r1, n.tid);
        f.store<uint32_t>(record(offsetof(ProfileRecord, tid)), r1);
        f.call(helper::get_smp_processor_id);
        f.store<uint32_t>(record(offsetof(ProfileRecord, cpu)), r0);
        f.store<uint32_t>(record(offsetof(ProfileRecord, flags)), 0);
        f.call(helper::get_current_comm, record(offsetof(ProfileRecord, comm)), sizeof(ProfileRecord::comm));
        const Mem frames = record(kFramesAt);
        f.mov(r9, 0);
        if (config.want_kernel) {
            f.call(helper::get_stack, r6, frames, PROFILE_STACK_BYTES, 0);
            f.mov(r9, r0);
        }
        f.store<uint32_t>(record(offsetof(ProfileRecord, kernel_bytes)), r9);
        if (config.want_kernel) f.if_(as_signed(r9) < 0, [&] { f.mov(r9, 0); });
        if (config.want_user && unwinder) {
            Unwinder::Place place{UnwindContext::other, n.pid};
            place.state = kStateAt;
            place.window_bytes = Walk::kWindowBytes;
            place.frames = kFramesAt;
            place.room = most_frames;
            unwinder->walk(f, place);
            f.store<uint32_t>(record(offsetof(ProfileRecord, user_bytes)), r0);
            f.load<uint32_t>(r1, r8 + runtime(kStateAt + static_cast<int>(offsetof(UnwindState, ending))));
            f.store<uint32_t>(record(offsetof(ProfileRecord, flags)), r1);
            if (copies) send_copy(f, place, zero);
        } else if (config.want_user) {
            f.address(r2, frames);
            f.add(r2, r9);
            f.call(helper::get_stack, r6, r2, PROFILE_STACK_BYTES, BPF_F_USER_STACK);
            f.store<uint32_t>(record(offsetof(ProfileRecord, user_bytes)), r0);
        } else {
            f.store<uint32_t>(record(offsetof(ProfileRecord, user_bytes)), 0);
        }
    }

    // Of a stack that no table was there for: the wait's numbers and the copy. r6 and r9 are gone, r8 is no longer the slot's.
    void send_copy(Code &f, const Unwinder::Place &place, const Slot &zero) {
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
        f.store<uint32_t>(record(offsetof(ProfileRecord, kernel_bytes)), r1);
        f.store<uint32_t>(record(offsetof(ProfileRecord, user_bytes)), r1);
        f.load<uint64_t>(r1, record(offsetof(ProfileRecord, t_ns)));
        f.store<uint64_t>(head(offsetof(OffCpuHead, back_ns)), r1);
        f.load_imm64(r1, OFF_CPU_STACK);
        f.store<uint64_t>(head(offsetof(OffCpuHead, waited_ns)), r1);
        f.mov(r0, 0);
        f.mov(r9, 0);
        unwinder->copy_stack(f, place, [&](Label full) {
            each_ring(f, [&](MapRef ring) { f.call(helper::ringbuf_query, ring, BPF_RB_AVAIL_DATA); });
            f.load_imm64(r1, half_of_ring);
            f.jump_if(r0 > r1, full);
        });
        f.load<uint32_t>(r1, r8 + runtime(kStateAt + static_cast<int>(offsetof(UnwindState, ending))));
        f.store<uint32_t>(record(offsetof(ProfileRecord, flags)), r1);
        f.and_(r1, UNWIND_COPIED);
        f.jump_if(r1 == 0, none);
        f.add(r9, sizeof(OffCpuHead) + sizeof(ProfileRecord));
        output(f);
        f.bind(none);
    }

    // As in profile_dsl.cpp: a ring for each few CPUs, each case by itself. r1 is gone before.
    template <class Use> void each_ring(Code &f, Use &&use) const {
        const Label used = f.label("ring used");
        f.call(helper::get_smp_processor_id);
        f.mov(r1, r0);
        f.and_(r1, PROFILE_RINGS - 1);
        for (int i = 0; i + 1 < PROFILE_RINGS; ++i)
            f.if_(r1 == runtime(i), [&] {
                use(rings[static_cast<size_t>(i)]);
                f.jump(used);
            });
        use(rings.back());
        f.bind(used);
    }
    // The r9 bytes from the head on, into this CPU's ring; r0 = 0, or why not. r6 is gone.
    void output(Code &f) const {
        f.mov(r6, BPF_RB_NO_WAKEUP);
        each_ring(f, [&](MapRef ring) {
            f.call(helper::ringbuf_query, ring, BPF_RB_AVAIL_DATA);
            f.load_imm64(r1, config.wakeup_bytes);
            f.if_(r0 >= r1, [&] { f.mov(r6, BPF_RB_FORCE_WAKEUP); });
            f.mov(r2, r8);
            f.add(r2, runtime(kHeadAt));
            f.call(helper::ringbuf_output, ring, r2, r9, r6);
        });
    }

    void send(Code &f, const Late &late, Label done) {
        const Mem left = record(offsetof(ProfileRecord, t_ns));
        const Label back = f.label("back");
        f.load<uint64_t>(r9, left);
        f.jump_if(r9 == 0, done);
        f.load<uint64_t>(r0, RAWBPF_AT(r7, OffCpuCounts, switch_ns)); // now
        f.load<uint64_t>(r1, late.which);
        f.if_(r1 != 0, [&] {
            f.load<uint64_t>(r0, late.last_switch);
            f.if_(r0 < r9, [&] { f.mov(r0, r9); }); // it left another CPU since
        });
        f.store<uint64_t>(head(offsetof(OffCpuHead, back_ns)), r0);
        f.sub(r0, r9);
        f.store<uint64_t>(head(offsetof(OffCpuHead, waited_ns)), r0);
        if (options.min_wait_ns > 0) {
            f.load_imm64(r1, options.min_wait_ns);
            f.if_(r0 < r1, [&] {
                count(f, RAWBPF_AT(r7, OffCpuCounts, too_short));
                f.jump(back);
            });
        }
        f.mov(r9, sizeof(OffCpuHead) + sizeof(ProfileRecord));
        const auto add_frames = [&](size_t bytes, uint32_t most) { // an error is a large number
            f.load<uint32_t>(r1, record(bytes));
            f.if_(r1 <= runtime(most * 8), [&] { f.add(r9, r1); });
        };
        add_frames(offsetof(ProfileRecord, kernel_bytes), PROFILE_MAX_FRAMES);
        add_frames(offsetof(ProfileRecord, user_bytes), user_frames(unwind));

        output(f);
        f.if_(r0 != 0, [&] { count(f, RAWBPF_AT(r7, OffCpuCounts, lost_ring_full)); });
        f.bind(back);
        f.store<uint64_t>(left, 0);
        f.load<uint64_t>(r1, late.which);
        f.mov(r2, 0);
        f.store<uint64_t>(late.which, r2);
        for (size_t i = 0; i < late.resume.size(); ++i) f.jump_if(r1 == runtime(static_cast<int64_t>(i + 1)), late.resume[i]);
    }

    void at_fork() const {
        Code &f = b.program("raw_tp/sched_process_fork", "profile_fork");
        const Numbers n = numbers(f);
        const Slot zero = f.stack<uint32_t>("zero"), child = f.stack<uint32_t>("child"), one = f.stack<uint8_t>("one");
        const Label done = f.label("done");
        f.argument(r6, r1, 2);
        find_counts(f, zero, done);
        identify(f, n);
        choose(f, n, done, false); // a child can be moved into the cgroup, and have another name
        f.read_field<uint32_t>(r8, r6, "task_struct.tgid");
        f.load<uint32_t>(r1, n.group);
        f.jump_if(r8 == r1, done); // a thread
        f.store<uint32_t>(child, r8);
        f.store<uint8_t>(one, 1);
        f.call(helper::map_update_elem, *followed, child, one, BPF_ANY);
        f.if_(r0 != 0, [&] { count(f, RAWBPF_AT(r7, OffCpuCounts, not_followed)); });
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

uint32_t off_cpu_head_at(const UnwindProgramOptions *unwind) { return unwind ? sizeof(Walk) : 0; }

Unit off_cpu_unit(const OffCpuProgram &options, const UnwindProgramOptions *unwind) {
    Builder b("profile_off_cpu");
    Generator make{b, options, unwind};
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
