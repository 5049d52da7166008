// The walk, instruction by instruction. One round is one frame: from the registers that it has, its caller's.
//
//      pc --> mapping --> page of 64 KiB --> row --> rule        CFA = sp + 24, fp at CFA - 16, return address at CFA - 8
//             the last    of the mapping's   binary  of all                          |
//             one, or a   directory          search  modules                         v
//             binary search                               out of the window: the caller's fp and pc; its sp is the CFA
//
// The window is what was read of the stack last, from one frame on: most of those above lie in it. The memory has the rules that
// were found last: what is remembered of an address in a file needs neither page nor row.
//
// A round is a global function (5.6), which the verifier looks at once, by itself, however often it is called. What bpf_loop
// calls (5.17) calls it, with the state's address (5.12), and writes down the frame. Without bpf_loop a small loop does, and as
// such kernels may know no functions that take addresses, the state lies in an array of its own there, which the loop copies it
// to and from. (Programs that a kprobe, uprobe, tracepoint or perf event runs don't interrupt each other on a CPU; others can
// cost one stack.) No tail calls, whose number is limited, which need an array for each type of program, and which can't be mixed
// with functions on older arm64.
//
//      walk() --> bpf_loop: 127 times { round(state); write down the frame }
//
//      walk() --> loop: copy the state; 127 times { round(); write down the frame }; copy its end back
//                                                     `-- array unwind_state: UnwindScratch
//
//      r6  the state, in a map's value, with the window behind it   r7  the address, its key, then the CFA
//      r8  a position in a pool, then the rule
//
// The verifier takes one or two microseconds for each instruction that it goes through, and most of a start's time was its. Two
// things made it go through them again and again; the profile's program with copies of stacks, Linux 6.18:
//
//                                                                              instructions    gone through
//      as it was                                                                      1,835          15,801   15.7 ms
//      a round isn't written into what bpf_loop calls                                 1,851          13,779   12.2 ms
//      and a number is forgotten where ways meet                                      1,870           3,164    2.8 ms
//
// - What bpf_loop calls is followed until nothing new comes out of it (6.7), two rounds at least. As long as that isn't known,
//   a way is only cut short where one before it came by with the same bounds of all numbers, not just of those that matter.
// - Where ways meet and a register that is looked at later (the bytes so far: how much a helper may write) has other bounds on
//   each, all that follows is gone through once for each. See forget(): what comes out of a map's value is any number.
//
// With counting it was 34,426 and 38 ms, and is 3,894 and 3.8 ms. bpf_prog_info::verified_insns says it (5.16).
//
// Why one file of more than 600 lines: it is one program, and its registers mean the same from its first instruction to its last.
//
// Nothing that is read here is trusted. A position is masked to its pool, searches have a fixed number of steps, a frame must be
// further up the stack than the one before, and there are `depth` rounds at most: with rubbish in the tables the worst is a stack
// that ends early.
#include "programs/unwind/unwinder.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>

#include <linux/bpf.h>

#include "programs/unwind/code_patterns.h"
#include "programs/unwind/return_probes.h"

namespace rawbpf::inline v0 {

namespace {

constexpr uint32_t kMostByFramePointer = 127; // kernel.perf_event_max_stack, which bpf_get_stack doesn't go beyond

MapDef mapped_rules() {
    MapDef rules;
    rules.name = "unwind_rules";
    rules.type = BPF_MAP_TYPE_ARRAY;
    rules.key_size = 4;
    rules.value_size = sizeof(UnwindRule);
    rules.max_entries = UNWIND_RULES;
    rules.flags = BPF_F_MMAPABLE;
    return rules;
}

// To `old` where what was told of a process at `since` is no news any more. r0 to r5 are gone.
void jump_if_old(Code &f, Mem since, Label old) {
    f.call(helper::ktime_get_ns);
    f.load<uint64_t>(r1, since);
    f.sub(r0, r1);
    f.jump_if(as_signed(r0) >= runtime(UNWIND_COPY_YOUNG_NS), old);
}

} // namespace

// What is emitted into one function. `base` points at the scratch.
struct Unwinder::Emit {
    Code &g;
    const Unwinder &u;
    const WalkPlace &place;
    Reg base;
    const unwind::Machine &machine;
    std::optional<Label> over, next; // of a round

    Emit(Code &code, const Unwinder &unwinder, const WalkPlace &where, Reg scratch)
        : g(code), u(unwinder), place(where), base(scratch), machine(*unwind::find_machine(u.options_.arch)) {}

    [[nodiscard]] Mem at(size_t offset) const { return base + runtime(place.state + static_cast<int64_t>(offset)); }
    [[nodiscard]] Mem word(int n) const { return at(offsetof(UnwindState, words) + static_cast<size_t>(n) * 8); }
    void copy(size_t to, Mem from) const { // r1 is gone
        g.load<uint64_t>(r1, from);
        g.store<uint64_t>(at(to), r1);
    }

    // --- The first frame's registers ------------------------------------------------------------------------------------------

    // Which word a register of struct pt_regs is read to.
    [[nodiscard]] int word_of(int16_t offset) const {
        int words = 0;
        for (const unwind::RegisterPiece &piece : machine.pieces) {
            if (offset >= piece.from && offset < piece.from + piece.bytes) return words + (offset - piece.from) / 8;
            words += piece.bytes / 8;
        }
        std::abort();
    }
    void first(size_t to, int16_t offset, bool from_context) const {
        copy(to, from_context ? r6 + runtime(offset) : word(word_of(offset)));
    }
    void first_registers(bool from_context) const {
        first(offsetof(UnwindState, sp), machine.registers.sp, from_context);
        first(offsetof(UnwindState, fp), machine.registers.fp, from_context);
        first(offsetof(UnwindState, lr), machine.registers.lr, from_context);
        if (machine.registers.di >= 0) first(offsetof(UnwindState, di), machine.registers.di, from_context);
        if (u.options_.copies) {
            if (from_context && machine.registers.code >= 0)
                first(offsetof(UnwindState, code), machine.registers.code, true);
            else
                g.store<uint64_t>(at(offsetof(UnwindState, code)), 0);
        }
        g.store<uint64_t>(at(offsetof(UnwindState, entered)), runtime(from_context ? 0 : 1));
        first(offsetof(UnwindState, pc), machine.registers.pc, from_context);
        g.store<uint64_t>(at(offsetof(UnwindState, address)), r1);
    }

    // What tells the mode, in r1.
    void mode() const {
        if (machine.mode_shift != 0) g.rsh(r1, runtime(machine.mode_shift));
        g.and_(r1, runtime(machine.mode_mask));
    }

    // From struct pt_regs at r3 to the words, one piece behind the other.
    void read_pieces(Label none) const {
        constexpr int kKept = 15; // r3's place, where there are several
        const bool several = machine.pieces[1].bytes != 0;
        if (several) g.store<uint64_t>(word(kKept), r3);
        for (const unwind::RegisterPiece &piece : machine.pieces) {
            if (piece.bytes == 0) break;
            if (&piece != machine.pieces) g.load<uint64_t>(r3, word(kKept));
            g.add(r3, runtime(piece.from));
            g.call(helper::probe_read_kernel, word(word_of(piece.from)), runtime(piece.bytes), r3);
            g.jump_if(r0 != 0, none);
        }
    }

    // The thread's, as they were when it entered the kernel.
    void task_registers(Label none) const {
        const UnwindProgramOptions &options = u.options_;
        if (options.has_task_pt_regs) {
            g.call(helper::get_current_task_btf);
            g.call(helper::task_pt_regs, r0);
            g.mov(r3, r0);
        } else if (options.registers_at != 0) {
            g.call(helper::get_current_task);
            g.read_field<uint64_t>(r3, r0, "task_struct.stack");
            g.add(r3, runtime(options.registers_at));
        } else {
            return g.jump(none);
        }
        read_pieces(none);
        g.load<uint64_t>(r1, word(word_of(machine.mode)));
        mode();
        g.jump_if(r1 != runtime(machine.user), none); // a thread of the kernel
        first_registers(false);
        g.jump_if(r1 == 0, none); // such a one, too: nothing was ever written there
        // Of a system call the address is the one behind the instruction, where a function may have ended, as after sigreturn.
        // But execve leaves its number behind with the new program's entry point (start_thread() clears neither orig_ax nor
        // syscallno), and what comes before that is another function or none.
        const Label exact = g.label("exact address");
        if (machine.cause >= 0) {
            g.load<uint64_t>(r2, word(word_of(machine.cause)));
            g.jump_if(r2 != runtime(machine.cause_call), exact);
        }
        g.load<uint32_t>(r2, word(word_of(machine.call)));
        g.jump_if(r2 == runtime(machine.execve), exact);
        g.jump_if(r2 == runtime(machine.execveat), exact);
        g.if_(as_signed(w2) >= 0, [&] {
            g.sub(r1, 1);
            g.store<uint64_t>(at(offsetof(UnwindState, pc)), r1);
        });
        g.bind(exact);
    }

    void start_registers(Label none) const {
        if (place.context == UnwindContext::other) {
            task_registers(none);
        } else {
            g.load<uint64_t>(r1, r6 + runtime(machine.mode));
            mode();
            g.if_(r1 == runtime(machine.user), [&] { first_registers(true); }).else_([&] { task_registers(none); });
        }
        if (u.options_.probed_code)
            leave_probed_instruction(g, at(offsetof(UnwindState, pc)), at(offsetof(UnwindState, address)), word(0));
    }

    // For copy_stack(), as a round changes them.
    void keep_leaf() const {
        for (size_t field = 0; field < sizeof(UnwindRegisters); field += sizeof(uint64_t))
            copy(offsetof(UnwindState, leaf) + field, at(field));
    }

    // --- One round ------------------------------------------------------------------------------------------------------------

    void end(uint32_t why) const {
        g.store<uint32_t>(at(offsetof(UnwindState, ending)), runtime(why | UNWIND_TABLES));
        g.jump(*over);
    }
    void end(WritableReg why) const { // it is gone
        g.or_(why, UNWIND_TABLES);
        g.store<uint32_t>(at(offsetof(UnwindState, ending)), why);
        g.jump(*over);
    }
    void end_if(Condition condition, uint32_t why) const {
        g.if_(condition, [&] { end(why); }); // the verifier sees the end first, and then has nothing to come back to
    }

    // r0 = the pool of the position in r1; r1 to r5 are gone.
    void pool(const Slot &key, uint32_t why) const {
        g.rsh(r1, UNWIND_POOL_BITS);
        g.store<uint32_t>(key, r1);
        g.call(helper::map_lookup_elem, u.pools_, key);
        end_if(r0 == 0, why);
        g.store<uint32_t>(key, 0);
        g.call(helper::map_lookup_elem, r0, key);
        end_if(r0 == 0, why);
    }

    // The last of the r1 elements from r8 on, in the pool r0, that begins at r7 or before; the first, if none does. Without
    // branches that depend on what is read: they would be mispredicted every other time. r0 then points at it.
    template <class T> void search(uint32_t element, int steps) const {
        const auto mask = runtime(UNWIND_POOL_BYTES - element);
        const int shift = __builtin_ctz(element);
        const Label found = g.label("found");
        for (int step = 0; step < steps; ++step) {
            if (step % 2 == 0) g.jump_if(r1 <= 1, found);
            g.mov(r2, r1);
            g.rsh(r2, 1);
            g.sub(r1, r2);
            g.lsh(r2, runtime(shift));
            g.mov(r3, r8);
            g.add(r3, r2);
            g.and_(r3, mask);
            g.add(r3, r0);
            g.load<T>(r4, r3);
            g.mov(r5, r7);
            if (sizeof(T) == sizeof(uint64_t)) { // halves, as vsyscall's page is 2^63 above the others; both begin at even bytes
                g.rsh(r5, 1);
                g.rsh(r4, 1);
            }
            g.sub(r5, r4);
            g.arsh(r5, 63); // all ones where it begins later
            g.xor_(r5, -1);
            g.and_(r2, r5);
            g.add(r8, r2);
        }
        g.bind(found);
        g.and_(r8, mask);
        g.add(r0, r8);
    }

    // r7 = the address; the mapping that it is in becomes the state's.
    void find_mapping(const Slot &key) const {
        const Label known = g.label("mapping known");
        g.load<uint64_t>(r7, at(offsetof(UnwindState, pc)));
        g.load<uint64_t>(r1, at(offsetof(UnwindState, start)));
        g.load<uint64_t>(r2, at(offsetof(UnwindState, end)));
        g.if_(r7 >= r1, [&] { g.jump_if(r7 < r2, known); });
        g.load<uint32_t>(r8, at(offsetof(UnwindState, mappings)));
        g.mov(r1, r8);
        pool(key, UNWIND_ENDED_NO_MAPPING);
        const Label unknown = g.label("no mapping"), found = g.label("mapping found");
        g.load<uint32_t>(r1, at(offsetof(UnwindState, count)));
        g.jump_if(r1 == 0, unknown);
        search<uint64_t>(sizeof(UnwindMapping), __builtin_ctz(UNWIND_MAX_MAPPINGS));
        g.load<uint64_t>(r1, RAWBPF_AT(r0, UnwindMapping, start));
        g.jump_if(r7 < r1, unknown);
        g.load<uint64_t>(r2, RAWBPF_AT(r0, UnwindMapping, end));
        g.jump_if(r7 < r2, found);
        g.bind(unknown);
        g.load<uint64_t>(r1, at(offsetof(UnwindState, guessed)));
        g.if_(r1 == 0, [&] { g.mov(r1, UNWIND_ENDED_NO_MAPPING); });
        end(r1);
        g.bind(found);
        g.store<uint64_t>(at(offsetof(UnwindState, start)), r1);
        g.store<uint64_t>(at(offsetof(UnwindState, end)), r2);
        copy(offsetof(UnwindState, bias), RAWBPF_AT(r0, UnwindMapping, bias));
        copy(offsetof(UnwindState, pages), RAWBPF_AT(r0, UnwindMapping, pages));
        g.bind(known);
    }

    // Only what lies in code is a frame. (The leaf is one in any case: see walk().) Its place is beyond what a round is given.
    void record() const { copy(offsetof(UnwindState, found), at(offsetof(UnwindState, address))); }

    // r8 = the rule that is remembered of the address r7 in the file whose directory is at r8; else r9 = where it is to be.
    void recall(const Slot &code, Label found) const {
        const Label unknown = g.label("not remembered");
        g.mov(w2, w8);
        g.or_(r2, 1);
        g.mov(r1, r7);
        g.lsh(r1, 32);
        g.or_(r2, r1);
        g.store<uint64_t>(code, r2);
        g.mov(r9, r7);
        g.rsh(r9, 8);
        g.xor_(r9, r7);
        g.and_(r9, runtime(place.shape.remembered - 1));
        g.lsh(r9, runtime(__builtin_ctz(sizeof(UnwindRemembered))));
        g.add(r9, base);
        g.load<uint64_t>(r1, remembered(offsetof(UnwindRemembered, code)));
        g.jump_if(r1 != r2, unknown);
        g.load<uint64_t>(r8, remembered(offsetof(UnwindRemembered, rule)));
        g.jump(found);
        g.bind(unknown);
    }
    void remember(const Slot &code) const { // r1 is gone
        g.load<uint64_t>(r1, code);
        g.store<uint64_t>(remembered(offsetof(UnwindRemembered, code)), r1);
        g.store<uint64_t>(remembered(offsetof(UnwindRemembered, rule)), r8);
    }
    [[nodiscard]] Mem remembered(size_t offset) const { // in the rule's place, which r9 - `base` tells
        return r9 + runtime(memory(offsetof(UnwindMemory<1>, rules_of) + offset));
    }
    [[nodiscard]] int64_t memory(size_t offset) const { // where that is of it, from `base`
        return place.state + int64_t{place.shape.memory_at()} + static_cast<int64_t>(offset);
    }
    // Where what is remembered may be of tables that others have taken the place of, it is forgotten. (What can't be read is
    // zeros where it was to be, since 5.5; nothing can be at 0.) r0 to r5 are gone.
    void begin_memory() const {
        const Mem edition = base + runtime(memory(offsetof(UnwindMemory<1>, edition)));
        g.load<uint64_t>(r1, at(offsetof(UnwindState, edition)));
        g.load<uint64_t>(r2, edition);
        g.if_(r1 > r2, [&] {
            g.store<uint64_t>(edition, r1);
            g.call(helper::probe_read_kernel, base + runtime(memory(offsetof(UnwindMemory<1>, rules_of))),
                   runtime(place.shape.remembered * sizeof(UnwindRemembered)), 0);
        });
    }

    // r8 = the rule for the address in r7, which is gone.
    void find_rule(const Slot &key, const Slot &rows) const {
        const Label found = g.label("rule found"), by_table = g.label("by table");
        static_assert(UNWIND_BY_FP == 0 && UNWIND_ENDED_NO_TABLE + UNWIND_BY_TABLE == UNWIND_ENDED_NO_RULE);
        g.load<uint64_t>(r8, at(offsetof(UnwindState, pages)));
        g.mov(r1, r8);
        g.rsh(r1, 48); // kind
        g.jump_if(r1 == UNWIND_BY_TABLE, by_table);
        end_if(r1 != UNWIND_BY_FP, UNWIND_ENDED_NO_TABLE);
        g.load_imm64(r8, __builtin_bit_cast(uint64_t, kByFramePointer));
        g.jump(found);

        g.bind(by_table);
        g.load<uint64_t>(r1, at(offsetof(UnwindState, bias)));
        g.sub(r7, r1);
        g.mov(r1, r7);
        g.rsh(r1, UNWIND_PAGE_BITS);
        g.mov(r2, r8);
        g.rsh(r2, 32);
        g.and_(r2, 0xffff); // page_count
        end_if(r1 >= r2, UNWIND_ENDED_NO_TABLE);
        std::optional<Slot> code;
        if (place.shape.remembered != 0) {
            code = g.stack<uint64_t>("code");
            recall(*code, found);
            g.mov(r1, r7);
            g.rsh(r1, UNWIND_PAGE_BITS);
        }
        g.lsh(r1, 3);
        g.add(r8, r1);
        g.mov(w8, w8);
        g.mov(r1, r8);
        pool(key, UNWIND_ENDED_NO_TABLE);
        g.and_(r8, runtime(UNWIND_POOL_BYTES - sizeof(UnwindPage)));
        g.add(r0, r8);
        g.load<uint32_t>(r8, RAWBPF_AT(r0, UnwindPage, first));
        g.load<uint32_t>(r1, RAWBPF_AT(r0, UnwindPage, rows));
        end_if(r1 == 0, UNWIND_ENDED_NO_TABLE);
        g.store<uint32_t>(rows, r1);
        g.mov(r1, r8);
        pool(key, UNWIND_ENDED_NO_TABLE);
        g.load<uint32_t>(r1, rows);
        g.and_(r7, 0xffff);
        g.lsh(r7, 16);
        g.or_(r7, 0xffff);
        search<uint32_t>(sizeof(uint32_t), UNWIND_PAGE_BITS);
        g.load<uint32_t>(r1, r0);
        g.and_(r1, 0xffff);
        g.store<uint32_t>(key, r1);
        g.call(helper::map_lookup_elem, u.rules_, key);
        end_if(r0 == 0, UNWIND_ENDED_NO_RULE);
        g.load<uint64_t>(r8, r0);
        if (code) remember(*code);
        g.bind(found);
    }

    // --- Code that nothing is known of (code_patterns.h)
    // ------------------------------------------------------------------------

    static constexpr int kBefore = 14, kHere = 15; // words: the code in front of the frame's address, and from there on

    void read_code() const {
        const Label alone = g.label("code alone"), read = g.label("code read");
        g.load<uint64_t>(r3, at(offsetof(UnwindState, address)));
        g.lsh(r3, 1); // UNWIND_EXACT_PC
        g.rsh(r3, 1);
        g.store<uint64_t>(word(kBefore), 0);
        g.store<uint64_t>(word(kHere), 0);
        g.mov(r1, r3);
        g.and_(r1, runtime(unwind::kCodePage - 1));
        g.jump_if(r1 < runtime(sizeof(uint64_t)), alone);
        g.sub(r3, runtime(sizeof(uint64_t)));
        g.call(helper::probe_read_user, word(kBefore), runtime(2 * sizeof(uint64_t)), r3);
        g.if_(r0 != 0, [&] {
            g.store<uint64_t>(word(kBefore), 0);
            g.store<uint64_t>(word(kHere), 0);
        });
        g.jump(read);
        g.bind(alone);
        g.call(helper::probe_read_user, word(kHere), runtime(sizeof(uint64_t)), r3);
        g.if_(r0 != 0, [&] { g.store<uint64_t>(word(kHere), 0); });
        g.bind(read);
    }

    // A frame that a frame pointer led to: behind a call or where an interpreter lets return to, or it isn't one.
    void arrive() const {
        const Label told = g.label("not guessed"), returned = g.label("returned to");
        g.load<uint64_t>(r1, at(offsetof(UnwindState, guessed)));
        g.jump_if(r1 == 0, told);
        read_code();
        g.load<uint64_t>(r1, at(offsetof(UnwindState, address)));
        g.and_(r1, runtime(unwind::kCodePage - 1));
        g.jump_if(r1 < runtime(sizeof(uint64_t)), returned); // it can't be told
        g.load<uint64_t>(r1, word(kBefore));
        for (const unwind::CallForm &form : unwind::call_forms(machine.arch)) {
            g.mov(r2, r1);
            g.rsh(r2, runtime(form.shift));
            g.mov(w2, w2);
            g.load_imm64(r3, form.mask);
            g.and_(r2, r3);
            g.load_imm64(r3, form.bits);
            g.jump_if(r2 == r3, returned);
        }
        g.load<uint64_t>(r1, word(kHere));
        for (const uint64_t entry : unwind::return_entries(machine.arch)) {
            g.load_imm64(r3, entry);
            g.jump_if(r1 == r3, returned);
        }
        g.load<uint64_t>(r1, at(offsetof(UnwindState, guessed)));
        end(r1);
        g.bind(returned);
        g.bind(told);
    }

    // The rule in r8 is to be guessed: it becomes what the instructions say, or the round ends with where the frame pointer
    // leads.
    void guess() const {
        const Label told = g.label("rule told"), have_code = g.label("code there"), said = g.label("code says");
        g.mov(r1, r8);
        g.and_(r1, UNWIND_GUESSED << 8);
        g.jump_if(r1 == 0, told);
        g.load<uint64_t>(r1, at(offsetof(UnwindState, guessed)));
        g.jump_if(r1 != 0, have_code);
        read_code();
        g.bind(have_code);
        g.load<uint64_t>(r1, word(kHere));
        g.load<uint64_t>(r2, word(kBefore));
        g.load<uint64_t>(r5, at(offsetof(UnwindState, address)));
        g.lsh(r5, 1);
        g.rsh(r5, 1);
        g.load<uint64_t>(r3, at(offsetof(UnwindState, pc)));
        g.sub(r5, r3); // 0: exact
        for (const unwind::CodePattern &pattern : unwind::code_patterns(machine.arch)) {
            const Label other = g.label("other code");
            if (pattern.exact) g.jump_if(r5 != 0, other);
            masked(r1, pattern.mask, pattern.here, other);
            if (pattern.before_mask != 0) masked(r2, pattern.before_mask, pattern.before, other);
            g.load_imm64(r8, __builtin_bit_cast(uint64_t, pattern.rule));
            if (pattern.adds) {
                g.rsh(r1, 24);
                g.and_(r1, 0xff);
                g.rsh(r1, 3);
                g.lsh(r1, 8 * offsetof(UnwindRule, cfa));
                g.add(r8, r1);
            }
            g.jump(said);
            g.bind(other);
        }
        follow_frame_pointer();
        g.bind(said);
        g.bind(told);
    }
    // To `other` where code & mask isn't `is`; r3 and r4 are gone.
    void masked(Reg code, uint64_t mask, uint64_t is, Label other) const {
        g.load_imm64(r3, mask);
        g.and_(r3, code);
        g.load_imm64(r4, is);
        g.jump_if(r3 != r4, other);
    }

    void follow_frame_pointer() const {
        const Label zero = g.label("fp is 0"), astray = g.label("fp leads astray"), unreadable = g.label("fp unreadable");
        g.store<uint64_t>(word(2), r8);
        g.load<uint64_t>(r7, at(offsetof(UnwindState, fp)));
        g.jump_if(r7 == 0, zero);
        if (machine.record != 0) g.add(r7, runtime(machine.record * int{sizeof(uint64_t)}));
        g.mov(r1, r7);
        g.and_(r1, 7);
        g.jump_if(r1 != 0, astray);
        const Label switches = g.label("another stack");
        g.mov(r1, r8);
        g.and_(r1, UNWIND_SWITCHES << 8);
        g.jump_if(r1 != 0, switches);
        g.load<uint64_t>(r1, at(offsetof(UnwindState, sp)));
        g.jump_if(r7 < r1, astray);
        g.bind(switches);
        g.mov(r3, r7);
        g.add(r7, 2 * sizeof(uint64_t));
        g.jump_if(r7 < r3, astray);
        read_frame(0, 2, unreadable);
        return_address();
        g.jump_if(r1 == 0, zero);
        go_to();
        ending_astray();
        g.or_(r1, UNWIND_TABLES); // never 0
        g.store<uint64_t>(at(offsetof(UnwindState, guessed)), r1);
        g.jump(*next);

        g.bind(unreadable);
        g.load<uint64_t>(r2, at(offsetof(UnwindState, sp)));
        g.sub(r7, 2 * sizeof(uint64_t));
        g.sub(r7, r2);
        end_if(r7 < runtime(unwind::kFarUp), UNWIND_ENDED_UNREADABLE);
        g.jump(astray);
        g.bind(zero);
        g.load<uint64_t>(r1, word(2));
        g.and_(r1, UNWIND_TO_ROOT << 8);
        end_if(r1 != 0, UNWIND_ENDED_ROOT);
        g.bind(astray);
        ending_astray();
        end(r1);
    }
    void ending_astray() const { // r1, by the rule in word 2
        static_assert(UNWIND_ENDED_ROOT == 0);
        const Label known = g.label("ending astray");
        g.load<uint64_t>(r2, word(2));
        g.mov(r1, UNWIND_ENDED_ROOT);
        g.and_(r2, UNWIND_SWITCHES << 8);
        g.jump_if(r2 != 0, known);
        g.load<uint64_t>(r1, at(offsetof(UnwindState, pages)));
        g.rsh(r1, 48);
        g.add(r1, UNWIND_ENDED_NO_TABLE);
        g.bind(known);
    }

    void stack_pointer(WritableReg to) const {
        if (machine.loose) {
            g.load<uint64_t>(to, at(offsetof(UnwindState, guessed)));
            end_if(to != 0, UNWIND_ENDED_ODD);
        }
        g.load<uint64_t>(to, at(offsetof(UnwindState, sp)));
    }

    void read_stack(int to, int words, Mem from) const {
        g.call(helper::probe_read_user, word(to), runtime(words * 8), from);
        end_if(r0 != 0, UNWIND_ENDED_UNREADABLE);
    }

    // One word or two at r3, out of the window, which is filled from there on when they don't lie in it. What can't be read as a
    // whole may be the stack's end: then these words by themselves.
    void read_frame(int to, int words, std::optional<Label> unreadable = {}) const {
        const Label in_window = g.label("in the window"), by_themselves = g.label("by themselves"), done = g.label("words read");
        const Mem window_at = at(offsetof(UnwindState, window_at)), window_has = at(offsetof(UnwindState, window_has));
        g.load<uint64_t>(r1, window_at);
        g.load<uint64_t>(r2, window_has);
        g.mov(r4, r3);
        g.sub(r4, r1);
        g.jump_if(r4 < r2, in_window);

        g.store<uint64_t>(window_at, r3);
        g.store<uint64_t>(window_has, 0);
        const uint32_t window_bytes = place.shape.window_bytes;
        g.call(helper::probe_read_user, at(sizeof(UnwindState)), runtime(window_bytes), r3);
        g.jump_if(r0 != 0, by_themselves);
        g.store<uint64_t>(window_has, runtime(window_bytes - 2 * sizeof(uint64_t) + 1));
        g.mov(r4, 0);

        g.bind(in_window);
        g.and_(r4, runtime(window_bytes - sizeof(uint64_t))); // it is; the verifier wants to see it
        g.add(r4, base);
        for (int n = 0; n < words; ++n) {
            g.load<uint64_t>(r1, r4 + runtime(place.state + static_cast<int64_t>(sizeof(UnwindState)) + n * 8));
            g.store<uint64_t>(word(to + n), r1);
        }
        g.jump(done);

        g.bind(by_themselves);
        g.load<uint64_t>(r3, window_at);
        if (unreadable) {
            g.call(helper::probe_read_user, word(to), runtime(words * 8), r3);
            g.jump_if(r0 != 0, *unreadable);
        } else {
            read_stack(to, words, r3);
        }
        g.bind(done);
    }

    // By the rule in r8: r7 = the CFA, or a signal's frame dealt with and the round ended.
    void find_cfa() const {
        const Label by_sp = g.label("CFA = sp + n"), by_fp = g.label("CFA = fp + n"), known = g.label("CFA known"),
                    sum = g.label("CFA = r2 + n");
        g.mov(r1, r8);
        g.and_(r1, 0xff);
        g.mov(r7, r8);
        g.lsh(r7, 32);
        g.arsh(r7, 48);
        g.lsh(r7, 3); // cfa
        g.jump_if(r1 == UNWIND_SP, by_sp);
        g.jump_if(r1 == UNWIND_FP, by_fp);
        end_if(r1 == UNWIND_NONE, UNWIND_ENDED_NO_RULE);
        end_if(r1 == UNWIND_END, UNWIND_ENDED_ROOT);
        g.if_(r1 == UNWIND_SIGNAL, [&] {
            stack_pointer(r7);
            signal();
            g.jump(*next);
        });
        if (machine.expressions) {
            g.if_(r1 == UNWIND_PLT, [&] {
                g.load<uint64_t>(r2, at(offsetof(UnwindState, pc)));
                g.and_(r2, 15);
                g.jump_if(r2 < 11, by_sp);
                g.add(r7, 8);
                g.jump(by_sp);
            });
            g.if_(r1 == UNWIND_R10, [&] {
                g.load<uint64_t>(r2, at(offsetof(UnwindState, lr)));
                g.jump_if(r2 != 0, sum);
                end(UNWIND_ENDED_ODD);
            });
            g.if_(r1 == UNWIND_FP_DEREF, [&] {
                g.load<uint64_t>(r2, at(offsetof(UnwindState, fp)));
                g.add(r7, r2);
                read_stack(2, 1, r7);
                g.load<uint64_t>(r7, word(2));
                g.jump(known);
            });
            g.if_(r1 == UNWIND_SP_DEREF, [&] {
                stack_pointer(r2);
                g.add(r7, r2);
                read_stack(2, 1, r7);
                g.load<uint64_t>(r7, word(2));
                g.add(r7, 8);
                g.jump(known);
            });
        }
        end(UNWIND_ENDED_ODD);

        g.bind(by_sp);
        if (machine.loose) {
            // A frame record may lie anywhere in its frame, so the stack pointer is lost where a frame was left by its frame
            // pointer. But where the caller keeps such a record, too, its place tells where the frame begins.
            const Label certain = g.label("sp known");
            g.load<uint64_t>(r1, at(offsetof(UnwindState, guessed)));
            g.jump_if(r1 == 0, certain);
            g.mov(r2, r8);
            g.lsh(r2, 16);
            g.arsh(r2, 48); // fp
            end_if(r2 == 0, UNWIND_ENDED_ODD);
            g.mov(r1, r8);
            g.arsh(r1, 48); // ra
            g.sub(r1, r2);
            end_if(r1 != 1, UNWIND_ENDED_ODD);
            g.lsh(r2, 3);
            g.load<uint64_t>(r7, at(offsetof(UnwindState, fp)));
            g.sub(r7, r2);
            g.jump(known);
            g.bind(certain);
        }
        stack_pointer(r2);
        g.jump(sum);
        g.bind(by_fp);
        g.load<uint64_t>(r2, at(offsetof(UnwindState, fp)));
        g.bind(sum);
        g.add(r7, r2);
        g.bind(known);
    }

    // r7 is the stack pointer that the handler's return has left.
    void signal() const {
        const unwind::RegisterPiece &all = machine.signal_piece;
        read_stack(0, all.bytes / 8, r7 + runtime(all.from));
        const auto take = [&](size_t to, int16_t place) {
            if (place >= 0) copy(to, word((place - all.from) / 8));
        };
        take(offsetof(UnwindState, lr), machine.signal.lr);
        take(offsetof(UnwindState, di), machine.signal.di);
        take(offsetof(UnwindState, fp), machine.signal.fp);
        take(offsetof(UnwindState, sp), machine.signal.sp);
        take(offsetof(UnwindState, pc), machine.signal.pc); // in r1, too
        g.load_imm64(r2, UNWIND_EXACT_PC);
        g.or_(r1, r2);
        g.store<uint64_t>(at(offsetof(UnwindState, address)), r1);
        g.store<uint64_t>(at(offsetof(UnwindState, guessed)), 0);
    }

    // r1 = the caller's address, of words 0 and 1: its frame pointer and the return address.
    void return_address() const {
        g.load<uint64_t>(r1, word(1));
        if (u.options_.address_mask != ~0ull) {
            g.load_imm64(r2, u.options_.address_mask);
            g.and_(r1, r2);
        }
        if (u.options_.return_probes) original_return_address(g, return_probes(), machine);
    }
    // The caller's registers: its address in r1, the CFA in r7. r1 is gone.
    void go_to() const {
        g.store<uint64_t>(at(offsetof(UnwindState, address)), r1);
        g.sub(r1, 1);
        g.store<uint64_t>(at(offsetof(UnwindState, pc)), r1);
        copy(offsetof(UnwindState, fp), word(0));
        g.store<uint64_t>(at(offsetof(UnwindState, sp)), r7);
        g.store<uint64_t>(at(offsetof(UnwindState, lr)), 0);
        if (machine.registers.di >= 0) g.store<uint64_t>(at(offsetof(UnwindState, di)), 0);
    }

    // The caller's registers, by the rule in r8 and the CFA in r7.
    void step() const {
        const Label have = g.label("registers read"), apart = g.label("apart"), alone = g.label("the return address alone");
        g.mov(r1, r7);
        g.and_(r1, 7);
        end_if(r1 != 0, UNWIND_ENDED_STUCK);
        g.load<uint64_t>(r1, at(offsetof(UnwindState, sp)));
        const Label on_stack = g.label("return address on the stack");
        g.mov(r2, r8);
        g.rsh(r2, 8);
        g.and_(r2, runtime(machine.link ? UNWIND_RA_IN_LR : UNWIND_RA_IN_DI));
        g.jump_if(r2 == 0, on_stack);
        end_if(r7 < r1, UNWIND_ENDED_STUCK);
        g.load<uint64_t>(r1, at(machine.link ? offsetof(UnwindState, lr) : offsetof(UnwindState, di)));
        if (!machine.link) end_if(r1 == 0, UNWIND_ENDED_ODD);
        g.store<uint64_t>(word(1), r1);
        frame_pointer_apart();
        g.jump(have);
        g.bind(on_stack);
        end_if(r7 <= r1, UNWIND_ENDED_STUCK);
        if (machine.expressions) {
            const Label told_from_cfa = g.label("fp told from the CFA");
            g.mov(r1, r8);
            g.rsh(r1, 8);
            g.and_(r1, UNWIND_FP_BY_FP);
            g.jump_if(r1 == 0, told_from_cfa);
            g.mov(r3, r8);
            g.lsh(r3, 16);
            g.arsh(r3, 48);
            g.lsh(r3, 3);
            g.load<uint64_t>(r2, at(offsetof(UnwindState, fp)));
            g.add(r3, r2);
            read_stack(0, 1, r3);
            g.jump(alone);
            g.bind(told_from_cfa);
        }
        g.mov(r3, r8);
        g.lsh(r3, 16);
        g.arsh(r3, 48); // fp
        g.mov(r2, r8);
        g.arsh(r2, 48); // ra
        g.sub(r2, r3);
        g.jump_if(r2 != 1, apart);
        g.lsh(r3, 3);
        g.add(r3, r7);
        read_frame(0, 2);
        g.jump(have);

        g.bind(apart);
        frame_pointer_apart();
        if (machine.expressions) g.bind(alone);
        g.mov(r3, r8);
        g.arsh(r3, 48);
        g.lsh(r3, 3);
        g.add(r3, r7);
        read_frame(1, 1);

        g.bind(have);
        return_address();
        end_if(r1 == 0, UNWIND_ENDED_STUCK);
        go_to();
        g.store<uint64_t>(at(offsetof(UnwindState, guessed)), 0);
    }

    void frame_pointer_apart() const {
        const Label kept = g.label("fp kept"), done = g.label("fp done");
        g.mov(r3, r8);
        g.lsh(r3, 16);
        g.arsh(r3, 48);
        g.jump_if(r3 == 0, kept);
        g.lsh(r3, 3);
        g.add(r3, r7);
        read_frame(0, 1);
        g.jump(done);
        g.bind(kept);
        copy(offsetof(UnwindState, words), at(offsetof(UnwindState, fp)));
        g.bind(done);
    }

    [[nodiscard]] ReturnProbesPlace return_probes() const {
        return {at(offsetof(UnwindState, returns)), at(offsetof(UnwindState, trampoline))};
    }

    void round() const {
        const Slot key = g.stack<uint32_t>("key"), rows = g.stack<uint32_t>("rows");
        find_mapping(key);
        arrive();
        record();
        find_rule(key, rows);
        guess();
        find_cfa();
        step();
    }

    // A round that is a function of its own: r0 is 0 when it was the last one.
    void global_round() {
        over = g.label("over"), next = g.label("next");
        if (u.state_) {
            const Slot zero = g.stack<uint32_t>("zero");
            g.store<uint32_t>(zero, 0);
            g.call(helper::map_lookup_elem, *u.state_, zero);
            g.mov(r6, r0);
        } else {
            g.mov(r6, r1);
        }
        g.jump_if(r6 == 0, *over);
        round();
        g.bind(*next);
        g.ret(1);
        g.bind(*over);
        g.ret(0);
    }

    // The frame in r2, that a round has found, behind those that are there. r1 and r3 are gone.
    void take_frame(Mem ending, Label out) const {
        g.load<uint32_t>(r1, at(offsetof(UnwindState, at)));
        g.if_(r1 >= runtime(place.room), [&] { // it never is; the verifier wants to see it
            g.store<uint32_t>(ending, UNWIND_ENDED_DEPTH | UNWIND_TABLES);
            g.jump(out);
        });
        g.mov(r3, r1);
        g.add(r3, 1);
        g.store<uint32_t>(at(offsetof(UnwindState, at)), r3);
        g.lsh(r1, 3);
        g.add(r1, base);
        g.store<uint64_t>(r1 + runtime(place.frames), r2);
    }

    // What bpf_loop calls, with the scratch in r6.
    void called_round(const Code &one_round) const {
        const Label out = g.label("out"), none = g.label("no frame");
        g.store<uint64_t>(at(offsetof(UnwindState, found)), 0);
        g.mov(r1, base);
        if (place.state != 0) g.add(r1, runtime(place.state));
        g.call(one_round, {r1});
        g.load<uint64_t>(r2, at(offsetof(UnwindState, found)));
        g.jump_if(r2 == 0, none);
        take_frame(at(offsetof(UnwindState, ending)), out);
        g.bind(none);
        g.if_(r0 == 0, [&] {
            g.bind(out);
            g.break_();
        });
    }

    // What calls it without bpf_loop, with the scratch in r1.
    void calls(const Code &one_round) const {
        const Slot zero = g.stack<uint32_t>("zero");
        const Label out = g.label("out");
        const auto own = [](size_t offset) { return r7 + runtime(offset); };
        g.mov(r6, r1);
        g.store<uint32_t>(zero, 0);
        g.call(helper::map_lookup_elem, *u.state_, zero);
        g.if_(r0 == 0, [&] { g.ret(0); });
        g.mov(r7, r0);
        g.call(helper::probe_read_kernel, r7, runtime(offsetof(UnwindState, words)), at(0));
        WalkPlace there{place.context, place.pid};
        Emit(g, u, there, r7).begin_memory();
        g.loop(r9, runtime(u.options_.depth), [&] {
            g.store<uint64_t>(own(offsetof(UnwindState, found)), 0);
            g.call(one_round);
            g.load<uint64_t>(r2, own(offsetof(UnwindState, found)));
            g.if_(r2 != 0, [&] { take_frame(own(offsetof(UnwindState, ending)), out); });
            g.jump_if(r0 == 0, out);
        });
        g.bind(out);
        g.load<uint32_t>(r1, own(offsetof(UnwindState, ending)));
        g.store<uint32_t>(at(offsetof(UnwindState, ending)), r1);
        copy(offsetof(UnwindState, guessed), own(offsetof(UnwindState, guessed)));
        g.ret(0);
    }
};

Unwinder::Unwinder(Builder &b, const UnwindProgramOptions &options)
    : b_(b), options_(options), pools_(b.map(BPF_MAP_TYPE_ARRAY_OF_MAPS, "unwind_pools", 4, 4, options.pools)),
      rules_(b.map(mapped_rules())), processes_(b.hash<uint32_t, UnwindProcess>("unwind_processes", options.processes)) {
    options_.depth = std::clamp<uint32_t>(options_.depth, 1, UNWIND_MAX_FRAMES);
    if (!options_.has_bpf_loop) state_ = b.percpu_array<UnwindScratch<>>("unwind_state", 1);
}

const Code &Unwinder::round(const WalkPlace &place) {
    WalkPlace own{place.context, place.pid};
    if (!state_) own.shape = place.shape;
    Code *&round = rounds_[own.shape];
    if (round) return *round;
    const std::string number = rounds_.size() > 1 ? std::to_string(rounds_.size()) : "";
    round = &b_.global_function("unwind_round" + number, state_ ? 0 : 1, state_ ? 0 : own.shape.bytes());
    Emit(*round, *this, own, r6).global_round();
    return *round;
}

void Unwinder::walk(Code &f, const WalkPlace &place) {
    const Emit emit(f, *this, place, r8);
    const auto follow_frame_pointers = [&] {
        f.mov(r2, r8);
        f.add(r2, runtime(place.frames));
        f.add(r2, r9);
        f.call(helper::get_stack, r6, r2, runtime(8 * std::min(options_.depth, kMostByFramePointer)), BPF_F_USER_STACK);
        f.if_(as_signed(r0) > 0, [&] { f.add(r9, r0); });
    };
    if (place.context == UnwindContext::other && !options_.has_task_pt_regs && options_.registers_at == 0) {
        f.store<uint32_t>(emit.at(offsetof(UnwindState, ending)), UNWIND_ENDED_NO_REGS); // nowhere are there any
        if (options_.copies) f.store<uint64_t>(emit.at(offsetof(UnwindState, leaf.address)), 0);
        return follow_frame_pointers();
    }
    const Label by_frame_pointer = f.label("by frame pointer"), no_registers = f.label("no registers"), done = f.label("walked");
    const auto state = [&](size_t offset) { return emit.at(offset); };

    f.store<uint32_t>(state(offsetof(UnwindState, ending)), UNWIND_ENDED_NO_PROCESS);
    if (options_.copies) f.store<uint64_t>(state(offsetof(UnwindState, leaf.address)), 0);
    f.call(helper::map_lookup_elem, processes_, place.pid);
    if (options_.copies)
        f.if_(r0 == 0, [&] {
            emit.start_registers(by_frame_pointer);
            emit.keep_leaf();
            f.jump(by_frame_pointer);
        });
    else
        f.jump_if(r0 == 0, by_frame_pointer);
    static_assert(offsetof(UnwindState, count) == offsetof(UnwindState, mappings) + 4 &&
                  offsetof(UnwindProcess, count) == offsetof(UnwindProcess, mappings) + 4);
    emit.copy(offsetof(UnwindState, mappings), r0);
    f.load<uint32_t>(r1, RAWBPF_AT(r0, UnwindProcess, edition));
    f.store<uint64_t>(state(offsetof(UnwindState, edition)), r1);
    if (options_.copies) emit.copy(offsetof(UnwindState, since_ns), RAWBPF_AT(r0, UnwindProcess, since_ns));
    emit.start_registers(no_registers);
    if (options_.copies) emit.keep_leaf();
    f.store<uint64_t>(state(offsetof(UnwindState, start)), 0);
    f.store<uint64_t>(state(offsetof(UnwindState, end)), 0);
    f.store<uint64_t>(state(offsetof(UnwindState, guessed)), 0);
    f.store<uint64_t>(state(offsetof(UnwindState, window_has)), 0);
    if (options_.return_probes) begin_return_probes(f, emit.return_probes());
    f.store<uint32_t>(state(offsetof(UnwindState, ending)), UNWIND_ENDED_DEPTH | UNWIND_TABLES);
    f.mov(r1, r9);
    f.rsh(r1, 3);
    f.store<uint32_t>(state(offsetof(UnwindState, at)), r1);

    if (options_.has_bpf_loop) {
        if (place.shape.remembered != 0) emit.begin_memory();
        const Slot scratch = f.stack<uint64_t>("scratch");
        f.store<uint64_t>(scratch, r8);
        const Code &one_round = round(place);
        f.bpf_loop(runtime(options_.depth), scratch, [&](Code &g) {
            g.load<uint64_t>(r6, r2);
            Emit(g, *this, place, r6).called_round(one_round);
        });
    } else {
        const Code &one_round = round(place);
        Code &g = b_.function(f.name() + "_walk" + std::to_string(++walks_), 1);
        Emit(g, *this, place, r6).calls(one_round);
        f.call(g, {r8});
    }

    f.load<uint32_t>(r0, state(offsetof(UnwindState, at)));
    f.if_(r0 > runtime(place.room), [&] { f.mov(r0, runtime(place.room)); }); // it never is; the verifier wants to see it
    f.lsh(r0, 3);
    f.mov(r1, r0);
    f.sub(r1, r9);
    f.if_(r1 == 0, [&] { // the leaf isn't in code that is known, but it is where the thread was
        f.mov(r1, r9);
        f.and_(r1, -8); // it is a multiple; riscv64's verifier wants to see it
        f.add(r1, r8);
        f.load<uint64_t>(r2, state(offsetof(UnwindState, address)));
        f.store<uint64_t>(r1 + runtime(place.frames), r2);
        f.mov(r0, r9);
        f.add(r0, 8);
        f.mov(r1, 8);
    });
    // Within execve, and when it has ended, a thread has no stack any more that its registers would be of, and no user frames.
    f.if_(r1 == 8, [&] {
        f.load<uint64_t>(r1, state(offsetof(UnwindState, entered)));
        f.load<uint32_t>(r2, state(offsetof(UnwindState, ending)));
        f.if_(r1 != 0, [&] {
            f.if_(r2 == (UNWIND_ENDED_UNREADABLE | UNWIND_TABLES), [&] {
                f.mov(r0, 0);
                f.jump(done);
            });
        });
    });
    f.mov(r1, r0);
    f.sub(r0, r9);
    f.mov(r9, r1);
    f.jump(done);

    f.bind(no_registers);
    f.store<uint32_t>(state(offsetof(UnwindState, ending)), UNWIND_ENDED_NO_REGS);
    f.bind(by_frame_pointer);
    follow_frame_pointers();
    f.bind(done);
    f.store<uint64_t>(emit.word(0), r0);
    forget(f, r9, emit.word(1), place.room * sizeof(uint64_t));
    f.load<uint64_t>(r0, emit.word(0));
}

void Unwinder::forget(Code &f, WritableReg number, Mem by, uint32_t most) {
    const Label meet = f.label("numbers meet"), never = f.label("never"), bounded = f.label("number bounded");
    f.store<uint64_t>(by, number);
    f.jump(meet);
    f.bind(never); // The verifier comes here last, as to all that jumps lead to, and what follows was looked at by then.
    f.mov(number, 0);
    f.jump(bounded);
    f.bind(meet);
    f.load<uint64_t>(number, by);
    f.jump_if(number > runtime(most), never);
    f.bind(bounded);
    f.and_(number, -8); // as it was: riscv64's verifier wants accesses to be aligned
}

void Unwinder::jump_if_known(Code &f, const Slot &pid, Label known) const {
    f.call(helper::map_lookup_elem, processes_, pid);
    f.if_(r0 != 0, [&] {
        f.load<uint64_t>(r1, RAWBPF_AT(r0, UnwindProcess, since_ns));
        const Slot since = f.stack<uint64_t>("since");
        f.store<uint64_t>(since, r1);
        jump_if_old(f, since, known);
    });
}

void Unwinder::jump_if_walked(Code &f, const WalkPlace &place, Label walked) const {
    const Emit emit(f, *this, place, r8);
    const Label wanted = f.label("copy wanted");
    f.load<uint32_t>(r1, emit.at(offsetof(UnwindState, ending)));
    f.jump_if(r1 == UNWIND_ENDED_NO_PROCESS, wanted);
    f.load<uint64_t>(r2, emit.at(offsetof(UnwindState, since_ns)));
    f.load_imm64(r3, UNWIND_ALWAYS_COPIED);
    f.jump_if(r2 == r3, wanted);
    // Where a frame pointer led into no mapping that is known, the ending is that of the code that it was tried for.
    f.load<uint64_t>(r2, emit.at(offsetof(UnwindState, guessed)));
    f.if_(r1 != r2, [&] { f.jump_if(r1 != runtime(UNWIND_TABLES | UNWIND_ENDED_NO_MAPPING), walked); });
    jump_if_old(f, emit.at(offsetof(UnwindState, since_ns)), walked);
    f.bind(wanted);
    f.load<uint64_t>(r1, emit.at(offsetof(UnwindState, leaf.address)));
    f.jump_if(r1 == 0, walked);
}

void Unwinder::copy_stack(Code &f, const WalkPlace &place, const std::function<void(Label)> &room) const {
    const Emit emit(f, *this, place, r8);
    const Label none = f.label("no copy"), copied = f.label("copied"), no_stack = f.label("no stack");
    const auto state = [&](size_t offset) { return emit.at(offset); };
    const auto behind = [&](WritableReg to, size_t offset) { // r8 + r9, then the frames' place in the scratch
        f.mov(to, r8);
        f.add(to, r9);
        f.add(to, runtime(place.frames + static_cast<int64_t>(offset)));
    };

    const Mem next = emit.word(0), user_bytes = emit.word(1);
    f.store<uint64_t>(user_bytes, r0);
    jump_if_walked(f, place, none);
    room(none);

    behind(r2, 0);
    for (size_t field = 0; field < sizeof(UnwindRegisters); field += sizeof(uint64_t)) {
        f.load<uint64_t>(r1, state(offsetof(UnwindState, leaf) + field));
        f.store<uint64_t>(r2 + runtime(field), r1);
    }
    // The first read goes up to a page's end, so that the others are pages; the first that fails is the stack's end. But a page
    // that a function has made room in and not written to yet isn't there: zeros stand in its place, which read_copy() knows.
    emit.copy(offsetof(UnwindState, words), state(offsetof(UnwindState, leaf.sp)));
    for (int page = 0; page < UNWIND_COPY_PAGES; ++page) {
        const auto address_and_bytes = [&] { // r3, r2
            f.load<uint64_t>(r3, next);
            f.mov(r2, UNWIND_COPY_PAGE);
            if (page != 0) return;
            f.mov(r4, r3);
            f.and_(r4, UNWIND_COPY_PAGE - 1);
            f.sub(r2, r4);
        };
        behind(r1, page == 0 ? sizeof(UnwindRegisters) : 0);
        address_and_bytes();
        f.call(helper::probe_read_user, r1, r2, r3);
        if (page == 0)
            f.if_(r0 != 0, [&] {
                behind(r1, sizeof(UnwindRegisters));
                address_and_bytes();
                f.add(r1, r2);
                f.add(r3, r2);
                f.call(helper::probe_read_user, r1, UNWIND_COPY_PAGE, r3);
                f.jump_if(r0 != 0, no_stack);
            });
        else
            f.jump_if(r0 != 0, copied);
        address_and_bytes();
        f.add(r3, r2);
        f.store<uint64_t>(next, r3);
        f.add(r9, r2);
        if (page == 0) f.add(r9, sizeof(UnwindRegisters));
    }
    f.bind(copied);
    f.load<uint32_t>(r1, state(offsetof(UnwindState, ending)));
    f.or_(r1, UNWIND_COPIED);
    f.store<uint32_t>(state(offsetof(UnwindState, ending)), r1);
    f.jump(none);
    // As in walk(): within execve, and when it has ended, a thread has none.
    f.bind(no_stack);
    f.load<uint64_t>(r1, state(offsetof(UnwindState, entered)));
    f.if_(r1 != 0, [&] {
        f.store<uint32_t>(state(offsetof(UnwindState, ending)), UNWIND_ENDED_UNREADABLE | UNWIND_TABLES);
        f.store<uint64_t>(user_bytes, 0);
    });
    f.bind(none);
    forget(f, r9, next, place.room * sizeof(uint64_t) + kCopyBytes);
    f.load<uint64_t>(r0, user_bytes);
}

} // namespace rawbpf::inline v0
