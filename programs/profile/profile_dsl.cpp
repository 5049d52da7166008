// The profile program, instruction by instruction. Read it beside profile.bpf.c: the same steps in the same order, and the same
// maps and records, so that the controller can't tell which of the two it loaded.
//
//      r6  the context, at the end the wake-up flag    [pid] [tid] [zero]  on the stack, where helpers can take their addresses
//      r7  this CPU's counts
//      r8  this CPU's scratch:                         | record, 56 bytes | kernel frames | user frames |
//      r9  bytes of frames captured so far                                +------------ r9 ------------>
//
// The configuration is known here, so a step that is switched off leaves no instruction behind. Helpers needed: ring buffers,
// kernel 5.8.
#include "programs/profile/profile_dsl.h"

#include <cstddef>
#include <cstdlib>
#include <optional>

#include <linux/bpf.h>

#include "asm/builder.h"
#include "programs/capture/counting_dsl.h"
#include "programs/capture/record_dsl.h"
#include "programs/capture/rings_dsl.h"
#include "programs/identity_dsl.h"
#include "programs/languages/walk_dsl.h"
#include "programs/unwind/unwinder.h"

namespace rawbpf::inline v0 {

namespace {

/// What each CPU has for itself where stacks are walked by tables, or labels follow them: ProfileCpu, and what the walk keeps,
/// and room for deeper stacks.
struct UnwindingCpu {
    ProfileCounts counts;
    UnwindScratch<> walk;
    ProfileRecord record;
    uint64_t frames[RAWBPF_STACK_FRAMES + UNWIND_MAX_FRAMES];
    std::byte copy[Unwinder::kCopyBytes];         ///< of the stack; it follows the frames that are there
    uint64_t languages[LanguageWalk::kMostWords]; ///< room for an interpreter's frames, which follow all that
    uint64_t labels[LABEL_ROOM_WORDS];            ///< and for labels, which follow those
};
static_assert(offsetof(UnwindingCpu, frames) - offsetof(UnwindingCpu, record) == offsetof(ProfileScratch, frames));

// What tells samples apart: process, thread's name, addresses, and how complete they are.
CountedRecord counted_record(const StackCountingOptions &options, bool unwinds, bool languages, bool labels) {
    CountedRecord out;
    out.key = offsetof(ProfileRecord, key);
    out.unknown = {offsetof(RecordHead, ending), 4};
    out.unknown_bits = UNWIND_COPIED | LANGUAGE_UNPROVEN;
    out.words = {{offsetof(RecordHead, pid), 4}};
    if (options.by_thread) out.words.push_back({offsetof(RecordHead, tid), 4});
    out.words.push_back({offsetof(RecordHead, kernel_bytes), 4});
    static_assert(offsetof(RecordHead, ending) == offsetof(RecordHead, user_bytes) + 4 &&
                  offsetof(RecordHead, user_bytes) % 8 == 0 && offsetof(RecordHead, comm) % 8 == 0);
    out.words.push_back({offsetof(RecordHead, user_bytes), 8});
    for (size_t at = 0; at < sizeof(RecordHead::comm); at += 8)
        out.words.push_back({static_cast<int32_t>(offsetof(RecordHead, comm) + at), 8});
    out.frames.push_back({offsetof(ProfileScratch, frames),
                          RAWBPF_STACK_FRAMES + (unwinds ? uint32_t{UNWIND_MAX_FRAMES} : uint32_t{RAWBPF_STACK_FRAMES}) +
                              (languages ? LanguageWalk::kMostWords : 0) + (labels ? uint32_t{LABEL_MOST_WORDS} : 0),
                          [](Code &f) { f.mov(r1, r9); }}); // of both stacks and what follows, one behind the other
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

Unit profile_unit(const ProfileConfig &config, const UnwindProgramOptions *unwind, const StackCountingOptions *counting,
                  bool languages, const LabelParts *labels) {
    Builder b("profile_dsl");
    const Rings rings(b, "profile_ring", PROFILE_RINGS, 1 << 18);
    const bool roomy = unwind || labels;
    const MapRef counts =
        roomy ? b.percpu_array<UnwindingCpu>("profile_counts", 1) : b.percpu_array<ProfileCpu>("profile_counts", 1);
    std::optional<Unwinder> unwinder;
    if (unwind) unwinder.emplace(b, *unwind);
    std::optional<LanguageWalk> language_walk;
    if (unwind && languages) language_walk.emplace(b);
    std::optional<LabelReading> label_reading;
    if (labels) label_reading.emplace(b, *labels);
    std::optional<StackCounting> stage;
    if (counting) stage.emplace(b, *counting);

    Code &f = b.program(config.tracepoint ? "tracepoint" : "perf_event", "profile");
    const Slot pid = f.stack<uint32_t>("pid"), tid = f.stack<uint32_t>("tid"), zero = f.stack<uint32_t>("zero");
    const Label done = f.label("done");

    f.mov(r6, r1);
    find_counts(f, counts, zero, done);
    count_plainly(f, RAWBPF_AT(r7, ProfileCounts, fired));

    f.call(helper::get_current_pid_tgid);
    take_pid_tgid(f, pid, tid);
    if (config.skip_idle) {
        f.load<uint32_t>(r1, tid);
        f.if_(r1 == 0, [&] {
            count_plainly(f, RAWBPF_AT(r7, ProfileCounts, filtered_idle));
            f.jump(done);
        });
    }
    if (config.pidns_ino) {
        f.load<uint32_t>(r1, tid);
        f.if_(r1 != 0, [&] {
            ids_of_namespace(f, {config.pidns_dev, config.pidns_ino}, f.stack<bpf_pidns_info>("numbers"), pid, tid, [&] {
                count_plainly(f, RAWBPF_AT(r7, ProfileCounts, filtered_pid_namespace));
                f.jump(done);
            });
        });
    }
    if (config.filter_pid) {
        const MapRef pids = b.hash<uint32_t, uint8_t>("profile_pids", 1024);
        const auto drop = [&] {
            count_plainly(f, RAWBPF_AT(r7, ProfileCounts, filtered_pid));
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
            count_plainly(f, RAWBPF_AT(r7, ProfileCounts, filtered_cgroup));
            f.jump(done);
        });
    }

    if (config.comm[0]) {
        const Label named = f.label("named"), other = f.label("other name");
        jump_unless_named(f, config, other);
        f.jump(named);
        f.bind(other);
        count_plainly(f, RAWBPF_AT(r7, ProfileCounts, filtered_comm));
        f.jump(done);
        f.bind(named);
    }

    if (config.every > 1) {
        const Mem wanted = RAWBPF_AT(r7, ProfileCounts, wanted);
        count_plainly(f, wanted);
        f.mod(r1, runtime(static_cast<int32_t>(config.every)));
        f.if_(r1 != 0, [&] {
            count_plainly(f, RAWBPF_AT(r7, ProfileCounts, sampled_out));
            f.jump(done);
        });
    }

    f.mov(r8, r7);
    f.add(r8, runtime(roomy ? offsetof(UnwindingCpu, record) : offsetof(ProfileCpu, scratch)));
    RecordPlace place;
    place.frames = offsetof(ProfileScratch, frames);
    place.room = RAWBPF_STACK_FRAMES + UNWIND_MAX_FRAMES;
    place.walk = static_cast<int>(offsetof(UnwindingCpu, walk)) - static_cast<int>(offsetof(UnwindingCpu, record));
    const UnwindContext context = config.tracepoint ? UnwindContext::other : UnwindContext::perf_event;
    const Mem cpu = place.at(offsetof(RecordHead, cpu)), key = RAWBPF_AT(r8, ProfileRecord, key);
    fill_head(f, place, pid, tid);
    take_kernel_stack(f, place, context, config.want_kernel != 0);
    // A copy of a stack is as large as thirty records, so it isn't made where samples could be lost for it.
    const uint64_t half_of_ring = uint64_t{config.wakeup_bytes} * 2;
    const bool copies = unwind && unwind->copies && half_of_ring >= sizeof(UnwindingCpu);
    UserStack user{context, pid, unwinder ? &*unwinder : nullptr, config.want_user != 0};
    if (copies) user.room_for_copy = [&](Label full) { rings.jump_if_fuller(f, half_of_ring, full, cpu); };
    take_user_stack(f, place, user);
    if (language_walk)
        language_walk->walk(f, place,
                            {pid, zero, f.stack<uint64_t>("counts"), f.stack<uint64_t>("state"), &rings,
                             offsetof(UnwindingCpu, languages) - offsetof(UnwindingCpu, frames)});
    if (label_reading) label_reading->read(f, place, {pid, offsetof(UnwindingCpu, labels) - offsetof(UnwindingCpu, frames)});

    if (stage)
        stage->count(f, zero, counted_record(*counting, unwind != nullptr, language_walk.has_value(), labels != nullptr), done);
    else
        f.store<uint64_t>(key, 0);
    f.add(r9, sizeof(ProfileRecord));

    // Events can come fast, and in turns with what is filtered, so each asks how full the ring is. Of a clock's samples one in
    // sixteen does: a ring holds at least sixty; and each copy of a stack.
    Rings::When one_in_sixteen = [&](const std::function<void()> &ask) {
        f.load<uint64_t>(r1, RAWBPF_AT(r7, ProfileCounts, fired));
        f.and_(r1, 15);
        if (copies) {
            f.load<uint32_t>(r2, place.at(offsetof(RecordHead, ending)));
            f.and_(r2, UNWIND_COPIED);
            f.if_(r2 != 0, [&] { f.mov(r1, 0); });
        }
        f.if_(r1 == 0, ask);
    };
    rings.send(f, r8 + 0, config.wakeup_bytes, cpu, config.every ? Rings::When{} : one_in_sixteen);
    f.if_(r0 != 0, [&] { count_plainly(f, RAWBPF_AT(r7, ProfileCounts, lost_ring_full)); });
    if (stage) stage->sent(f);

    f.bind(done);
    f.ret(0);

    Built built = b.finish();
    if (!built) std::abort(); // a mistake in this file; the unit tests build every configuration
    return std::move(*built);
}

} // namespace rawbpf::inline v0
