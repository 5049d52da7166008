// Emits the reading of the current thread's context, or of its goroutine's labels: layout.h says where they are and what is sent.
//
//     LabelReading labels(b, {.ids = true, .attributes = true});     // declares label_processes, label_keys
//     labels.take(f, place, pid);                                    // the record at `place`, r0 bytes of it
//     labels.read(f, place, {pid, most});                            // behind stacks: RecordHead::ending says how many words
//
// Two reads of user memory where a thread has no context, five where it has one; of a goroutine four, and one to three for each
// of its labels. It is a function, so whichever program calls it has its own stack left. Needs bpf_probe_read_user (5.5) and the
// kernel's BTF (where a thread's pointer is).
#pragma once

#include <cstdint>
#include <optional>

#include "asm/builder.h"
#include "programs/capture/off_cpu_dsl.h"
#include "programs/capture/record_dsl.h"
#include "programs/labels/layout.h"

namespace rawbpf::inline v0 {

/// Which parts of a context anybody asks for. What nobody wants isn't sent: samples that differ only in it are counted together.
struct LabelParts {
    bool ids = true; ///< trace and span
    bool attributes = true;
    bool goroutine = false; ///< its number: each has another one, so stacks that are counted are many
    bool once = false;      ///< the function is verified by itself, once: the kernel takes an address for it (5.12)
    /// Whether a goroutine has any of them.
    [[nodiscard]] bool of_goroutines() const { return attributes || goroutine; }
    /// Bytes that the function must have to write to; the record has fewer.
    [[nodiscard]] uint32_t room() const { return of_goroutines() ? LABEL_ROOM_WORDS * 8 : (LABEL_HEAD_BYTES + 7) & ~7u; }
};

class LabelReading {
  public:
    /// Declares the map label_processes; where goroutines have what is asked for also label_keys.
    LabelReading(Builder &b, const LabelParts &parts, Arch arch = kHostArch);

    /// r0 = bytes of the record, whole words, LABEL_MOST_BYTES at most; 0: there is none. `pid`: u32, key in label_processes. In:
    /// r1 where it goes, LabelParts::room() bytes. r6 to r9 are kept, the others are gone.
    void take(Code &f, const Mem &pid);

    struct How {
        Slot pid;          ///< as take() has it
        uint64_t most = 0; ///< bytes that can be in front of the record
    };
    /// In: r8 the place, r9 bytes so far; RecordHead::ending. Out: r9 more by the record's bytes; RecordHead::ending with the
    /// number of words. r6, r7, r8 are kept; r0 to r5 are gone.
    void read(Code &f, const RecordPlace &place, const How &how);
    /// At the scheduler's switch: behind what else the tool lists there.
    void join(OffCpuTool &tool);

  private:
    void emit(Code &f) const;
    void find_variable(Code &f, Label none) const;

    Builder &b_;
    LabelParts parts_;
    Arch arch_;
    MapRef processes_;
    std::optional<MapRef> keys_{};
    Code *function_ = nullptr;
};

} // namespace rawbpf::inline v0
