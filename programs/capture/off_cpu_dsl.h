// The program at the scheduler's switch. It takes the stacks of the thread that leaves the CPU, and computes how long the thread
// that comes was off the CPU. The tool defines which threads to record, what the record holds beside its head, and where to
// count.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <linux/bpf.h>

#include "asm/builder.h"
#include "programs/capture/record_dsl.h"
#include "programs/capture/rings_dsl.h"

namespace rawbpf::inline v0 {

/// The current thread's numbers, each u32.
struct ThreadNumbers {
    Slot key, group;   ///< the kernel's: of the thread, of its process
    Slot pid, tid;     ///< ours: to begin with the same
    Slot of_namespace; ///< struct bpf_pidns_info: for who asks for those of our pid namespace

    static ThreadNumbers in(Code &f) {
        return {f.stack<uint32_t>("key"), f.stack<uint32_t>("group"), f.stack<uint32_t>("pid"), f.stack<uint32_t>("tid"),
                f.stack<bpf_pidns_info>("numbers")};
    }
    /// All but of_namespace. r0 to r5 are gone.
    void load(Code &f) const;
};

/// Numbers in what r7 points at, each a u64 of that many bytes from there on.
struct OffCpuCounters {
    int16_t switch_ns = 0;    ///< no count: when the last switch was
    int16_t end_unseen = 0;   ///< a thread was seen to leave, and then to leave again: among those sent
    int16_t lost_no_room = 0; ///< so many threads are known already
    int16_t lost_ring_full = 0;
    std::optional<int16_t> begun = {};     ///< waits: a wanted thread has left
    std::optional<int16_t> over = {};      ///< waits: a wanted thread is back, or there was no room for it
    std::optional<int16_t> preempted = {}; ///< runnable threads that left. Without it, waits are what they were away, too
    std::optional<int16_t> too_short = {}; ///< with min_wait_ns
};

struct OffCpuTool {
    std::string name;            ///< maps NAME_off (by the kernel's number of a thread) and NAME_blank
    std::string program;         ///< its name
    const MapRef &counts;        ///< for each CPU: what r7 points at, at index 0
    const OffCpuCounters &count; ///<
    void (*add)(Code &, Mem);    ///< count_plainly or count_atomically
    const Rings &rings;          ///<
    uint32_t wake_bytes = 0;     ///< Rings::send()
    uint32_t lead_bytes = 0;     ///< of the record, in front of the head; a multiple of 8
    uint32_t fixed_bytes = 0;    ///< of the record, the head and what follows it; likewise
    uint32_t threads = 4096;     ///< whose stacks are kept at a time: all that ever left a CPU, and live
    bool wide_state = false;     ///< has_wide_state()
    bool want_kernel = true, want_user = true;
    uint64_t min_wait_ns = 0;                     ///< shorter ones are counted, and not sent
    Unwinder *unwinder = nullptr;                 ///< nullptr: user stacks by frame pointers
    const UnwindProgramOptions *unwind = nullptr; ///< its
    /// On to the label where the current thread isn't wanted; else ThreadNumbers::pid and tid are as they are shown. r6 and r7
    /// have to stay.
    std::function<void(Code &, const ThreadNumbers &, Label stranger)> choose = {};
    /// The thread leaves: what the record holds beside its head. r8 the head. May be empty. r6 to r9 have to stay.
    std::function<void(Code &)> fill = {};
    /// Behind the stacks: so many words more, whose number goes into the upper half of the head's ending (RAWBPF_LANGUAGE_WORDS,
    /// RAWBPF_LABEL_WORDS). `zero` (u32) is 0; r8 the head, r9 bytes of stacks so far. r6 to r8 have to stay. May be empty.
    std::function<void(Code &, const RecordPlace &, const Slot &pid, const Slot &zero)> list = {};
    uint32_t most_listed = 0; ///< words
    /// Behind the stacks, with a walk by tables. `zero` (u32) is 0. r6 has to stay, r7 too; r8 and r9 may go. May be empty.
    std::function<void(Code &, const Unwinder::WalkPlace &, const Slot &zero)> walked = {};
    /// The thread is back: r0 = when, r9 = when it left, r8 the head, whose t_ns is that. Out: r0 = the time between; the record
    /// has them. r7 and r8 have to stay.
    std::function<void(Code &)> back = {};
};

/// What a walk keeps of a thread that leaves: with a small window and no memory, as each thread has its own.
using WaitingWalk = UnwindScratch<128, 0>;
/// Where in a value of NAME_off the record begins (OffCpuTool::lead_bytes); a thread is away while its head's t_ns isn't 0.
[[nodiscard]] uint32_t waiting_record_at(const UnwindProgramOptions *unwind);
/// The program at raw_tp/sched_switch. Needs the kernel's BTF.
void off_cpu_program(Builder &b, const OffCpuTool &tool);

} // namespace rawbpf::inline v0
