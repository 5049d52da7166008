// The walk, instruction by instruction.
//
//      r6  the state, one a CPU      r7  the frame's address, then its code's      r8  where in the state something is
//
// What a language has and others don't is a number in LanguageProcess, and whoever has it not jumps over it.
//
// All that comes from the process is any number: places in a frame and in a code object are masked to what was read of them, a
// walk has LANGUAGE_ROUNDS rounds at most, and what can't be read ends it. A frame that is its own caller, or a circle of frames,
// fills the list, which user space sees.
#include "programs/languages/walk_dsl.h"

#include <cstddef>
#include <functional>

#include <linux/bpf.h>

#include "programs/languages/thread_pointer_dsl.h"
#include "programs/languages/walk_round.h"
#include "runtime/unwind/layout.h"

namespace rawbpf::inline v0 {

namespace {

constexpr uint32_t kCodes = 16384; // that are known to have been sent; the oldest are sent again
constexpr uint32_t kProcesses = 4096;
constexpr uint32_t kPlaces = 4; // a CPU, of programs that are preempted in the middle of a walk

/// Of what the hops led to, in r7, which is a frame or the holder of the leaf's room: where the frames end that lie one behind
/// the other, or that the first round looks for the frame. r7 is gone.
void find_first(Code &f) {
    const Label rooms = f.label("rooms"), found = f.label("first found");
    f.load<uint32_t>(r1, STATE(process.flags));
    f.and_(r1, LANGUAGE_ROOMS);
    f.jump_if(r1 != 0, rooms);
    f.load<uint16_t>(r1, STATE(process.stride));
    f.if_(r1 != 0, [&] {
        f.load<uint64_t>(r7, STATE(holder));
        f.load<uint16_t>(r1, STATE(process.room_words));
        f.add(r1, r7);
        f.read_user<uint64_t>(r1, r1 + 0);
        f.lsh(r1, 3);
        f.store<uint64_t>(STATE(end), r1);
        f.load<uint16_t>(r1, STATE(process.room));
        f.add(r1, r7);
        f.read_user<uint64_t>(r1, r1 + 0);
        f.load<uint64_t>(r2, STATE(end));
        f.add(r1, r2);
        f.load<uint16_t>(r2, STATE(process.stride));
        f.sub(r1, r2);
        f.store<uint64_t>(STATE(end), r1);
    });
    f.jump(found);
    f.bind(rooms);
    f.store<uint64_t>(STATE(holder), r7);
    f.store<uint64_t>(STATE(frame), 0);
    f.bind(found);
}

/// From what the first word is, in r7, to the first frame; 0: there is none. r0 to r5 are gone.
void follow_hops(Code &f) {
    for (int hop = 0; hop < LANGUAGE_HOPS; ++hop) {
        const Label there = f.label("there");
        f.load<uint32_t>(r1, STATE(process.hops));
        f.jump_if(r1 <= runtime(hop), there);
        f.jump_if(r7 == 0, there);
        f.store<uint64_t>(STATE(holder), r7);
        f.load<uint32_t>(r1, language_state(offsetof(LanguageState, process.hop) + static_cast<size_t>(hop) * 4));
        f.add(r7, r1);
        f.read_user<uint64_t>(r7, r7 + 0);
        f.bind(there);
    }
}

/// r7 = the word that `where` (u16, of the process) names in what is at r7. r0 to r5 are gone.
void read_at(Code &f, size_t where) {
    f.load<uint16_t>(r1, language_state(where));
    f.add(r7, r1);
    f.read_user<uint64_t>(r7, r7 + 0);
}

/// One step of the search for the thread's other states: a state, or the next list of states.
void search_round(Code &g) {
    const Label list = g.label("next states"), next = g.label("next state"), out = g.label("all states"), more = g.label("more");
    g.load<uint64_t>(r7, STATE(other_state));
    g.jump_if(r7 == 0, list);
    g.load<uint64_t>(r8, STATE(first));
    g.jump_if(r7 == r8, next);
    read_at(g, offsetof(LanguageState, process.state_thread));
    g.load<uint64_t>(r8, STATE(thread));
    g.load<uint16_t>(r1, STATE(process.thread_less));
    g.sub(r8, r1);
    g.jump_if(r7 != r8, next);
    g.load<uint64_t>(r7, STATE(other_state));
    follow_hops(g);
    g.jump_if(r7 == 0, next);
    g.load<uint32_t>(r8, STATE(waiting));
    g.jump_if(r8 >= LANGUAGE_OTHERS, out);
    g.mov(r1, r8);
    g.lsh(r1, 4);
    g.add(r1, r6);
    g.store<uint64_t>(r1 + runtime(offsetof(LanguageState, others)), r7);
    g.load<uint64_t>(r2, STATE(holder));
    g.store<uint64_t>(r1 + runtime(offsetof(LanguageState, others) + 8), r2);
    g.add(r8, 1);
    g.store<uint32_t>(STATE(waiting), r8);
    g.bind(next);
    g.load<uint64_t>(r7, STATE(other_state));
    read_at(g, offsetof(LanguageState, process.state_next));
    g.store<uint64_t>(STATE(other_state), r7);
    g.jump(more);
    g.bind(list);
    g.load<uint64_t>(r7, STATE(other));
    g.jump_if(r7 == 0, out);
    read_at(g, offsetof(LanguageState, process.other_first));
    g.store<uint64_t>(STATE(other_state), r7);
    g.load<uint64_t>(r7, STATE(other));
    read_at(g, offsetof(LanguageState, process.other_next));
    g.store<uint64_t>(STATE(other), r7);
    g.jump(more);
    g.bind(out);
    g.break_();
    g.bind(more);
}

/// The thread's other states, whose frames wait. r0 to r5, r7 are gone.
void find_others(Code &f, const Slot &state) {
    constexpr int kMostStates = 256; // that are looked at
    f.load<uint64_t>(r7, STATE(process.others));
    f.read_user<uint64_t>(r7, r7 + 0);
    f.store<uint64_t>(STATE(other), r7);
    f.store<uint64_t>(STATE(other_state), 0);
    f.load<uint64_t>(r7, STATE(holder));
    f.store<uint64_t>(STATE(end), r7); // of frames that lie one behind the other, which these don't
    f.bpf_loop(kMostStates, state, [&](Code &g) {
        g.load<uint64_t>(r6, r2);
        search_round(g);
    });
    f.load<uint64_t>(r7, STATE(end));
    f.store<uint64_t>(STATE(holder), r7);
}

} // namespace

LanguageWalk::LanguageWalk(Builder &b, const Programs &programs)
    : programs_(programs), processes_(b.hash<uint32_t, LanguageProcess>("language_processes", kProcesses)),
      codes_(b.lru_hash<uint64_t, uint32_t>("language_codes", kCodes)),
      state_(b.percpu_array<LanguageState>("language_state", programs.preempted ? kPlaces : 1)) {}

// r6 = the state, r0 to r5 are gone.
void LanguageWalk::take_state(Code &f, const Slot &zero, Label none) const {
    if (!programs_.preempted) {
        f.call(helper::map_lookup_elem, state_, zero);
        f.jump_if(r0 == 0, none);
        f.mov(r6, r0);
        return;
    }
    const Label taken = f.label("state taken"), all = f.label("all states taken");
    take_place(f, state_, {offsetof(LanguageState, taken), kPlaces, true}, zero, all, taken);
    f.bind(all);
    f.store<uint32_t>(zero, 0);
    f.jump(none);
    f.bind(taken);
    f.mov(r6, r0);
    f.load<uint32_t>(r1, zero);
    f.store<uint32_t>(STATE(which), r1);
    f.store<uint32_t>(zero, 0);
}

// What this CPU remembers to have been sent is forgotten where user space has asked for some of it again. r1, r2 are gone.
void LanguageWalk::forget_codes(Code &f) const {
    const Label remembers = f.label("remembers");
    f.load<uint32_t>(r1, STATE(process.again));
    f.load<uint32_t>(r2, STATE(again));
    f.jump_if(r1 == r2, remembers);
    f.store<uint32_t>(STATE(again), r1);
    for (size_t i = 0; i < LANGUAGE_RECENT; ++i) f.store<uint64_t>(language_state(offsetof(LanguageState, recent) + i * 8), 0);
    f.bind(remembers);
}

// A code's record begins as the tool's own does, by `head`: 48 bytes to STATE(code.head).
void LanguageWalk::begin_codes(Code &f, const std::function<void()> &head) const {
    head();
    f.store<uint32_t>(STATE(code.head.kernel_bytes), 0);
    f.store<uint32_t>(STATE(code.head.user_bytes), LANGUAGE_RECORD);
    f.store<uint32_t>(STATE(code.head.ending), LANGUAGE_IS_CODE);
}

// The frames, to the state's list. In: r6 the state, r7 the LanguageProcess. r0 to r7 are gone, but r6. Goes on at `listed`.
void LanguageWalk::list(Code &f, const Slot &pid, const Slot &state, const Rings &rings, Label listed) {
    f.store<uint64_t>(state, r6);
    static_assert(sizeof(LanguageProcess) % 8 == 0);
    for (size_t i = 0; i < sizeof(LanguageProcess); i += 8) {
        f.load<uint64_t>(r1, r7 + runtime(static_cast<int64_t>(i)));
        f.store<uint64_t>(STATE(process) + runtime(static_cast<int64_t>(i)), r1);
    }
    forget_codes(f);
    f.store<uint64_t>(STATE(words), 0); // and `sent`
    if (numbers_) f.store<uint64_t>(STATE(frames.number), 0);
    f.load<uint32_t>(r1, pid);
    f.store<uint32_t>(STATE(pid), r1);

    // r7 = the first word's address.
    f.load<uint64_t>(r7, STATE(process.start));
    f.load<uint32_t>(r1, STATE(process.flags));
    f.and_(r1, LANGUAGE_BY_THREAD);
    f.if_(r1 != 0, [&] {
        load_thread_pointer(f, programs_.arch);
        f.store<uint64_t>(STATE(thread), r1);
        f.add(r7, r1);
        f.load<uint64_t>(r1, STATE(process.key));
        f.if_(r1 != 0, [&] {
            f.read_user<uint32_t>(r1, r1 + 0);
            f.lsh(r1, 4);
            f.add(r7, r1);
        });
        f.load<uint32_t>(r2, STATE(process.flags));
        f.and_(r2, LANGUAGE_LEARN);
        f.if_(r2 != 0, [&] {
            f.store<uint64_t>(STATE(frames.words), r7); // `start` is 0 then
            f.load_imm64(r1, uint64_t{LANGUAGE_IS_THREAD} << 56);
            f.store<uint64_t>(STATE(frames.words) + 8, r1);
            f.store<uint32_t>(STATE(words), 2);
            f.jump(listed);
        });
    });
    f.store<uint64_t>(STATE(window_at), 0);
    f.store<uint32_t>(STATE(waiting), 0);
    f.read_user<uint64_t>(r7, r7 + 0);
    f.load<uint32_t>(r1, STATE(process.flags));
    f.and_(r1, LANGUAGE_CALLERS);
    f.if_(r1 != 0, [&] {
        const auto member = [&](Mem where, Mem to) {
            f.load<uint16_t>(r1, where);
            f.add(r1, r7);
            f.read_user<uint64_t>(r1, r1 + 0);
            f.store<uint64_t>(to, r1);
        };
        member(STATE(process.leaf), STATE(at));
        member(STATE(process.root), STATE(root));
    });
    f.store<uint64_t>(STATE(first), r7);
    follow_hops(f);
    f.store<uint64_t>(STATE(frame), r7);
    f.load<uint32_t>(r1, STATE(process.flags));
    f.and_(r1, LANGUAGE_SEVERAL);
    f.if_(r1 != 0, [&] {
        find_others(f, state);
        f.load<uint64_t>(r1, STATE(frame));
        f.if_(r1 == 0, [&] { emit_next_list(f, listed); });
    });
    f.load<uint64_t>(r7, STATE(frame));
    f.if_(r7 != 0, [&] {
        find_first(f);
        f.bpf_loop(LANGUAGE_ROUNDS, state, [&](Code &g) {
            g.load<uint64_t>(r6, r2);
            g.load<uint64_t>(r7, STATE(frame));
            emit_language_round(g, {codes_, &rings, programs_.wakes, numbers_});
        });
    });
    f.bind(listed);
}

namespace {

/// r7 = bytes of the list's words.
void load_words(Code &f) {
    f.load<uint32_t>(r7, STATE(words));
    f.if_(r7 > runtime(LanguageWalk::kMostWords),
          [&] { f.mov(r7, runtime(LanguageWalk::kMostWords)); }); // it never is; the verifier wants to see it
}

} // namespace

void LanguageWalk::walk(Code &f, const RecordPlace &place, const How &how) {
    const Mem ending = place.at(offsetof(RecordHead, ending));
    const Label done = f.label("no language"), restore = f.label("restore");
    // Only of a process whose image is known: what was written down of it is of the program that it runs now.
    f.load<uint32_t>(r1, ending);
    f.and_(r1, UNWIND_TABLES);
    f.jump_if(r1 == 0, done);
    f.call(helper::map_lookup_elem, processes_, how.pid);
    f.jump_if(r0 == 0, done);
    f.store<uint64_t>(how.counts, r7);
    f.mov(r7, r0);
    take_state(f, how.zero, restore);
    begin_codes(f, [&] {
        for (size_t i = 0; i < sizeof(RecordHead); i += 8) {
            f.load<uint64_t>(r1, r8 + runtime(place.head + static_cast<int64_t>(i)));
            f.store<uint64_t>(STATE(code.head) + runtime(static_cast<int64_t>(i)), r1);
        }
    });
    list(f, how.pid, how.state, *how.rings, f.label("listed"));
    load_words(f);
    f.load<uint32_t>(r1, ending);
    f.mov(r2, r7);
    f.lsh(r2, 16);
    f.or_(r1, r2);
    f.load<uint32_t>(r2, STATE(process.flags));
    f.and_(r2, LANGUAGE_UNPROVEN);
    f.or_(r1, r2);
    f.store<uint32_t>(ending, r1);
    f.lsh(r7, 3);
    f.if_(r9 > runtime(how.most), [&] { f.mov(r9, runtime(how.most)); });
    f.mov(r1, r8);
    f.add(r1, r9);
    f.add(r1, runtime(place.frames));
    f.mov(r3, r6);
    f.add(r3, runtime(offsetof(LanguageState, frames.words)));
    f.mov(r2, r7);
    f.call(helper::probe_read_kernel, r1 + 0, r2, r3 + 0);
    f.add(r9, r7);
    if (programs_.preempted) f.store<uint64_t>(STATE(taken), 0);
    f.bind(restore);
    f.load<uint64_t>(r7, how.counts);
    f.bind(done);
}

void LanguageWalk::join(OffCpuTool &tool) {
    tool.most_listed = kMostWords;
    tool.list = [this, &rings = tool.rings](Code &f, const RecordPlace &place, const Slot &pid, const Slot &zero) {
        walk(f, place, {pid, zero, f.stack<uint64_t>("counts"), f.stack<uint64_t>("state"), &rings, uint64_t{place.room} * 8});
    };
}

void LanguageWalk::begin(Code &f, const Apart &apart) {
    const Label done = f.label("no language"), restore = f.label("restore");
    numbers_ = true;
    f.store<uint64_t>(apart.number, 0);
    f.store<uint32_t>(apart.which, kPlaces); // no state has that number
    f.call(helper::map_lookup_elem, processes_, apart.pid);
    f.jump_if(r0 == 0, done);
    f.store<uint64_t>(apart.context, r6);
    f.store<uint64_t>(apart.counts, r7);
    f.mov(r7, r0);
    take_state(f, apart.zero, restore);
    begin_codes(f, [&] {
        for (size_t i = 0; i < sizeof(RecordHead); i += 8)
            f.store<uint64_t>(STATE(code.head) + runtime(static_cast<int64_t>(i)), 0);
        f.call(helper::ktime_get_ns);
        f.store<uint64_t>(STATE(code.head.t_ns), r0);
        f.load<uint32_t>(r1, apart.pid);
        f.store<uint32_t>(STATE(code.head.pid), r1);
        f.load<uint32_t>(r1, apart.tid);
        f.store<uint32_t>(STATE(code.head.tid), r1);
        f.call(helper::get_smp_processor_id);
        f.store<uint32_t>(STATE(code.head.cpu), r0);
    });
    list(f, apart.pid, apart.state, *apart.rings, f.label("listed"));
    // By way of memory: these are numbers now, whichever way led here, and the verifier looks at what follows once.
    f.load<uint32_t>(r1, STATE(which));
    f.store<uint32_t>(apart.which, r1);
    f.load<uint32_t>(r1, STATE(words));
    f.jump_if(r1 == 0, restore);
    f.load<uint64_t>(r1, STATE(frames.number));
    f.or_(r1, 1);
    f.store<uint64_t>(STATE(frames.number), r1);
    f.store<uint64_t>(apart.number, r1);
    f.bind(restore);
    f.load<uint64_t>(r7, apart.counts);
    f.load<uint64_t>(r6, apart.context);
    f.bind(done);
}

// r0 = the state that begin() took.
void LanguageWalk::find_state(Code &f, const Apart &apart, Label none) const {
    f.call(helper::map_lookup_elem, state_, apart.which);
    f.jump_if(r0 == 0, none);
}

void LanguageWalk::send(Code &f, const Apart &apart) const {
    const Label none = f.label("no frames"), restore = f.label("restore");
    f.load<uint64_t>(r1, apart.number);
    f.jump_if(r1 == 0, none);
    find_state(f, apart, none);
    f.store<uint64_t>(apart.context, r6);
    f.store<uint64_t>(apart.counts, r7);
    f.mov(r6, r0);
    for (size_t i = 0; i < sizeof(RecordHead); i += 8) {
        f.load<uint64_t>(r1, STATE(code.head) + runtime(static_cast<int64_t>(i)));
        f.store<uint64_t>(STATE(frames.head) + runtime(static_cast<int64_t>(i)), r1);
    }
    f.store<uint32_t>(STATE(frames.head.ending), LANGUAGE_IS_FRAMES);
    load_words(f);
    f.lsh(r7, 3);
    f.add(r7, runtime(offsetof(LanguageFrames, words)));
    apart.rings->output(f, STATE(frames), r7, STATE(frames.head.cpu), programs_.wakes);
    f.bind(restore);
    f.load<uint64_t>(r7, apart.counts);
    f.load<uint64_t>(r6, apart.context);
    f.bind(none);
}

void LanguageWalk::end(Code &f, const Apart &apart) const {
    const Label none = f.label("no state");
    find_state(f, apart, none);
    f.store<uint64_t>(RAWBPF_AT(r0, LanguageState, taken), 0);
    f.bind(none);
}

} // namespace rawbpf::inline v0
