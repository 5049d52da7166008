// Emits the reading of the goroutine that the current thread runs: its number, and those of its labels that are asked for, as a
// record of layout.h. go_runtime.h says where it is.
//
//      labels, up to Go 1.23     --> map of strings:  | count | flags, B | buckets | --> 2^B buckets and what overflows, of 8 each
//              from 1.24 on      --> | list | length | capacity | --> | key | length | value | length | ...
//
// Which of the two it is, the three words say of themselves: behind the address of a map there are addresses or zeros, or none.
#pragma once

#include <cstdint>
#include <optional>

#include "asm/builder.h"
#include "programs/labels/layout.h"

namespace rawbpf::inline v0 {

struct GoroutineReading {
    bool number = false;          ///< of the goroutine
    std::optional<MapRef> keys{}; ///< label_keys; nullopt: no labels
    Arch arch = kHostArch;
};

/// In: r6 the LabelProcess, r8 where the record goes: LABEL_ROOM_WORDS. Out: r7 its bytes, LABEL_HEAD_BYTES to LABEL_MOST_BYTES,
/// zeros up to a whole word. r8 and r9 are kept, the others are gone. To `none` where the thread runs no goroutine.
void read_goroutine(Code &f, const GoroutineReading &how, Label none);

} // namespace rawbpf::inline v0
