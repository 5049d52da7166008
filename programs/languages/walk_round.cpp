// A frame of the walk, instruction by instruction: its code object, what that is called if nobody has been told yet, its caller.
//
//      r6  the state      r7  the frame's address, then its code's      r8  where in the state something is
//
// The number of a code is 64 bits that the process's number, the object's address and four of its words were mixed into (xor,
// multiply, fold the upper half down, as the keys of equal stacks). 100,000 codes share one once in some 10^9 runs.
#include "programs/languages/walk_round.h"

#include <functional>

#include <linux/bpf.h>

#include "programs/capture/mix_dsl.h"

namespace rawbpf::inline v0 {

namespace {

Mem at(size_t offset) { return language_state(offset); }

constexpr uint32_t kMostWords = LanguageWalk::kMostWords;

struct Emit {
    Code &g;
    const LanguageRound &how;

    /// dst = the word at the place that `where` (u16, of the process) names, in what was read to `read`, `mask` of its bytes.
    template <class T> void load_at(WritableReg dst, size_t where, size_t read, uint32_t mask) const {
        g.load<uint16_t>(r1, at(where));
        g.and_(r1, runtime(static_cast<int64_t>(mask)));
        g.add(r1, r6);
        g.load<T>(dst, r1 + runtime(static_cast<int64_t>(read)));
    }
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
    template <class T> void of_code(WritableReg dst, size_t where) const {
        load_at<T>(dst, where, offsetof(LanguageState, object), LANGUAGE_CODE_BYTES - 1);
    }

    void if_flag(uint32_t flag, const std::function<void()> &body) const {
        g.load<uint32_t>(r1, STATE(process.flags));
        g.and_(r1, runtime(static_cast<int64_t>(flag)));
        g.if_(r1 != 0, body);
    }

    /// As much as fits of what is at r7: it may end close to what can't be read. The first size that can be is in `bytes`.
    template <size_t n> void take_most(const uint32_t (&sizes)[n], size_t to, size_t bytes, uint32_t more, Label taken) const {
        for (const uint32_t size : sizes) {
            g.store<uint32_t>(at(bytes), runtime(static_cast<int64_t>(size + more)));
            g.call(helper::probe_read_user, at(to), runtime(static_cast<int64_t>(size)), r7);
            g.jump_if(r0 == 0, taken);
        }
    }

    /// The text whose object's address is r7: the object's bytes, or its head and then its characters. r7 to r9 are gone.
    void take_text(size_t text, size_t bytes) const {
        static constexpr uint32_t kSizes[] = {LANGUAGE_TEXT_BYTES, 160, 96, 64, 48, 40, 32},
                                  kFarSizes[] = {LANGUAGE_TEXT_BYTES - LANGUAGE_TEXT_HEAD, 128, 64, 32, 16, 8};
        constexpr int kCharacters = 24;
        const Label taken = g.label("text taken"), near = g.label("near"), none = g.label("no text");
        g.jump_if(r7 == 0, none);
        g.load<uint32_t>(r8, STATE(process.text_far));
        g.jump_if(r8 == 0, near);
        g.read_user<uint32_t>(r9, r7 + 0);
        g.and_(r9, r8);
        g.jump_if(r9 == 0, near);
        g.call(helper::probe_read_user, at(text), LANGUAGE_TEXT_HEAD, r7);
        g.read_user<uint64_t>(r7, r7 + kCharacters);
        take_most(kFarSizes, text + LANGUAGE_TEXT_HEAD, bytes, LANGUAGE_TEXT_HEAD, taken);
        g.jump(none);
        g.bind(near);
        take_most(kSizes, text, bytes, 0, taken);
        g.bind(none);
        g.store<uint32_t>(at(bytes), 0);
        g.bind(taken);
    }

    void take_name() const {
        of_code<uint64_t>(r7, offsetof(LanguageState, process.name));
        take_text(offsetof(LanguageState, code.name), offsetof(LanguageState, code.name_bytes));
    }

    void take_file() const {
        const Label one = g.label("one path");
        of_code<uint64_t>(r7, offsetof(LanguageState, process.file));
        g.load<uint32_t>(r8, STATE(process.list_mask));
        g.jump_if(r8 == 0, one);
        g.read_user<uint32_t>(r9, r7 + 0);
        g.and_(r9, r8);
        g.load<uint32_t>(r8, STATE(process.list_value));
        g.jump_if(r8 != r9, one);
        g.load<uint16_t>(r1, STATE(process.list_first));
        g.add(r7, r1);
        g.read_user<uint64_t>(r7, r7 + 0);
        g.bind(one);
        take_text(offsetof(LanguageState, code.file), offsetof(LanguageState, code.file_bytes));
    }

    void take_owner() const {
        g.store<uint32_t>(STATE(code.owner_bytes), 0);
        if_flag(LANGUAGE_OWNER, [&] {
            of_code<uint64_t>(r7, offsetof(LanguageState, process.owner));
            g.if_(r7 != 0, [&] {
                g.load<uint16_t>(r1, STATE(process.owner_name));
                g.add(r7, r1);
                g.read_user<uint64_t>(r7, r7 + 0);
                take_text(offsetof(LanguageState, code.owner), offsetof(LanguageState, code.owner_bytes));
            });
        });
    }

    /// r9 = bytes of the table, which are in the record then.
    void take_table() const {
        constexpr int kData = 16; // behind the length of a bytes object
        const Label taken = g.label("table taken"), entries = g.label("entries"), read = g.label("read the table");
        g.mov(r9, 0);
        g.load<uint32_t>(r1, STATE(process.tables));
        g.jump_if(r1 == LANGUAGE_TABLE_NONE, taken);
        of_code<uint64_t>(r7, offsetof(LanguageState, process.table));
        g.load<uint32_t>(r1, STATE(process.tables));
        g.jump_if(r1 == LANGUAGE_TABLE_ENTRIES, entries);
        g.load<uint16_t>(r1, STATE(process.table_head));
        g.add(r7, r1);
        g.read_user<uint64_t>(r9, r7 + 0);
        g.if_(r9 > runtime(LANGUAGE_TABLE_BYTES), [&] { g.mov(r9, LANGUAGE_TABLE_BYTES); });
        g.add(r7, kData);
        g.jump(read);
        g.bind(entries);
        constexpr int64_t kEntries = LANGUAGE_TABLE_BYTES - LANGUAGE_INDEX_BYTES;
        of_code<uint32_t>(r9, offsetof(LanguageState, process.entries));
        g.load<uint16_t>(r1, STATE(process.entry));
        g.mul(r9, r1);
        g.if_(r9 > runtime(kEntries), [&] { g.mov(r9, runtime(kEntries)); });
        g.bind(read);
        g.call(helper::probe_read_user, STATE(code.table), r9, r7);
        g.if_(r0 != 0, [&] { g.mov(r9, 0); });
        g.bind(taken);
    }

    /// Behind the r9 bytes of a table of entries: r9 more. How many blocks an index has isn't known, and behind its end there may
    /// be nothing: as many as can be read.
    void take_index() const {
        constexpr uint32_t kHead = 48, kBlock = 80;
        static_assert((LANGUAGE_INDEX_BYTES - kHead) % kBlock == 0);
        const Label taken = g.label("index taken");
        g.store<uint32_t>(STATE(code.index_bytes), 0);
        g.store<uint32_t>(STATE(code.table_bytes), r9);
        g.load<uint32_t>(r1, STATE(process.tables));
        g.jump_if(r1 != LANGUAGE_TABLE_ENTRIES, taken);
        g.jump_if(r9 > runtime(LANGUAGE_TABLE_BYTES - LANGUAGE_INDEX_BYTES), taken); // it never is
        of_code<uint64_t>(r7, offsetof(LanguageState, process.index));
        g.jump_if(r7 == 0, taken);
        for (uint32_t blocks = (LANGUAGE_INDEX_BYTES - kHead) / kBlock + 1; blocks-- > 0;) {
            const uint32_t size = kHead + blocks * kBlock;
            const Label smaller = g.label("smaller");
            g.mov(r1, r6);
            g.add(r1, r9);
            g.call(helper::probe_read_user, r1 + runtime(offsetof(LanguageState, code.table)),
                   runtime(static_cast<int64_t>(size)), r7);
            g.jump_if(r0 != 0, smaller);
            g.store<uint32_t>(STATE(code.index_bytes), runtime(static_cast<int64_t>(size)));
            g.add(r9, runtime(static_cast<int64_t>(size)));
            g.store<uint32_t>(STATE(code.table_bytes), r9);
            g.jump(taken);
            g.bind(smaller);
        }
        g.bind(taken);
        // By way of memory: the verifier would look at what follows once for each size.
        g.load<uint32_t>(r9, STATE(code.table_bytes));
        g.if_(r9 > runtime(LANGUAGE_TABLE_BYTES), [&] { g.mov(r9, LANGUAGE_TABLE_BYTES); });
    }

    /// What the number stands for, into a ring. r7 to r9 are gone.
    void send_code() const {
        const Label named = g.label("named");
        g.load<uint64_t>(r1, STATE(id));
        g.store<uint64_t>(STATE(code.id), r1);
        g.store<uint64_t>(STATE(code.address), r7);
        take_name();
        take_owner();
        g.store<uint32_t>(STATE(code.line), 0);
        g.store<uint32_t>(STATE(code.file_bytes), 0);
        g.store<uint32_t>(STATE(code.index_bytes), 0);
        g.mov(r9, 0);
        g.load<uint32_t>(r1, STATE(whole));
        g.store<uint32_t>(STATE(code.whole), r1);
        g.jump_if(r1 == 0, named);
        of_code<uint32_t>(r2, offsetof(LanguageState, process.line));
        g.store<uint32_t>(STATE(code.line), r2);
        take_file();
        take_table();
        take_index();
        g.bind(named);
        g.store<uint32_t>(STATE(code.table_bytes), r9);
        g.add(r9, runtime(offsetof(LanguageCode, table)));
        how.rings->output(g, STATE(code), r9, STATE(code.head.cpu), how.wakes);
    }

    /// r7 = the code object's address, of what r7 points to; whether it is whole. Jumps to `none` if it is no code.
    void find_code(Label none) const {
        const Label all = g.label("all are whole"), whole = g.label("whole");
        g.store<uint32_t>(STATE(whole), 1);
        g.load<uint32_t>(r8, STATE(process.kind_mask));
        g.jump_if(r8 == 0, all);
        g.read_user<uint32_t>(r9, r7 + 0);
        g.and_(r9, r8);
        g.load<uint32_t>(r8, STATE(process.kind_value));
        g.jump_if(r8 == r9, whole);
        g.store<uint32_t>(STATE(whole), 0);
        g.load<uint32_t>(r1, STATE(process.code_short));
        g.jump_if(r1 == 0, none);
        g.bind(whole);
        g.load<uint16_t>(r1, STATE(process.code_hop));
        g.if_(r1 != 0, [&] {
            g.add(r7, r1);
            g.read_user<uint64_t>(r7, r7 + 0);
        });
        g.bind(all);
    }

    /// One frame, whose address is in r7. Breaks behind the last.
    void round() const {
        const Label known = g.label("known"), seen = g.label("seen"), listed = g.label("listed"), out = g.label("out");
        read_frame(out);
        of_frame<uint64_t>(r7, offsetof(LanguageState, process.code));
        g.and_(r7, -8); // a tag
        g.store<uint64_t>(STATE(id), 0);
        g.load<uint64_t>(r2, STATE(process.none));
        g.jump_if(r7 == r2, listed);
        find_code(listed);
        g.load<uint32_t>(r2, STATE(process.code_bytes));
        g.load<uint32_t>(r1, STATE(whole));
        g.if_(r1 == 0, [&] { g.load<uint32_t>(r2, STATE(process.code_short)); });
        g.and_(r2, LANGUAGE_CODE_BYTES - 1);
        g.call(helper::probe_read_user, STATE(object), r2, r7);
        g.jump_if(r0 != 0, out);

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
        send_code();
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
        find_next();
        const Label next = g.label("next"), more = g.label("more"), end = g.label("end");
        g.jump_if(r2 != 0, next);
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
        for (const size_t where : {offsetof(LanguageState, process.file), offsetof(LanguageState, process.table)}) {
            of_code<uint64_t>(r5, where);
            mix_in(g);
        }
        of_code<uint32_t>(r5, offsetof(LanguageState, process.line));
        mix_in(g);
        g.bind(mixed);
    }

    /// r2 = the caller's frame, 0: there is none.
    void find_next() const {
        const Label linked = g.label("linked"), found = g.label("found");
        g.load<uint16_t>(r1, STATE(process.stride));
        g.jump_if(r1 == 0, linked);
        g.load<uint64_t>(r2, STATE(frame));
        g.add(r2, r1);
        g.load<uint64_t>(r1, STATE(end));
        g.jump_if(r2 < r1, found);
        g.mov(r2, 0);
        g.jump(found);
        g.bind(linked);
        of_frame<uint64_t>(r2, offsetof(LanguageState, process.previous));
        g.bind(found);
    }

    /// r9 = where in the code at r7 the frame is, or the line's number.
    void find_position() const {
        const Label lines = g.label("lines"), found = g.label("position");
        of_frame<uint64_t>(r9, offsetof(LanguageState, process.position));
        g.load<uint32_t>(r3, STATE(process.flags));
        g.mov(r2, r3);
        g.and_(r2, LANGUAGE_LINES);
        g.jump_if(r2 != 0, lines);
        g.mov(r2, r7);
        g.and_(r3, LANGUAGE_BASE);
        g.if_(r3 != 0, [&] { of_code<uint64_t>(r2, offsetof(LanguageState, process.base)); });
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
        g.bind(found);
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

void emit_language_round(Code &g, const LanguageRound &how) { Emit{g, how}.round(); }

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
