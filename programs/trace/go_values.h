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

/// A slice: | length | elements ... |
[[nodiscard]] Decoded decode_go_slice(const Type &type, uint64_t raw, Bytes copied);
/// An interface. `type_name`: of the type whose address is first; empty: not known.
[[nodiscard]] Decoded decode_go_interface(Bytes copied, std::string_view type_name);

/// Names of types by the addresses of their descriptions, which are in the file that Go's linker made. Refers to it.
class GoTypeNames {
  public:
    GoTypeNames(const elf::Elf &elf, Bytes image);
    /// "*errors.errorString"; empty where there is none. `address`: as the file has it.
    [[nodiscard]] std::string name(uint64_t address) const;

  private:
    [[nodiscard]] Bytes at(uint64_t address, uint64_t size) const;
    const elf::Elf &elf_;
    Bytes image_;
    uint64_t types_ = 0; ///< what offsets of names count from; 0: not found
};

} // namespace rawbpf::inline v0::trace
