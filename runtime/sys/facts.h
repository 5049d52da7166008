// Facts that explain a refusal, asked from the kernel and never assumed: capabilities, the user namespace, settings.
//
// A hint helps only if it is true. "needs CAP_PERFMON" misleads the user of a process that has it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/sys/privileges.h"

namespace rawbpf::inline v0 {

/// Whether /proc/self/uid_map is that of the first user namespace, the only one whose capabilities bpf(2) counts. PURE.
[[nodiscard]] bool is_first_user_namespace(std::string_view uid_map);

namespace sys {

/// Facts about this process and its kernel; nullopt: it could not be found out.
struct Facts {
    std::optional<Capabilities> own;            ///< capget(2)
    std::optional<bool> first_user_namespace;   ///< /proc/self/uid_map
    std::optional<int64_t> perf_event_paranoid; ///< /proc/sys/kernel/perf_event_paranoid
    std::optional<int64_t> kptr_restrict;       ///< /proc/sys/kernel/kptr_restrict
};
/// Looks them up.
[[nodiscard]] Facts facts();

/// What a process lacks of the capabilities that something needs, and how it gets them; empty: nothing, or it isn't known. PURE.
[[nodiscard]] std::string lacking(std::span<const Capability> needed, const Facts &facts);

/// The hint for an EPERM or EACCES of something that needs these capabilities: what is lacking; where nothing is, that it isn't
/// them, and that `others` (or a security module, lockdown, a seccomp filter) can refuse with the same errno. PURE.
[[nodiscard]] std::string refusal_hint(std::span<const Capability> needed, const Facts &facts, std::string_view others = {});
/// The same for this process.
[[nodiscard]] std::string refusal_hint(std::initializer_list<Capability> needed, std::string_view others = {});

/// The hint for kernel addresses that are hidden (0 in /proc/kallsyms). PURE.
[[nodiscard]] std::string hidden_addresses_hint(const Facts &facts);

} // namespace sys
} // namespace rawbpf::inline v0
