// Several interpreters in one process (Py_NewInterpreter, and Python's modules for it): each has thread states of its own, so a
// thread that runs one in another has two, and two lists of frames. They are found by lists of the runtime's:
//
//      _PyRuntime --?--> interpreter --?--> interpreter --> 0
//                            |  ?
//                            v
//                       thread state {before, next, interpreter, ..., thread} --next--> thread state --> 0
//
// The first three words of a thread state are the same in all versions (Include/cpython/pystate.h, 3.4 to 3.14). Each word that
// is asked for above proves itself: a list of states has none before its first, all of it name their interpreter, and the state
// that is known is one of them.
#pragma once

#include "programs/languages/memory.h"
#include "programs/languages/runtime.h"

namespace rawbpf::inline v0::languages::cpython {

/// Where thread states are, into the layout. False: the process has one interpreter, or they weren't found. PURE but for what it
/// reads.
[[nodiscard]] bool learn_others(Memory &memory, const Lesson &lesson, Layout &layout);

} // namespace rawbpf::inline v0::languages::cpython
