// SPDX-License-Identifier: MIT
// What stands at a probe's site: one of the instructions that do nothing. PURE.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::usdt {

/// The instruction at a probe's site.
struct Nop {
    std::string_view kind; ///< "nop", "nop5" ... and, where a longer one follows, "nop,nop5"; empty: no nop
    uint8_t size = 0;      ///< bytes, of the one at the site
};

/// Looks at the bytes of the code from the site on, as many as there are. `big_endian`: of the file.
[[nodiscard]] Nop nop_at(Bytes code, uint16_t machine, bool big_endian);

} // namespace rawbpf::inline v0::usdt
