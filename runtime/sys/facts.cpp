// Facts for hints. What the kernel checks, by its own rules:
//
//      bpf(2)             CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN of the first user namespace (kernel/bpf/syscall.c, 5.8);
//                         CAP_SYS_ADMIN stands for each of them, and is the only one before 5.8
//      perf_event_open(2) CAP_PERFMON (or CAP_SYS_ADMIN), or perf_event_paranoid low enough (kernel/events/core.c)
//      /proc/kallsyms     kptr_restrict 0: whoever may sample the kernel; 1: CAP_SYSLOG; 2: nobody (kernel/ksyms_common.c)
//
// Nothing is cached: a refusal is rare, and asking costs a few small calls.
#include "runtime/sys/facts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "runtime/base/format.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0 {

bool is_first_user_namespace(std::string_view uid_map) {
    // "         0          0 4294967295": every id is itself.
    constexpr std::string_view kBlank = " \t\n";
    std::array<uint64_t, 3> numbers{};
    for (uint64_t &number : numbers) {
        const size_t begin = std::min(uid_map.find_first_not_of(kBlank), uid_map.size());
        uid_map.remove_prefix(begin);
        const auto [end, error] = std::from_chars(uid_map.data(), uid_map.data() + uid_map.size(), number);
        if (error != std::errc{}) return false;
        uid_map.remove_prefix(static_cast<size_t>(end - uid_map.data()));
    }
    return numbers == std::array<uint64_t, 3>{0, 0, 0xffffffff} && uid_map.find_first_not_of(kBlank) == std::string_view::npos;
}

namespace sys {
namespace {

struct Named {
    Capability capability;
    std::string_view name, small;
};
constexpr Named kNames[] = {
    {Capability::bpf, "CAP_BPF", "cap_bpf"},
    {Capability::perfmon, "CAP_PERFMON", "cap_perfmon"},
    {Capability::net_admin, "CAP_NET_ADMIN", "cap_net_admin"},
    {Capability::sys_admin, "CAP_SYS_ADMIN", "cap_sys_admin"},
    {Capability::syslog, "CAP_SYSLOG", "cap_syslog"},
};

std::optional<int64_t> number_in(const char *path) {
    const Result<std::string> text = read_file(path, 64);
    int64_t value = 0;
    if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc()) return std::nullopt;
    return value;
}

// "CAP_BPF, CAP_PERFMON": those of `needed` that `own` hasn't, or all of them.
std::string names_of(std::span<const Capability> needed, const Capabilities &own, std::string_view Named::*name,
                     std::string_view separator) {
    std::string out;
    for (const Named &one : kNames)
        for (Capability capability : needed)
            if (capability == one.capability && !own.has(capability))
                append(out, "{}{}", out.empty() ? "" : separator, one.*name);
    return out;
}

} // namespace

Facts facts() {
    Because why("what this process may do, to say what a refusal can mean");
    Facts out;
    if (Result<Capabilities> own = capabilities()) out.own = *own;
    if (Result<std::string> map = read_file("/proc/self/uid_map", 4096)) out.first_user_namespace = is_first_user_namespace(*map);
    out.perf_event_paranoid = number_in("/proc/sys/kernel/perf_event_paranoid");
    out.kptr_restrict = number_in("/proc/sys/kernel/kptr_restrict");
    return out;
}

std::string lacking(std::span<const Capability> needed, const Facts &facts) {
    if (!facts.own) return {};
    const std::string short_of = facts.own->has(Capability::sys_admin) ? "" : names_of(needed, *facts.own, &Named::name, ", ");
    if (short_of.empty()) {
        if (facts.first_user_namespace.value_or(true)) return {};
        return "this process has all capabilities, but only in its own user namespace (a container's?), and bpf(2) counts those "
               "of the first one only: run it outside";
    }
    bool newer = false; // than the capabilities of 5.8
    for (Capability capability : needed) newer = newer || capability == Capability::bpf || capability == Capability::perfmon;
    return format("needs {}{}, lacks {}: run as root, or: setcap {}+ep FILE", names_of(needed, {}, &Named::name, ", "),
                  newer ? " (CAP_SYS_ADMIN before Linux 5.8)" : "", short_of, names_of(needed, {}, &Named::small, ","));
}

std::string refusal_hint(std::span<const Capability> needed, const Facts &facts, std::string_view others) {
    if (std::string words = lacking(needed, facts); !words.empty()) {
        if (!others.empty()) append(words, "; {} can refuse it, too", others);
        return words;
    }
    const std::string names = names_of(needed, {}, &Named::name, ", ");
    const std::string_view rest = "a security module, lockdown or a seccomp filter";
    const std::string who = others.empty() ? std::string(rest) : format("{}, {}", others, rest);
    if (!facts.own)
        return format(
            "needs {} or CAP_SYS_ADMIN, and rawbpf couldn't read which capabilities this process has; {} can refuse it, too",
            names, who);
    return format("this process has {}, so no capability is missing: {} can refuse it",
                  facts.own->has(Capability::sys_admin) ? "CAP_SYS_ADMIN" : names, who);
}

std::string refusal_hint(std::initializer_list<Capability> needed, std::string_view others) {
    return refusal_hint(std::span<const Capability>(needed.begin(), needed.size()), facts(), others);
}

std::string hidden_addresses_hint(const Facts &facts) {
    const std::array needed{Capability::syslog};
    if (facts.kptr_restrict == 2)
        return "kernel.kptr_restrict is 2, which hides them from every user: sysctl kernel.kptr_restrict=1";
    std::string words = lacking(needed, facts);
    if (words.empty()) words = facts.own ? "this process has CAP_SYSLOG, so something else hides them" : "needs CAP_SYSLOG";
    if (facts.kptr_restrict) append(words, " (kernel.kptr_restrict is {})", *facts.kptr_restrict);
    return words;
}

} // namespace sys
} // namespace rawbpf::inline v0
