// One place that says what figures depend on: experiments that are made twice are compared by it.
//
//      /proc/cpuinfo                                  model name (x86), flags with "hypervisor"
//      /proc/device-tree/model, MIDR                  the same of arm64, which has no model name
//      /sys/devices/system/cpu/vulnerabilities/*      mitigations, since 4.15
//      /sys/devices/system/cpu/cpu0/cpufreq           the governor, where there is one
//      /sys/hypervisor/type, /sys/class/dmi/id        who runs this machine, where it is a virtual one
//      /proc/sys/net/core/bpf_jit_*                   the JIT; only root reads them
//      /proc/loadavg                                  what else runs
#include "programs/doctor/environment.h"

#include <cstdlib>

#include "runtime/sys/file.h"

namespace rawbpf::inline v0::doctor {
namespace {

// What stands behind "NAME\t: " in the first line of that name.
std::string_view field(std::string_view text, std::string_view name) {
    for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
        if (at != 0 && text[at - 1] != '\n') continue;
        std::string_view line = text.substr(at, text.find('\n', at) - at);
        const size_t colon = line.find(':');
        if (colon == std::string_view::npos) continue;
        line.remove_prefix(colon + 1);
        while (line.starts_with(' ') || line.starts_with('\t')) line.remove_prefix(1);
        return line;
    }
    return {};
}

int setting(const char *path) {
    const std::string text = sys::first_line(path);
    return text.empty() ? -1 : std::atoi(text.c_str());
}

std::string cpu_of(std::string_view info) {
    if (const std::string_view model = field(info, "model name"); !model.empty()) return std::string(model);
    std::string out = sys::first_line("/proc/device-tree/model");
    while (out.ends_with('\0')) out.pop_back();
    if (!out.empty()) return out;
    const std::string_view maker = field(info, "CPU implementer"), part = field(info, "CPU part");
    return maker.empty() ? std::string() : format("implementer {}, part {}", maker, part);
}

std::string virtualization_of(std::string_view info) {
    if (std::string type = sys::first_line("/sys/hypervisor/type"); !type.empty()) return type;
    const std::string vendor = sys::first_line("/sys/class/dmi/id/sys_vendor"),
                      product = sys::first_line("/sys/class/dmi/id/product_name");
    const std::string_view flags = field(info, "flags");
    const bool guest = flags.find(" hypervisor") != std::string_view::npos;
    for (const std::string_view name :
         {"KVM", "QEMU", "VMware", "VirtualBox", "Xen", "Bochs", "Amazon EC2", "Google", "Microsoft"})
        if ((guest || flags.empty()) && (vendor.find(name) != std::string::npos || product.find(name) != std::string::npos))
            return std::string(name);
    if (guest) return "a hypervisor";
    return flags.empty() ? std::string() : "none"; // x86 alone says so
}

} // namespace

render::Environment read_environment() {
    render::Environment out;
    const std::string info = sys::read_file("/proc/cpuinfo", size_t{1} << 22).value_or(std::string());
    out.cpu = cpu_of(info);
    out.virtualization = virtualization_of(info);
    out.governor = sys::first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    out.jit = setting("/proc/sys/net/core/bpf_jit_enable");
    out.jit_harden = setting("/proc/sys/net/core/bpf_jit_harden");
    std::string load = sys::first_line("/proc/loadavg");
    size_t end = 0;
    for (int n = 0; n < 3 && end != std::string::npos; ++n) end = load.find(' ', end + 1);
    if (!load.empty()) out.load = load.substr(0, end);
    const std::string folder = "/sys/devices/system/cpu/vulnerabilities";
    if (Result<std::vector<std::string>> names = sys::list_directory(folder))
        for (const std::string &name : *names)
            if (std::string state = sys::first_line(folder + "/" + name); !state.empty() && state != "Not affected")
                out.mitigations.emplace_back(name, std::move(state));
    return out;
}

} // namespace rawbpf::inline v0::doctor
