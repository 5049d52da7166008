// What else a run's first JSON line says: the machine, so that two runs can be compared.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rawbpf::inline v0::render {

/// What figures depend on besides the program that is measured; empty, negative or nullopt: it isn't there, or `unread` says why
/// it isn't known.
struct Environment {
    std::string cpu;                 ///< "AMD EPYC 7763 64-Core Processor"
    std::string virtualization;      ///< "KVM", "Xen"; "none": it is seen that there is none
    std::string governor;            ///< of CPU 0's frequency: "performance"
    std::string clock;               ///< what times are read from: "tsc", "kvm-clock", "hpet"
    int jit = -1;                    ///< net.core.bpf_jit_enable: 0 off, 1 on, 2 with debugging
    int jit_harden = -1;             ///< net.core.bpf_jit_harden
    std::optional<std::string> load; ///< of 1, 5 and 15 minutes, as /proc/loadavg has it: "0.52 0.58 0.59"
    /// Of what this CPU is affected by: "spectre_v2" -> "Mitigation: ..."; nullopt before Linux 4.15.
    std::optional<std::vector<std::pair<std::string, std::string>>> mitigations;
    /// A field's name in JSON, and why it isn't known, or not all of it: "load" -> "/proc/loadavg: Permission denied (EACCES)".
    std::vector<std::pair<std::string, std::string>> unread;
};

} // namespace rawbpf::inline v0::render
