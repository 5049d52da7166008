// How a C compiler would lay a type out, against what BTF says. Private to the room.
#pragma once

#include "runtime/btf/c_names.h"

namespace rawbpf::inline v0::btf {

/// One member as C sees it.
struct CMember {
    std::string_view name;
    TypeId type = 0;
    uint64_t at = 0;      ///< bits from the start
    uint64_t size = 0;    ///< bits; for a bit-field those that it has
    uint32_t align = 8;   ///< bits; 1 for bit-fields
    uint32_t unit = 0;    ///< bits of a bit-field's declared type; 0: not a bit-field
    bool written = false; ///< a member of that type can be written in C: it has a size
};

class CLayout {
  public:
    explicit CLayout(const Flat &types) : types_(types), known_(types.end_id()) {}

    /// Bytes. A struct inside itself counts as 1.
    [[nodiscard]] uint32_t align_of(TypeId id) { return align_of(id, kMaxDepth); }
    [[nodiscard]] bool is_packed(TypeId composite) {
        (void)align_of(composite);
        return known_[composite] & kPacked;
    }
    [[nodiscard]] CMember member(TypeId composite, uint32_t index) { return member(composite, index, kMaxDepth); }
    /// Bytes of a value of that type; nullopt for void, functions, incomplete types and what has more than 2^40 bytes.
    [[nodiscard]] std::optional<uint64_t> size_of(TypeId id) const;

  private:
    static constexpr int kMaxDepth = 64;
    static constexpr uint8_t kPacked = 0x80, kBusy = 0x40, kAlign = 0x3f; // alignment is its logarithm plus 1
    [[nodiscard]] uint32_t align_of(TypeId id, int depth);
    [[nodiscard]] CMember member(TypeId composite, uint32_t index, int depth);

    const Flat &types_;
    std::vector<uint8_t> known_;
};

} // namespace rawbpf::inline v0::btf
