// The BPF side of unwinding without frame pointers, as user space sees it: what can be chosen, what must be known of the kernel,
// and the maps, which runtime/unwind/layout.h lays out and user space fills in. The generator itself is unwinder.h.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "asm/machines.h"
#include "programs/unwind/choice.h"
#include "runtime/base/error.h"
#include "runtime/object/spec.h"
#include "runtime/unwind/layout.h"
#include "runtime/unwind/machines.h"

namespace rawbpf::inline v0 {

#define UNWIND_MAX_FRAMES 255 /* of a walk */

/// What a walk keeps from one frame to the next; stands in the scratch of the program that walks, one at a time on a CPU.
struct UnwindState {
    __u64 pc;         ///< to look up: of a return address the byte before it
    __u64 address;    ///< to record: the return address, perhaps with UNWIND_EXACT_PC
    __u64 sp, fp;     ///< as they are in this frame
    __u64 lr;         ///< the link register, x86_64's r10: the frame's own (leaf, or what a signal interrupted); else 0
    __u64 di;         ///< x86_64's rdi, likewise
    __u64 code;       ///< UnwindRegisters::code
    __u64 start, end; ///< the mapping of the frame before, in which most frames stay
    __u64 bias;       ///< its
    __u64 pages;      ///< its UnwindMapping's pages, page_count, kind, as they lie there
    __u32 mappings;   ///< the process's
    __u32 count;      ///< the process's
    __u32 at;         ///< frames in the buffer, the kernel's too
    __u32 ending;     ///< UNWIND_ENDED_...; with UNWIND_TABLES where tables were used
    __u64 guessed;    ///< the frame before was left by UNWIND_GUESSED's frame pointer: what to end with where that led astray
                      ///< (with UNWIND_TABLES); else 0. On arm64 only a lower bound of the stack pointer is known then
    __u64 returns;    ///< return_probes.h: the next of the return addresses that the kernel has taken away
    __u64 trampoline; ///< and what it has put there
    __u64 entered;    ///< 1: the first frame's registers are those that the thread left when it entered the kernel
    __u64 found;      ///< the address that this round adds; 0: none
    __u64 window_at;  ///< UnwindScratch: the user's address of what lies in the window
    __u64 window_has; ///< and from how many of its first bytes on two words can be taken; 0: nothing was read
    __u64 edition;    ///< the process's
    __u64 words[16];  ///< what was read: registers, or words of the stack
    __u64 since_ns;   ///< the process's
    struct UnwindRegisters leaf; ///< with UnwindProgramOptions::copies: where the walk began; address 0: nowhere
};

/// The rule of an address whose tables were searched.
struct UnwindRemembered {
    __u64 code; ///< the address in its file, in the upper half, and the position of the file's directory | 1; 0: nothing
    struct UnwindRule rule;
};

/// Rules that walks on this CPU have found, each at a place that its address says. Most frames are where many samples have been,
/// and then one load takes the place of two dozen, each of which depends on the one before.
template <uint32_t rules> struct UnwindMemory {
    static_assert((rules & (rules - 1)) == 0, "a power of two");
    __u64 edition; ///< UnwindProcess::edition, the newest that came by: older processes have nothing of newer tables
    struct UnwindRemembered rules_of[rules];
};
template <> struct UnwindMemory<0> {};

/// How much of it there is. How a walk's scratch is made.
struct UnwindShape {
    uint32_t window_bytes; ///< of the stack, read at once
    uint32_t remembered;   ///< rules; 0: there is no memory
    friend auto operator<=>(const UnwindShape &, const UnwindShape &) = default;
    [[nodiscard]] constexpr uint32_t memory_at() const { ///< bytes from the scratch's beginning
        return sizeof(UnwindState) + window_bytes + 2 * sizeof(__u64);
    }
    [[nodiscard]] constexpr uint32_t bytes() const {
        return memory_at() + (remembered != 0 ? uint32_t{sizeof(__u64)} + remembered * uint32_t{sizeof(UnwindRemembered)} : 0);
    }
};

/// What a walk works in. It reads as much of the stack at once as fits into the window, as most frames are small, and reading a
/// word costs as much as all else that is done for a frame.
template <uint32_t window_bytes = 512, uint32_t remembered = 256> struct UnwindScratch {
    static_assert((window_bytes & (window_bytes - 1)) == 0 && window_bytes >= 2 * sizeof(__u64), "a power of two");
    static constexpr UnwindShape kShape{window_bytes, remembered};
    UnwindState state;
    __u64 window[window_bytes / sizeof(__u64) + 2]; ///< two words more, which the verifier takes to be reachable
    [[no_unique_address]] UnwindMemory<remembered> memory;
};

static_assert(offsetof(UnwindState, pc) == offsetof(UnwindRegisters, pc) &&
              offsetof(UnwindState, address) == offsetof(UnwindRegisters, address) &&
              offsetof(UnwindState, sp) == offsetof(UnwindRegisters, sp) &&
              offsetof(UnwindState, fp) == offsetof(UnwindRegisters, fp) &&
              offsetof(UnwindState, lr) == offsetof(UnwindRegisters, lr) &&
              offsetof(UnwindState, di) == offsetof(UnwindRegisters, di) &&
              offsetof(UnwindState, code) == offsetof(UnwindRegisters, code));

/// In a hole of a table: the frame pointer and the return address lie behind each other where the machine's frame pointers lead,
/// if at all. (Numbers as x86_64 has them; unwind::Machine::record tells it of each.)
inline constexpr UnwindRule kGuess{.kind = UNWIND_FP, .flags = UNWIND_GUESSED, .cfa = 2, .fp = -2, .ra = -1};
/// Where there is no table.
inline constexpr UnwindRule kByFramePointer{
    .kind = UNWIND_FP, .flags = UNWIND_GUESSED | UNWIND_TO_ROOT, .cfa = 2, .fp = -2, .ra = -1};
/// x86_64: code all of whose frames are alike.
struct UniformFrame {
    int16_t words = 0; ///< from the stack pointer to behind the return address
    int16_t fp = 0;    ///< rbp was saved at CFA + fp, in words; 0: it is the caller's

    friend bool operator==(const UniformFrame &, const UniformFrame &) = default;
};
constexpr UnwindRule rule_of(const UniformFrame &frame) {
    return {.kind = UNWIND_SP, .flags = UNWIND_ADDED, .cfa = frame.words, .fp = frame.fp, .ra = -1};
}

/// What the kernel has for the walk, found out by trying, and how large the maps are. User space asks once.
struct UnwindProgramOptions {
    uint32_t depth = 127;          ///< most frames, 1 to UNWIND_MAX_FRAMES
    uint32_t pools = 64;           ///< entries of unwind_pools, 1 to 4096
    uint32_t processes = 4096;     ///< entries of unwind_processes
    bool has_bpf_loop = false;     ///< it makes the rounds, whose function is given the state (5.12); else a small loop
    bool has_task_pt_regs = false; ///< bpf_task_pt_regs (5.15): a thread's user registers, while the kernel works for it
    /// Without it they lie below the top of the kernel's stack: task_struct.stack + this. 0: not known, such stacks end with
    /// UNWIND_ENDED_NO_REGS.
    uint32_t registers_at = 0;
    bool return_probes = false; ///< goes on through functions whose return is probed; where the kernel's BTF has what that needs
    bool probed_code = false;   ///< begins where a probe stands, not in the page where the kernel runs the instruction; needs BTF
    bool copies = false;        ///< copy_stack() may follow a walk (ktime_get_ns, probe_read_user)
    uint64_t address_mask = ~0ull; ///< arm64: which bits of a return address are not its signature (PAC)
    /// Whose stacks these are: one of unwind::kMachines.
    Arch arch = unwind::has_machine(kHostArch) ? kHostArch : Arch::x86_64;
};

/// What this kernel has; sizes are left as they are. Never fails: what can't be found out isn't there.
[[nodiscard]] UnwindProgramOptions probe_unwind();
/// What a program that walks is to be made with; nullopt: it isn't to. `note`: why not, where it was wanted (a sentence).
[[nodiscard]] std::optional<UnwindProgramOptions> unwind_options(const UnwindChoice &choice, std::string &note);
/// The kernel refused what unwind_options() led to: whether to do without, which `note` then says. Else it is the error.
[[nodiscard]] bool goes_without(const UnwindChoice &choice, const Error &refused, std::string &note);

/// In a spec made of a unit that has an Unwinder: the pools' member is an array of one value of 1 MiB, mapped. Nothing happens to
/// a spec without unwind_pools.
void complete_unwind_maps(ObjectSpec &spec);
/// What unwind_pools' members are: for who makes them.
[[nodiscard]] MapSpec unwind_pool_spec();

} // namespace rawbpf::inline v0
