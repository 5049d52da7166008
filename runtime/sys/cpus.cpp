// CPU lists: "0-3,8,10-11" (lib/bitmap-str.c prints them, an empty list is an empty line). Possible CPUs are numbered without
// gaps in practice, but per-CPU maps use the highest number plus one, so that is what is counted.
//
// Where nobody has mounted /sys, sched_getaffinity(2) has to do: the CPUs that we may run on, and the kernel's own bit mask,
// whose length is that of all possible CPUs rounded up to whole words. More room than the kernel fills harms nobody: what it
// leaves are zeros.
#include "runtime/sys/cpus.h"

#include <algorithm>
#include <cerrno>
#include <sys/syscall.h>

#include "runtime/base/fail.h"
#include "runtime/base/remembering.h"
#include "runtime/base/stable_sort.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

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

constexpr size_t kWordBits = 8 * sizeof(unsigned long);

// The kernel's mask of the CPUs that this thread may run on, in as many words as the kernel has for all CPUs.
Result<std::vector<unsigned long>> allowed_cpus() {
    std::vector<unsigned long> words((kMaxCpu + 1) / kWordBits);
    sys::Because why("no /sys here: which CPUs may we run on?");
    const long bytes = sys::invoke(__NR_sched_getaffinity, 0, words.size() * sizeof(words[0]), sys::reg(words.data()));
    if (bytes < 0) return fail_os(static_cast<int>(-bytes), "sched_getaffinity");
    words.resize(static_cast<size_t>(bytes) / sizeof(words[0]));
    return words;
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
    stable_sort(cpus);
    cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
    return cpus;
}

Result<std::vector<int>> online_cpus() {
    constexpr const char *kPath = "/sys/devices/system/cpu/online";
    Result<std::string> text = sys::read_file(kPath, 1 << 20);
    if (text) return TRY_IN(parse_cpu_list(*text), "{}", kPath);
    if (text.error().os != ENOENT) return Unexpected(std::move(text).error());
    std::vector<int> cpus;
    const std::vector<unsigned long> words = TRY(allowed_cpus());
    for (size_t i = 0; i < words.size() * kWordBits; ++i)
        if (words[i / kWordBits] >> (i % kWordBits) & 1) cpus.push_back(static_cast<int>(i));
    return cpus;
}

Result<int> possible_cpu_count() {
    const Remembering lock;
    static int count = 0; // the set of possible CPUs is fixed at boot
    if (count == 0) {
        constexpr const char *kPath = "/sys/devices/system/cpu/possible";
        Result<std::string> text = sys::read_file(kPath, 1 << 20);
        if (!text && text.error().os == ENOENT) return count = static_cast<int>(TRY(allowed_cpus()).size() * kWordBits);
        if (!text) return std::move(text).failure();
        const std::vector<int> cpus = TRY_IN(parse_cpu_list(*text), "{}", kPath);
        if (cpus.empty()) return fail(Errc::bad_input, "{}: empty", kPath);
        count = cpus.back() + 1;
    }
    return count;
}

} // namespace rawbpf::inline v0
