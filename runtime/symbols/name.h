// SPDX-License-Identifier: MIT
// What every kind of symbol table answers with.
#pragma once

#include <cstdint>
#include <string>

namespace rawbpf::inline v0::symbols {

/// A function's name and how far into it an address lies.
struct Name {
    std::string symbol;  ///< demangled
    uint64_t offset = 0; ///< from the function's start, in bytes
};

} // namespace rawbpf::inline v0::symbols
