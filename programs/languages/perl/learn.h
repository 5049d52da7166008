// Which words of Perl's structures say what, learnt from a process that runs.
//
//      thread's variables --> the interpreter, whose size is exported (PL_interp_size)
//          some word is a stack's head (stackinfo), whose callers' heads lead to 0; in front of it is the leaf's position
//          some word is the program's code, and behind it is an operation that leaves a block (leave)
//      head: its contexts lie one behind the other, from the outermost on
//      context: its kind, as PL_block_type names them; some word is a position in its caller, in all of them
//               of a sub: some word is code, as the program's is; some word is where it returns to
//      position: an operation that begins a statement (nextstate), a file's path in it, and the line in front of that
//      operations: PL_op_name and PL_ppaddr say which function is whose
//      code: some word leads to its name, by way of what it is called by (GV) or at once; that leads to its package
//
// A position and code in every context of a chain don't come about by accident: the result proves itself. What is left to be
// known, the same from 5.24 on: a head's first words, where in an operation its function is and in an object its type, and what
// lies next to each other. PURE.
#pragma once

#include "programs/languages/runtime.h"

namespace rawbpf::inline v0::languages::perl {

/// As Runtime::learn.
[[nodiscard]] std::optional<Layout> learn(Memory &memory, const Lesson &lesson, std::string &why);

/// "Perl 5.36.0: stacks at +224, contexts of 104 bytes, position +16, code +72; name +56, package +32; learnt from 5 frames".
[[nodiscard]] std::string describe(const Interpreter &file, const Layout &layout);

inline constexpr uint8_t kInRegex = 0x80;     ///< of a sub's mark: code in a pattern, of the function around it
inline constexpr uint8_t kOfRegex = 0x40;     ///< likewise, of a pattern that was made elsewhere
inline constexpr uint32_t kLexical = 0x10000; ///< of a code's flags

} // namespace rawbpf::inline v0::languages::perl
