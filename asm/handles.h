// SPDX-License-Identifier: MIT
// What the builder returns: maps, variables, labels, stack slots, and the arguments that calls take. All are small values that
// belong to the Builder or the Code that made them; don't use them with another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "asm/operands.h"

namespace rawbpf::inline v0 {

class Builder;
class Code;

/// A map of the unit under construction; belongs to the Builder that made it.
class MapRef {
  private:
    friend class Builder;
    friend class Code;
    friend class Arg;
    MapRef(const Builder *owner, uint32_t index) : owner_(owner), index_(index) {}
    const Builder *owner_;
    uint32_t index_;
};

/// A global variable, or a place in it: the value of a one-entry array map. Belongs to the Builder that made it.
class GlobalRef {
  public:
    /// The place `distance` bytes further. Code complains where it is behind the variable's end.
    [[nodiscard]] GlobalRef operator+(uint32_t distance) const {
        GlobalRef moved = *this;
        moved.off_ += distance;
        return moved;
    }

  private:
    friend class Builder;
    friend class Code;
    friend class Arg;
    GlobalRef(const Builder *owner, uint32_t index) : owner_(owner), index_(index) {}
    const Builder *owner_;
    uint32_t index_;
    uint32_t off_ = 0;
};

/// A place in the code to jump to; belongs to the Code that made it.
class Label {
  private:
    friend class Code;
    Label(const Code *owner, uint32_t index) : owner_(owner), index_(index) {}
    const Code *owner_;
    uint32_t index_;
};

/// Bytes on the program's stack. Goes wherever a Mem goes; accesses beyond its end are complaints.
class Slot {
  public:
    /// The slot's beginning.
    operator Mem() const { return at(0); } // NOLINT: implicit
    /// The place so many bytes behind its beginning.
    [[nodiscard]] Mem operator+(Distance distance) const { return at(distance.bytes); }
    /// Bytes.
    [[nodiscard]] uint32_t size() const { return size_; }

  protected:
    // For Code and SlotOf alone.
    /// @cond
    friend class Code;
    Slot(const Code *owner, int32_t off, uint32_t size) : owner_(owner), off_(off), size_(size) {}
    [[nodiscard]] Mem at(int64_t distance) const {
        Mem mem(fp);
        mem.off = off_ + distance;
        mem.low = off_;
        mem.limit = off_ + static_cast<int64_t>(size_);
        mem.owner = owner_;
        return mem;
    }
    /// @endcond

  private:
    const Code *owner_;
    int32_t off_;
    uint32_t size_;
};

/// A slot whose size the compiler knows, and checks where all of it is read or written.
template <class T> class SlotOf : public Slot {
  public:
    static constexpr size_t kBytes = sizeof(T); ///< what MemOf checks against

  private:
    friend class Code;
    explicit SlotOf(Slot slot) : Slot(slot) {}
};

/// One argument of a call, with which Code fills one of r1 to r5.
class Arg {
  public:
    /// What an argument may be: a register; a number of up to 64 bits (nullptr is 0); the address of a place in memory, such as
    /// r6 + 8 or a stack slot; the address of a global variable; a map; a function of the unit, which must outlive this value.
    /// The lower half of a register doesn't compile.
    ///@{
    Arg(Reg reg) : kind_(Kind::reg), mem_(reg) {} // NOLINT: implicit, all of these
    template <Number T> Arg(T number) : kind_(Kind::number), number_(static_cast<int64_t>(number)) {} // NOLINT
    Arg(Runtime number) : kind_(Kind::number), number_(number.number) {}                              // NOLINT
    Arg(std::nullptr_t) : kind_(Kind::number) {}                                                      // NOLINT
    Arg(Mem mem) : kind_(Kind::address), mem_(mem) {}                                                 // NOLINT
    Arg(Slot slot) : Arg(static_cast<Mem>(slot)) {}                                                   // NOLINT
    Arg(MapRef map) : kind_(Kind::map), index_(map.index_), owner_(map.owner_) {}                     // NOLINT
    Arg(GlobalRef global)                                                                             // NOLINT
        : kind_(Kind::global), index_(global.index_), owner_(global.owner_), number_(global.off_) {}
    Arg(const Code &function) : kind_(Kind::function), function_(&function) {} // NOLINT
    template <class W>
    requires std::is_same_v<W, Reg32> Arg(W) { // NOLINT
        static_assert(sizeof(W) == 0,
                      "arguments travel in r1 to r5; give the whole register: its upper half is zero after writing w");
    }
    ///@}

  private:
    friend class Code;
    enum class Kind : uint8_t { reg, number, address, map, global, function };
    Kind kind_ = Kind::number;
    uint32_t index_ = 0;
    Mem mem_{fp};
    const Builder *owner_ = nullptr;
    int64_t number_ = 0;
    const Code *function_ = nullptr;
};

} // namespace rawbpf::inline v0
