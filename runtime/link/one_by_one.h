// Many probes on a kernel that has no link for many: one probe after the other. Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/link/attaching.h"

namespace rawbpf::inline v0 {

/// What is attached, and in whose place: for errors and for Link::notes().
struct Singles {
    size_t count = 0;
    std::function<std::string(size_t)> name;
    std::string_view missing; ///< "kprobe.multi (5.18, CONFIG_FPROBE)"
    std::string_view probes;  ///< "kprobes"
};

/// Calls `attach` with each index and its cookie. Places that fail are passed over, unless privileges are missing or the options
/// name the places and don't allow it. Errors: those, and the first one where nothing could be attached.
[[nodiscard]] Result<Link> attach_one_by_one(const Attaching &a, const Singles &singles,
                                             const std::function<Result<void>(Link &, size_t, uint64_t)> &attach);

} // namespace rawbpf::inline v0
