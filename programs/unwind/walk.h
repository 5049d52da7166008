// The walk once more, in user space: over the same tables and by the same rules as unwinder.cpp's, but of a copy of the stack's
// bytes. PURE.
//
// A program walks by what user space has told the kernel of a process. Of one that began a millisecond ago it hasn't told
// anything, and when it could, the process may be gone. So the program then sends the leaf's registers and what lies on the stack
// from there on, and this makes the frames of it, as soon as the news of what the process had mapped is there.
//
//      UnwindRegisters, bytes of the stack      mappings      WalkTables: pools, rules
//                       \________________________  |  _______________/
//                                                walk --> frames, and how it ended
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "programs/unwind/code_patterns.h"
#include "programs/unwind/program.h"
#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::unwind {

/// How a frame is left in code that no table describes, but whoever made it does: only here, as it may need more than a program
/// knows of a rule.
struct ListedRule {
    UnwindRule rule{};
    int16_t callers_sp = 0; ///< not 0: the caller's stack pointer lies at fp + this, in words, and is the CFA or more
    int16_t function = 0;   ///< not 0: the word at fp + this tells which function the frame is of
    int16_t position = 0;   ///< with function: the word at fp + this tells where in it
    bool roughly = false;   ///< of a leaf it is true between beginning and end, while nothing is pushed: others are tried, too
};

/// UnwindMapping::kind of such code. Programs are never told of it.
inline constexpr uint16_t kListed = UNWIND_BY_NONE + 1;

/// The tables' bytes, as a program has them by its maps.
class WalkTables {
  public:
    virtual ~WalkTables() = default;
    /// UNWIND_POOL_BYTES; nullptr: there is no such pool.
    [[nodiscard]] virtual const std::byte *pool(uint32_t number) const = 0;
    /// nullptr: there is no such rule.
    [[nodiscard]] virtual const UnwindRule *rule(uint32_t number) const = 0;
    /// The process's code at an address; false: it can't be read (any more).
    [[nodiscard]] virtual bool code(uint64_t address, std::span<std::byte> into) const = 0;
    /// Of an address in a mapping of kind kListed; nullopt: it isn't known.
    [[nodiscard]] virtual std::optional<ListedRule> listed(uint64_t /*pc*/) const { return std::nullopt; }
};

/// A thread as it was in the moment of a sample.
struct StackCopy {
    UnwindRegisters registers;
    Bytes bytes;       ///< of the stack, from registers.sp on; elsewhere nothing can be read
    size_t absent = 0; ///< so many of the first bytes couldn't be read either
};

/// As Unwinder::copy_stack() leaves it behind the frames: UnwindRegisters, then bytes. nullopt: there is less than the registers.
[[nodiscard]] std::optional<StackCopy> read_copy(Bytes bytes);

/// What ListedRule::function led to.
struct FrameFunction {
    uint32_t frame; ///< leaf is 0
    uint64_t word;
    uint64_t position = 0; ///< what ListedRule::position led to; 0: unknown
    bool known = false;    ///< the word is no longer the stack's: whoever keeps the functions has given it a number
    uint64_t running = 0;  ///< of a leaf that has such a place: UnwindRegisters::code, which may be where it is
};

/// A frame of code without a table.
struct PointedFrame {
    uint32_t frame;
    uint64_t fp; ///< its frame pointer
    bool enters; ///< the leaf, where it hasn't made its frame: the pointer is its caller's
};

struct Walked {
    std::vector<uint64_t> frames;         ///< as in a record: leaf first, perhaps with UNWIND_EXACT_PC; one at least
    uint32_t ending = 0;                  ///< UNWIND_ENDED_...; UNWIND_ENDED_UNREADABLE where the copy ends
    uint64_t pc = 0;                      ///< that it ended at: where it was looked for in the mappings
    std::vector<FrameFunction> functions; ///< ascending
    std::vector<PointedFrame> pointed;    ///< ascending: those that were left by their frame pointer
};

/// Of `program` depth, arch and address_mask count. `mappings`: ascending, without overlap. Whatever the rest holds, it ends
/// after `depth` frames, and nothing else is read.
[[nodiscard]] Walked walk(const UnwindProgramOptions &program, const WalkTables &tables, std::span<const UnwindMapping> mappings,
                          const StackCopy &copy);

} // namespace rawbpf::inline v0::unwind
