// All that the verifier knows at one point of one path: registers and stack of every frame, references held, the lock held. PURE.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/verifier/value.h"

namespace rawbpf::inline v0::verifier {

/// Bytes of stack that a function has.
inline constexpr int kStackSize = 512;
/// Frames that can be active at once.
inline constexpr size_t kMostFrames = 8;

/// What a byte of the stack holds.
enum class Byte : uint8_t {
    unset,   ///< nothing was written
    spill,   ///< part of the slot's value
    some,    ///< something: no more is known
    zero,    ///< 0
    special, ///< part of a dynptr, an iterator, saved flags: the slot's value says of which
};

/// Eight bytes of the stack. `value` counts if bytes[0], the lowest one, is Byte::spill.
struct Slot {
    std::array<Byte, 8> bytes{};
    Value value;
    uint32_t node = kNoNode; ///< of the bytes that are no value: who wrote last

    [[nodiscard]] bool holds_value() const { return bytes[0] == Byte::spill; }
    /// How many bytes the value has.
    [[nodiscard]] unsigned value_bytes() const {
        unsigned n = 0;
        while (n < 8 && bytes[n] == Byte::spill) ++n;
        return n;
    }
    /// Forgets the value; its bytes are something.
    void forget_value() {
        for (Byte &byte : bytes)
            if (byte == Byte::spill || byte == Byte::special) byte = Byte::some;
        value = {};
    }
};

/// What called a frame.
enum class CallKind : uint8_t {
    entry,    ///< nobody: the program itself, or a global function that is verified by itself
    call,     ///< an instruction
    callback, ///< a helper: when it returns, the helper may call again
    later,    ///< the kernel, some time later: a timer, a work queue
};

/// One active function.
struct Frame {
    std::array<Value, 11> regs;
    std::vector<Slot> stack; ///< slot n: bytes -8(n+1) to -8n-1 from r10
    uint32_t call = 0;       ///< the instruction that called it
    uint32_t function = 0;   ///< its number in Flow::functions
    CallKind kind = CallKind::entry;
    uint64_t rounds = 0;         ///< how often bpf_loop() of this frame has called back
    size_t held = 0;             ///< callback: references that the caller has
    int64_t least = 0, most = 1; ///< callback: what it may return

    /// The slot that the byte at `offset` from r10 (below 0) is in; it is made if it isn't there.
    [[nodiscard]] Slot &slot(int offset) {
        const auto at = static_cast<size_t>((-offset - 1) / 8);
        if (at >= stack.size()) stack.resize(at + 1);
        return stack[at];
    }
    /// Which of the slot's bytes: 0 is the lowest address.
    [[nodiscard]] static unsigned byte(int offset) { return static_cast<unsigned>(offset & 7); }
    [[nodiscard]] Byte byte_at(int offset) const {
        const auto at = static_cast<size_t>((-offset - 1) / 8);
        return at < stack.size() ? stack[at].bytes[byte(offset)] : Byte::unset;
    }
};

/// Something that has to be given back.
struct Reference {
    ValueId id;
    uint32_t insn; ///< who acquired it
    friend bool operator==(const Reference &, const Reference &) = default;
};

/// A point of a path.
struct State {
    std::vector<Frame> frames;
    std::vector<Reference> references;
    ValueId lock = 0;            ///< the map value's id whose lock is held; 0: none
    uint32_t lock_map = 0;       ///< and its map
    uint32_t insn = 0;           ///< the next instruction
    uint32_t step = 0;           ///< the last step of the walk on this path
    uint32_t checkpoint = 0;     ///< the last checkpoint that the path went through, from 1; 0: none
    uint32_t loops = 0;          ///< may_goto taken
    uint32_t later = 0;          ///< how many timers, or the like, one inside of the other, led here
    uint32_t rcu = 0;            ///< RCU sections
    uint32_t no_preempt = 0;     ///< sections without preemption
    uint32_t no_irq = 0;         ///< sections without interrupts
    std::vector<Reference> irqs; ///< saved interrupt flags, oldest first
    bool sleeps = false;         ///< a work queue's function, which may sleep although the program may not

    [[nodiscard]] Frame &frame() { return frames.back(); }
    [[nodiscard]] const Frame &frame() const { return frames.back(); }
    [[nodiscard]] Value &reg(unsigned n) { return frames.back().regs[n]; }
    [[nodiscard]] const Value &reg(unsigned n) const { return frames.back().regs[n]; }

    /// Each register and each value in the stack, of all frames.
    template <class F> void each_value(F &&f) {
        for (Frame &frame : frames) {
            for (Value &value : frame.regs) f(value);
            for (Slot &slot : frame.stack)
                if (slot.holds_value()) f(slot.value);
        }
    }
};

} // namespace rawbpf::inline v0::verifier
