#include "programs/profile/counts.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "programs/profile/record.h"
#include "runtime/base/bytes.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::profile {

// The counts stand first in each CPU's value, whatever else the program keeps there.
Result<void> read_counts(LoadedObject &object, Ledger &ledger) {
    const Map &counts = *TRY(object.needed_map("profile_counts"));
    const uint32_t slot = 0;
    std::vector<std::byte> values(counts.lookup_size());
    TRY(counts.lookup(&slot, values.data()));
    const size_t stride = (counts.value_size() + 7) / 8 * 8;
    uint64_t ring_full = 0;
    for (size_t at = 0; at + sizeof(ProfileCounts) <= values.size(); at += stride) {
        const auto cpu = load<ProfileCounts>(values.data() + at);
        ledger.fired += cpu.fired;
        ledger.filtered +=
            cpu.filtered_idle + cpu.filtered_pid + cpu.filtered_cgroup + cpu.filtered_pid_namespace + cpu.filtered_comm;
        ring_full += cpu.lost_ring_full;
        ledger.sampled_out += cpu.sampled_out;
    }
    ledger.lost.emplace_back("ring_full", ring_full);
    return {};
}

} // namespace rawbpf::inline v0::profile
