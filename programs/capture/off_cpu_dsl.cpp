// One switch, two threads: `current` leaves, `next` comes.
//
//      leaves:  why? --> runnable (preempted): counted, and no more      back:  its slot says since when
//                    --> dead: its slot is given back                           --> too short: counted
//                    --> waits: stacks, time --> its slot                       --> else the slot goes into a ring
//
// The thread that comes isn't the current one yet, so its stacks couldn't be taken then. Those of the one that leaves can: in the
// kernel it stands in the scheduler, and its user registers lie where it entered the kernel.
//
// A slot is a value of NAME_off: | what the walk keeps | lead | head, the tool's own | kernel frames | user frames |. The record
// is built in place, without a copy. No other program accesses it meanwhile: a thread is on one CPU at a time, and its switch is
// over before another CPU can run it. A slot lives as long as its thread: made of NAME_blank at its first wait, given back when
// it dies, since entering it in the map and taking it out each time would cost as much as the stack.
//
// A program at a raw tracepoint runs whatever else does: one at the tracepoint the kernel leaves out on a CPU
// where another of that kind was interrupted, or bpf(2) on a map. But a kernel may keep the switches of some threads to
// itself (seen: those from an agent of the virtual machine's to ours, which no tracer was told of). Then the slot still says
// "away" when its thread leaves again, which can't be. It came back after the last switch of this CPU that was seen: that is its
// wait's end, and it is sent then.
//
//      r6  the context, while a slot is sent the wake-up flag    r7  this CPU's counts    r8  the head in the slot    r9  bytes of frames
//
// raw_tp/sched_switch: (preempt, prev, next), whatever follows. The kernel's BTF says where in a task its state and its number
// are. Ring buffers: 5.8.
#include "programs/capture/off_cpu_dsl.h"

#include <cstddef>
#include <vector>

#include "programs/capture/task_state.h"
#include "programs/identity_dsl.h"

namespace rawbpf::inline v0 {

namespace {

static_assert(sizeof(WaitingWalk) % 8 == 0);

// Where the program goes on when a slot has been sent whose thread is about to leave again.
struct Late {
    Slot context, last_switch; ///< u64: r6; the time of the switch before this one
    Slot which;                ///< u64: 1 + an index of `resume`; 0: the thread that comes is sent
    Label send;
    std::vector<Label> resume{};
};

struct Emit {
    Code &f;
    const OffCpuTool &tool;
    MapRef off, blank;
    RecordPlace place{};

    void count(std::optional<int16_t> counter) const { // r1 is gone
        if (counter) tool.add(f, r7 + runtime(*counter));
    }

    // r8 = the head in the slot of that thread; to `none` where it has no slot.
    void find_slot(const Slot &key, Label none) const {
        f.call(helper::map_lookup_elem, off, key);
        f.jump_if(r0 == 0, none);
        point_at_head();
    }
    void point_at_head() const {
        f.mov(r8, r0);
        f.add(r8, runtime(waiting_record_at(tool.unwind) + tool.lead_bytes));
    }
    // It can't be away: it is here.
    void check_returned(Late &late) const {
        const Label here = f.label("returned");
        f.load<uint64_t>(r1, place.at(offsetof(RecordHead, t_ns)));
        f.jump_if(r1 == 0, here);
        count(tool.count.end_unseen);
        late.resume.push_back(here);
        f.mov(r1, runtime(static_cast<int64_t>(
                      late.resume.size()))); // a constant that is stored without a register is forgotten (to 6.2)
        f.store<uint64_t>(late.which, r1);
        f.jump(late.send);
        f.bind(here);
        f.load<uint64_t>(r6, late.context);
    }

    void at_switch() const {
        const ThreadNumbers n = ThreadNumbers::in(f);
        const Slot zero = f.stack<uint32_t>("zero"), next = f.stack<uint32_t>("next");
        const Label done = f.label("done"), arrives = f.label("arrives"), blocks = f.label("blocks"), ready = f.label("slot");
        const Label no_room = f.label("no room"), dies = f.label("dies"), stays = f.label("stays"), first = f.label("first");
        const Label runs_on = f.label("runs on");
        Late late{f.stack<uint64_t>("context"), f.stack<uint64_t>("last switch"), f.stack<uint64_t>("late"), f.label("send")};
        f.mov(r6, r1);
        find_counts(f, tool.counts, zero, done);
        f.store<uint64_t>(late.context, r6);
        f.mov(r1, 0);
        f.store<uint64_t>(late.which, r1);
        f.call(helper::ktime_get_ns);
        f.load<uint64_t>(r1, r7 + runtime(tool.count.switch_ns));
        f.store<uint64_t>(late.last_switch, r1);
        f.store<uint64_t>(r7 + runtime(tool.count.switch_ns), r0);
        n.load(f);
        f.load<uint32_t>(r1, n.key);
        f.jump_if(r1 == 0, arrives); // an idle CPU's thread waits for nothing
        f.argument(r8, r6, 2);
        read_state(f, r9, r8, tool.wide_state);
        f.mov(r1, r9);
        f.and_(r1, kTaskDead);
        f.jump_if(r1 != 0, dies);
        tool.choose(f, n, arrives);
        if (tool.count.preempted) {
            f.argument(r1, r6, 1);
            f.and_(r1, 1);
            f.jump_if(r1 != 0, runs_on); // preempted, perhaps on its way to wait
            f.jump_if(r9 != 0, blocks);
            f.bind(runs_on);
            count(tool.count.preempted);
            find_slot(n.key, arrives);
            check_returned(late);
            f.jump(arrives);
        } else {
            f.jump(blocks);
        }

        f.bind(dies);
        find_slot(n.key, stays);
        check_returned(late);
        f.call(helper::map_delete_elem, off, n.key);
        f.bind(stays);
        f.jump(arrives);

        f.bind(blocks);
        count(tool.count.begun);
        find_slot(n.key, first);
        check_returned(late);
        f.jump(ready);
        f.bind(first);
        make_slot(f, off, blank, n.key, zero, BPF_ANY, no_room);
        point_at_head();
        f.jump(ready);
        f.bind(no_room);
        count(tool.count.over);
        count(tool.count.lost_no_room);
        f.jump(arrives);
        f.bind(ready);
        capture(n, zero);
        f.load<uint64_t>(r6, late.context);
        f.jump(arrives); // this is in a loop, into which only a jump may lead (check_cfg() of kernel/bpf/verifier.c, to 6.2)

        f.bind(arrives);
        f.argument(r8, r6, 3);
        f.read_field<uint32_t>(r1, r8, "task_struct.pid");
        f.store<uint32_t>(next, r1);
        find_slot(next, done);
        f.jump(late.send); // likewise
        f.bind(late.send);
        send(late, done);
        f.bind(done);
        f.ret(0);
    }

    void capture(const ThreadNumbers &n, const Slot &zero) const {
        fill_head(f, place, n.pid, n.tid);
        if (tool.fill) tool.fill(f);
        take_kernel_stack(f, place, UnwindContext::other, tool.want_kernel);
        const auto walked = take_user_stack(f, place, {UnwindContext::other, n.pid, tool.unwinder, tool.want_user});
        if (tool.list) tool.list(f, place, n.pid, zero);
        if (walked && tool.walked) tool.walked(f, *walked, zero);
    }

    void send(const Late &late, Label done) const {
        const Mem left = place.at(offsetof(RecordHead, t_ns));
        const Label back = f.label("back");
        f.load<uint64_t>(r9, left);
        f.jump_if(r9 == 0, done);
        count(tool.count.over);
        f.load<uint64_t>(r0, r7 + runtime(tool.count.switch_ns)); // now
        f.load<uint64_t>(r1, late.which);
        f.if_(r1 != 0, [&] {
            f.load<uint64_t>(r0, late.last_switch);
            f.if_(r0 < r9, [&] { f.mov(r0, r9); }); // it left another CPU since
        });
        tool.back(f);
        if (tool.min_wait_ns > 0) {
            f.load_imm64(r1, tool.min_wait_ns);
            f.if_(r0 < r1, [&] {
                count(tool.count.too_short);
                f.jump(back);
            });
        }
        f.mov(r9, runtime(tool.lead_bytes + tool.fixed_bytes));
        const auto add_frames = [&](size_t bytes, uint32_t most) { // an error is a large number
            f.load<uint32_t>(r1, place.at(bytes));
            f.if_(r1 <= runtime(most * 8), [&] { f.add(r9, r1); });
        };
        add_frames(offsetof(RecordHead, kernel_bytes), RAWBPF_STACK_FRAMES);
        add_frames(offsetof(RecordHead, user_bytes), user_frames(tool.unwind));
        if (tool.list) {
            f.load<uint32_t>(r1, place.at(offsetof(RecordHead, ending)));
            f.mov(r2, r1);
            f.rsh(r1, 16); // RAWBPF_LANGUAGE_WORDS
            f.and_(r1, 0x1ff);
            f.rsh(r2, 25); // RAWBPF_LABEL_WORDS
            f.add(r1, r2);
            f.if_(r1 <= runtime(tool.most_listed), [&] {
                f.lsh(r1, 3);
                f.add(r9, r1);
            });
        }
        tool.rings.send(f, r8 + runtime(-static_cast<int64_t>(tool.lead_bytes)), tool.wake_bytes);
        f.if_(r0 != 0, [&] { count(tool.count.lost_ring_full); });
        f.bind(back);
        f.store<uint64_t>(left, 0);
        f.load<uint64_t>(r1, late.which);
        f.mov(r2, 0);
        f.store<uint64_t>(late.which, r2);
        for (size_t i = 0; i < late.resume.size(); ++i) f.jump_if(r1 == runtime(static_cast<int64_t>(i + 1)), late.resume[i]);
    }
};

} // namespace

void ThreadNumbers::load(Code &f) const {
    f.call(helper::get_current_pid_tgid);
    f.store<uint32_t>(key, r0);
    take_pid_tgid(f, pid, tid);
    f.store<uint32_t>(group, r0);
}

uint32_t waiting_record_at(const UnwindProgramOptions *unwind) { return unwind ? sizeof(WaitingWalk) : 0; }

void off_cpu_program(Builder &b, const OffCpuTool &tool) {
    RecordPlace place;
    place.frames = static_cast<int32_t>(tool.fixed_bytes);
    place.room = RAWBPF_STACK_FRAMES + user_frames(tool.unwind);
    place.walk = -static_cast<int32_t>(tool.lead_bytes + sizeof(WaitingWalk));
    place.shape = WaitingWalk::kShape;
    const uint32_t value =
        waiting_record_at(tool.unwind) + tool.lead_bytes + tool.fixed_bytes + (place.room + tool.most_listed) * 8;
    const MapRef off = b.map(BPF_MAP_TYPE_HASH, tool.name + "_off", 4, value, tool.threads);
    const MapRef blank = b.map(BPF_MAP_TYPE_ARRAY, tool.name + "_blank", 4, value, 1);
    Emit{b.program("raw_tp/sched_switch", tool.program), tool, off, blank, place}.at_switch();
}

} // namespace rawbpf::inline v0
