// What filter.cpp and program.cpp share while a program is made. Private to the room.
#pragma once

#include "asm/builder.h"
#include "programs/trace/value.h"

namespace rawbpf::inline v0::trace {

/// One program under construction. r6 is the context, r7 the place's index, r8 its counters; the others are free.
struct Emitting {
    Code &f;
    const Place &place; ///< one of those that share the program: they agree in all that matters here
    bool is_result;
    Slot ids;               ///< u64: process id << 32 | thread id, as they count for the user
    Slot comm;              ///< char[16]
    Slot scratch;           ///< u64
    bool sleepable = false; ///< may wait for a page of the user's
    bool by_helper = false; ///< ProgramOptions::by_helper
};

/// dst = argument `index` (tracepoints: field), or for a result what was returned, all 64 bits of the register. r0 to r5 may be
/// gone.
void load_raw(const Emitting &e, WritableReg dst, uint32_t index);
void load_result(const Emitting &e, WritableReg dst);
/// r0 = the value, extended to 64 bits as its type says. Everything but r6 to r9 is gone.
void load_value(const Emitting &e, const Value &value);
/// r0 = probe_read_{user,kernel}{,_str}(dst, size, r3), by what kind of address r3 is; negative where it can't be read.
void read_memory(const Emitting &e, Mem dst, uint32_t size, bool text);

/// Goes on where the expression holds, else jumps to `to`. Errors: what can't be compiled, with a caret.
[[nodiscard]] Result<void> compile_filter(const Emitting &e, const Expression &expression, const btf::Btf *kernel, Label to);
/// Whether the expression asks for comm, so that it has to be there.
[[nodiscard]] bool mentions(const Expression &expression, std::string_view name);

} // namespace rawbpf::inline v0::trace
