// Finds the row of the instruction set for a statement: a hash table over (shape, width, symbol), made from the rows at
// compile time. Private to this folder.
#pragma once

#include <string_view>

#include "asm/opcodes.h"

namespace rawbpf::inline v0::isa {

/// N bytes as a number: one load, to a compiler.
template <size_t N> [[nodiscard]] constexpr uint64_t load(const char *p) {
    uint64_t out = 0;
    for (size_t n = 0; n < N; ++n) out |= uint64_t{static_cast<unsigned char>(p[n])} << 8 * n;
    return out;
}

/// A symbol of up to 16 characters, a shape and a width, as three numbers: to compare and to hash without a loop, whose end
/// nobody can foresee.
struct FormKey {
    uint64_t first = 0, last = 0; ///< characters, in part the same ones
    uint32_t rest = 0;            ///< length, shape, width

    constexpr FormKey() = default;
    constexpr FormKey(Shape shape, unsigned bits, std::string_view symbol)
        : rest(static_cast<uint32_t>(symbol.size() | static_cast<size_t>(shape) << 8 | static_cast<size_t>(bits) << 16)) {
        const char *p = symbol.data();
        const size_t n = symbol.size();
        if (n > 16) return;
        if (n >= 8) {
            first = load<8>(p);
            last = load<8>(p + n - 8);
        } else if (n >= 4) {
            first = load<4>(p);
            last = load<4>(p + n - 4);
        } else if (n > 0) {
            first = load<1>(p) | load<1>(p + n / 2) << 8 | load<1>(p + n - 1) << 16;
        }
    }
    friend constexpr bool operator==(const FormKey &, const FormKey &) = default;
    [[nodiscard]] constexpr size_t hash() const {
        const uint64_t mixed = (first ^ last * 0x9e3779b97f4a7c15 ^ rest * 0xff51afd7ed558ccd) * 0xc4ceb9fe1a85ec53;
        return static_cast<size_t>(mixed >> 48);
    }
};

struct FormTable {
    static constexpr size_t kSize = 1024;
    uint8_t rows[kSize]; ///< index into kForms plus 1; 0: free
    FormKey keys[kFormCount];

    [[nodiscard]] static constexpr unsigned width(const Form &form) {
        // Sign extensions go from one width to another; the rest has one that matters.
        return form.shape == Shape::sign_extend ? form.register_bits : form.bits;
    }
    [[nodiscard, gnu::always_inline]] constexpr const Form *find(Shape shape, unsigned bits, std::string_view symbol) const {
        if (symbol.size() > 16) return nullptr;
        const FormKey key(shape, bits, symbol);
        for (size_t i = key.hash() % kSize; rows[i] != 0; i = (i + 1) % kSize)
            if (keys[rows[i] - 1] == key) return &kForms[rows[i] - 1];
        return nullptr;
    }
};
static_assert(kFormCount < 255);

inline constexpr FormTable kFormTable = [] {
    FormTable table{};
    for (size_t n = 0; n < kFormCount; ++n) {
        table.keys[n] = FormKey(kForms[n].shape, FormTable::width(kForms[n]), kForms[n].symbol);
        size_t i = table.keys[n].hash() % FormTable::kSize;
        while (table.rows[i] != 0) i = (i + 1) % FormTable::kSize;
        table.rows[i] = static_cast<uint8_t>(n + 1);
    }
    return table;
}();
static_assert([] {
    for (const Form &form : kForms)
        if (form.symbol.size() > 16) return false;
    return true;
}());

/// A row by its name, at compile time; a name that isn't in the table doesn't compile.
[[nodiscard]] consteval const Form *find(std::string_view name) {
    // By number: under -fsanitize=undefined g++ 12 doesn't take a comparison with nullptr for a constant.
    for (size_t n = 0; n < kFormCount; ++n)
        if (kForms[n].name == name) return &kForms[n];
    __builtin_abort();
}

} // namespace rawbpf::inline v0::isa
