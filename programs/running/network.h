// Programs that work on packets, by where they are attached: what no listing of programs or links says of all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "programs/running/names.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::running {

/// One place.
struct NetworkRow {
    std::string kind = {};   ///< "xdp", "tc", "tcx", "netkit", "flow_dissector", "sk_lookup", "netfilter"
    std::string device = {}; ///< the interface's name; empty: the network namespace as a whole
    uint32_t interface = 0;  ///< its index, or 0
    std::string where = {};  ///< "driver", "generic", "offloaded"; "ingress", "egress"; "primary", "peer"; a netfilter hook
    uint32_t program = 0;    ///< id
    std::string name = {};   ///< the program's; of a tc filter its own
    uint32_t link = 0;       ///< id; 0: attached without a link
    uint32_t parent = 0, handle = 0, priority = 0; ///< of a tc filter
};

struct NetworkRows {
    std::vector<NetworkRow> rows;
    std::vector<std::string> notes; ///< what couldn't be asked, and why
};

/// Everything in this network namespace: xdp, tc filters (of the clsact and ingress qdiscs), tcx (6.6), netkit (6.7), flow
/// dissectors (4.20), sk_lookup (5.9) and netfilter links (6.4). Errors: the kernel's, for the list of interfaces.
[[nodiscard]] Result<NetworkRows> network_rows(Names &names);

[[nodiscard]] std::string as_list(const std::vector<NetworkRow> &rows);
/// {"type":"net","kind","devname","ifindex","where","prog_id","name","link_id",...}.
void append_json(std::string &out, const NetworkRow &row);

} // namespace rawbpf::inline v0::running
