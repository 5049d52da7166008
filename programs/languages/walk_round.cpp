// A frame of the walk, instruction by instruction: its code object, what that is called if nobody has been told yet, its caller.
//
//      r6  the state      r7  the frame's address, then its code's      r8  where in the state something is
//
// The number of a code is 64 bits that the process's number, the object's address and four of its words were mixed into (xor,
// multiply, fold the upper half down, as the keys of equal stacks). 100,000 codes share one once in some 10^9 runs.
#include "programs/languages/walk_round.h"

#include <linux/bpf.h>

#include "programs/capture/mix_dsl.h"
#include "programs/languages/walk_places.h"

namespace rawbpf::inline v0 {

namespace {

constexpr uint32_t kMostWords = LanguageWalk::kMostWords;
constexpr uint32_t kMostInRoom = 1 << 20; // frames
constexpr uint32_t kMostCopies = 1 << 16; // of one code's instructions

struct Emit : LanguagePlaces {
    /// dst = the word at the place that `where` (u16, of the process) names, in the frame.
    template <class T> void of_frame(WritableReg dst, size_t where) const {
        g.load<uint16_t>(r1, at(where));
        g.and_(r1, LANGUAGE_WINDOW - 1);
        g.load<uint32_t>(r0, STATE(within));
        g.and_(r0, LANGUAGE_NEIGHBOURS - 1);
        g.add(r1, r0);
        g.add(r1, r6);
        g.load<T>(dst, r1 + runtime(offsetof(LanguageState, window)));
    }

    /// The frame at r7 into the window. Where callers lie close in front of it, these are read with it: as much as ends where the
    /// frame does, but nothing of the page in front, which may not be there. Jumps to `out` if it can't be read.
    void read_frame(Label out) const {
        const Label alone = g.label("alone"), read = g.label("read"), there = g.label("frame");
        g.load<uint32_t>(r9, STATE(process.window));
        g.and_(r9, LANGUAGE_WINDOW - 1);
        g.load<uint32_t>(r1, STATE(process.flags));
        g.and_(r1, LANGUAGE_NEAR);
        g.jump_if(r1 == 0, alone);
        g.mov(r1, r7);
        g.load<uint64_t>(r2, STATE(window_at));
        g.sub(r1, r2);
        g.mov(r2, LANGUAGE_NEIGHBOURS);
        g.sub(r2, r9);
        g.jump_if(r1 <= r2, there);
        g.mov(r8, r7);
        g.sub(r8, r2);
        g.mov(r1, r7);
        g.and_(r1, -4096);
        g.jump_if(r8 >= r1, read);
        g.mov(r8, r1);
        g.bind(read);
        g.store<uint64_t>(STATE(window_at), r8);
        g.call(helper::probe_read_user, STATE(window), LANGUAGE_NEIGHBOURS, r8);
        g.mov(r1, r7);
        g.sub(r1, r8);
        g.jump_if(r0 == 0, there);
        g.bind(alone);
        g.store<uint64_t>(STATE(window_at), 0);
        g.call(helper::probe_read_user, STATE(window), r9, r7);
        g.jump_if(r0 != 0, out);
        g.mov(r1, 0);
        g.bind(there);
        g.store<uint32_t>(STATE(within), r1);
    }

    /// r7 = the code object's address, of what r7 points to; whether it is whole. Jumps to `none` if it is no code.
    void find_code(Label none) const {
        const Label all = g.label("all are whole"), whole = g.label("whole");
        g.store<uint32_t>(STATE(whole), 1);
        g.load<uint32_t>(r8, STATE(process.kind_mask));
        g.jump_if(r8 == 0, all);
        g.load<uint16_t>(r1, STATE(process.kind_at));
        g.add(r1, r7);
        g.read_user<uint32_t>(r9, r1 + 0);
        g.and_(r9, r8);
        g.load<uint32_t>(r8, STATE(process.kind_value));
        g.jump_if(r8 == r9, whole);
        g.store<uint32_t>(STATE(whole), 0);
        g.load<uint32_t>(r1, STATE(process.code_short));
        g.jump_if(r1 == 0, none);
        g.bind(whole);
        if_flag(LANGUAGE_CODE_HOP, [&] {
            g.load<uint16_t>(r1, STATE(process.code_hop));
            g.add(r7, r1);
            g.read_user<uint64_t>(r7, r7 + 0);
        });
        g.bind(all);
    }

    /// r7 = the frame that is next in its room, or the leaf-most of the next room, in which none may be.
    void find_room(Label empty, Label out) const {
        const Label inside = g.label("in its room");
        g.jump_if(r7 != 0, inside);
        if_flag(LANGUAGE_ROOMS, [&] {
            const auto member = [&](WritableReg dst, size_t where) {
                g.load<uint16_t>(r1, at(where));
                g.add(r1, r7);
                g.read_user<uint64_t>(dst, r1 + 0);
            };
            g.load<uint64_t>(r7, STATE(holder));
            g.jump_if(r7 == 0, out);
            member(r8, offsetof(LanguageState, process.room_next));
            g.store<uint64_t>(STATE(holder), r8);
            member(r9, offsetof(LanguageState, process.room));
            g.store<uint64_t>(STATE(end), r9);
            member(r8, offsetof(LanguageState, process.room_top));
            g.lsh(r8, 32);
            g.rsh(r8, 32);
            g.jump_if(r8 > runtime(kMostInRoom), empty); // a negative number: there are none
            g.load<uint16_t>(r1, STATE(process.stride));
            g.mul(r8, r1);
            g.add(r9, r8);
            g.mov(r7, r9);
            g.store<uint64_t>(STATE(frame), r7);
            g.store<uint32_t>(STATE(fresh), LANGUAGE_MARK_ROOM);
        });
        g.jump_if(r7 == 0, out);
        g.bind(inside);
    }

    /// r7 = what the frame's code's word is, by its kind.
    void find_kind(Label passed, Label listed) const {
        const Label function = g.label("function"), other = g.label("other"), found = g.label("code");
        g.load<uint64_t>(r8, STATE(process.kinds));
        g.jump_if(r8 == 0, function);
        of_frame<uint8_t>(r2, offsetof(LanguageState, process.mark));
        g.and_(r2, (1 << LANGUAGE_KIND_BITS) - 1);
        g.lsh(r2, 2);
        static_assert(LANGUAGE_KIND_BITS == 4);
        g.rsh(r8, r2);
        g.and_(r8, (1 << LANGUAGE_KIND_BITS) - 1);
        g.jump_if(r8 == LANGUAGE_KIND_PASSED, passed);
        g.jump_if(r8 == LANGUAGE_KIND_FUNCTION, function);
        g.jump_if(r8 == LANGUAGE_KIND_OTHER, other);
        g.load<uint64_t>(r7, STATE(root));
        g.store<uint32_t>(STATE(whole), 0);
        g.jump_if(r8 == LANGUAGE_KIND_NONE, listed);
        g.load<uint64_t>(r1, STATE(holder));
        g.jump_if(r1 != 0, passed);
        g.load<uint64_t>(r1, STATE(end));
        g.load<uint64_t>(r2, STATE(frame));
        g.jump_if(r1 != r2, passed);
        g.jump(found);
        g.bind(other);
        of_frame<uint64_t>(r7, offsetof(LanguageState, process.code_other));
        g.jump_if(r7 == 0, passed);
        g.jump(found);
        g.bind(function);
        of_frame<uint64_t>(r7, offsetof(LanguageState, process.code));
        g.bind(found);
    }

    /// The state's `file`, by the position.
    void find_file() const {
        if_flag(LANGUAGE_CALLERS, [&] {
            g.load<uint16_t>(r1, STATE(process.line_file));
            g.load<uint64_t>(r2, STATE(at));
            g.add(r1, r2);
            g.read_user<uint64_t>(r1, r1 + 0);
            g.store<uint64_t>(STATE(file), r1);
        });
    }
    /// One frame, whose address is in r7. Breaks behind the last.
    void round() const {
        const Label known = g.label("known"), seen = g.label("seen"), listed = g.label("listed"), out = g.label("out"),
                    passed = g.label("passed"), empty = g.label("empty room");
        const Label next = g.label("next"), more = g.label("more"), end = g.label("end");
        find_room(empty, out);
        read_frame(out);
        g.store<uint64_t>(STATE(id), 0);
        find_kind(passed, listed);
        g.and_(r7, -8); // a tag
        g.load<uint64_t>(r2, STATE(process.none));
        g.jump_if(r7 == r2, listed);
        find_code(listed);
        g.load<uint32_t>(r2, STATE(process.code_bytes));
        g.load<uint32_t>(r1, STATE(whole));
        g.if_(r1 == 0, [&] { g.load<uint32_t>(r2, STATE(process.code_short)); });
        g.and_(r2, LANGUAGE_CODE_BYTES - 1);
        g.call(helper::probe_read_user, STATE(object), r2, r7);
        g.jump_if(r0 != 0, out);

        find_file();
        mix_code();
        g.or_(r4, 1); // 0 is no code's
        g.store<uint64_t>(STATE(id), r4);
        recent(r4);
        g.load<uint64_t>(r1, r9 + runtime(offsetof(LanguageState, recent)));
        g.jump_if(r1 == r4, known);
        g.call(helper::map_lookup_elem, how.codes, STATE(id));
        g.jump_if(r0 != 0, seen);
        g.load<uint32_t>(r1, STATE(sent));
        g.jump_if(r1 >= LANGUAGE_NEW_CODES, known);
        g.add(r1, 1);
        g.store<uint32_t>(STATE(sent), r1);
        const Slot address = g.stack<uint64_t>("code"), yes = g.stack<uint32_t>("yes");
        g.store<uint64_t>(address, r7);
        emit_language_code(g, how);
        g.load<uint64_t>(r7, address);
        g.if_(r0 == 0, [&] {
            g.store<uint32_t>(yes, 1);
            g.call(helper::map_update_elem, how.codes, STATE(id), yes, BPF_ANY);
        });
        g.jump(known);
        g.bind(seen);
        g.load<uint64_t>(r1, STATE(id));
        recent(r1);
        g.store<uint64_t>(r9 + runtime(offsetof(LanguageState, recent)), r1);
        g.bind(known);
        g.bind(listed);
        add_words();
        g.load<uint32_t>(r1, STATE(words));
        g.jump_if(r1 > runtime(kMostWords - 2), end);
        g.bind(passed);
        find_next();
        g.jump_if(r2 != 0, next);
        if_flag(LANGUAGE_ROOMS, [&] { g.jump(next); }); // the next round looks for the next one
        g.bind(out);
        g.load<uint32_t>(r1, STATE(process.flags));
        g.and_(r1, LANGUAGE_SEVERAL);
        g.jump_if(r1 == 0, end);
        end_list();
        emit_next_list(g, end);
        g.jump(more);
        g.bind(end);
        g.store<uint64_t>(STATE(frame), 0);
        g.break_();
        g.bind(next);
        g.store<uint64_t>(STATE(frame), r2);
        g.bind(more);
        g.bind(empty);
    }

    /// The two words behind a list, whose last frame was walked.
    void end_list() const {
        const Label near = g.label("one hop");
        g.load<uint64_t>(r3, STATE(frame));
        g.load<uint32_t>(r1, STATE(process.hops));
        g.jump_if(r1 <= 1, near);
        g.load<uint64_t>(r3, STATE(holder));
        g.bind(near);
        g.load_imm64(r2, uint64_t{LANGUAGE_IS_LIST} << 56);
        append();
    }

    /// r9 = the state and as many bytes more as the place of a number in `recent` is behind its beginning.
    void recent(Reg number) const {
        g.mov(r9, number);
        g.and_(r9, runtime(LANGUAGE_RECENT - 1));
        g.lsh(r9, 3);
        g.add(r9, r6);
    }

    /// r4 = the process, the code at r7 and its words, mixed.
    void mix_code() const {
        const Label mixed = g.label("mixed");
        g.load_imm64(r3, kMixMultiplier);
        g.load<uint32_t>(r4, STATE(pid));
        g.load<uint32_t>(r1, STATE(process.flags));
        g.and_(r1, LANGUAGE_COPIED);
        g.mov(r5, r7);
        g.if_(r1 != 0, [&] { g.mov(r5, 0); });
        mix_in(g);
        of_code<uint64_t>(r5, offsetof(LanguageState, process.name));
        mix_in(g);
        g.load<uint32_t>(r1, STATE(process.flags));
        g.and_(r1, LANGUAGE_OWNER);
        g.if_(r1 != 0, [&] {
            of_code<uint64_t>(r5, offsetof(LanguageState, process.owner));
            mix_in(g);
        });
        g.load<uint32_t>(r1, STATE(whole));
        g.jump_if(r1 == 0, mixed);
        load_file(r5);
        mix_in(g);
        of_code<uint64_t>(r5, offsetof(LanguageState, process.table));
        mix_in(g);
        of_code<uint32_t>(r5, offsetof(LanguageState, process.line));
        mix_in(g);
        g.bind(mixed);
    }

    /// r2 = the caller's frame, 0: there is none.
    void find_next() const {
        const Label linked = g.label("linked"), found = g.label("found"), outwards = g.label("outwards");
        g.load<uint16_t>(r1, STATE(process.stride));
        g.jump_if(r1 == 0, linked);
        g.load<uint64_t>(r2, STATE(frame));
        g.load<uint32_t>(r3, STATE(process.flags));
        g.and_(r3, LANGUAGE_ROOMS);
        g.jump_if(r3 == 0, outwards);
        g.load<uint64_t>(r3, STATE(end));
        g.sub(r2, r1);
        g.jump_if(r2 >= r3, found);
        g.mov(r2, 0);
        g.jump(found);
        g.bind(outwards);
        g.add(r2, r1);
        g.load<uint64_t>(r1, STATE(end));
        g.jump_if(r2 < r1, found);
        g.mov(r2, 0);
        g.jump(found);
        g.bind(linked);
        of_frame<uint64_t>(r2, offsetof(LanguageState, process.previous));
        g.bind(found);
    }

    /// r2 = where the code at r7 would begin if the instructions that this frame's thread runs were its own.
    void find_copy() const {
        const Label own = g.label("its own instructions");
        of_frame<uint32_t>(r8, offsetof(LanguageState, process.copy));
        g.mov(r2, r7);
        g.jump_if(r8 == 0, own);
        g.jump_if(r8 > runtime(kMostCopies), own);
        of_code<uint64_t>(r1, offsetof(LanguageState, process.copies));
        g.lsh(r8, 3);
        g.add(r1, r8);
        g.read_user<uint64_t>(r2, r1 + 8);
        g.load<uint16_t>(r1, STATE(process.instructions));
        g.sub(r2, r1);
        g.bind(own);
    }

    /// r9 = where in the code at r7 the frame is, or the line's number.
    void find_position() const {
        const Label lines = g.label("lines"), found = g.label("position");
        of_frame<uint64_t>(r9, offsetof(LanguageState, process.position));
        g.load<uint32_t>(r3, STATE(process.flags));
        g.mov(r2, r3);
        g.and_(r2, LANGUAGE_CALLERS);
        g.if_(r2 != 0, [&] {
            g.load<uint64_t>(r2, STATE(at));
            g.store<uint64_t>(STATE(at), r9);
            g.mov(r9, r2);
        });
        g.mov(r2, r3);
        g.and_(r2, LANGUAGE_LINES);
        g.jump_if(r2 != 0, lines);
        g.mov(r2, r7);
        g.and_(r3, LANGUAGE_BASE);
        g.if_(r3 != 0, [&] { of_code<uint64_t>(r2, offsetof(LanguageState, process.base)); });
        if_flag(LANGUAGE_THREAD_COPIES, [&] { find_copy(); });
        g.sub(r9, r2);
        g.jump(found);
        g.bind(lines);
        g.load<uint16_t>(r1, STATE(process.line_of));
        g.add(r1, r9);
        g.mov(r9, 0);
        g.load<uint32_t>(r2, STATE(whole));
        g.if_(r2 != 0, [&] { g.read_user<uint32_t>(r9, r1 + 0); });
        g.bind(found);
    }

    /// r3 = the mark.
    void find_mark() const {
        const Label near = g.label("near mark"), found = g.label("mark");
        g.load<uint32_t>(r2, STATE(process.flags));
        g.and_(r2, LANGUAGE_MARK_FAR);
        g.jump_if(r2 == 0, near);
        of_frame<uint64_t>(r1, offsetof(LanguageState, process.mark));
        g.read_user<uint8_t>(r3, r1 + 0);
        g.jump(found);
        g.bind(near);
        of_frame<uint8_t>(r3, offsetof(LanguageState, process.mark));
        g.load<uint64_t>(r2, STATE(process.kinds));
        g.jump_if(r2 == 0, found);
        g.load<uint16_t>(r2, STATE(process.mark_mask));
        g.and_(r3, r2);
        of_frame<uint64_t>(r2, offsetof(LanguageState, process.mark_zero));
        g.if_(r2 == 0, [&] { g.or_(r3, LANGUAGE_MARK_ZERO); });
        g.load<uint32_t>(r2, STATE(fresh));
        g.or_(r3, r2);
        g.store<uint32_t>(STATE(fresh), 0);
        g.bind(found);
        static_assert((LANGUAGE_IS_LIST & LANGUAGE_MARKS) != LANGUAGE_IS_LIST &&
                      (LANGUAGE_IS_THREAD & LANGUAGE_MARKS) != LANGUAGE_IS_THREAD);
        g.and_(r3, LANGUAGE_MARKS);
    }

    /// r3 and r2, the frame's words.
    void mix_words() const {
        g.mov(r1, r2);
        g.mov(r5, r3);
        g.load_imm64(r3, kMixMultiplier);
        g.load<uint64_t>(r4, STATE(frames.number));
        mix_in(g);
        g.mov(r5, r1);
        mix_in(g);
        g.store<uint64_t>(STATE(frames.number), r4);
    }

    /// The id, and where in the code r7.
    void add_words() const {
        find_position();
        find_mark();
        g.mov(r2, r9);
        g.lsh(r2, 8);
        g.rsh(r2, 8);
        g.lsh(r3, 56);
        g.or_(r2, r3);
        g.load<uint64_t>(r3, STATE(id));
        append();
    }

    /// r3 and r2, if there is room. r1 to r5, r8, r9 are gone.
    void append() const {
        g.load<uint32_t>(r8, STATE(words));
        const Label full = g.label("full");
        g.jump_if(r8 > runtime(kMostWords - 2), full);
        g.mov(r9, r8);
        g.lsh(r9, 3);
        g.add(r9, r6);
        g.store<uint64_t>(r9 + runtime(offsetof(LanguageState, frames.words)), r3);
        g.store<uint64_t>(r9 + runtime(offsetof(LanguageState, frames.words) + 8), r2);
        if (how.numbers) mix_words();
        g.add(r8, 2);
        g.store<uint32_t>(STATE(words), r8);
        g.bind(full);
    }
};

} // namespace

void emit_language_round(Code &g, const LanguageRound &how) { Emit{{g, how}}.round(); }

void emit_next_list(Code &g, Label none) {
    g.load<uint32_t>(r1, STATE(waiting));
    g.jump_if(r1 == 0, none);
    g.sub(r1, 1);
    g.store<uint32_t>(STATE(waiting), r1);
    static_assert(LANGUAGE_OTHERS == 3);
    g.and_(r1, LANGUAGE_OTHERS);
    g.lsh(r1, 4);
    g.add(r1, r6);
    g.load<uint64_t>(r2, r1 + runtime(offsetof(LanguageState, others)));
    g.store<uint64_t>(STATE(frame), r2);
    g.load<uint64_t>(r2, r1 + runtime(offsetof(LanguageState, others) + 8));
    g.store<uint64_t>(STATE(holder), r2);
}

} // namespace rawbpf::inline v0
