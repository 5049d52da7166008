// Objects of V8's heap in memory that a test makes.
#pragma once

#include <cstdint>

#include "tests/unit/languages/made_memory.h"

namespace rawbpf::test {

constexpr uint64_t kMaps = MadeMemory::kBase + 0x1000; // 256 of them, 16 bytes each

constexpr uint64_t tagged(uint64_t address) { return address + 1; }
constexpr uint64_t small(int32_t value) { return uint64_t{static_cast<uint32_t>(value)} << 32; }

/// Makes an object of that instance type there: its map's address, which says the type 12 bytes from its beginning.
inline void put_object(MadeMemory &memory, uint64_t at, uint16_t type) {
    const uint64_t map = kMaps + 16 * (uint64_t{type} & 0xff);
    memory.put<uint16_t>(map + 12, type);
    memory.put(at, tagged(map));
}

} // namespace rawbpf::test
