// The rings that records are sent by: one, or one for each few CPUs. In a single ring the lock and both positions travel between
// the CPUs at every record, which costs as much as all the rest but the stacks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "asm/builder.h"

namespace rawbpf::inline v0 {

class Rings {
  public:
    /// One of that name and size.
    Rings(Builder &b, std::string_view name, uint32_t bytes);
    /// One that is there already.
    explicit Rings(const MapRef &ring) : rings_{ring} {}
    /// NAME_0, NAME_1 ... `count`: a power of two.
    Rings(Builder &b, const std::string &name, uint32_t count, uint32_t bytes);

    /// Decides in code whether `ask` is run, which asks how full the ring is. r1 and r2 are free.
    using When = std::function<void(const std::function<void()> &ask)>;
    /// Sends the r9 bytes at `data`. The reader is woken where `wake_bytes` wait already, below them by its own clock.
    /// `cpu`: a u32 in memory, which one this is, where the program knows. `when`: else each record asks.
    /// Out: r0 = 0, or why not. r1 to r6 are gone.
    void send(Code &f, Mem data, uint32_t wake_bytes, const std::optional<Mem> &cpu = {}, const When &when = {}) const;
    /// Sends the `bytes` at `data`. It wakes nobody, for what follows soon is a record that may; or `wakes` a reader who has read
    /// all that was there. Out: r0 = 0, or why not. r1 to r5 are gone.
    void output(Code &f, Mem data, Reg bytes, Mem cpu, bool wakes = false) const;
    /// On to `fuller` where more than `bytes` wait. r0 to r5 are gone.
    void jump_if_fuller(Code &f, uint64_t bytes, Label fuller, const std::optional<Mem> &cpu = {}) const;

  private:
    void with_own(Code &f, const std::optional<Mem> &cpu, const std::function<void(const MapRef &)> &use) const;
    std::vector<MapRef> rings_;
};

} // namespace rawbpf::inline v0
