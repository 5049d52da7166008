// The profile program, instruction by instruction. Read it beside profile.bpf.c: the same steps in the same order, and the same
// maps and records, so that the controller can't tell which of the two it loaded.
//
//      r6  the context, at the end the wake-up flag    [pid] [tid] [zero]  on the stack, where helpers can take their addresses
//      r7  this CPU's counts
//      r8  this CPU's scratch:                         | record, 48 bytes | kernel frames | user frames |
//      r9  bytes of frames captured so far                                +------------ r9 ------------>
//
// The configuration is known here, so a step that is switched off leaves no instruction behind. Helpers needed: ring buffers,
// kernel 5.8.
#include "programs/profile/profile_dsl.h"

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <linux/bpf.h>

#include "asm/builder.h"
#include "programs/capture/counting_dsl.h"
#include "programs/capture/identity_dsl.h"
#include "programs/unwind/unwinder.h"

namespace rawbpf::inline v0 {

namespace {

/// What each CPU has for itself where stacks are walked by tables: ProfileCpu, and what the walk keeps, and room for deeper
/// stacks.
struct UnwindingCpu {
    ProfileCounts counts;
    UnwindScratch<> walk;
    ProfileRecord record;
    uint64_t frames[PROFILE_MAX_FRAMES + UNWIND_MAX_FRAMES];
    std::byte copy[Unwinder::kCopyBytes]; ///< of the stack; it follows the frames that are there
};
static_assert(PROFILE_STACK_COPIED == UNWIND_COPIED);
static_assert(offsetof(UnwindingCpu, frames) - offsetof(UnwindingCpu, record) == offsetof(ProfileScratch, frames));

/// *counter += 1, by way of r1.
void count(Code &f, Mem counter) {
    f.load<uint64_t>(r1, counter);
    f.add(r1, 1);
    f.store<uint64_t>(counter, r1);
}

// What tells samples apart: process, thread's name, addresses, and how complete they are.
CountedRecord counted_record(const StackCountingOptions &options, bool unwinds) {
    CountedRecord out;
    out.key = offsetof(ProfileRecord, key);
    out.unknown = {offsetof(ProfileRecord, flags), 4};
    out.unknown_bits = PROFILE_STACK_COPIED;
    out.words = {{offsetof(ProfileRecord, pid), 4}};
    if (options.by_thread) out.words.push_back({offsetof(ProfileRecord, tid), 4});
    out.words.push_back({offsetof(ProfileRecord, kernel_bytes), 4});
    static_assert(offsetof(ProfileRecord, flags) == offsetof(ProfileRecord, user_bytes) + 4 &&
                  offsetof(ProfileRecord, user_bytes) % 8 == 0 && offsetof(ProfileRecord, comm) % 8 == 0);
    out.words.push_back({offsetof(ProfileRecord, user_bytes), 8});
    for (size_t at = 0; at < sizeof(ProfileRecord::comm); at += 8)
        out.words.push_back({static_cast<int32_t>(offsetof(ProfileRecord, comm) + at), 8});
    out.frames.push_back({offsetof(ProfileScratch, frames),
                          PROFILE_MAX_FRAMES + (unwinds ? uint32_t{UNWIND_MAX_FRAMES} : uint32_t{PROFILE_MAX_FRAMES}),
                          [](Code &f) { f.mov(r1, r9); }}); // of both stacks, one behind the other
    return out;
}

} // namespace

void jump_unless_named(Code &f, const ProfileConfig &config, Label other) {
    const Slot name = f.stack(16, 8, "name");
    f.call(helper::get_current_comm, name, 16);
    f.load<uint64_t>(r1, name);
    f.load_imm64(r2, config.comm[0]);
    f.jump_if(r1 != r2, other);
    f.load<uint64_t>(r1, name + 8);
    f.load_imm64(r2, config.comm[1]);
    f.jump_if(r1 != r2, other);
}

Unit profile_unit(const ProfileConfig &config, const UnwindProgramOptions *unwind, const StackCountingOptions *counting) {
    Builder b("profile_dsl");
    std::vector<MapRef> rings;
    rings.reserve(PROFILE_RINGS);
    for (int i = 0; i < PROFILE_RINGS; ++i) rings.push_back(b.ringbuf("profile_ring_" + std::to_string(i), 1 << 18));
    const MapRef counts =
        unwind ? b.percpu_array<UnwindingCpu>("profile_counts", 1) : b.percpu_array<ProfileCpu>("profile_counts", 1);
    std::optional<Unwinder> unwinder;
    if (unwind) unwinder.emplace(b, *unwind);
    std::optional<StackCounting> stage;
    if (counting) stage.emplace(b, *counting);

    Code &f = b.program(config.tracepoint ? "tracepoint" : "perf_event", "profile");
    const Slot pid = f.stack<uint32_t>("pid"), tid = f.stack<uint32_t>("tid"), zero = f.stack<uint32_t>("zero");
    const Label done = f.label("done");

    f.mov(r6, r1);
    f.store<uint32_t>(zero, 0);
    f.call(helper::map_lookup_elem, counts, zero);
    f.jump_if(r0 == 0, done);
    f.mov(r7, r0);
    count(f, RAWBPF_AT(r7, ProfileCounts, fired));

    f.call(helper::get_current_pid_tgid);
    f.store<uint32_t>(tid, r0);
    f.rsh(r0, 32);
    f.store<uint32_t>(pid, r0);
    if (config.skip_idle) {
        f.load<uint32_t>(r1, tid);
        f.if_(r1 == 0, [&] {
            count(f, RAWBPF_AT(r7, ProfileCounts, filtered_idle));
            f.jump(done);
        });
    }
    if (config.pidns_ino) {
        f.load<uint32_t>(r1, tid);
        f.if_(r1 != 0, [&] {
            const Slot numbers = f.stack<bpf_pidns_info>("numbers");
            load_ids_of_namespace(f, {config.pidns_dev, config.pidns_ino}, numbers);
            f.if_(r0 != 0, [&] {
                count(f, RAWBPF_AT(r7, ProfileCounts, filtered_pid_namespace));
                f.jump(done);
            });
            take_ids(f, numbers, pid, tid);
        });
    }
    if (config.filter_pid) {
        const MapRef pids = b.hash<uint32_t, uint8_t>("profile_pids", 1024);
        const auto drop = [&] {
            count(f, RAWBPF_AT(r7, ProfileCounts, filtered_pid));
            f.jump(done);
        };
        f.call(helper::map_lookup_elem, pids, pid);
        if (config.filter_pid == PROFILE_PIDS_WANTED)
            f.if_(r0 == 0, drop);
        else
            f.if_(r0 != 0, drop);
    }
    if (config.filter_cgroup) {
        const MapRef cgroup = b.cgroup_array("profile_cgroup", 1);
        f.call(helper::current_task_under_cgroup, cgroup, 0);
        f.if_(r0 != 1, [&] {
            count(f, RAWBPF_AT(r7, ProfileCounts, filtered_cgroup));
            f.jump(done);
        });
    }

    if (config.comm[0]) {
        const Label named = f.label("named"), other = f.label("other name");
        jump_unless_named(f, config, other);
        f.jump(named);
        f.bind(other);
        count(f, RAWBPF_AT(r7, ProfileCounts, filtered_comm));
        f.jump(done);
        f.bind(named);
    }

    if (config.every > 1) {
        const Mem wanted = RAWBPF_AT(r7, ProfileCounts, wanted);
        count(f, wanted);
        f.mod(r1, runtime(static_cast<int32_t>(config.every)));
        f.if_(r1 != 0, [&] {
            count(f, RAWBPF_AT(r7, ProfileCounts, sampled_out));
            f.jump(done);
        });
    }

    f.mov(r8, r7);
    f.add(r8, runtime(unwind ? offsetof(UnwindingCpu, record) : offsetof(ProfileCpu, scratch)));
    f.call(helper::ktime_get_ns);
    f.store<uint64_t>(RAWBPF_AT(r8, ProfileRecord, t_ns), r0);
    f.load<uint32_t>(r1, pid);
    f.store<uint32_t>(RAWBPF_AT(r8, ProfileRecord, pid), r1);
    f.load<uint32_t>(r1, tid);
    f.store<uint32_t>(RAWBPF_AT(r8, ProfileRecord, tid), r1);
    f.call(helper::get_smp_processor_id);
    f.store<uint32_t>(RAWBPF_AT(r8, ProfileRecord, cpu), r0);
    f.store<uint32_t>(RAWBPF_AT(r8, ProfileRecord, flags), 0);
    f.call(helper::get_current_comm, RAWBPF_AT(r8, ProfileRecord, comm), sizeof(ProfileRecord::comm));

    // A copy of a stack is as large as thirty records, so it isn't made where samples could be lost for it.
    const uint64_t half_of_ring = uint64_t{config.wakeup_bytes} * 2;
    const bool copies = unwind && unwind->copies && half_of_ring >= sizeof(UnwindingCpu);
    const auto leave_room = [&](Label full) {
        const Label known = f.label("room known");
        f.load<uint32_t>(r1, RAWBPF_AT(r8, ProfileRecord, cpu));
        f.and_(r1, PROFILE_RINGS - 1);
        for (int i = 0; i < PROFILE_RINGS; ++i)
            f.if_(r1 == runtime(i), [&] {
                f.call(helper::ringbuf_query, rings[static_cast<size_t>(i)], BPF_RB_AVAIL_DATA);
                f.jump(known);
            });
        f.jump(full);
        f.bind(known);
        f.load_imm64(r1, half_of_ring);
        f.jump_if(r0 > r1, full);
    };

    // bpf_get_stack returns at most the size that it was given, which the verifier knows; so r9 stays within the scratch.
    const Mem frames = RAWBPF_AT(r8, ProfileScratch, frames);
    f.mov(r9, 0);
    if (config.want_kernel) {
        const auto capture = [&] {
            f.call(helper::get_stack, r6, frames, PROFILE_STACK_BYTES, 0);
            f.mov(r9, r0);
        };
#ifdef PROFILE_MODE_OFFSET
        if (!config.tracepoint) {
            f.load<uint64_t>(r1, Mem(r6, PROFILE_MODE_OFFSET));
            f.and_(r1, PROFILE_MODE_MASK);
            f.if_(r1 != PROFILE_MODE_USER, capture); // in user code there is no kernel stack
        } else
#endif
            capture();
    }
    f.store<uint32_t>(RAWBPF_AT(r8, ProfileRecord, kernel_bytes), r9);
    if (config.want_kernel) {
        f.if_(as_signed(r9) < 0, [&] { f.mov(r9, 0); });
        Unwinder::forget(f, r9, RAWBPF_AT(r8, ProfileRecord, key), PROFILE_STACK_BYTES); // whose place is still free
    }
    // At a tracepoint the thread's registers have to be found; where this kernel doesn't say how, frame pointers it is.
    const bool walked = unwinder && (!config.tracepoint || unwind->has_task_pt_regs || unwind->registers_at != 0);
    if (config.want_user && walked) {
        Unwinder::Place place{config.tracepoint ? UnwindContext::other : UnwindContext::perf_event, pid};
        place.state = static_cast<int>(offsetof(UnwindingCpu, walk)) - static_cast<int>(offsetof(UnwindingCpu, record));
        place.frames = offsetof(ProfileScratch, frames);
        place.room = PROFILE_MAX_FRAMES + UNWIND_MAX_FRAMES;
        unwinder->walk(f, place);
        if (copies) unwinder->copy_stack(f, place, leave_room);
        f.store<uint32_t>(RAWBPF_AT(r8, ProfileRecord, user_bytes), r0);
        f.load<uint32_t>(r1, r8 + runtime(place.state + static_cast<int>(offsetof(UnwindState, ending))));
        f.store<uint32_t>(RAWBPF_AT(r8, ProfileRecord, flags), r1);
    } else if (config.want_user) {
        f.address(r2, frames);
        f.add(r2, r9);
        f.call(helper::get_stack, r6, r2, PROFILE_STACK_BYTES, BPF_F_USER_STACK);
        f.store<uint32_t>(RAWBPF_AT(r8, ProfileRecord, user_bytes), r0);
        f.if_(as_signed(r0) > 0, [&] { f.add(r9, r0); });
    } else {
        f.store<uint32_t>(RAWBPF_AT(r8, ProfileRecord, user_bytes), 0);
    }

    if (stage)
        stage->count(f, zero, counted_record(*counting, unwind != nullptr), done);
    else
        f.store<uint64_t>(RAWBPF_AT(r8, ProfileRecord, key), 0);
    f.add(r9, sizeof(ProfileRecord));

    // A ring for each few CPUs, each case by itself: the verifier wants to see which map a helper is given.
    f.mov(r6, BPF_RB_NO_WAKEUP);
    f.load<uint32_t>(r1, RAWBPF_AT(r8, ProfileRecord, cpu));
    f.and_(r1, PROFILE_RINGS - 1);
    const Label offered = f.label("offered");
    for (int i = 0; i < PROFILE_RINGS; ++i) {
        const auto send = [&, ring = rings[static_cast<size_t>(i)]] {
            const auto ask = [&] {
                f.call(helper::ringbuf_query, ring, BPF_RB_AVAIL_DATA);
                f.load_imm64(r1, config.wakeup_bytes); // a u32 may be beyond what a comparison takes
                f.if_(r0 >= r1, [&] { f.mov(r6, BPF_RB_FORCE_WAKEUP); });
            };
            if (config.every) {
                ask(); // events can come fast, and in turns with what is filtered
            } else {
                f.load<uint64_t>(r1, RAWBPF_AT(r7, ProfileCounts, fired));
                f.and_(r1, 15);
                if (copies) { // ... and with each copy of a stack
                    f.load<uint32_t>(r2, RAWBPF_AT(r8, ProfileRecord, flags));
                    f.and_(r2, PROFILE_STACK_COPIED);
                    f.if_(r2 != 0, [&] { f.mov(r1, 0); });
                }
                f.if_(r1 == 0, ask); // of a clock's samples one in sixteen asks: a ring holds at least sixty
            }
            f.call(helper::ringbuf_output, ring, r8, r9, r6);
            if (i + 1 < PROFILE_RINGS) f.jump(offered);
        };
        if (i + 1 < PROFILE_RINGS)
            f.if_(r1 == runtime(i), send);
        else
            send();
    }

    f.bind(offered);
    f.if_(r0 != 0, [&] { count(f, RAWBPF_AT(r7, ProfileCounts, lost_ring_full)); });
    if (stage) stage->sent(f);

    f.bind(done);
    f.ret(0);

    Built built = b.finish();
    if (!built) std::abort(); // a mistake in this file; the unit tests build every configuration
    return std::move(*built);
}

} // namespace rawbpf::inline v0
