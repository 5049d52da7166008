// A dozen small files and two directories, read once. securityfs and tracefs are often not mounted (containers, initramfs);
// then the answer is "absent", which is different from "no".
#include "runtime/kernel/system_state.h"

#include <algorithm>

#include "runtime/base/numbers.h"
#include "runtime/base/stable_sort.h"
#include "runtime/sys/kernel_file.h"
#include "runtime/sys/privileges.h"

namespace rawbpf::inline v0 {
namespace {

constexpr uint64_t kTracefs = 0x74726163, kBpffs = 0xcafe4a11, kProc = 0x9fa0, kSysfs = 0x62656572;
constexpr size_t kSmall = 64 << 10; // no such file is larger

std::string_view trim(std::string_view text) {
    constexpr std::string_view kBlank(" \t\n\0", 4);
    size_t start = text.find_first_not_of(kBlank);
    if (start == std::string_view::npos) return {};
    return text.substr(start, text.find_last_not_of(kBlank) + 1 - start);
}

// nullopt: it isn't there, or `s.unread` says why it isn't known.
template <class T> std::optional<T> known(SystemState &s, std::string_view name, Result<T> &&answer) {
    if (answer) return std::move(*answer);
    if (!sys::is_absent(answer.error())) s.unread.emplace_back(name, answer.error().message());
    return std::nullopt;
}
std::optional<std::string> text_of(SystemState &s, std::string_view name, const std::string &path) {
    return known(s, name, sys::read_kernel_file(path, kSmall));
}
std::optional<int64_t> setting(SystemState &s, const std::string &path) {
    const std::string name = path.substr(path.rfind('/') + 1);
    const std::optional<std::string> text = text_of(s, name, "/proc/sys/" + path);
    return text ? parse_setting(*text) : std::nullopt;
}

bool mounted(const std::string &path, uint64_t magic) {
    Result<uint64_t> found = sys::file_system_magic(path);
    return found && *found == magic;
}

} // namespace

std::optional<int64_t> parse_setting(std::string_view text) { return whole_number<int64_t>(trim(text)); }

std::string parse_chosen(std::string_view text) {
    size_t start = text.find('['), end = text.find(']', std::min(start, text.size()));
    if (start == std::string_view::npos || end == std::string_view::npos) return {};
    return std::string(text.substr(start + 1, end - start - 1));
}

std::vector<std::string> parse_comma_list(std::string_view text) {
    std::vector<std::string> out;
    for (text = trim(text); !text.empty();) {
        size_t end = std::min(text.find(','), text.size());
        if (end > 0) out.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
}

bool SystemState::has_pmu(std::string_view name) const { return std::find(pmus.begin(), pmus.end(), name) != pmus.end(); }

std::string_view SystemState::why_unread(std::string_view name) const {
    for (const auto &[one, why] : unread)
        if (one == name) return why;
    return {};
}

SystemState read_system_state() {
    SystemState s;
    s.proc = mounted("/proc", kProc);
    s.sys = mounted("/sys", kSysfs);
    s.perf_event_paranoid = setting(s, "kernel/perf_event_paranoid");
    s.perf_event_max_sample_rate = setting(s, "kernel/perf_event_max_sample_rate");
    s.unprivileged_bpf_disabled = setting(s, "kernel/unprivileged_bpf_disabled");
    s.kptr_restrict = setting(s, "kernel/kptr_restrict");
    s.bpf_stats_enabled = setting(s, "kernel/bpf_stats_enabled");
    s.bpf_jit_enable = setting(s, "net/core/bpf_jit_enable");
    if (std::optional<std::string> map = text_of(s, "uid_map", "/proc/self/uid_map"))
        s.first_user_namespace = is_first_user_namespace(*map);
    if (std::optional<std::string> text = text_of(s, "lockdown", "/sys/kernel/security/lockdown"))
        s.lockdown = parse_chosen(*text);
    if (std::optional<std::string> text = text_of(s, "lsm", "/sys/kernel/security/lsm")) s.lsms = parse_comma_list(*text);
    for (const char *path : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"})
        if (s.tracefs.empty() && mounted(path, kTracefs)) s.tracefs = path;
    s.bpffs = mounted("/sys/fs/bpf", kBpffs);
    if (std::optional<std::vector<std::string>> names = known(s, "btf", sys::list_kernel_directory("/sys/kernel/btf"))) {
        for (const std::string &name : *names)
            if (name == "vmlinux")
                s.kernel_btf = true;
            else
                ++s.module_btfs;
    }
    constexpr const char *kPmus = "/sys/bus/event_source/devices";
    if (std::optional<std::vector<std::string>> names = known(s, "pmus", sys::list_kernel_directory(kPmus))) {
        s.pmus = std::move(*names);
        stable_sort(s.pmus);
    }
    return s;
}

} // namespace rawbpf::inline v0
