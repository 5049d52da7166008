// SPDX-License-Identifier: MIT
// A refused program as a value: what, where, why, and what helps. The loader fills it, people and scripts read it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rawbpf::inline v0 {

/// A place in a program, as far as it is known.
struct ProgramPlace {
    int insn = -1;           ///< in 8-byte slots; -1: unknown
    std::string instruction; ///< in the verifier's words: "r1 = *(u64 *)(r0 +0)"
    std::string file;        ///< "hello.bpf.c"; empty: no line information
    uint32_t line = 0;       ///< 1-based; 0: unknown
    uint32_t column = 0;     ///< 1-based; 0: unknown
    std::string source;      ///< the whole line, with the blanks in front
};

/// One remark on a refusal; without a place where it has none.
struct RefusalNote {
    std::string text;     ///< "the pointer comes from this call of bpf_map_lookup_elem()"
    ProgramPlace at = {}; ///< what the remark is about; unknown: the program as a whole
};

/// Why the verifier refused a program.
struct Refusal {
    std::string program, ///< "count"
        section;         ///< "tracepoint/syscalls/sys_enter_openat"
    /// What sort of mistake: "null", "uninitialized", "bounds", "packet", "stack", "loop", "argument", "released" ...; "other"
    /// where no more is known. The words are stable: scripts may tell refusals apart by them.
    std::string_view kind = "other";
    std::string function;           ///< of the instruction; empty: unknown
    ProgramPlace at;                ///< where it was refused
    std::string loop;               ///< of a loop without an end: "the loop of instructions 3 to 9 (p.bpf.c:7 to 9)"; else empty
    std::string reason;             ///< in the verifier's words: what people search for
    std::string registers;          ///< those that matter: "R0=map_value_or_null(id=1,map=counts,ks=4,vs=8)"
    std::vector<RefusalNote> notes; ///< in the order in which they are printed
    std::string hint;               ///< what helps; empty where we don't know either
    std::string headline;           ///< "program count (socket): the verifier refused instruction 7 (...)"
    std::string sentence;           ///< all of it in one line; an Error's message ends with it
};

/// While it lives, the refusal that ends a load() in this thread is kept as a value beside the Error, whose message is for
/// people.
class KeepRefusal {
  public:
    /// `into` must outlive this. It stays as it is when no program is refused. The innermost of several counts.
    explicit KeepRefusal(Refusal &into);
    ~KeepRefusal();
    KeepRefusal(const KeepRefusal &) = delete;
    KeepRefusal &operator=(const KeepRefusal &) = delete;
    /// Puts it where somebody wants it; else nothing.
    static void put(Refusal &&refusal);

  private:
    Refusal *before_;
};

/// Laid out in lines, as the assembler's complaints: place and reason, the source line with a caret, registers, notes.
/// Without headline and hint. PURE.
[[nodiscard]] std::string print_refusal(const Refusal &refusal);

/// What a register holds, in words: "map_value_or_null(id=1,map=counts,ks=4,vs=8)" -> "a pointer to a value of map counts, or
/// NULL". Empty for what isn't in the table. PURE.
[[nodiscard]] std::string describe_register(std::string_view value);

} // namespace rawbpf::inline v0
