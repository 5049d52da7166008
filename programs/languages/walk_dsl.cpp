// The walk, instruction by instruction.
//
//      r6  the state, one a CPU      r7  the frame's address, then its code's      r8  where in the state something is
//
// All that comes from the process is any number: places in a frame and in a code object are masked to what was read of them, a
// walk has LANGUAGE_FRAMES rounds at most, and what can't be read ends it. A frame that is its own caller, or a circle of frames,
// fills the list, which user space sees.
//
// The number of a code is 64 bits that the process's number, the object's address and four of its words were mixed into (xor,
// multiply, fold the upper half down, as the keys of equal stacks). 100,000 codes share one once in some 10^9 runs.
#include "programs/languages/walk_dsl.h"

#include <cstddef>

#include <linux/bpf.h>

#include "programs/capture/mix_dsl.h"
#include "runtime/unwind/layout.h"

namespace rawbpf::inline v0 {

namespace {

constexpr uint32_t kCodes = 16384; // that are known to have been sent; the oldest are sent again
constexpr uint32_t kProcesses = 4096;

// What a walk keeps, one a CPU.
struct LanguageState {
    LanguageProcess process;
    uint64_t frame; // next
    uint64_t id;    // of its code
    uint32_t words, sent, pid, unused;
    uint64_t window[LANGUAGE_WINDOW / 8 + 1];     // a frame; a word more, which the verifier takes to be reachable
    uint64_t object[LANGUAGE_CODE_BYTES / 8 + 1]; // a code object, likewise
    uint64_t list[LanguageWalk::kMostWords];
    LanguageCode code;
};

Mem at(size_t offset) { return r6 + runtime(static_cast<int64_t>(offset)); }

#define STATE(member) at(offsetof(LanguageState, member))

} // namespace

struct LanguageWalk::Emit {
    Code &g;
    const LanguageWalk &walk;

    /// dst = the word at the place that `where` (u16, of the process) names, in what was read to `read`, `mask` of its bytes.
    template <class T> void load_at(WritableReg dst, size_t where, size_t read, uint32_t mask) const {
        g.load<uint16_t>(r1, at(where));
        g.and_(r1, runtime(static_cast<int64_t>(mask)));
        g.add(r1, r6);
        g.load<T>(dst, r1 + runtime(static_cast<int64_t>(read)));
    }
    template <class T> void of_frame(WritableReg dst, size_t where) const {
        load_at<T>(dst, where, offsetof(LanguageState, window), LANGUAGE_WINDOW - 1);
    }
    template <class T> void of_code(WritableReg dst, size_t where) const {
        load_at<T>(dst, where, offsetof(LanguageState, object), LANGUAGE_CODE_BYTES - 1);
    }

    /// As much as fits of the object whose address is in the code object at `where`: its text may end close to what can't be
    /// read.
    void take_text(size_t where, size_t text, size_t bytes) const {
        const Label taken = g.label("text taken");
        of_code<uint64_t>(r7, where);
        for (const uint32_t size : {LANGUAGE_TEXT_BYTES, 160, 96, 64, 48}) {
            g.store<uint32_t>(at(bytes), runtime(static_cast<int64_t>(size)));
            g.call(helper::probe_read_user, at(text), runtime(static_cast<int64_t>(size)), r7);
            g.jump_if(r0 == 0, taken);
        }
        g.store<uint32_t>(at(bytes), 0);
        g.bind(taken);
    }

    /// r9 = bytes of the table, which are in the record then.
    void take_table() const {
        constexpr int kLength = 16, kData = 32; // of a bytes object
        g.mov(r9, 0);
        of_code<uint64_t>(r7, offsetof(LanguageState, process.table));
        g.read_user<uint64_t>(r9, r7 + kLength);
        g.if_(r9 > runtime(LANGUAGE_TABLE_BYTES), [&] { g.mov(r9, LANGUAGE_TABLE_BYTES); });
        g.add(r7, kData);
        g.call(helper::probe_read_user, STATE(code.table), r9, r7);
        g.if_(r0 != 0, [&] { g.mov(r9, 0); });
        g.store<uint32_t>(STATE(code.table_bytes), r9);
    }

    /// What the number stands for, into a ring. r7 to r9 are gone.
    void send_code(const Rings &rings) const {
        g.load<uint64_t>(r1, STATE(id));
        g.store<uint64_t>(STATE(code.id), r1);
        g.store<uint64_t>(STATE(code.address), r7);
        of_code<uint32_t>(r2, offsetof(LanguageState, process.line));
        g.store<uint32_t>(STATE(code.line), r2);
        take_text(offsetof(LanguageState, process.name), offsetof(LanguageState, code.name),
                  offsetof(LanguageState, code.name_bytes));
        take_text(offsetof(LanguageState, process.file), offsetof(LanguageState, code.file),
                  offsetof(LanguageState, code.file_bytes));
        take_table();
        g.add(r9, runtime(offsetof(LanguageCode, table)));
        rings.output(g, STATE(code), r9, STATE(code.head.cpu));
    }

    /// One frame, whose address is in r7. Breaks behind the last.
    void round(const Rings &rings) const {
        const Label known = g.label("known"), listed = g.label("listed"), out = g.label("out");
        g.load<uint32_t>(r2, STATE(process.window));
        g.and_(r2, LANGUAGE_WINDOW - 1);
        g.call(helper::probe_read_user, STATE(window), r2, r7);
        g.jump_if(r0 != 0, out);
        of_frame<uint64_t>(r7, offsetof(LanguageState, process.code));
        g.and_(r7, -8); // a tag
        g.store<uint64_t>(STATE(id), 0);
        g.load<uint64_t>(r2, STATE(process.none));
        g.jump_if(r7 == r2, listed);
        g.load<uint32_t>(r2, STATE(process.code_bytes));
        g.and_(r2, LANGUAGE_CODE_BYTES - 1);
        g.call(helper::probe_read_user, STATE(object), r2, r7);
        g.jump_if(r0 != 0, out);

        g.load_imm64(r3, kMixMultiplier);
        g.load<uint32_t>(r4, STATE(pid));
        g.mov(r5, r7);
        mix_in(g);
        for (const size_t where : {offsetof(LanguageState, process.name), offsetof(LanguageState, process.file),
                                   offsetof(LanguageState, process.table)}) {
            of_code<uint64_t>(r5, where);
            mix_in(g);
        }
        of_code<uint32_t>(r5, offsetof(LanguageState, process.line));
        mix_in(g);
        g.or_(r4, 1); // 0 is no code's
        g.store<uint64_t>(STATE(id), r4);
        g.call(helper::map_lookup_elem, walk.codes_, STATE(id));
        g.jump_if(r0 != 0, known);
        g.load<uint32_t>(r1, STATE(sent));
        g.jump_if(r1 >= LANGUAGE_NEW_CODES, known);
        g.add(r1, 1);
        g.store<uint32_t>(STATE(sent), r1);
        const Slot address = g.stack<uint64_t>("code"), yes = g.stack<uint32_t>("yes");
        g.store<uint64_t>(address, r7);
        send_code(rings);
        g.load<uint64_t>(r7, address);
        g.if_(r0 == 0, [&] {
            g.store<uint32_t>(yes, 1);
            g.call(helper::map_update_elem, walk.codes_, STATE(id), yes, BPF_ANY);
        });
        g.bind(known);
        g.bind(listed);
        add_words();
        of_frame<uint64_t>(r2, offsetof(LanguageState, process.previous));
        g.store<uint64_t>(STATE(frame), r2);
        const Label more = g.label("more");
        g.jump_if(r2 != 0, more);
        g.bind(out);
        g.store<uint64_t>(STATE(frame), 0);
        g.break_();
        g.bind(more);
    }

    /// The id, and where in the code r7.
    void add_words() const {
        g.load<uint32_t>(r8, STATE(words));
        const Label full = g.label("full");
        g.jump_if(r8 > runtime(kMostWords - 2), full);
        g.mov(r9, r8);
        g.lsh(r9, 3);
        g.add(r9, r6);
        g.load<uint64_t>(r2, STATE(id));
        g.store<uint64_t>(r9 + runtime(offsetof(LanguageState, list)), r2);
        of_frame<uint64_t>(r2, offsetof(LanguageState, process.position));
        g.sub(r2, r7);
        g.lsh(r2, 8);
        g.rsh(r2, 8);
        of_frame<uint8_t>(r3, offsetof(LanguageState, process.mark));
        g.lsh(r3, 56);
        g.or_(r2, r3);
        g.store<uint64_t>(r9 + runtime(offsetof(LanguageState, list) + 8), r2);
        g.add(r8, 2);
        g.store<uint32_t>(STATE(words), r8);
        g.bind(full);
    }
};

LanguageWalk::LanguageWalk(Builder &b, Arch arch)
    : arch_(arch), processes_(b.hash<uint32_t, LanguageProcess>("language_processes", kProcesses)),
      codes_(b.lru_hash<uint64_t, uint32_t>("language_codes", kCodes)),
      state_(b.percpu_array<LanguageState>("language_state", 1)) {}

void LanguageWalk::walk(Code &f, const RecordPlace &place, const How &how) {
    const Mem ending = place.at(offsetof(RecordHead, ending));
    const Label done = f.label("no language"), restore = f.label("restore"), copy = f.label("copy");
    const Slot context = f.stack<uint64_t>("context"), state = f.stack<uint64_t>("state"), counts = f.stack<uint64_t>("counts");
    // Only of a process whose image is known: what was written down of it is of the program that it runs now.
    f.load<uint32_t>(r1, ending);
    f.and_(r1, UNWIND_TABLES);
    f.jump_if(r1 == 0, done);
    f.call(helper::map_lookup_elem, processes_, how.pid);
    f.jump_if(r0 == 0, done);
    f.store<uint64_t>(context, r6);
    f.store<uint64_t>(counts, r7);
    f.mov(r7, r0);
    f.call(helper::map_lookup_elem, state_, how.zero);
    f.jump_if(r0 == 0, restore);
    f.mov(r6, r0);
    f.store<uint64_t>(state, r6);
    static_assert(sizeof(LanguageProcess) % 8 == 0);
    for (size_t i = 0; i < sizeof(LanguageProcess); i += 8) {
        f.load<uint64_t>(r1, r7 + runtime(static_cast<int64_t>(i)));
        f.store<uint64_t>(STATE(process) + runtime(static_cast<int64_t>(i)), r1);
    }
    f.store<uint64_t>(STATE(words), 0); // and `sent`
    f.load<uint32_t>(r1, how.pid);
    f.store<uint32_t>(STATE(pid), r1);
    for (size_t i = 0; i < sizeof(RecordHead); i += 8) {
        f.load<uint64_t>(r1, r8 + runtime(place.head + static_cast<int64_t>(i)));
        f.store<uint64_t>(STATE(code.head) + runtime(static_cast<int64_t>(i)), r1);
    }
    f.store<uint32_t>(STATE(code.head.kernel_bytes), 0);
    f.store<uint32_t>(STATE(code.head.user_bytes), 0);
    f.store<uint32_t>(STATE(code.head.ending), LANGUAGE_IS_CODE);

    // r7 = the first word's address.
    f.load<uint64_t>(r7, STATE(process.start));
    f.load<uint32_t>(r1, STATE(process.flags));
    f.and_(r1, LANGUAGE_BY_THREAD);
    f.if_(r1 != 0, [&] {
        f.call(helper::get_current_task);
        if (arch_ == Arch::arm64)
            f.read_field<uint64_t>(r1, r0, "task_struct.thread.uw.tp_value");
        else
            f.read_field<uint64_t>(r1, r0, "task_struct.thread.fsbase");
        f.add(r7, r1);
        f.load<uint32_t>(r2, STATE(process.flags));
        f.and_(r2, LANGUAGE_LEARN);
        f.if_(r2 != 0, [&] {
            f.store<uint64_t>(STATE(list), r1);
            f.load_imm64(r1, uint64_t{LANGUAGE_IS_THREAD} << 56);
            f.store<uint64_t>(STATE(list) + 8, r1);
            f.store<uint32_t>(STATE(words), 2);
            f.jump(copy);
        });
    });
    f.read_user<uint64_t>(r7, r7 + 0);
    for (int hop = 0; hop < LANGUAGE_HOPS; ++hop) {
        const Label there = f.label("there");
        f.load<uint32_t>(r1, STATE(process.hops));
        f.jump_if(r1 <= runtime(hop), there);
        f.jump_if(r7 == 0, there);
        f.load<uint32_t>(r1, at(offsetof(LanguageState, process.hop) + static_cast<size_t>(hop) * 4));
        f.add(r7, r1);
        f.read_user<uint64_t>(r7, r7 + 0);
        f.bind(there);
    }
    f.if_(r7 != 0, [&] {
        f.store<uint64_t>(STATE(frame), r7);
        f.bpf_loop(LANGUAGE_FRAMES, state, [&](Code &g) {
            g.load<uint64_t>(r6, r2);
            g.load<uint64_t>(r7, STATE(frame));
            Emit{g, *this}.round(*how.rings);
        });
    });

    f.bind(copy);
    f.load<uint32_t>(r7, STATE(words));
    f.if_(r7 > runtime(kMostWords), [&] { f.mov(r7, runtime(kMostWords)); }); // it never is; the verifier wants to see it
    f.load<uint32_t>(r1, ending);
    f.mov(r2, r7);
    f.lsh(r2, 16);
    f.or_(r1, r2);
    f.store<uint32_t>(ending, r1);
    f.lsh(r7, 3);
    f.if_(r9 > runtime(how.most), [&] { f.mov(r9, runtime(how.most)); });
    f.mov(r1, r8);
    f.add(r1, r9);
    f.add(r1, runtime(place.frames));
    f.mov(r3, r6);
    f.add(r3, runtime(offsetof(LanguageState, list)));
    f.mov(r2, r7);
    f.call(helper::probe_read_kernel, r1 + 0, r2, r3 + 0);
    f.add(r9, r7);
    f.bind(restore);
    f.load<uint64_t>(r7, counts);
    f.load<uint64_t>(r6, context);
    f.bind(done);
}

} // namespace rawbpf::inline v0
