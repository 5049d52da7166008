// What the files share that make programs. Private to the room.
//
//      program.cpp   which places share a program; its outline
//      emit_filters  who is asked about, sampling, forks                     filter.cpp    --filter
//      emit_values   arguments, results, what is read through pointers
//      emit_go       the same of Go's functions
//      emit_system_calls   which call it is, by its number
//      emit_record   the record: header, values, texts, paths, stacks        emit_pair     calls kept until their return
//      emit_counted  records that are counted by their stacks
//      aggregate_program   groups of events, counted and summed up
#pragma once

#include "asm/builder.h"
#include "programs/capture/counting_dsl.h"
#include "programs/capture/rings_dsl.h"
#include "programs/labels/read_dsl.h"
#include "programs/languages/walk_dsl.h"
#include "programs/trace/path.h"
#include "programs/trace/program.h"
#include "programs/trace/value.h"
#include "programs/unwind/unwinder.h"

namespace rawbpf::inline v0::trace {

/// What all programs of a trace have in common.
struct Shared {
    Shared(const ProgramOptions &o, const btf::Btf *types) : options(o), kernel(types) {}
    Builder b{"trace"};
    const ProgramOptions &options;
    const btf::Btf *kernel; ///< may be nullptr
    std::optional<MapRef> counts, ring, pids, tids, uids, cgroup, tracees, depths, open_calls, written, system_calls, programs;
    std::optional<uint32_t> task_status; ///< x86_64: where a task has thread_info.status, if BTF knows
    std::optional<PathOffsets> paths;    ///< where this kernel has what a path is read from
    std::optional<FileOffsets> files;    ///< and what a descriptor leads to
    std::optional<NamespaceOffsets> namespaces;
    Code *walk = nullptr;
    std::optional<Unwinder> unwinder; ///< user stacks by tables
    std::optional<Rings> rings;       ///< `ring`, for
    std::optional<LanguageWalk> languages;
    std::optional<LabelReading> labels;
    std::optional<StackCounting> counting;
    std::optional<MapRef> groups, blank_group; ///< with ProgramOptions::aggregate
    const GroupLayout *group_layout = nullptr;
    std::optional<MapRef> slots, blank; ///< with `counting`: where a thread's record is made
};

/// What tells a stack apart that isn't walked yet: where the thread is, and what lies on top of its stack (at a function's first
/// instruction that is where it returns to).
struct StackStart {
    uint64_t pc, sp, fp, top;
};

/// One program under construction. r6 is the context, r7 the place's index, r8 its counters; the others are free.
struct Emitting {
    Code &f;
    Shared &shared;
    const ProbeSite &place; ///< one of those that share the program: they agree in all that matters here
    bool is_result;
    Slot ids;                                         ///< u64: process id << 32 | thread id, as they count for the user
    Slot comm;                                        ///< char[16]
    Slot scratch;                                     ///< u64
    Slot path;                                        ///< struct path, 16 bytes
    std::optional<SlotOf<OpenCall>> call = {};        ///< a result whose call was kept: what was kept
    std::optional<SlotOf<uint64_t>> duration = {};    ///< and how long ago that is
    std::optional<Slot> process = {};                 ///< u32: where stacks are walked by tables, whose
    std::optional<LanguageWalk::Apart> language = {}; ///< likewise, where interpreters' frames are
    std::optional<Slot> size = {};                    ///< u64: of the record, where it may have room for a copy of the stack
    std::optional<Label> copying = {};                ///< in a slot: on to it where the stack had better be copied, by `size`
    std::optional<Slot> written = {};                 ///< with Filters::most_events: where the events are counted
    std::optional<Slot> word = {};                    ///< u64: where words on a Go function's stack are read to
    std::optional<Slot> stack_hash = {};              ///< u64: GroupKey::Kind::stack; 0: not known
    std::optional<SlotOf<StackStart>> start = {};     ///< where the user's stack begins
    bool sleepable = false;                           ///< may wait for a page of the user's
};

[[nodiscard]] bool has_registers(ProbeKind kind); ///< struct pt_regs is the context
[[nodiscard]] bool has_record(ProbeKind kind);    ///< a tracepoint's record is
/// The end of it that this probe stands at can be asked for arguments.
[[nodiscard]] bool has_arguments(const Emitting &e);

/// dst = argument `index` (tracepoints: field), or for a result what was returned, all 64 bits of the register (a user function's
/// of unknown type: what looks like an int's error is extended). r0 to r5 may be gone.
void load_raw(const Emitting &e, WritableReg dst, uint32_t index);
void load_result(const Emitting &e, WritableReg dst);
/// Whether argument `index` of a function of C's is on the stack, where the call left it (System V ABI: x86_64 has six in
/// registers, arm64 eight).
[[nodiscard]] bool is_on_stack(const ProbeSite &place, uint32_t index);
/// dst = `size` bytes at `offset` from the stack pointer. r0 to r5 are gone; r0 is negative where they can't be read.
void load_stack_word(const Emitting &e, WritableReg dst, uint32_t offset, uint32_t size);
/// A word of a Go call. r0 to r5 may be gone; of one on the stack r0 is negative where it can't be read.
void load_go_word(const Emitting &e, WritableReg dst, const GoWord &word);
/// Which goroutine calls: Go's ABI keeps it in a register (src/cmd/compile/abi-internal.md).
void load_goroutine(const Emitting &e, WritableReg dst);
/// Header::frame on a stack that may be moved: how far it is from the stack's end.
void load_go_frame(const Emitting &e, WritableReg dst);
/// What is copied of a slice, of an interface; r0 = how many bytes it is, or a negative error.
void copy_go_slice(const Emitting &e, const Value &value, Mem bytes, uint32_t capacity);
void copy_go_strings(const Emitting &e, const Value &value, Mem bytes, uint32_t capacity);
void copy_go_interface(const Emitting &e, const Value &value, Mem bytes, uint32_t capacity);
/// dst = the word of an argument or result, or one of those behind it.
void load_go_value(const Emitting &e, WritableReg dst, const Value &value, uint32_t behind = 0);
/// dst = Header::frame.
void load_frame(const Emitting &e, WritableReg dst);
/// r0 = the value, extended to 64 bits as its type says. Everything but r6 to r9 is gone.
void load_value(const Emitting &e, const Value &value);
/// r0 = where the value lies in memory (Value::reads isn't empty). Everything but r6 to r9 is gone.
void load_address(const Emitting &e, const Value &value);
/// r0 = probe_read_{user,kernel}{,_str}(dst, size, r3), by what kind of address r3 is; negative where it can't be read.
void read_memory(const Emitting &e, Mem dst, uint32_t size, bool text);

/// At sys_enter or sys_exit, whose context is in r6: r0 = what trace_system_calls has of this end of this call, r1 =
/// place_and_one. On to `other` where it isn't traced. `key`: u32.
void find_system_call(Shared &shared, Code &f, bool at_exit, Slot key, Label other);
/// On to `other` where the call has come from a 32-bit program, whose calls have other numbers. Everything but r6 to r9 is gone.
void pass_compat_over(Shared &shared, Code &f, Label other);

/// A record in the ring, as the layout says; where there is no room it is counted as lost.
void emit_record(Emitting &e, const Layout &layout);
/// What it has: into memory at r9, of a ring or a map. r8 is gone.
void fill_record(Emitting &e, const Layout &layout);
/// With Shared::counting, before emit_record(): one more of its kind, and on to `done`; or goes on where the record has to be
/// sent by itself. r6, r7, r8 are kept then.
void count_record(const Emitting &e, const Layout &layout, Label done);
/// With Shared::counting, before emit_group(): e.stack_hash; a stack that is new is sent. r9 is gone.
void hash_stack(Emitting &e, const Layout &layout);
/// Before stacks are walked by tables: e.process, whose they are, e.language and e.size. r0 to r5 are gone.
void begin_walk(Emitting &e, const Layout &layout);
/// Behind all that may send the frames of e.language. r0 to r5 are gone.
void end_walk(const Emitting &e);

/// At a call: kept in the maps until it returns.
void keep_call(const Emitting &e, uint32_t arguments);
/// At a return: the call is in e.call and e.duration; where none was kept on to `unknown`.
void find_call(const Emitting &e, Label unknown);

/// Whose event it is, the cheapest questions first: on to `filtered` where it isn't asked about. Puts ids and names where they
/// are needed. `key`: u32. `rejects`: becomes true where something jumps.
void check_identity(const Emitting &e, Slot key, Label filtered, bool &rejects);
/// The ids as our pid namespace counts them. The helper knows those of threads in it, and in none below or beside it: theirs
/// can't be compared with ids that the user gave, and are shown as process 0, with the thread's number on the machine.
void load_ids(Shared &shared, Code &f, Slot ids, Label filtered, bool &rejects);
/// No more than so many events (Filters::most_events). They are counted when they are written, so that one that is lost doesn't
/// count; a CPU that comes in between writes one too many, which user space leaves out.
void check_most_events(Emitting &e, Slot key, Label filtered);
/// Each so many-th goes on (Filters::one_in).
void sample_out(const Emitting &e, Label out);
/// Programs trace_fork and trace_exit: the threads of the family (Shared::tracees).
void follow_forks(Shared &shared);
/// Program trace_exec: its process's calls have no return.
void tell_execs(Shared &shared);

/// One more in a counter of the place, a member of Counts. r1 is gone.
void bump(const Emitting &e, size_t counter);

/// With ProgramOptions::aggregate: what keys and values have, of these places; it also has to be the same for all of them. And
/// the maps. Errors: invalid_argument with a caret.
[[nodiscard]] Result<GroupLayout> group_layout(const std::vector<const ProbeSite *> &places, const AggregateOptions &options,
                                               const btf::Btf *kernel);
void make_group_maps(Shared &shared);
/// The event, put into its group; where there is no room for one more it is lost. Goes on at `out`, which is bound next.
[[nodiscard]] Result<void> emit_group(Emitting &e, Label out);

/// r0 = the text's length with its zero, or a negative error; the text itself at `to`, of `size` bytes.
void read_text(const Emitting &e, const Value &value, Mem to, uint32_t size);
/// r0 = the expression's value. Errors: what isn't a number, or can't be had here, with a caret.
[[nodiscard]] Result<void> compile_value(const Emitting &e, const Expression &expression);
/// Whether its numbers have signs.
[[nodiscard]] Result<bool> has_signed_value(const Expression &expression, uint32_t node, const ProbeSite &place,
                                            const btf::Btf *kernel);
/// Goes on where the expression holds, else jumps to `to`. Errors: what can't be compiled, with a caret.
[[nodiscard]] Result<void> compile_filter(const Emitting &e, const Expression &expression, Label to);
/// Whether the expression asks for comm, so that it has to be there.
[[nodiscard]] bool mentions(const Expression &expression, std::string_view name);

} // namespace rawbpf::inline v0::trace
