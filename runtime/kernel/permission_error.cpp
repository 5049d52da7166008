// Finds out which capability is missing. The kernel only says EPERM, whichever of these it was (kernel/bpf/syscall.c,
// bpf_prog_load):
//
//      CAP_BPF          everything (5.8; CAP_SYS_ADMIN before, which still stands for all three)
//      CAP_PERFMON      programs that trace: they read the kernel's memory
//      CAP_NET_ADMIN    programs that networking and cgroups run
//
// All of them count in the first user namespace only: root in a container has them and is refused all the same.
#include "runtime/kernel/permission_error.h"

#include <algorithm>
#include <vector>

#include "asm/program_types.h"
#include "runtime/sys/facts.h"

namespace rawbpf::inline v0 {
namespace {

using sys::Capability;

bool traces(uint32_t type) {
    const ProgramFamily family = program_type_row(type).family;
    return family == ProgramFamily::probe || family == ProgramFamily::decision || family == ProgramFamily::replaces;
}

bool is_for_networks(uint32_t type) {
    const ProgramFamily family = program_type_row(type).family;
    return family == ProgramFamily::network || family == ProgramFamily::replaces;
}

} // namespace

std::string missing_privileges(std::span<const uint32_t> program_types, sys::Capabilities own, bool first_namespace) {
    const bool tracing = std::any_of(program_types.begin(), program_types.end(), traces);
    const bool networks = std::any_of(program_types.begin(), program_types.end(), is_for_networks);
    std::vector<Capability> needed{Capability::bpf};
    if (tracing) needed.push_back(Capability::perfmon);
    if (networks) needed.push_back(Capability::net_admin);
    sys::Facts facts;
    facts.own = own;
    facts.first_user_namespace = first_namespace;
    return sys::lacking(needed, facts);
}

std::string missing_privileges(std::span<const uint32_t> program_types) {
    const sys::Facts facts = sys::facts();
    if (!facts.own) return {}; // what is here isn't known, so neither is what is missing
    return missing_privileges(program_types, *facts.own, facts.first_user_namespace.value_or(true));
}

} // namespace rawbpf::inline v0
