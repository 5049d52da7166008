// CPU lists: "0-3,8,10-11" (lib/bitmap-str.c prints them, an empty list is an empty line). Possible CPUs are numbered without
// gaps in practice, but per-CPU maps use the highest number plus one, so that is what is counted.
#include "runtime/sys/cpus.h"

#include <algorithm>

#include "runtime/sys/file.h"

namespace rawbpf::inline v0 {
namespace {

constexpr int kMaxCpu = 65535; // NR_CPUS is at most 8192 today

Result<int> number(std::string_view part, std::string_view text) {
    int value = 0;
    if (part.empty()) return fail(Errc::invalid_argument, "CPU list \"{}\": a number is missing", text);
    for (char c : part) {
        if (c < '0' || c > '9') return fail(Errc::invalid_argument, "CPU list \"{}\": \"{}\" is not a number", text, part);
        value = value * 10 + (c - '0');
        if (value > kMaxCpu) return fail(Errc::invalid_argument, "CPU list \"{}\": \"{}\" is too large for a CPU", text, part);
    }
    return value;
}

} // namespace

Result<std::vector<int>> parse_cpu_list(std::string_view text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
    std::vector<int> cpus;
    std::string_view rest = text;
    while (!rest.empty()) {
        size_t comma = rest.find(',');
        std::string_view part = rest.substr(0, comma);
        bool last = comma == std::string_view::npos;
        rest = last ? std::string_view() : rest.substr(comma + 1);
        if (!last && rest.empty()) return fail(Errc::invalid_argument, "CPU list \"{}\": ends with a comma", text);
        size_t dash = part.find('-');
        int first = TRY(number(part.substr(0, dash), text));
        int end = dash == std::string_view::npos ? first : TRY(number(part.substr(dash + 1), text));
        if (end < first) return fail(Errc::invalid_argument, "CPU list \"{}\": \"{}\" runs backwards", text, part);
        for (int cpu = first; cpu <= end; ++cpu) cpus.push_back(cpu);
    }
    std::sort(cpus.begin(), cpus.end());
    cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
    return cpus;
}

Result<std::vector<int>> online_cpus() {
    constexpr const char *kPath = "/sys/devices/system/cpu/online";
    return TRY_IN(parse_cpu_list(TRY(sys::read_file(kPath, 1 << 20))), "{}", kPath);
}

Result<int> possible_cpu_count() {
    static int count = 0; // the set of possible CPUs is fixed at boot
    if (count == 0) {
        constexpr const char *kPath = "/sys/devices/system/cpu/possible";
        std::vector<int> cpus = TRY_IN(parse_cpu_list(TRY(sys::read_file(kPath, 1 << 20))), "{}", kPath);
        if (cpus.empty()) return fail(Errc::bad_input, "{}: empty", kPath);
        count = cpus.back() + 1;
    }
    return count;
}

} // namespace rawbpf::inline v0
