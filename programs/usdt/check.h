// Whether a probe can be traced: which instruction is at its site, and whether each argument can be fetched.
#pragma once

#include <string>
#include <vector>

#include "programs/usdt/binary.h"
#include "runtime/usdt/nop.h"

namespace rawbpf::inline v0::usdt {

struct Verdict {
    Nop nop;                           ///< kind empty: there is none
    std::vector<std::string> problems; ///< empty: the probe is sound
};

/// Looks at a probe of that file. PURE.
[[nodiscard]] Verdict check_probe(const Binary &binary, const Probe &probe);

} // namespace rawbpf::inline v0::usdt
