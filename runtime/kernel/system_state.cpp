// A dozen small files and two directories, read once. securityfs and tracefs are often not mounted (containers, initramfs); then
// their answers are absent, which is something else than "no".
#include "runtime/kernel/system_state.h"

#include <algorithm>
#include <charconv>

#include "runtime/base/stable_sort.h"
#include "runtime/sys/file.h"
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

std::optional<int64_t> setting(const std::string &name) {
    Result<std::string> text = sys::read_file("/proc/sys/" + name, kSmall);
    return text ? parse_setting(*text) : std::nullopt;
}

bool mounted(const std::string &path, uint64_t magic) {
    Result<uint64_t> found = sys::file_system_magic(path);
    return found && *found == magic;
}

} // namespace

std::optional<int64_t> parse_setting(std::string_view text) {
    text = trim(text);
    int64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return {};
    return value;
}

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

SystemState read_system_state() {
    SystemState s;
    s.proc = mounted("/proc", kProc);
    s.sys = mounted("/sys", kSysfs);
    s.perf_event_paranoid = setting("kernel/perf_event_paranoid");
    s.perf_event_max_sample_rate = setting("kernel/perf_event_max_sample_rate");
    s.unprivileged_bpf_disabled = setting("kernel/unprivileged_bpf_disabled");
    s.kptr_restrict = setting("kernel/kptr_restrict");
    s.bpf_stats_enabled = setting("kernel/bpf_stats_enabled");
    s.bpf_jit_enable = setting("net/core/bpf_jit_enable");
    if (Result<std::string> map = sys::read_file("/proc/self/uid_map", kSmall))
        s.first_user_namespace = is_first_user_namespace(*map);
    if (Result<std::string> text = sys::read_file("/sys/kernel/security/lockdown", kSmall)) s.lockdown = parse_chosen(*text);
    if (Result<std::string> text = sys::read_file("/sys/kernel/security/lsm", kSmall)) s.lsms = parse_comma_list(*text);
    for (const char *path : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"})
        if (s.tracefs.empty() && mounted(path, kTracefs)) s.tracefs = path;
    s.bpffs = mounted("/sys/fs/bpf", kBpffs);
    if (Result<std::vector<std::string>> names = sys::list_directory("/sys/kernel/btf")) {
        for (const std::string &name : *names)
            if (name == "vmlinux")
                s.kernel_btf = true;
            else
                ++s.module_btfs;
    }
    if (Result<std::vector<std::string>> names = sys::list_directory("/sys/bus/event_source/devices")) {
        s.pmus = std::move(*names);
        stable_sort(s.pmus);
    }
    return s;
}

} // namespace rawbpf::inline v0
