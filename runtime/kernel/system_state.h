// What /proc and /sys say about the running kernel's policies. Everything may be absent: a guest without /proc is a system too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/sys/facts.h" // is_first_user_namespace()

namespace rawbpf::inline v0 {

/// A whole decimal number, perhaps negative, with white space around it; nullopt for anything else. PURE.
[[nodiscard]] std::optional<int64_t> parse_setting(std::string_view text);
/// "integrity" from "none [integrity] confidentiality"; empty when nothing is in brackets. PURE.
[[nodiscard]] std::string parse_chosen(std::string_view text);
/// "capability,landlock,bpf" as a list. PURE.
[[nodiscard]] std::vector<std::string> parse_comma_list(std::string_view text);

struct SystemState {
    bool proc = false, sys = false; ///< mounted at their usual places
    std::optional<int64_t> perf_event_paranoid, perf_event_max_sample_rate, unprivileged_bpf_disabled, kptr_restrict,
        bpf_stats_enabled, bpf_jit_enable;
    std::optional<bool> first_user_namespace;
    std::optional<std::string> lockdown; ///< "none", "integrity", "confidentiality"; absent: not built in, or not visible
    std::optional<std::vector<std::string>> lsms; ///< /sys/kernel/security/lsm
    std::string tracefs;                          ///< where it is mounted; empty: nowhere
    bool bpffs = false;                           ///< at /sys/fs/bpf
    bool kernel_btf = false;                      ///< /sys/kernel/btf/vmlinux
    size_t module_btfs = 0;
    std::vector<std::string> pmus; ///< /sys/bus/event_source/devices
    [[nodiscard]] bool has_pmu(std::string_view name) const;
    /// What could not be read, and why: "kptr_restrict" and the other settings, "uid_map", "lockdown", "lsm", "btf", "pmus". What
    /// is empty above and isn't here isn't there.
    std::vector<std::pair<std::string, std::string>> unread;
    [[nodiscard]] std::string_view why_unread(std::string_view name) const; ///< empty: it was read, or isn't there
};
/// Reads all of it; what can't be read stays empty, and is told in `unread`.
[[nodiscard]] SystemState read_system_state();

} // namespace rawbpf::inline v0
