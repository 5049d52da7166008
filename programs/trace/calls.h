// Calls and returns, paired: for each thread (Event::caller(): in Go each goroutine) a stack of the calls that haven't returned.
//
//      call a   call b   call b   return b   return a
//      depth 0  1        2        2: 0.4 us  0: 9 us, and the first b's return was missed
//
// Returns are missed: exit(), longjmp, exceptions, a return probe that the kernel had no room for. A return that belongs to a
// call further down takes those above it with it, and they are counted.
//
// So does a call whose frame is where theirs would have to be. Stacks grow downwards: whoever calls from further up than an open
// call's frame does so after that has returned. Without that a record lost at full speed would leave its call open for good:
//
//      frame    call b        call b again: b's return was lost, it isn't b in b
//      7ff0     a             a
//      7fd0       b             b
//
// The kernel watches the returns of 64 calls of a thread at once (MAX_URETPROBE_DEPTH); the 65th and those within it run without.
// So a return is never theirs: it belongs to one of the first 64, and what is deeper has returned unseen. They are counted by
// themselves.
//
// At the same place of the stack only the same function: another one may have been jumped to, as a last act (a tail call). What
// is further away than any frame reaches is another stack: a signal's, a coroutine's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rawbpf::inline v0::trace {

class Calls {
  public:
    /// A call that hasn't returned.
    struct Open {
        uint32_t place;
        uint64_t time, frame, children = 0; ///< ns; children: in the calls within it that have returned
        bool user = false;                  ///< of a program, whose returns the kernel watches up to a depth
    };
    /// The depth of this call, from 0. `frame`: the stack pointer at the call, or what is as high; 0: not known. `user`: see
    /// Open.
    uint32_t call(uint64_t caller, uint32_t place, uint64_t time, uint64_t frame = 0, bool user = false);

    struct Returned {
        bool paired = false;
        uint32_t depth = 0;
        uint64_t duration = 0; ///< ns
        uint32_t missed = 0;   ///< calls above it whose returns never came
        uint64_t children = 0; ///< ns of the paired calls within it
    };
    Returned returned(uint64_t caller, uint32_t place, uint64_t time, bool user = false);

    /// Another program runs in that thread: the calls of the old one's functions are gone, the kernel's go on. Of a goroutine:
    /// all.
    void began_program(uint64_t caller, bool goroutine = false);

    /// The thread's calls that haven't returned, outermost first.
    [[nodiscard]] std::span<const Open> open(uint64_t caller) const;
    /// How many calls haven't returned, by thread or goroutine.
    [[nodiscard]] std::vector<std::pair<uint64_t, uint64_t>> still_open() const;
    /// Calls whose returns never came: those around them have returned, their frame is gone, or their thread was forgotten.
    [[nodiscard]] uint64_t missed_returns() const { return missed_returns_; }
    /// Calls whose returns the kernel didn't watch, as 64 were open already.
    [[nodiscard]] uint64_t too_deep() const { return too_deep_; }
    /// Calls whose thread has begun another program.
    [[nodiscard]] uint64_t replaced() const { return replaced_; }
    /// Returns from calls that weren't seen.
    [[nodiscard]] uint64_t missed_calls() const { return missed_calls_; }

  private:
    static constexpr uint64_t kReach = 1 << 20;        ///< bytes between two frames of one stack
    static constexpr std::size_t kDeepest = 1024;      ///< calls of one thread; deeper ones drop the oldest
    static constexpr std::size_t kWatched = 64;        ///< MAX_URETPROBE_DEPTH (include/linux/uprobes.h)
    static constexpr std::size_t kMostThreads = 65536; ///< then all are forgotten: threads end without a word
    std::unordered_map<uint64_t, std::vector<Open>> threads_;
    void drop(std::vector<Open> &open);
    void drop_unwatched(std::vector<Open> &open);
    uint64_t missed_returns_ = 0, missed_calls_ = 0, too_deep_ = 0, replaced_ = 0;
};

} // namespace rawbpf::inline v0::trace
