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
// finds none: a lost trace, counted, instead of one with another thread's context.
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
#include "programs/capture/off_cpu_dsl.h"
#include "programs/capture/record_dsl.h"
#include "programs/capture/rings_dsl.h"
#include "programs/capture/user_mode.h"
#include "programs/identity_dsl.h"
#include "programs/languages/walk_dsl.h"
#include "programs/unwind/unwinder.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::custom {
namespace {

constexpr uint32_t kWakeBytes = 1 << 20;

// Where a record is put together. Taken and given back; a CPU has so many.
constexpr int kScratches = 4;
struct Scratch {
    uint64_t taken;
    UnwindScratch<> walk;
    RecordHead head;
    CustomFields own;
    uint64_t frames[RAWBPF_STACK_FRAMES + UNWIND_MAX_FRAMES];
    std::byte copy[Unwinder::kCopyBytes];         // of the stack; it follows the frames that are there
    uint64_t languages[LanguageWalk::kMostWords]; // room for an interpreter's, which follow all that; labels follow those
};
constexpr OffCpuCounters kOffCpuCounters{.switch_ns = offsetof(Counts, switch_ns),
                                         .end_unseen = offsetof(Counts, end_unseen),
                                         .lost_no_room = offsetof(Counts, lost_off_cpu_map),
                                         .lost_ring_full = offsetof(Counts, lost_ring_full),
                                         .over = offsetof(Counts, off_cpu)};

struct Maps {
    MapRef by_thread, per_cpu, counts;
    Rings ring;
};

Maps shared_maps(Builder &b, uint32_t ring_bytes) {
    return {b.hash<uint64_t, uint64_t>("custom_context_by_thread", kMostThreads),
            b.percpu_array<uint64_t>("custom_context_map", 1), b.percpu_array<Counts>("custom_counts", 1),
            Rings(b, "custom_traces", ring_bytes)};
}

// One program: finds the context where it is asked to, captures, sends.
struct Generator {
    Builder &b;
    const Maps &maps;
    const UnitOptions &options;
    Unwinder *unwinder;      // nullptr: by frame pointers
    LanguageWalk *languages; // nullptr: of interpreters their own functions
    LabelReading *labels;    // nullptr: of nobody

    // The stack has 48 bytes and no more: from 64 on (rounded up to 16) newer kernels (6.13) give a program of this type one
    // stack a CPU, which is the next thread's, too, when a probe in user code is preempted.
    void program(std::string section, std::string name, UnwindContext kind, Origin origin) {
        const MapRef scratches = b.map(BPF_MAP_TYPE_PERCPU_ARRAY, "scratch_" + name.substr(name.starts_with("custom__") ? 8 : 7),
                                       4, sizeof(Scratch) + (labels ? LABEL_ROOM_WORDS * 8 : 0), kScratches);
        Code &f = b.program(std::move(section), std::move(name));
        const Slot key = f.stack<uint64_t>("key"), context = f.stack<uint64_t>("context"), zero = f.stack<uint32_t>("zero");
        const Slot flags = f.stack<uint32_t>("flags"), pid = f.stack<uint32_t>("pid"), tid = f.stack<uint32_t>("tid");
        const Label done = f.label("done"), give_back = f.label("give back");
        f.mov(r6, r1);
        if (labels && options.private_stack && kind == UnwindContext::registers) stay_on_own_stack(f); // it is a function's, too
        f.store<uint32_t>(zero, 0);
        f.store<uint32_t>(flags, 0);
        f.store<uint64_t>(context, 0);
        f.call(helper::map_lookup_elem, maps.counts, zero);
        f.jump_if(r0 == 0, done);
        f.mov(r7, r0);
        count_atomically(f, origin == Origin::sampling ? RAWBPF_AT(r7, Counts, sampled) : RAWBPF_AT(r7, Counts, entered));
        f.call(helper::get_current_pid_tgid);
        f.store<uint64_t>(key, r0);
        take_pid_tgid(f, pid, tid);
        if (origin == Origin::custom) find_context(f, key, zero, context, flags, done);
        if (origin == Origin::sampling) {
            f.load<uint32_t>(r1, tid);
            f.if_(r1 == 0, [&] {
                count_atomically(f, RAWBPF_AT(r7, Counts, filtered));
                f.jump(done);
            });
        }
        if (options.pidns_ino)
            ids_of_namespace(f, own_namespace(), key, pid, tid, [&] { // the key was looked up
                count_atomically(f, RAWBPF_AT(r7, Counts, filtered));
                f.jump(done);
            });
        take_scratch(f, scratches, zero, done);
        fill_head(f, place(), pid, tid);
        f.load<uint64_t>(r1, context);
        f.store<uint64_t>(at(offsetof(CustomFields, context)), r1);
        f.store<uint64_t>(at(offsetof(CustomFields, caller)), 0);
        f.load<uint32_t>(r1, flags);
        f.store<uint32_t>(at(offsetof(CustomFields, flags)), r1);
        f.store<uint32_t>(at(offsetof(CustomFields, origin)), runtime(static_cast<int64_t>(origin)));
        caller(f, kind);
        stacks(f, kind, pid);
        if (languages) // these slots have done their work
            languages->walk(f, place(),
                            {pid, zero, key, context, &maps.ring, offsetof(Scratch, languages) - offsetof(Scratch, frames)});
        if (labels) labels->read(f, place(), {pid, sizeof(Scratch) - offsetof(Scratch, frames)});
        f.add(r9, sizeof(Record));
        maps.ring.send(f, place().at(0), kWakeBytes);
        f.if_(r0 != 0, [&] { count_atomically(f, RAWBPF_AT(r7, Counts, lost_ring_full)); });
        f.bind(give_back);
        f.store<uint64_t>(RAWBPF_AT(r8, Scratch, taken), 0);
        f.bind(done);
        f.ret(0);
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
            count_atomically(f, RAWBPF_AT(r7, Counts, lost_context));
            f.jump(done);
        });
        f.store<uint64_t>(context, r1);
        f.store<uint32_t>(flags, kPerCpu);
        f.bind(found);
    }

    // r8 = one that is free. `which`, a u32, is for its number.
    void take_scratch(Code &f, MapRef scratches, const Slot &which, Label done) {
        const Label taken = f.label("taken");
        // Kernels without exchange don't preempt these programs: what interrupts them has a lane of its own.
        take_place(f, scratches, {offsetof(Scratch, taken), kScratches, options.exchange}, which, done, taken);
        count_atomically(f, RAWBPF_AT(r7, Counts, lost_scratch));
        f.jump(done);
        f.bind(taken);
        f.mov(r8, r0);
    }

    static Mem at(size_t offset) { return r8 + runtime(static_cast<int64_t>(offsetof(Scratch, own) + offset)); }

    // Only where the registers are those of user code: at uprobes.
    static void caller(Code &f, UnwindContext kind) {
        if (kind != UnwindContext::registers) return;
        load_mode(f);
        f.if_(r1 == RAWBPF_MODE_USER, [&] { // where the function returns to, at its first instruction
            if (kHost.return_address >= 0) {
                f.load<HostWord>(r1, Mem(r6, runtime(kHost.return_address)));
            } else {
                f.load<HostWord>(r3, Mem(r6, runtime(kHost.stack_pointer)));
                f.read_user<HostWord>(r1, r3);
            }
            f.store<uint64_t>(at(offsetof(CustomFields, caller)), r1);
        });
    }

    [[nodiscard]] sys::Namespace own_namespace() const { return {options.pidns_dev, options.pidns_ino}; }
    [[nodiscard]] const UnwindProgramOptions *tables() const { return options.unwind ? &*options.unwind : nullptr; }
    [[nodiscard]] RecordPlace place() const {
        RecordPlace out;
        out.head = offsetof(Scratch, head);
        out.frames = offsetof(Scratch, frames);
        out.room = RAWBPF_STACK_FRAMES + user_frames(tables());
        out.walk = offsetof(Scratch, walk);
        return out;
    }

    void stacks(Code &f, UnwindContext kind, const Slot &pid) const {
        take_kernel_stack(f, place(), kind);
        UserStack user{kind, pid, unwinder};
        if (options.unwind && options.unwind->copies) // one takes the place of thirty traces, which come first
            user.room_for_copy = [&](Label full) { maps.ring.jump_if_fuller(f, options.ring_bytes / 2, full); };
        take_user_stack(f, place(), user);
    }

    // What custom traces have of their own at the scheduler's switch (capture/off_cpu_dsl.cpp). All that a thread was away
    // counts, whatever for.
    void off_cpu() {
        std::optional<MapRef> wanted;
        if (options.forked_child)
            wanted = b.lru_hash<uint32_t, uint8_t>("custom_wanted", std::max(kMostThreads, options.off_threads));
        OffCpuTool tool{"custom", "custom_off_cpu", maps.counts, kOffCpuCounters, count_atomically, maps.ring};
        tool.wake_bytes = kWakeBytes;
        tool.fixed_bytes = sizeof(Record);
        tool.threads = options.off_threads;
        tool.wide_state = options.wide_state;
        tool.unwinder = unwinder;
        tool.unwind = tables();
        if (languages) languages->join(tool);
        if (labels) labels->join(tool);
        tool.choose = [&](Code &f, const ThreadNumbers &n, Label stranger) {
            if (wanted) {
                f.call(helper::map_lookup_elem, *wanted, n.key);
                f.jump_if(r0 == 0, stranger);
            }
            if (options.pidns_ino) ids_of_namespace(f, own_namespace(), n.of_namespace, n.pid, n.tid, [&] { f.jump(stranger); });
        };
        const auto own = [](size_t member) { return r8 + runtime(static_cast<int64_t>(sizeof(RecordHead) + member)); };
        tool.fill = [own](Code &f) {
            f.store<uint64_t>(own(offsetof(CustomFields, caller)), 0);
            f.store<uint32_t>(own(offsetof(CustomFields, flags)), 0);
            f.store<uint32_t>(own(offsetof(CustomFields, origin)), static_cast<int64_t>(Origin::off_cpu));
        };
        tool.back = [own](Code &f) {
            f.store<uint64_t>(RAWBPF_AT(r8, RecordHead, t_ns), r0);
            f.sub(r0, r9);
            f.store<uint64_t>(own(offsetof(CustomFields, context)), r0);
            f.call(helper::get_smp_processor_id);
            f.store<uint32_t>(RAWBPF_AT(r8, RecordHead, cpu), r0);
        };
        off_cpu_program(b, tool);
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
        count_atomically(f, RAWBPF_AT(r0, Counts, cleared));
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
    std::optional<LanguageWalk> languages;
    if (unwinder && options.languages) languages.emplace(b, LanguageWalk::Programs{.preempted = true});
    std::optional<LabelReading> labels;
    if (options.labels) labels.emplace(b, *options.labels);
    Generator make{
        b, maps, options, unwinder ? &*unwinder : nullptr, languages ? &*languages : nullptr, labels ? &*labels : nullptr};
    make.program("kprobe", "custom__generic", UnwindContext::registers, Origin::custom);
    make.program("perf_event", "custom__generic_perf_event", UnwindContext::perf_event, Origin::custom);
    make.program("tracepoint", "custom__generic_tracepoint", UnwindContext::other, Origin::custom);
    make.program("perf_event", "custom_sample", UnwindContext::perf_event, Origin::sampling);
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
    find_counts(f, counts, zero, done);
    count_atomically(f, RAWBPF_AT(r7, Counts, external));
    f.argument(r1, r6, argument + 1);
    f.store<uint64_t>(context, r1);
    f.call(helper::get_current_pid_tgid);
    f.store<uint64_t>(key, r0);
    f.call(helper::map_update_elem, by_thread, key, context, BPF_ANY);
    f.if_(r0 != 0, [&] {
        count_atomically(f, RAWBPF_AT(r7, Counts, lost_context_map));
        f.jump(done);
    });
    f.call(helper::tail_call, r6, programs, 0);
    // Reached only when there was no program to go on with.
    count_atomically(f, RAWBPF_AT(r7, Counts, lost_tail_call));
    f.call(helper::map_delete_elem, by_thread, key);
    f.bind(done);
    f.ret(0);
    Built built = b.finish();
    if (!built) return fail(Errc::invalid_argument, "argument {}: {}", argument, built.problems.front().message);
    return std::move(*built);
}

} // namespace rawbpf::inline v0::custom
