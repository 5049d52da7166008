// Perl's names as they were sent: of a sub, its package and its file. Anybody's bytes: all lengths are checked. PURE.
//
// A name (HEK) has a hash and its length in front of its characters; behind their zero is a byte that says whether they are
// UTF-8, else they are Latin-1. A file is a text that ends in a zero.
#pragma once

#include <string>

#include "programs/languages/runtime.h"
#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::languages::perl {

inline constexpr uint32_t kName = 8;       ///< bytes of a name in front of its characters
inline constexpr uint32_t kNameLength = 4; ///< where its length is, of 4 bytes

/// As UTF-8, as much as there is of it; empty: it is none.
[[nodiscard]] std::string name_of(Bytes object);

/// As much as there is of it.
[[nodiscard]] std::string file_of(Bytes object);

/// What is shown: "Package::sub", as caller() says; of what has no name its file's, or "(eval)" of a text that is evaluated.
[[nodiscard]] std::string shown(const std::string &package, const std::string &name, const std::string &file);

} // namespace rawbpf::inline v0::languages::perl
