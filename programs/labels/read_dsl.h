// Emits the reading of the current thread's context, behind a record's stacks: layout.h says where it is and what is sent.
//
//     LabelReading labels(b, {.ids = true, .attributes = true}, kHostArch);     // declares label_processes, label_keys
//     ...                                                                       // stacks and frames are in the record, r9 bytes
//     labels.read(f, place, {pid, most});                                       // r9 more; RecordHead::ending says how many words
//
// Two reads of user memory where a thread has no context, five where it has one; of a goroutine four, and one to three for each
// of its labels. Needs bpf_probe_read_user (5.5) and the kernel's BTF (where a thread's pointer is).
#pragma once

#include <cstdint>
#include <optional>

#include "asm/builder.h"
#include "programs/capture/record_dsl.h"
#include "programs/labels/layout.h"

namespace rawbpf::inline v0 {

/// Which parts of a context anybody asks for. What nobody wants isn't sent: samples that differ only in it are counted together.
struct LabelParts {
    bool ids = true; ///< trace and span
    bool attributes = true;
    bool goroutine = false; ///< its number: each has another one, so stacks that are counted are many
    /// Whether a goroutine has any of them.
    [[nodiscard]] bool of_goroutines() const { return attributes || goroutine; }
};

class LabelReading {
  public:
    /// Declares the map label_processes; where goroutines have what is asked for also label_keys.
    LabelReading(Builder &b, const LabelParts &parts, Arch arch = kHostArch);

    struct How {
        Slot pid;          ///< u32: key in label_processes
        uint64_t most = 0; ///< bytes that can be in front of the context
    };
    /// In: r8 the place, r9 bytes so far; RecordHead::ending. Out: r9 more by the words' bytes, at most LABEL_MOST_BYTES;
    /// RecordHead::ending with the number of words. r6, r7, r8 are kept; r0 to r5 are gone.
    void read(Code &f, const RecordPlace &place, const How &how);

  private:
    void find_variable(Code &f, Label none) const;

    LabelParts parts_;
    Arch arch_;
    MapRef processes_;
    std::optional<MapRef> keys_{};
};

} // namespace rawbpf::inline v0
