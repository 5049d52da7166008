// From what stands in the text to the row of the instruction set: a hash table over (shape, width, symbol), made from the rows
// when this compiles. Private to the room.
#pragma once

#include <string_view>

#include "asm/opcodes.h"

namespace rawbpf::inline v0::isa {

struct FormTable {
    static constexpr size_t kSize = 1024;
    uint8_t rows[kSize]; ///< index into kForms plus 1; 0: free

    [[nodiscard]] static constexpr size_t slot(Shape shape, unsigned bits, std::string_view symbol) {
        uint32_t hash = static_cast<uint32_t>(shape) * 37 + bits * 5;
        for (char c : symbol) hash = hash * 31 + static_cast<unsigned char>(c);
        return (hash ^ hash >> 10) % kSize;
    }
    [[nodiscard]] static constexpr unsigned width(const Form &form) {
        // Sign extensions go from one width to another; the rest has one that matters.
        return form.shape == Shape::sign_extend ? form.register_bits : form.bits;
    }
    [[nodiscard]] constexpr const Form *find(Shape shape, unsigned bits, std::string_view symbol) const {
        for (size_t i = slot(shape, bits, symbol); rows[i] != 0; i = (i + 1) % kSize) {
            const Form &form = kForms[rows[i] - 1];
            if (form.shape == shape && width(form) == bits && same(form.symbol, symbol)) return &form;
        }
        return nullptr;
    }
    /// A few characters: a call of memcmp takes longer than they do.
    [[nodiscard]] static constexpr bool same(std::string_view a, std::string_view b) {
        if (a.size() != b.size()) return false;
        for (size_t i = 0; i < a.size(); ++i)
            if (a[i] != b[i]) return false;
        return true;
    }
};
static_assert(kFormCount < 255);

inline constexpr FormTable kFormTable = [] {
    FormTable table{};
    for (size_t n = 0; n < kFormCount; ++n) {
        size_t i = FormTable::slot(kForms[n].shape, FormTable::width(kForms[n]), kForms[n].symbol);
        while (table.rows[i] != 0) i = (i + 1) % FormTable::kSize;
        table.rows[i] = static_cast<uint8_t>(n + 1);
    }
    return table;
}();

/// A row by its name, at compile time; a name that isn't in the table doesn't compile.
[[nodiscard]] consteval const Form *find(std::string_view name) {
    // By number: under -fsanitize=undefined g++ 12 doesn't take a comparison with nullptr for a constant.
    for (size_t n = 0; n < kFormCount; ++n)
        if (kForms[n].name == name) return &kForms[n];
    __builtin_abort();
}

} // namespace rawbpf::inline v0::isa
