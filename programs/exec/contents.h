// What a machine holds at a step, as values: the stack's slots and the maps' entries. What `step` draws and the page shows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "programs/exec/stepper.h"

namespace rawbpf::inline v0::exec {

/// Eight bytes of the running frame's stack.
struct StackSlot {
    int offset = 0;      ///< from r10: -8, -16 ...
    std::string bytes;   ///< all eight
    uint8_t changed = 0; ///< by the last step: a bit for each byte
    std::string value;   ///< as a number, with what it points to
    std::string known;   ///< what the verifier knows of it; may be empty
};
/// Those that the last step changed, that aren't zero, or that are known to have been written; from r10 downwards. `knowledge`
/// may be nullptr.
[[nodiscard]] std::vector<StackSlot> stack_slots(const Stepper &stepper, Knowledge *knowledge);

struct MapEntry {
    std::string key;      ///< an index, or bytes in hex; empty: a record
    std::string value;    ///< the bytes
    bool changed = false; ///< by the last step
};
struct MapView {
    std::string name;
    std::string summary;           ///< "3 of 64 entries, 2 of them zero", "2 records", "not shown"
    std::vector<MapEntry> entries; ///< 256 at most; of an array those that aren't zero
};
/// All maps, in the object's order.
[[nodiscard]] std::vector<MapView> map_views(const Stepper &stepper);

/// The memory or the packet that the run was given.
struct MemoryView {
    std::string_view name; ///< "memory", "packet"
    uint64_t address = 0;
    std::span<const uint8_t> bytes;
};
[[nodiscard]] std::vector<MemoryView> memory_views(const Stepper &stepper);

/// Whether the last step changed this register, or the byte at this address.
[[nodiscard]] bool changed_register(const Stepper &stepper, int reg);
[[nodiscard]] bool changed_byte(const Stepper &stepper, uint64_t address);

/// 32 bytes in hex, with blanks between; "..." for more.
[[nodiscard]] std::string some_bytes(std::string_view bytes);

} // namespace rawbpf::inline v0::exec
