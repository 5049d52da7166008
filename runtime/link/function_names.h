// The names that a function of a program goes by. PURE.
#pragma once

#include <string>
#include <string_view>

#include "runtime/link/names.h"

namespace rawbpf::inline v0 {

/// What a symbol stands for, as people write it.
///
///      symbol    _ZN5CacheIiE6lookupERKii.isra.0      work.constprop.0
///      readable  Cache<int>::lookup(int const&, int)  work
///      bare      Cache<int>::lookup                   work
///      suffix    .isra.0                              .constprop.0
struct FunctionNames {
    explicit FunctionNames(std::string_view symbol);

    std::string_view symbol;
    std::string readable; ///< demangled
    std::string bare;     ///< without parameters, what it returns, and what stands behind them
    std::string suffix;   ///< of a copy or a part that the compiler made: ".isra.0", ".part.1.cold"; else empty

    /// "Cache<int>::lookup(int const&, int) [clone .isra.0]": what is shown.
    [[nodiscard]] std::string shown() const;
    /// Whether a person who wrote this means it: any of the three names, the symbol also with its suffix.
    [[nodiscard]] bool is(std::string_view wanted) const;
    [[nodiscard]] bool match(std::string_view pattern) const;
};

/// False where FunctionNames(symbol).match(pattern) can only be false, told without demangling: what a mangled symbol is readable
/// as has the symbol's own words, and few others. True: perhaps.
[[nodiscard]] bool could_match(std::string_view pattern, std::string_view symbol);

/// A demangled name without its parameters, what is returned, and qualifiers: "void ns::f<int>(int) const" -> "ns::f<int>".
[[nodiscard]] std::string_view without_parameters(std::string_view readable);

} // namespace rawbpf::inline v0
