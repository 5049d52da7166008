// The only place that lists what measurements depend on, so that two runs of an experiment can be compared.
//
//      /proc/cpuinfo                                  model name (x86), flags with "hypervisor"
//      /proc/device-tree/model, MIDR                  the same of arm64, which has no model name
//      /sys/devices/system/cpu/vulnerabilities/*      mitigations, since 4.15
//      /sys/devices/system/cpu/cpu0/cpufreq           the governor, where there is one
//      /sys/hypervisor/type, /sys/class/dmi/id        who runs this machine, where it is a virtual one
//      /proc/sys/net/core/bpf_jit_*                   the JIT; only root reads them
//      /sys/devices/system/clocksource/clocksource0   the clock that times are read from
//      /proc/loadavg                                  what else runs
#include "programs/doctor/environment.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/format.h"
#include "runtime/sys/file.h"
#include "runtime/sys/kernel_file.h"

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

// The fields of an Environment, and why those are unknown that are.
class Reading {
  public:
    render::Environment out;

    void read() {
        const std::string info = text("cpu", sys::read_kernel_file("/proc/cpuinfo", size_t{1} << 22));
        out.cpu = cpu_of(info);
        out.virtualization = virtualization_of(info);
        out.governor = line("governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        out.clock = line("clock", "/sys/devices/system/clocksource/clocksource0/current_clocksource");
        out.jit = setting("bpf_jit", "/proc/sys/net/core/bpf_jit_enable");
        out.jit_harden = setting("bpf_jit_harden", "/proc/sys/net/core/bpf_jit_harden");
        if (const std::string load = line("load", "/proc/loadavg"); !load.empty()) {
            size_t end = 0;
            for (int n = 0; n < 3 && end != std::string::npos; ++n) end = load.find(' ', end + 1);
            out.load = load.substr(0, end);
        }
        read_mitigations();
    }

  private:
    void unread(std::string_view field, const Error &error) {
        for (const auto &[known, why] : out.unread)
            if (known == field) return; // the first reason will do
        out.unread.emplace_back(field, error.message());
    }
    std::string text(std::string_view field, Result<std::string> &&read) {
        if (read) return std::move(*read);
        if (!sys::is_absent(read.error())) unread(field, read.error());
        return {};
    }
    std::string line(std::string_view field, const std::string &path) { return text(field, sys::kernel_line(path)); }
    int setting(std::string_view field, const std::string &path) {
        const std::string text = line(field, path);
        return text.empty() ? -1 : std::atoi(text.c_str());
    }

    std::string cpu_of(std::string_view info) {
        if (const std::string_view model = field(info, "model name"); !model.empty()) return std::string(model);
        std::string board = sys::first_line("/proc/device-tree/model");
        while (board.ends_with('\0')) board.pop_back();
        if (!board.empty()) return board;
        const std::string_view maker = field(info, "CPU implementer"), part = field(info, "CPU part");
        return maker.empty() ? std::string() : format("implementer {}, part {}", maker, part);
    }

    std::string virtualization_of(std::string_view info) {
        constexpr std::string_view kField = "virtualization";
        if (info.empty()) (void)line(kField, "/proc/cpuinfo"); // the same reason
        if (std::string type = line(kField, "/sys/hypervisor/type"); !type.empty()) return type;
        const std::string vendor = line(kField, "/sys/class/dmi/id/sys_vendor"),
                          product = line(kField, "/sys/class/dmi/id/product_name");
        const std::string_view flags = field(info, "flags");
        const bool guest = flags.find(" hypervisor") != std::string_view::npos;
        for (const std::string_view name :
             {"KVM", "QEMU", "VMware", "VirtualBox", "Xen", "Bochs", "Amazon EC2", "Google", "Microsoft"})
            if ((guest || flags.empty()) && (vendor.find(name) != std::string::npos || product.find(name) != std::string::npos))
                return std::string(name);
        if (guest) return "a hypervisor";
        return flags.empty() ? std::string() : "none"; // x86 alone says so
    }

    void read_mitigations() {
        constexpr std::string_view kField = "mitigations";
        const std::string folder = "/sys/devices/system/cpu/vulnerabilities";
        Result<std::vector<std::string>> names = sys::list_kernel_directory(folder);
        if (!names && !sys::is_absent(names.error())) unread(kField, names.error());
        if (!names) return;
        out.mitigations.emplace();
        std::sort(names->begin(), names->end());
        for (const std::string &name : *names)
            if (std::string state = line(kField, folder + "/" + name); !state.empty() && state != "Not affected")
                out.mitigations->emplace_back(name, std::move(state));
    }
};

} // namespace

render::Environment read_environment() {
    Reading reading;
    reading.read();
    return std::move(reading.out);
}

} // namespace rawbpf::inline v0::doctor
