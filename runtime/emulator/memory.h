// SPDX-License-Identifier: MIT
// What an emulated program can address: a few objects, each with exact bounds.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::emulator {

/// 16 MiB: an address is a slot and an offset.
inline constexpr int kSlotBits = 24;
inline constexpr uint32_t kSlots = 256;       ///< 4 GiB in all, so that an address fits in 32 bits
inline constexpr uint32_t kCallDepth = 8;     ///< functions of one program that have begun (MAX_CALL_FRAMES)
inline constexpr uint32_t kMaxTailCalls = 33; ///< MAX_TAIL_CALL_CNT
/// A tail call's program takes the place of the function that made it, and may be kCallDepth deep itself.
inline constexpr uint32_t kFrames = kCallDepth + kMaxTailCalls * (kCallDepth - 1);
inline constexpr uint32_t kFrameBytes = 512; ///< of stack for each frame (MAX_BPF_STACK)

/// Where the stack's first kCallDepth frames begin, one a slot.
inline constexpr uint64_t kStackAddress = uint64_t{1} << kSlotBits;
/// Where the deeper frames begin, which few programs have: all in one slot.
inline constexpr uint64_t kDeepAddress = uint64_t{1 + kCallDepth} << kSlotBits;
inline constexpr int kDeepBits = 16; ///< the deeper frames are 2^16 addresses apart
static_assert(uint64_t{kFrames - kCallDepth} << kDeepBits <= uint64_t{1} << kSlotBits);
/// Addresses that stand for things without bytes: maps from the first, instructions (8 apart) from the second.
///@{
inline constexpr uint64_t kHandleAddress = uint64_t{0xc} << kSlotBits;
inline constexpr uint64_t kCodeAddress = uint64_t{0xd} << kSlotBits;
///@}
/// Where memory begins: what Memory::add() was given, each at the start of a slot.
inline constexpr uint64_t kFirstAddress = uint64_t{0x10} << kSlotBits;

/// Where the stack's frame `n` begins; r10 points kFrameBytes behind it.
inline constexpr uint64_t frame_address(uint32_t n) {
    return n < kCallDepth ? kStackAddress + (uint64_t{n} << kSlotBits) : kDeepAddress + (uint64_t{n - kCallDepth} << kDeepBits);
}

/// What an access is checked against first. An object larger than a slot has several, each of which reaches to its end.
struct Slot {
    uint8_t *bytes = nullptr; ///< what the slot's first address stands for
    uint64_t readable = 0;    ///< bytes from here to the object's end; 0: ask Memory::resolve()
    uint64_t writable = 0;    ///< the same for writing; 0 for objects that can only be read
};

/// One thing in memory.
struct Object {
    std::string name;         ///< as a sentence names it: "the stack of frame 0", "map counts"
    uint64_t address = 0,     ///< given by Memory::add()
        size = 0;             ///< in addresses; without `spread` that is bytes
    uint8_t *bytes = nullptr; ///< borrowed
    bool writable = true;     ///< by programs
    uint32_t stride = 0;      ///< a row of elements whose bytes are this far apart,
    uint32_t spread = 0;  ///< and their addresses this far (`size` is in addresses), so that none is reached from its neighbour;
    uint32_t element = 0; ///< so many bytes may be used; 0: the object is one piece
    /// A map whose parts come and go: which part holds this offset? False: none does.
    bool (*part)(const void *context, uint64_t offset, uint64_t &begin, uint64_t &end) = nullptr;
    const void *context = nullptr; ///< what `part` is called with
};

/// The address space of a Machine: the stack, which it owns, and objects, whose bytes it borrows.
class Memory {
  public:
    /// No objects, and no frames of the stack either.
    Memory();

    /// Makes bytes (borrowed) addressable. Errors: no_memory when 4 GiB are used up.
    [[nodiscard]] Result<uint64_t> add(Object object);
    /// The stack's frame `n`, the last one, exists from here on, or no more.
    void set_frame(uint32_t n, bool alive) {
        if (n < kCallDepth)
            slots_[1 + n].readable = slots_[1 + n].writable = alive ? kFrameBytes : 0;
        else
            deep_ = n - kCallDepth + alive;
    }
    /// The frames up to this one exist, the others don't.
    void set_last_frame(uint32_t last) {
        for (uint32_t n = 0; n < kCallDepth; ++n) set_frame(n, n <= last);
        deep_ = last < kCallDepth ? 0 : last - kCallDepth + 1;
    }
    /// The kFrameBytes of the stack's frame `n`, alive or not; n below kFrames.
    [[nodiscard]] const uint8_t *frame(uint32_t n) const { return stack_[n]; }

    /// The bytes at `address`, or nullptr when not all of them belong to one thing that may be used so.
    [[nodiscard]] uint8_t *find(uint64_t address, uint64_t size, bool write) const {
        if (const uint64_t n = address >> kSlotBits; n < kSlots) {
            const Slot &slot = slots_[n];
            const uint64_t offset = address & ((uint64_t{1} << kSlotBits) - 1);
            const uint64_t limit = write ? slot.writable : slot.readable;
            if (size <= limit && offset <= limit - size) return slot.bytes + offset;
        }
        return resolve(address, size, write);
    }
    /// The same without the shortcut.
    [[nodiscard]] uint8_t *resolve(uint64_t address, uint64_t size, bool write) const;
    /// Why find() found nothing: "4 bytes past the end of the memory (12 bytes)".
    [[nodiscard]] std::string miss(uint64_t address, uint64_t size, bool write) const;
    /// What is there, for people: "memory+4"; empty: nothing.
    [[nodiscard]] std::string name(uint64_t address) const;
    /// The address of bytes that belong to the stack or an object as a whole; 0: they don't.
    [[nodiscard]] uint64_t address_of(const uint8_t *bytes, uint64_t size) const;
    /// What was added, ascending by address. Good until the next add().
    [[nodiscard]] const std::vector<Object> &objects() const { return objects_; }
    /// All kSlots of them, by the upper bits of an address.
    [[nodiscard]] const Slot *slots() const { return slots_; }

  private:
    [[nodiscard]] const Object *object_at(uint64_t address) const;
    [[nodiscard]] bool frame_alive(uint32_t n) const {
        return n < kCallDepth ? slots_[1 + n].readable != 0 : n - kCallDepth < deep_;
    }

    Slot slots_[kSlots];
    uint32_t deep_ = 0; // frames that exist behind the first kCallDepth
    alignas(8) uint8_t stack_[kFrames][kFrameBytes] = {};
    std::vector<Object> objects_; // ascending by address
    uint64_t next_ = kFirstAddress;
};

} // namespace rawbpf::inline v0::emulator
