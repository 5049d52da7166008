// The pieces of record_dsl.h, instruction by instruction.
//
// bpf_get_stack returns at most the size that it was given, which the verifier knows; so r9 stays within the place.
#include "programs/capture/record_dsl.h"

#include <algorithm>
#include <cstddef>

#include <linux/bpf.h>

#include "programs/capture/user_mode.h"

namespace rawbpf::inline v0 {

void count_plainly(Code &f, Mem counter) {
    f.load<uint64_t>(r1, counter);
    f.add(r1, 1);
    f.store<uint64_t>(counter, r1);
}

void count_atomically(Code &f, Mem counter) {
    f.mov(r1, 1);
    f.atomic_add<uint64_t>(counter, r1);
}

void find_counts(Code &f, const MapRef &counts, const Slot &zero, Label done) {
    f.store<uint32_t>(zero, 0);
    f.call(helper::map_lookup_elem, counts, zero);
    f.jump_if(r0 == 0, done);
    f.mov(r7, r0);
}

void make_slot(Code &f, const MapRef &slots, const MapRef &blank, const Slot &key, const Slot &zero, uint64_t flags, Label none) {
    f.call(helper::map_lookup_elem, blank, zero);
    f.jump_if(r0 == 0, none);
    f.mov(r3, r0);
    f.call(helper::map_update_elem, slots, key, r3, runtime(static_cast<int64_t>(flags)));
    f.jump_if(r0 != 0, none);
    f.call(helper::map_lookup_elem, slots, key);
    f.jump_if(r0 == 0, none);
}

// Each is an element of its own, so that the verifier goes through what comes behind once and not once for each.
void take_place(Code &f, const MapRef &map, const SharedPlaces &places, const Slot &which, Label none, Label taken) {
    for (int i = 0; i < places.count; ++i) {
        f.store<uint32_t>(which, runtime(i));
        f.call(helper::map_lookup_elem, map, which);
        f.jump_if(r0 == 0, none);
        const Mem mark = r0 + runtime(static_cast<int64_t>(places.taken));
        if (places.exchange) {
            f.mov(r1, 1);
            f.exchange<uint64_t>(mark, r1);
            f.jump_if(r1 == 0, taken);
        } else {
            f.load<uint64_t>(r1, mark);
            f.if_(r1 == 0, [&] {
                f.store<uint64_t>(mark, 1);
                f.jump(taken);
            });
        }
    }
}

// A tail call on a way that the verifier sees isn't taken, and takes out: kernels leave a program that came with one on the
// thread's own stack (kernel/bpf/verifier.c, check_max_stack_depth()). One stack a CPU (6.13) would be shared with whoever
// preempts this thread in the middle of the program, as happens at uprobes and nowhere else.
void stay_on_own_stack(Code &f) {
    f.mov(r0, 0);
    f.if_(r0 != 0, [&] { f.call(helper::tail_call, r6, 0, 0); });
}

uint32_t user_frames(const UnwindProgramOptions *unwind) {
    return std::max<uint32_t>(RAWBPF_STACK_FRAMES, unwind ? unwind->depth : 0);
}

void fill_head(Code &f, const RecordPlace &place, const Slot &pid, const Slot &tid) {
    f.call(helper::ktime_get_ns);
    f.store<uint64_t>(place.at(offsetof(RecordHead, t_ns)), r0);
    f.load<uint32_t>(r1, pid);
    f.store<uint32_t>(place.at(offsetof(RecordHead, pid)), r1);
    f.load<uint32_t>(r1, tid);
    f.store<uint32_t>(place.at(offsetof(RecordHead, tid)), r1);
    f.call(helper::get_smp_processor_id);
    f.store<uint32_t>(place.at(offsetof(RecordHead, cpu)), r0);
    f.call(helper::get_current_comm, place.at(offsetof(RecordHead, comm)), sizeof(RecordHead::comm));
}

#ifdef RAWBPF_MODE_OFFSET
void load_mode(Code &f) {
    f.load<HostWord>(r1, Mem(r6, RAWBPF_MODE_OFFSET));
    if (RAWBPF_MODE_SHIFT) f.rsh(r1, RAWBPF_MODE_SHIFT);
    f.and_(r1, RAWBPF_MODE_MASK);
}
#endif

void take_kernel_stack(Code &f, const RecordPlace &place, [[maybe_unused]] UnwindContext context, bool wanted) {
    const Mem bytes = place.at(offsetof(RecordHead, kernel_bytes)), frames = r8 + runtime(place.frames);
    f.mov(r9, 0);
    if (!wanted) {
        f.store<uint32_t>(bytes, 0);
        return;
    }
    const auto take = [&] {
        f.call(helper::get_stack, r6, frames, RAWBPF_STACK_BYTES, 0);
        f.mov(r9, r0);
    };
#ifdef RAWBPF_MODE_OFFSET
    if (context != UnwindContext::other) {
        load_mode(f);
        f.if_(r1 != RAWBPF_MODE_USER, take); // in user code there is no kernel stack
    } else
#endif
        take();
    f.store<uint32_t>(bytes, r9);
    f.if_(as_signed(r9) < 0, [&] { f.mov(r9, 0); });
    // By way of where the user stack's size will be, and its ending.
    static_assert(offsetof(RecordHead, user_bytes) % 8 == 0);
    Unwinder::forget(f, r9, place.at(offsetof(RecordHead, user_bytes)), RAWBPF_STACK_BYTES);
}

std::optional<Unwinder::WalkPlace> take_user_stack(Code &f, const RecordPlace &place, const UserStack &how) {
    const Mem bytes = place.at(offsetof(RecordHead, user_bytes)), ending = place.at(offsetof(RecordHead, ending));
    if (!how.wanted) {
        f.store<uint64_t>(bytes, 0); // and the ending
        return std::nullopt;
    }
    if (!how.unwinder) {
        f.address(r2, r8 + runtime(place.frames));
        f.add(r2, r9);
        f.call(helper::get_stack, r6, r2, RAWBPF_STACK_BYTES, BPF_F_USER_STACK);
        f.store<uint32_t>(bytes, r0);
        f.store<uint32_t>(ending, 0);
        f.if_(as_signed(r0) > 0, [&] { f.add(r9, r0); });
        return std::nullopt;
    }
    Unwinder::WalkPlace walked{how.context, how.pid};
    walked.state = place.walk;
    walked.shape = place.shape;
    walked.frames = place.frames;
    walked.room = place.room;
    how.unwinder->walk(f, walked);
    if (how.room_for_copy) how.unwinder->copy_stack(f, walked, how.room_for_copy);
    f.store<uint32_t>(bytes, r0);
    f.load<uint32_t>(r1, r8 + runtime(place.walk + static_cast<int>(offsetof(UnwindState, ending))));
    f.store<uint32_t>(ending, r1);
    return walked;
}

} // namespace rawbpf::inline v0
