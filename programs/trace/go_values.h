// Values of Go's types in a record: slices, interfaces, and several results as one. PURE.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "programs/trace/decode.h"
#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::trace {

// What the programs copy for Show::go_interface and Show::go_any.
//
//      | type | data | what data points at, 16 bytes | address of the probe | a text, if those are where it is and how long |
inline constexpr uint32_t kGoInterfaceText = 40, kGoInterfaceProbe = 32;

// What they copy for a slice of strings: the first ones.
//
//      | elements | kGoStrings x (where, how long) | kGoStrings x text, of room for each |
inline constexpr uint32_t kGoStrings = 4, kGoStringsText = 8 + 16 * kGoStrings;
/// Bytes of each text that there is room for, of `capacity` in all.
constexpr uint32_t go_string_room(uint32_t capacity) { return (capacity - kGoStringsText) / kGoStrings; }
/// Bytes in all, for texts of so many.
constexpr uint16_t go_strings_capacity(uint32_t text_bytes) {
    const uint32_t most = (UINT16_MAX - 7 - kGoStringsText) / kGoStrings;
    const uint32_t room = text_bytes < 8 ? 8 : text_bytes > most ? most : text_bytes;
    return static_cast<uint16_t>(kGoStringsText + kGoStrings * room);
}

/// A slice: | length | elements ... |, of strings as above.
[[nodiscard]] Decoded decode_go_slice(const Type &type, uint64_t raw, Bytes copied);
/// An interface. `type_name`: of the type whose address is first; empty: not known.
[[nodiscard]] Decoded decode_go_interface(Bytes copied, std::string_view type_name);

/// Names of a Go program's types by the addresses of their descriptions.
class GoTypes {
  public:
    virtual ~GoTypes() = default;
    /// "*errors.errorString"; empty where there is none. `address`: as the file has it.
    [[nodiscard]] virtual std::string name(uint64_t address) const = 0;
};

/// From the file that Go's linker made. Refers to it.
class GoTypeNames : public GoTypes {
  public:
    GoTypeNames(const elf::Elf &elf, Bytes image);
    [[nodiscard]] std::string name(uint64_t address) const override;

  private:
    [[nodiscard]] Bytes at(uint64_t address, uint64_t size) const;
    const elf::Elf &elf_;
    Bytes image_;
    uint64_t types_ = 0; ///< what offsets of names count from; 0: not found
};

} // namespace rawbpf::inline v0::trace
