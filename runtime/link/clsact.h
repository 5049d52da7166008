// tc filters: they ran programs on an interface before tcx. Private to this folder.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// One filter, and whether the qdisc below it is ours.
struct ClsactFilter {
    uint32_t interface = 0;
    uint32_t parent = 0; ///< ingress or egress
    uint32_t handle = 0, priority = 0;
    bool made_qdisc = false;
};
/// Adds a "direct action" filter with the program, and the clsact qdisc where there is none. Errors: not_found without such an
/// interface, unsupported without NET_CLS_BPF, permission without CAP_NET_ADMIN.
[[nodiscard]] Result<ClsactFilter> add_clsact_filter(uint32_t interface, bool egress, int program_fd, const std::string &name);
/// Takes away what was added; the qdisc, too, if it was made for it.
[[nodiscard]] Result<void> remove_clsact_filter(const ClsactFilter &filter);

} // namespace rawbpf::inline v0
