// The kprobe and uprobe PMUs (4.17): a probe that belongs to a descriptor.
//
//      /sys/bus/event_source/devices/kprobe/type                     "6"
//                                          /format/retprobe          "config:0"        this bit of attr.config: probe the return
//      /sys/bus/event_source/devices/uprobe/type                     "7"
//                                          /format/ref_ctr_offset    "config:32-63"    the semaphore's offset, in these bits
//
// attr.config1 is a pointer to the function's name or the file's path, attr.config2 the offset (kernel/events/core.c,
// perf_kprobe_event_init). A kprobe without a name takes an address in config2. The numbers differ from machine to machine.
#include "runtime/link/probe_event.h"

#include <cerrno>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

#include "runtime/base/fail.h"
#include "runtime/base/remembering.h"
#include "runtime/link/instruction_set.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/kernel_file.h"
#include "runtime/sys/perf.h"

namespace rawbpf::inline v0 {
namespace {

// What sysfs says of one PMU, asked once.
struct Pmu {
    uint32_t type = 0;
    unsigned returns_bit = 0;
    unsigned semaphore_bit = 32;
    unsigned semaphore_bits = 0; ///< 0: this kernel has none
};

std::optional<uint64_t> number(std::string_view text) {
    uint64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return std::nullopt;
    return value;
}

// "config:32-63" -> 32, 63; "config:0" -> 0, 0.
using Bits = std::pair<unsigned, unsigned>;
std::optional<Bits> bits(std::string_view text) {
    constexpr std::string_view kPrefix = "config:";
    if (!text.starts_with(kPrefix)) return std::nullopt;
    text.remove_prefix(kPrefix.size());
    std::optional<uint64_t> first = number(text);
    size_t dash = text.find('-');
    std::optional<uint64_t> last = dash == std::string_view::npos ? first : number(text.substr(dash + 1));
    if (!first || !last || *first > *last || *last > 63) return std::nullopt;
    return Bits(static_cast<unsigned>(*first), static_cast<unsigned>(*last));
}

// nullopt: this kernel has no such file.
Result<std::optional<Bits>> format_bits(const std::string &path) {
    const Result<std::string> text = sys::read_file(path, 64);
    if (text) return bits(*text);
    if (text.error().os == ENOENT) return std::optional<Bits>();
    return Unexpected(text.error());
}

Result<Pmu> read_pmu(const char *name) {
    sys::Because why("which number and which bits the kernel gave this kind of probe");
    std::string directory = format("/sys/bus/event_source/devices/{}", name);
    Result<std::string> type = sys::read_file(directory + "/type", 64);
    if (!type) {
        Error error = std::move(type).error();
        if (error.os != ENOENT) return Unexpected(std::move(error));
        const bool hidden = !sys::hidden_below(directory).empty();
        return Unexpected(make_error(
            Errc::unsupported,
            hidden ? format("rawbpf can't see whether this kernel has {}s: there is no {}", name, directory)
                   : format("this kernel has no {}s: there is no {}", name, directory),
            sys::absent_hint(directory, name[0] == 'k'
                                            ? "it needs CONFIG_KPROBE_EVENTS; fentry, tracepoints and raw tracepoints may work"
                                            : "it needs CONFIG_UPROBE_EVENTS")));
    }
    Pmu pmu;
    std::optional<uint64_t> value = number(*type);
    if (!value || *value > UINT32_MAX) return fail(Errc::bad_input, "{}/type says \"{}\"", directory, *type);
    pmu.type = static_cast<uint32_t>(*value);
    if (auto place = TRY(format_bits(directory + "/format/retprobe"))) pmu.returns_bit = place->first;
    if (auto place = TRY(format_bits(directory + "/format/ref_ctr_offset"))) {
        pmu.semaphore_bit = place->first;
        pmu.semaphore_bits = place->second - place->first + 1;
    }
    return pmu;
}

std::optional<Pmu> known[2]; // kprobe, uprobe

} // namespace

Result<sys::PerfEventAttr> probe_attr(const ProbePlace &place) {
    const Remembering lock;
    std::optional<Pmu> &pmu = known[place.user];
    if (!pmu) pmu = TRY(read_pmu(place.user ? "uprobe" : "kprobe"));
    sys::PerfEventAttr attr;
    attr.type = pmu->type;
    if (place.returns) attr.config |= uint64_t{1} << pmu->returns_bit;
    if (place.semaphore != 0) {
        if (pmu->semaphore_bits == 0) return fail(Errc::unsupported, "a uprobe with a semaphore needs Linux 4.20");
        if (pmu->semaphore_bits < 64 && place.semaphore >> pmu->semaphore_bits != 0)
            return fail(Errc::unsupported, "a semaphore at offset {:#x}: this kernel takes {} bits", place.semaphore,
                        pmu->semaphore_bits);
        attr.config |= place.semaphore << pmu->semaphore_bit;
    }
    attr.config1 = place.name.empty() ? 0 : sys::reg(place.name.c_str());
    attr.config2 = place.name.empty() ? place.address + place.offset : place.offset;
    return attr;
}

Result<Fd> open_probe(const ProbePlace &place) {
    const auto offset = static_cast<unsigned long>(place.offset);
    if (place.user) TRY(check_instruction_set(place.name, std::span(&offset, 1)));
    const sys::PerfEventAttr attr = TRY(probe_attr(place));
    sys::Because why(place.user ? "a breakpoint in a program's file, for all who run it (or one process)"
                                : "a breakpoint in the kernel");
    // A probe fires on every CPU whatever is said here; a process's has to leave the CPU open.
    // Unlike perf_event_open(), where 0 is the caller; uprobe.multi, which does the same, takes 0 for all.
    return sys::perf_event_open(attr, place.pid > 0 ? place.pid : -1, place.pid > 0 ? -1 : 0);
}

} // namespace rawbpf::inline v0
