// Which words of CPython's structures say what, learnt from a process that runs.
//
// A profiler's usual way is a table of offsets for each version of the interpreter, which is wrong for builds that nobody has put
// there. But objects say themselves what they are: the second word of each is the address of its type, and the type of code
// objects is exported (PyCode_Type). So:
//
//      thread pointer --> each word near it: a thread state?  --> each of its words: a frame, or what leads to one?
//                                                                   |
//      frame: some word is an object whose type is PyCode_Type      |  <-- code
//             some word is another such frame, ... to the last, 0   |  <-- previous
//             some word lies within that code's instructions        |  <-- position
//
// A chain of frames that ends in 0, with a code object in each, doesn't come about by accident: the result proves itself. What a
// code object has where, its type's own table of members says by name (PyMemberDef of Include/descrobject.h: co_name,
// co_filename ...). What is left to be known of versions: which byte of a frame of 3.11 marks that native code called it.
//
// Several ways may lead to such a chain: beside the thread's frame there are words that point at a frame which has ended, and
// whose callers are still right. A thread state has the right one first of all; and whoever uses the result counts whether it
// agrees with the native stacks, and asks for another one where it doesn't (`refuted`).
//
// From 3.13 on _PyRuntime begins with a table of such offsets for debuggers. Which of its numbers is which differs by version, so
// it isn't taken for what it says, but asked whether it says the same (Layout::confirmed).
//
// The process runs on meanwhile, so a chain may break while it is read: whoever asks tries again at the next sample. PURE.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "asm/machines.h"
#include "programs/languages/layout.h"
#include "programs/languages/memory.h"
#include "programs/languages/runtime.h"

namespace rawbpf::inline v0::languages::cpython {

/// What the file of an interpreter says of itself; addresses as they are in the process.
struct Build {
    uint64_t code_type = 0;  ///< PyCode_Type
    uint64_t frame_type = 0; ///< PyFrame_Type; 0: unknown
    uint64_t none = 0;       ///< _Py_NoneStruct; 0: unknown
    uint32_t version = 0;    ///< Py_Version: 0x030b02f0 is 3.11.2; 0: from before 3.11, which doesn't say it
    uint64_t runtime = 0;    ///< _PyRuntime; 0: unknown
};

/// Learns from the thread whose pointer is given, as of now; none of the ways that are `refuted`. nullopt: `why` says what is
/// missing (half a sentence).
[[nodiscard]] std::optional<Layout> learn(Memory &memory, const Build &build, Arch arch, uint64_t thread_pointer,
                                          std::span<const LanguageProcess> refuted, std::string &why);

/// "CPython 3.11.2: thread state at +0x318, frame at +56 +8, code +32, caller +48, position +56; 12 frames".
[[nodiscard]] std::string describe(const Build &build, const Layout &layout);

} // namespace rawbpf::inline v0::languages::cpython
