// The programs, instruction by instruction.
//
//      external program, anybody's             generic program
//      context -> custom_context_by_thread     context <- the same map, by this thread's id; deleted there
//                 or custom_context_map[0]     or         custom_context_map[0], and kNoContext put back
//      bpf_tail_call(ctx, array, 0) ---------> kernel stack, user stack, caller --> ring
//
// Between the store and the jump the thread can be preempted: uprobe programs run with migration disabled, but since Linux 6.0
// not with preemption (bpf_prog_run_array_uprobe). Another thread's context would then be in the CPU's slot. By thread nothing
// can happen. For the per-CPU slot, which is what programs of the OpenTelemetry profiler's kind write, custom_guard runs at each
// context switch: a context that still waits was stored by the thread that is just leaving, so it is taken away, and that thread
// finds none: a lost trace, counted, instead of one with a stranger's context.
//
// For the same reason counters are added to atomically, and a record is put together in a place that is taken by an exchange: a
// CPU has several, each with all that a walk keeps from one frame to the next, so that no stack is two threads' mixed.
//
//      r6  the context, later the wake-up flag    r7  this CPU's counts    r8  the scratch    r9  bytes of frames so far
#include "programs/custom/program.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>

#include <linux/bpf.h>

#include "asm/builder.h"
#include "programs/capture/followed_threads_dsl.h"
#include "programs/capture/identity_dsl.h"
#include "programs/capture/task_state.h"
#include "programs/profile/record.h"
#include "programs/unwind/unwinder.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::custom {
namespace {

// Where the interrupted user code's caller is, at a function's first instruction.
#if defined(__x86_64__)
constexpr int kStackPointer = 152; // sp of struct pt_regs
#elif defined(__aarch64__)
constexpr int kLinkRegister = 240; // regs[30] of struct user_pt_regs
#endif

constexpr uint32_t kWakeBytes = 1 << 20;

// Where a record is put together. Taken and given back; a CPU has so many, each an element of its own, so that the verifier goes
// through what comes behind once and not once for each.
constexpr int kScratches = 4;
struct Scratch {
    uint64_t taken;
    UnwindScratch<> walk;
    Record record;
    uint64_t frames[kMostFrames + UNWIND_MAX_FRAMES];
    std::byte copy[Unwinder::kCopyBytes]; // of the stack; it follows the frames that are there
};
// What is kept of a thread while it is off its CPU. As many frames follow as there can be.
struct Kept {
    Record record;
};

void count(Code &f, Mem counter) { // r1 is gone
    f.mov(r1, 1);
    f.atomic_add<uint64_t>(counter, r1);
}

struct Maps {
    MapRef by_thread, per_cpu, counts, ring;
};

Maps shared_maps(Builder &b, uint32_t ring_bytes) {
    return {b.hash<uint64_t, uint64_t>("custom_context_by_thread", kMostThreads),
            b.percpu_array<uint64_t>("custom_context_map", 1), b.percpu_array<Counts>("custom_counts", 1),
            b.ringbuf("custom_traces", ring_bytes)};
}

enum class Context : uint8_t { registers, perf_event, tracepoint };

// One program: finds the context where it is asked to, captures, sends.
struct Generator {
    Builder &b;
    const Maps &maps;
    const UnitOptions &options;
    Unwinder *unwinder; // nullptr: by frame pointers

    // The stack has 48 bytes and no more: from 64 on (rounded up to 16) newer kernels (6.13) give a program of this type one
    // stack a CPU, which is the next thread's, too, when a probe in user code is preempted.
    void program(std::string section, std::string name, Context kind, Origin origin) {
        const MapRef scratches =
            b.percpu_array<Scratch>("scratch_" + name.substr(name.starts_with("custom__") ? 8 : 7), kScratches);
        Code &f = b.program(std::move(section), std::move(name));
        const Slot key = f.stack<uint64_t>("key"), context = f.stack<uint64_t>("context"), zero = f.stack<uint32_t>("zero");
        const Slot flags = f.stack<uint32_t>("flags"), pid = f.stack<uint32_t>("pid"), tid = f.stack<uint32_t>("tid");
        const Label done = f.label("done"), give_back = f.label("give back");
        f.mov(r6, r1);
        f.store<uint32_t>(zero, 0);
        f.store<uint32_t>(flags, 0);
        f.store<uint64_t>(context, 0);
        f.call(helper::map_lookup_elem, maps.counts, zero);
        f.jump_if(r0 == 0, done);
        f.mov(r7, r0);
        count(f, origin == Origin::sampling ? RAWBPF_AT(r7, Counts, sampled) : RAWBPF_AT(r7, Counts, entered));
        f.call(helper::get_current_pid_tgid);
        f.store<uint64_t>(key, r0);
        f.store<uint32_t>(tid, r0);
        f.rsh(r0, 32);
        f.store<uint32_t>(pid, r0);
        if (origin == Origin::custom) find_context(f, key, zero, context, flags, done);
        if (origin == Origin::sampling) {
            f.load<uint32_t>(r1, tid);
            f.if_(r1 == 0, [&] {
                count(f, RAWBPF_AT(r7, Counts, filtered));
                f.jump(done);
            });
        }
        if (options.pidns_ino)
            numbers_of_namespace(f, key, pid, tid, [&] { // the key was looked up
                count(f, RAWBPF_AT(r7, Counts, filtered));
                f.jump(done);
            });
        take_scratch(f, scratches, zero, done);
        head(f, origin, context, flags, pid, tid);
        caller(f, kind);
        stacks(f, kind, pid);
        send(f);
        f.bind(give_back);
        f.store<uint64_t>(RAWBPF_AT(r8, Scratch, taken), 0);
        f.bind(done);
        f.ret(0);
    }

    // `numbers`, a u64, is for both of them.
    template <class Stranger>
    void numbers_of_namespace(Code &f, const Slot &numbers, const Slot &pid, const Slot &tid, Stranger &&stranger) {
        load_ids_of_namespace(f, {options.pidns_dev, options.pidns_ino}, numbers);
        f.if_(r0 != 0, stranger);
        take_ids(f, numbers, pid, tid);
    }

    // r1 to r5 are gone.
    void find_context(Code &f, const Slot &key, const Slot &zero, const Slot &context, const Slot &flags, Label done) {
        const Label found = f.label("found");
        f.call(helper::map_lookup_elem, maps.by_thread, key);
        f.if_(r0 != 0, [&] {
            f.load<uint64_t>(r1, r0);
            f.store<uint64_t>(context, r1);
            f.call(helper::map_delete_elem, maps.by_thread, key);
            f.jump(found);
        });
        f.call(helper::map_lookup_elem, maps.per_cpu, zero);
        f.jump_if(r0 == 0, done);
        f.load_imm64(r2, kNoContext);
        if (options.exchange) { // in one step: the guard comes before it or after it
            f.mov(r1, r2);
            f.exchange<uint64_t>(r0 + 0, r1);
        } else {
            f.load<uint64_t>(r1, r0);
            f.store<uint64_t>(r0, r2);
        }
        f.if_(r1 == r2, [&] {
            count(f, RAWBPF_AT(r7, Counts, lost_context));
            f.jump(done);
        });
        f.store<uint64_t>(context, r1);
        f.store<uint32_t>(flags, kPerCpu);
        f.bind(found);
    }

    // r8 = one that is free. `which`, a u32, is for its number.
    void take_scratch(Code &f, MapRef scratches, const Slot &which, Label done, bool is_off_cpu = false) {
        const Label taken = f.label("taken");
        for (int i = 0; i < kScratches; ++i) {
            f.store<uint32_t>(which, runtime(i));
            f.call(helper::map_lookup_elem, scratches, which);
            f.jump_if(r0 == 0, done);
            if (options.exchange) {
                f.mov(r1, 1);
                f.exchange<uint64_t>(RAWBPF_AT(r0, Scratch, taken), r1);
                f.jump_if(r1 == 0, taken);
            } else { // kernels that don't preempt these programs: what interrupts them has a lane of its own
                f.load<uint64_t>(r1, RAWBPF_AT(r0, Scratch, taken));
                f.if_(r1 == 0, [&] {
                    f.store<uint64_t>(RAWBPF_AT(r0, Scratch, taken), 1);
                    f.jump(taken);
                });
            }
        }
        if (is_off_cpu) count(f, RAWBPF_AT(r7, Counts, off_cpu));
        count(f, RAWBPF_AT(r7, Counts, lost_scratch));
        f.jump(done);
        f.bind(taken);
        f.mov(r8, r0);
    }

    static Mem at(size_t offset) { return r8 + runtime(static_cast<int64_t>(offsetof(Scratch, record) + offset)); }

    static void head(Code &f, Origin origin, const Slot &context, const Slot &flags, const Slot &pid, const Slot &tid) {
        f.call(helper::ktime_get_ns);
        f.store<uint64_t>(at(offsetof(Record, t_ns)), r0);
        f.load<uint64_t>(r1, context);
        f.store<uint64_t>(at(offsetof(Record, context)), r1);
        f.store<uint64_t>(at(offsetof(Record, caller)), 0);
        f.load<uint32_t>(r1, pid);
        f.store<uint32_t>(at(offsetof(Record, pid)), r1);
        f.load<uint32_t>(r1, tid);
        f.store<uint32_t>(at(offsetof(Record, tid)), r1);
        f.call(helper::get_smp_processor_id);
        f.store<uint32_t>(at(offsetof(Record, cpu)), r0);
        f.load<uint32_t>(r1, flags);
        f.store<uint32_t>(at(offsetof(Record, flags)), r1);
        f.store<uint32_t>(at(offsetof(Record, origin)), runtime(static_cast<int64_t>(origin)));
        f.store<uint32_t>(at(offsetof(Record, walked)), 0);
        f.call(helper::get_current_comm, at(offsetof(Record, comm)), sizeof(Record::comm));
    }

    // Only where the registers are those of user code: at uprobes.
    static void caller(Code &f, Context kind) {
        if (kind != Context::registers) return;
#if defined(__x86_64__) || defined(__aarch64__)
        f.load<uint64_t>(r1, Mem(r6, PROFILE_MODE_OFFSET));
        f.and_(r1, PROFILE_MODE_MASK);
        f.if_(r1 == PROFILE_MODE_USER, [&] {
#if defined(__x86_64__)
            f.load<uint64_t>(r3, Mem(r6, kStackPointer));
            f.read_user<uint64_t>(r1, r3);
#else
            f.load<uint64_t>(r1, Mem(r6, kLinkRegister));
#endif
            f.store<uint64_t>(at(offsetof(Record, caller)), r1);
        });
#endif
    }

    [[nodiscard]] uint32_t user_frames() const {
        return options.unwind ? std::clamp<uint32_t>(options.unwind->depth, kMostFrames, UNWIND_MAX_FRAMES) : kMostFrames;
    }

    // bpf_get_stack returns at most the size that it was given, which the verifier knows; so r9 stays within the scratch.
    void stacks(Code &f, Context kind, const Slot &pid, bool copies = true) const {
        const Mem frames = RAWBPF_AT(r8, Scratch, frames);
        f.mov(r9, 0);
        const auto capture = [&] {
            f.call(helper::get_stack, r6, frames, kStackBytes, 0);
            f.mov(r9, r0);
        };
#ifdef PROFILE_MODE_OFFSET
        if (kind != Context::tracepoint) {
            f.load<uint64_t>(r1, Mem(r6, PROFILE_MODE_OFFSET));
            f.and_(r1, PROFILE_MODE_MASK);
            f.if_(r1 != PROFILE_MODE_USER, capture); // in user code there is no kernel stack
        } else {
            capture();
        }
#else
        capture();
#endif
        f.store<uint32_t>(at(offsetof(Record, kernel_bytes)), r9);
        f.if_(as_signed(r9) < 0, [&] { f.mov(r9, 0); });
        if (unwinder) {
            Unwinder::Place place{kind == Context::registers    ? UnwindContext::registers
                                  : kind == Context::perf_event ? UnwindContext::perf_event
                                                                : UnwindContext::other,
                                  pid};
            place.state = offsetof(Scratch, walk);
            place.frames = offsetof(Scratch, frames);
            place.room = kMostFrames + user_frames();
            unwinder->walk(f, place);
            if (options.unwind->copies && copies)
                unwinder->copy_stack(f, place, [&](Label full) { // it takes the place of thirty traces, which come first
                    f.call(helper::ringbuf_query, maps.ring, BPF_RB_AVAIL_DATA);
                    f.load_imm64(r1, options.ring_bytes / 2);
                    f.jump_if(r0 > r1, full);
                });
            f.store<uint32_t>(at(offsetof(Record, user_bytes)), r0);
            f.load<uint32_t>(r1, RAWBPF_AT(r8, Scratch, walk.state.ending));
            f.store<uint32_t>(at(offsetof(Record, walked)), r1);
        } else {
            f.address(r2, frames);
            f.add(r2, r9);
            f.call(helper::get_stack, r6, r2, kStackBytes, BPF_F_USER_STACK);
            f.store<uint32_t>(at(offsetof(Record, user_bytes)), r0);
            f.if_(as_signed(r0) > 0, [&] { f.add(r9, r0); });
        }
        f.add(r9, sizeof(Record));
    }

    // The reader is woken when a megabyte waits; its clock does the rest.
    void send(Code &f) const {
        f.call(helper::ringbuf_query, maps.ring, BPF_RB_AVAIL_DATA);
        f.mov(r6, BPF_RB_NO_WAKEUP);
        f.if_(r0 >= runtime(kWakeBytes), [&] { f.mov(r6, BPF_RB_FORCE_WAKEUP); });
        f.mov(r2, r8);
        f.add(r2, offsetof(Scratch, record));
        f.call(helper::ringbuf_output, maps.ring, r2, r9, r6);
        f.if_(r0 != 0, [&] { count(f, RAWBPF_AT(r7, Counts, lost_ring_full)); });
    }

    // Of one switch, the thread that leaves: its stacks are kept by its number. And the one that comes: what was kept of it is
    // sent, with the time between. There `current` is still the thread that leaves, so its stacks couldn't be taken now. At the
    // raw tracepoint, since a program at the tracepoint is left out on a CPU where another of that kind was interrupted.
    void off_cpu() {
        const MapRef scratches = b.percpu_array<Scratch>("scratch_off_cpu", kScratches);
        const uint32_t kept = sizeof(Record) + 8 * (kMostFrames + user_frames());
        const MapRef off = b.map(BPF_MAP_TYPE_HASH, "custom_off", sizeof(uint32_t), kept, options.off_threads);
        std::optional<MapRef> wanted;
        if (options.forked_child)
            wanted = b.lru_hash<uint32_t, uint8_t>("custom_wanted", std::max(kMostThreads, options.off_threads));
        Code &f = b.program("raw_tp/sched_switch", "custom_off_cpu"); // (preempt, prev, next)
        const Slot key = f.stack<uint32_t>("key"), zero = f.stack<uint32_t>("zero"), context = f.stack<uint64_t>("context");
        const Slot flags = f.stack<uint32_t>("flags"), pid = f.stack<uint32_t>("pid"), tid = f.stack<uint32_t>("tid");
        const Slot next = f.stack<uint32_t>("next");
        const Label done = f.label("done"), arrives = f.label("arrives");
        f.mov(r6, r1);
        f.argument(r8, r6, 3);
        f.read_field<uint32_t>(r1, r8, "task_struct.pid");
        f.store<uint32_t>(next, r1);
        f.store<uint32_t>(zero, 0);
        f.store<uint32_t>(flags, 0);
        f.store<uint64_t>(context, 0);
        f.call(helper::map_lookup_elem, maps.counts, zero);
        f.jump_if(r0 == 0, done);
        f.mov(r7, r0);
        f.call(helper::get_current_pid_tgid);
        f.store<uint32_t>(tid, r0);
        f.store<uint32_t>(key, r0);
        f.rsh(r0, 32);
        f.store<uint32_t>(pid, r0);
        f.load<uint32_t>(r1, key);
        f.jump_if(r1 == 0, arrives); // an idle CPU's thread is never away
        // Who leaves for good never comes back for what would be kept of it, and there is room for so many threads only.
        f.argument(r8, r6, 2);
        read_state(f, r9, r8, options.wide_state);
        f.and_(r9, kTaskDead);
        f.if_(r9 != 0, [&] {
            f.call(helper::map_delete_elem, off, key); // a wait of which the end wasn't seen
            f.jump(arrives);
        });
        if (wanted) {
            f.call(helper::map_lookup_elem, *wanted, key);
            f.jump_if(r0 == 0, arrives);
        }
        if (options.pidns_ino) numbers_of_namespace(f, f.stack<uint64_t>("numbers"), pid, tid, [&] { f.jump(arrives); });
        take_scratch(f, scratches, f.stack<uint32_t>("which"), arrives, true);
        head(f, Origin::off_cpu, context, flags, pid, tid);
        stacks(f, Context::tracepoint, pid, false); // what is kept has no room for one
        f.mov(r3, r8);
        f.add(r3, offsetof(Scratch, record));
        f.call(helper::map_update_elem, off, key, r3, BPF_ANY);
        f.if_(r0 != 0, [&] {
            count(f, RAWBPF_AT(r7, Counts, off_cpu));
            count(f, RAWBPF_AT(r7, Counts, lost_off_cpu_map));
        });
        f.store<uint64_t>(RAWBPF_AT(r8, Scratch, taken), 0);

        f.bind(arrives);
        f.call(helper::map_lookup_elem, off, next);
        f.jump_if(r0 == 0, done);
        f.mov(r8, r0);
        count(f, RAWBPF_AT(r7, Counts, off_cpu));
        f.call(helper::ktime_get_ns);
        f.load<uint64_t>(r1, RAWBPF_AT(r8, Kept, record.t_ns));
        f.store<uint64_t>(RAWBPF_AT(r8, Kept, record.t_ns), r0);
        f.sub(r0, r1);
        f.store<uint64_t>(RAWBPF_AT(r8, Kept, record.context), r0);
        f.call(helper::get_smp_processor_id);
        f.store<uint32_t>(RAWBPF_AT(r8, Kept, record.cpu), r0);
        f.mov(r9, sizeof(Record));
        const auto add_bytes = [&](size_t member, uint32_t most) {
            f.load<uint32_t>(r1, r8 + runtime(static_cast<int64_t>(member)));
            f.if_(r1 <= runtime(most), [&] { f.add(r9, r1); }); // an error is a large number
        };
        add_bytes(offsetof(Record, kernel_bytes), kStackBytes);
        add_bytes(offsetof(Record, user_bytes), 8 * user_frames());
        f.call(helper::ringbuf_query, maps.ring, BPF_RB_AVAIL_DATA);
        f.mov(r6, BPF_RB_NO_WAKEUP);
        f.if_(r0 >= runtime(kWakeBytes), [&] { f.mov(r6, BPF_RB_FORCE_WAKEUP); });
        f.call(helper::ringbuf_output, maps.ring, r8, r9, r6);
        f.if_(r0 != 0, [&] { count(f, RAWBPF_AT(r7, Counts, lost_ring_full)); });
        f.call(helper::map_delete_elem, off, next);
        f.bind(done);
        f.ret(0);
        if (wanted)
            follow_threads(b, "custom", *wanted, options.forked_child,
                           [&](Code &fork, const Slot &thread, const Label &out) { is_in_followed(fork, *wanted, thread, out); });
    }

    // At every context switch on a CPU, while the thread that leaves is still the current one.
    void guard() {
        Code &f = b.program("raw_tp/sched_switch", "custom_guard");
        const Slot zero = f.stack<uint32_t>("zero");
        const Label done = f.label("done");
        f.store<uint32_t>(zero, 0);
        f.call(helper::map_lookup_elem, maps.per_cpu, zero);
        f.jump_if(r0 == 0, done);
        f.load<uint64_t>(r1, r0);
        f.load_imm64(r2, kNoContext);
        f.jump_if(r1 == r2, done);
        f.store<uint64_t>(r0, r2);
        f.call(helper::map_lookup_elem, maps.counts, zero);
        f.jump_if(r0 == 0, done);
        count(f, RAWBPF_AT(r0, Counts, cleared));
        f.bind(done);
        f.ret(0);
    }
};

} // namespace

Unit generic_unit(const UnitOptions &options) {
    Builder b("custom_generic");
    const Maps maps = shared_maps(b, options.ring_bytes);
    std::optional<Unwinder> unwinder;
    if (options.unwind) unwinder.emplace(b, *options.unwind);
    Generator make{b, maps, options, unwinder ? &*unwinder : nullptr};
    make.program("kprobe", "custom__generic", Context::registers, Origin::custom);
    make.program("perf_event", "custom__generic_perf_event", Context::perf_event, Origin::custom);
    make.program("tracepoint", "custom__generic_tracepoint", Context::tracepoint, Origin::custom);
    make.program("perf_event", "custom_sample", Context::perf_event, Origin::sampling);
    make.guard();
    if (options.off_cpu) make.off_cpu();
    Built built = b.finish();
    if (!built) std::abort(); // a mistake in this file; the unit tests build every configuration
    return std::move(*built);
}

Result<Unit> external_unit(int argument) {
    Builder b("custom_external");
    const MapRef by_thread = b.hash<uint64_t, uint64_t>("custom_context_by_thread", kMostThreads);
    const MapRef counts = b.percpu_array<Counts>("custom_counts", 1);
    const MapRef programs = b.prog_array("custom_programs", 1);
    Code &f = b.program("uprobe", "custom_external");
    const Slot key = f.stack<uint64_t>("key"), context = f.stack<uint64_t>("context"), zero = f.stack<uint32_t>("zero");
    const Label done = f.label("done");
    f.mov(r6, r1);
    f.store<uint32_t>(zero, 0);
    f.call(helper::map_lookup_elem, counts, zero);
    f.jump_if(r0 == 0, done);
    f.mov(r7, r0);
    count(f, RAWBPF_AT(r7, Counts, external));
    f.argument(r1, r6, argument + 1);
    f.store<uint64_t>(context, r1);
    f.call(helper::get_current_pid_tgid);
    f.store<uint64_t>(key, r0);
    f.call(helper::map_update_elem, by_thread, key, context, BPF_ANY);
    f.if_(r0 != 0, [&] {
        count(f, RAWBPF_AT(r7, Counts, lost_context_map));
        f.jump(done);
    });
    f.call(helper::tail_call, r6, programs, 0);
    // Reached only when there was no program to go on with.
    count(f, RAWBPF_AT(r7, Counts, lost_tail_call));
    f.call(helper::map_delete_elem, by_thread, key);
    f.bind(done);
    f.ret(0);
    Built built = b.finish();
    if (!built) return fail(Errc::invalid_argument, "argument {}: {}", argument, built.problems.front().message);
    return std::move(*built);
}

} // namespace rawbpf::inline v0::custom
