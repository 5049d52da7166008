// System calls as text.
//
// A table of fields describes each bpf(2) command's attributes (bpf_fields.h). The text shows the data that a field points at,
// not the address: instructions, keys and values, logs, names (contents.h), and what descriptors are (descriptors.h).
#include "runtime/sys/describe.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/sockios.h>
#include <span>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <utility>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/error.h"
#include "runtime/base/format.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/bpf_fields.h"
#include "runtime/sys/names.h"
#include "runtime/sys/narrow_call.h"
#include "runtime/sys/perf.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::sys {
namespace {

using Arguments = std::vector<Described::Argument>;

std::string pointer(uint64_t value) { return value == 0 ? "NULL" : format("{:#x}", value); }

std::string descriptor(int fd, const Detail &detail) {
    const Descriptor *known = detail.fds && fd >= 0 ? detail.fds->find(fd) : nullptr;
    return known && !known->name.empty() ? format("{}<{}>", fd, escaped(known->name, detail.bounds.text)) : format("{}", fd);
}

// What BPF_OBJ_GET_INFO_BY_FD was told, as far as it is the same for all programs, maps, or whatever the descriptor is.
std::string info_text(Bytes info, const Descriptor *what) {
    const auto word = [&](size_t at) { return load<uint32_t>(info.data() + at); };
    const auto name = [&](size_t at) {
        const char *text = reinterpret_cast<const char *>(info.data() + at);
        return quoted({text, strnlen(text, std::min<size_t>(16, info.size() - at))});
    };
    switch (what ? what->kind : Descriptor::other) {
    case Descriptor::program:
        if (info.size() < offsetof(ProgInfo, ifindex)) break;
        return format("{{type={}, id={}, xlated_prog_len={}, jited_prog_len={}, nr_map_ids={}, name={}, ...}}",
                      prog_type_name(word(0)), word(4), word(offsetof(ProgInfo, xlated_prog_len)),
                      word(offsetof(ProgInfo, jited_prog_len)), word(offsetof(ProgInfo, nr_map_ids)),
                      name(offsetof(ProgInfo, name)));
    case Descriptor::map:
        if (info.size() < offsetof(bpf_map_info, name) + 16) break;
        return format("{{type={}, id={}, key_size={}, value_size={}, max_entries={}, map_flags={}, name={}, ...}}",
                      map_type_name(word(0)), word(4), word(8), word(12), word(16), map_flag_names(word(20)),
                      name(offsetof(bpf_map_info, name)));
    case Descriptor::btf:
        if (info.size() < offsetof(bpf_btf_info, id) + 4) break;
        return format("{{btf_size={}, id={}, ...}}", word(offsetof(bpf_btf_info, btf_size)), word(offsetof(bpf_btf_info, id)));
    case Descriptor::link:
        if (info.size() < 12) break;
        return format("{{type={}, id={}, prog_id={}, ...}}", link_type_name(word(0)), word(4), word(8));
    case Descriptor::other: break;
    }
    return {};
}

constexpr FlagName kLogLevels[] = {{1, "BPF_LOG_LEVEL1"}, {2, "BPF_LOG_LEVEL2"}, {4, "BPF_LOG_STATS"}, {8, "BPF_LOG_FIXED"}};

// The attributes of one call, as they are now: cut or filled up with zeros to a size that holds every field.
class Attributes {
  public:
    Attributes(const Call &call, long result, const Detail &detail) : done_(result >= 0), detail_(detail) {
        const std::vector<std::byte> given = own_memory(call.args[1], std::min<uint64_t>(call.args[2], sizeof attr_));
        std::copy(given.begin(), given.end(), attr_);
        unread_ = given.empty() ? call.args[1] : 0;
        command_ = static_cast<uint32_t>(call.args[0]);
    }

    /// map_type=..., ...; their address alone, without a name, where they can't be read.
    [[nodiscard]] Arguments all() const {
        if (unread_) return {{"", pointer(unread_)}};
        Arguments out;
        for (const Field &field : fields_of(command_, word(offsetof(LinkCreateAttr, attach_type)))) {
            uint64_t value = field.size == 8 ? load<uint64_t>(attr_ + field.offset) : word(field.offset);
            if (field.show == Show::characters) value = static_cast<uint64_t>(attr_[field.offset]);
            if (!field.always && value == 0) continue;
            out.push_back({std::string(field.name), shown(field, value)});
        }
        return out;
    }

  private:
    [[nodiscard]] uint32_t word(size_t at) const { return load<uint32_t>(attr_ + at); }
    [[nodiscard]] size_t count_of(const Field &field) const { return field.count == Field::kNone ? 1 : word(field.count); }

    // Of a map: the descriptor that the command names. Elements of maps that aren't known have no size.
    [[nodiscard]] const Descriptor *map() const {
        const bool batch = command_ >= BPF_MAP_LOOKUP_BATCH && command_ <= BPF_MAP_DELETE_BATCH;
        const uint32_t fd = word(batch ? offsetof(MapBatchAttr, map_fd) : offsetof(MapElemAttr, map_fd));
        const Descriptor *known = detail_.fds ? detail_.fds->find(static_cast<int>(fd)) : nullptr;
        return known && known->kind == Descriptor::map ? known : nullptr;
    }

    // `size` bytes at `address` as `text` has them; the address, where they can't be read or aren't there.
    template <class Text> [[nodiscard]] std::string contents(uint64_t address, size_t size, Text text) const {
        const std::vector<std::byte> bytes = own_memory(address, size);
        return bytes.empty() || bytes.size() < std::min<size_t>(size, 1 << 20) ? pointer(address) : text(Bytes(bytes));
    }
    [[nodiscard]] std::string bytes(uint64_t address, size_t size) const {
        return contents(address, size, [&](Bytes b) { return bytes_text(b, detail_.bounds); });
    }
    [[nodiscard]] std::string numbers(uint64_t address, size_t count, size_t size, bool hex) const {
        return contents(address, count * size, [&](Bytes b) { return numbers_text(b, size, hex, detail_.bounds); });
    }
    [[nodiscard]] std::string elements(uint64_t address, size_t size, size_t count) const {
        if (count == 1) return bytes(address, size);
        const bool plain = size == 4 || size == 8;
        return plain ? numbers(address, count, size, false) : bytes(address, size * count);
    }
    [[nodiscard]] std::string strings(uint64_t address, size_t count) const {
        constexpr size_t kWord = sizeof(unsigned long); // the kernel's own
        return contents(address, count * kWord, [&](Bytes b) {
            return list_text(count, ", ", detail_.bounds,
                             [&](size_t i) { return string(load<unsigned long>(b.data() + i * kWord)); });
        });
    }
    [[nodiscard]] std::string string(uint64_t address) const {
        if (address == 0) return "NULL";
        const size_t most = detail_.bounds.text;
        if (own_memory(address, 1).empty()) return pointer(address);
        return quoted(own_string(address, most + 1), most);
    }
    [[nodiscard]] std::string log(uint64_t address, size_t size) const {
        const std::string text = own_string(address, std::min(size, detail_.bounds.lines ? size : detail_.bounds.text + 1));
        return text.empty() && own_memory(address, 1).empty() ? pointer(address) : log_text(text, detail_.bounds);
    }
    [[nodiscard]] std::string info(uint64_t address) const {
        const auto fd = static_cast<int>(word(offsetof(InfoAttr, bpf_fd)));
        std::string text;
        if (done_)
            text = contents(address, word(offsetof(InfoAttr, info_len)),
                            [&](Bytes b) { return info_text(b, detail_.fds ? detail_.fds->find(fd) : nullptr); });
        return text.empty() ? pointer(address) : text;
    }

    [[nodiscard]] std::string shown(const Field &field, uint64_t value) const {
        const size_t count = count_of(field);
        switch (field.show) {
        case Show::number: return format("{}", value);
        case Show::signed_number: return format("{}", static_cast<int32_t>(value));
        case Show::fd: return descriptor(static_cast<int>(value), detail_);
        case Show::pointer: return pointer(value);
        case Show::bytes: return bytes(value, count);
        case Show::bytes_out: return done_ ? bytes(value, count) : pointer(value);
        case Show::key_out:
        case Show::key:
            return map() && (done_ || field.show == Show::key) ? elements(value, map()->key_size, count) : pointer(value);
        case Show::value_out:
        case Show::value:
            return map() && (done_ || field.show == Show::value) ? elements(value, map()->value_size, count) : pointer(value);
        case Show::numbers_32: return numbers(value, count, 4, false);
        case Show::numbers_out: return done_ ? numbers(value, count, 4, false) : pointer(value);
        case Show::addresses: return numbers(value, count, sizeof(unsigned long), true);
        case Show::strings: return strings(value, count);
        case Show::records: {
            const size_t record = word(field.record);
            return contents(value, count * record, [&](Bytes b) { return records_text(b, record, detail_.bounds); });
        }
        case Show::instructions: return contents(value, count * 8, [&](Bytes b) { return instructions_text(b, detail_.bounds); });
        case Show::log: return log(value, count);
        case Show::btf: return contents(value, count, btf_text);
        case Show::info: return info(value);
        case Show::characters: {
            const char *text = reinterpret_cast<const char *>(attr_ + field.offset);
            return quoted({text, strnlen(text, field.size)});
        }
        case Show::string: return string(value);
        case Show::map_type: return map_type_name(static_cast<uint32_t>(value));
        case Show::prog_type: return prog_type_name(static_cast<uint32_t>(value));
        case Show::attach_type: return attach_type_name(static_cast<uint32_t>(value));
        case Show::map_flags: return map_flag_names(value);
        case Show::prog_flags: return prog_flag_names(value);
        case Show::update_flags: return update_flag_names(value);
        case Show::log_level: return flag_names(value, kLogLevels);
        case Show::stats_type: return value == BPF_STATS_RUN_TIME ? "BPF_STATS_RUN_TIME" : format("{}", value);
        }
        return {};
    }

    alignas(8) std::byte attr_[256] = {};
    uint32_t command_ = 0;
    uint64_t unread_ = 0; // where they are
    bool done_;
    const Detail &detail_;
};

Described bpf_call(const Call &call, long result, const Detail &detail) {
    Described out;
    out.call = "bpf";
    out.request = command_name(static_cast<uint32_t>(call.args[0]));
    out.arguments = Attributes(call, result, detail).all();
    out.in_struct = out.arguments.size();
    out.arguments.push_back({"size", format("{}", call.args[2]), false});
    return out;
}

// ---- perf_event_open(2)

constexpr FlagName kPerfBits[] = {
    {kPerfDisabled, "disabled"},
    {kPerfInherit, "inherit"},
    {kPerfPinned, "pinned"},
    {kPerfExclusive, "exclusive"},
    {kPerfExcludeUser, "exclude_user"},
    {kPerfExcludeKernel, "exclude_kernel"},
    {kPerfExcludeHv, "exclude_hv"},
    {kPerfExcludeIdle, "exclude_idle"},
    {kPerfMmap, "mmap"},
    {kPerfComm, "comm"},
    {kPerfFreq, "freq"},
    {kPerfInheritStat, "inherit_stat"},
    {kPerfEnableOnExec, "enable_on_exec"},
    {kPerfTask, "task"},
    {kPerfWatermark, "watermark"},
    {kPerfMmapData, "mmap_data"},
    {kPerfSampleIdAll, "sample_id_all"},
    {kPerfExcludeHost, "exclude_host"},
    {kPerfExcludeGuest, "exclude_guest"},
    {kPerfExcludeCallchainKernel, "exclude_callchain_kernel"},
    {kPerfExcludeCallchainUser, "exclude_callchain_user"},
    {kPerfMmap2, "mmap2"},
    {kPerfCommExec, "comm_exec"},
    {kPerfUseClockid, "use_clockid"},
    {kPerfContextSwitch, "context_switch"},
    {kPerfWriteBackward, "write_backward"},
    {kPerfNamespaces, "namespaces"},
    {kPerfKsymbol, "ksymbol"},
    {kPerfBpfEvent, "bpf_event"},
    {kPerfAuxOutput, "aux_output"},
    {kPerfCgroup, "cgroup"},
    {kPerfTextPoke, "text_poke"},
    {kPerfBuildId, "build_id"},
    {kPerfInheritThread, "inherit_thread"},
    {kPerfRemoveOnExec, "remove_on_exec"},
    {kPerfSigtrap, "sigtrap"},
};
constexpr FlagName kSampleTypes[] = {
    {1U << 0, "PERF_SAMPLE_IP"},         {1U << 1, "PERF_SAMPLE_TID"},         {1U << 2, "PERF_SAMPLE_TIME"},
    {1U << 3, "PERF_SAMPLE_ADDR"},       {1U << 4, "PERF_SAMPLE_READ"},        {1U << 5, "PERF_SAMPLE_CALLCHAIN"},
    {1U << 6, "PERF_SAMPLE_ID"},         {1U << 7, "PERF_SAMPLE_CPU"},         {1U << 8, "PERF_SAMPLE_PERIOD"},
    {1U << 9, "PERF_SAMPLE_STREAM_ID"},  {1U << 10, "PERF_SAMPLE_RAW"},        {1U << 11, "PERF_SAMPLE_BRANCH_STACK"},
    {1U << 12, "PERF_SAMPLE_REGS_USER"}, {1U << 13, "PERF_SAMPLE_STACK_USER"}, {1U << 16, "PERF_SAMPLE_IDENTIFIER"},
};
constexpr std::string_view kTypes[] = {"PERF_TYPE_HARDWARE", "PERF_TYPE_SOFTWARE", "PERF_TYPE_TRACEPOINT",
                                       "PERF_TYPE_HW_CACHE", "PERF_TYPE_RAW",      "PERF_TYPE_BREAKPOINT"};
constexpr std::string_view kHardware[] = {"PERF_COUNT_HW_CPU_CYCLES",          "PERF_COUNT_HW_INSTRUCTIONS",
                                          "PERF_COUNT_HW_CACHE_REFERENCES",    "PERF_COUNT_HW_CACHE_MISSES",
                                          "PERF_COUNT_HW_BRANCH_INSTRUCTIONS", "PERF_COUNT_HW_BRANCH_MISSES",
                                          "PERF_COUNT_HW_BUS_CYCLES"};
constexpr std::string_view kSoftware[] = {"PERF_COUNT_SW_CPU_CLOCK",        "PERF_COUNT_SW_TASK_CLOCK",
                                          "PERF_COUNT_SW_PAGE_FAULTS",      "PERF_COUNT_SW_CONTEXT_SWITCHES",
                                          "PERF_COUNT_SW_CPU_MIGRATIONS",   "PERF_COUNT_SW_PAGE_FAULTS_MIN",
                                          "PERF_COUNT_SW_PAGE_FAULTS_MAJ",  "PERF_COUNT_SW_ALIGNMENT_FAULTS",
                                          "PERF_COUNT_SW_EMULATION_FAULTS", "PERF_COUNT_SW_DUMMY",
                                          "PERF_COUNT_SW_BPF_OUTPUT",       "PERF_COUNT_SW_CGROUP_SWITCHES"};

std::string named(std::span<const std::string_view> names, uint64_t value) {
    return value < names.size() ? std::string(names[value]) : format("{}", value);
}

Arguments perf_attributes(const PerfEventAttr &attr) {
    std::string config = attr.type == PERF_TYPE_HARDWARE     ? named(kHardware, attr.config)
                         : attr.type == PERF_TYPE_SOFTWARE   ? named(kSoftware, attr.config)
                         : attr.type == PERF_TYPE_TRACEPOINT ? format("{}", attr.config)
                                                             : format("{:#x}", attr.config);
    Arguments out = {{"type", named(kTypes, attr.type)}, {"size", format("{}", attr.size)}, {"config", std::move(config)}};
    const auto add = [&](std::string_view name, std::string value) { out.push_back({std::string(name), std::move(value)}); };
    if (attr.sample_period) add(attr.bits & kPerfFreq ? "sample_freq" : "sample_period", format("{}", attr.sample_period));
    if (attr.sample_type) add("sample_type", flag_names(attr.sample_type, kSampleTypes));
    if (attr.read_format) add("read_format", format("{:#x}", attr.read_format));
    for (const FlagName &bit : kPerfBits)
        if (attr.bits & bit.value) add(bit.name, "1");
    if (attr.bits & kPerfPreciseIp) add("precise_ip", format("{}", (attr.bits & kPerfPreciseIp) >> 15));
    if (attr.wakeup_events)
        add(attr.bits & kPerfWatermark ? "wakeup_watermark" : "wakeup_events", format("{}", attr.wakeup_events));
    // The kprobe and uprobe PMUs, whose numbers the kernel gives out, take a name or a path and an offset.
    const std::string probed = attr.type > PERF_TYPE_BREAKPOINT ? own_string(attr.config1, kFew.text) : std::string();
    if (!probed.empty()) {
        add(probed.front() == '/' ? "uprobe_path" : "kprobe_func", quoted(probed));
        add("probe_offset", format("{:#x}", attr.config2));
    } else if (attr.config1) {
        add("config1", format("{:#x}", attr.config1));
    }
    if (attr.config2 && probed.empty()) add("config2", format("{:#x}", attr.config2));
    if (attr.sample_regs_user) add("sample_regs_user", format("{:#x}", attr.sample_regs_user));
    if (attr.sample_stack_user) add("sample_stack_user", format("{}", attr.sample_stack_user));
    if (attr.bits & kPerfUseClockid) add("clockid", attr.clockid == 1 ? "CLOCK_MONOTONIC" : format("{}", attr.clockid));
    if (attr.sample_max_stack) add("sample_max_stack", format("{}", attr.sample_max_stack));
    return out;
}

Described perf_call(const Call &call, const Detail &detail) {
    PerfEventAttr attr;
    // The struct's own second word says how long it is.
    if (const std::vector<std::byte> head = own_memory(call.args[0], 8); head.size() == 8) {
        const uint32_t size = load<uint32_t>(head.data() + 4);
        const std::vector<std::byte> given = own_memory(call.args[0], std::min<size_t>(size < 8 ? 8 : size, sizeof attr));
        std::memcpy(&attr, given.data(), given.size());
    }
    constexpr FlagName kFlags[] = {
        {1, "PERF_FLAG_FD_NO_GROUP"}, {2, "PERF_FLAG_FD_OUTPUT"}, {4, "PERF_FLAG_PID_CGROUP"}, {8, "PERF_FLAG_FD_CLOEXEC"}};
    Described out;
    out.call = "perf_event_open";
    out.arguments = perf_attributes(attr);
    out.in_struct = out.arguments.size();
    const bool cgroup = call.args[4] & PERF_FLAG_PID_CGROUP;
    out.arguments.push_back(
        {"pid", cgroup ? descriptor(static_cast<int>(call.args[1]), detail) : format("{}", static_cast<int32_t>(call.args[1]))});
    out.arguments.push_back({"cpu", format("{}", static_cast<int32_t>(call.args[2]))});
    out.arguments.push_back({"group_fd", descriptor(static_cast<int>(call.args[3]), detail)});
    out.arguments.push_back({"flags", flag_names(call.args[4], kFlags), false});
    return out;
}

// ---- ioctl(2), mmap(2)

Described ioctl_call(const Call &call, long result, const Detail &detail) {
    struct Request {
        uint64_t number;
        std::string_view name;
    };
    constexpr Request kRequests[] = {
        {PERF_EVENT_IOC_ENABLE, "PERF_EVENT_IOC_ENABLE"},
        {PERF_EVENT_IOC_DISABLE, "PERF_EVENT_IOC_DISABLE"},
        {PERF_EVENT_IOC_REFRESH, "PERF_EVENT_IOC_REFRESH"},
        {PERF_EVENT_IOC_RESET, "PERF_EVENT_IOC_RESET"},
        {PERF_EVENT_IOC_PERIOD, "PERF_EVENT_IOC_PERIOD"},
        {PERF_EVENT_IOC_SET_OUTPUT, "PERF_EVENT_IOC_SET_OUTPUT"},
        {PERF_EVENT_IOC_SET_FILTER, "PERF_EVENT_IOC_SET_FILTER"},
        {PERF_EVENT_IOC_ID, "PERF_EVENT_IOC_ID"},
        {PERF_EVENT_IOC_SET_BPF, "PERF_EVENT_IOC_SET_BPF"},
        {PERF_EVENT_IOC_PAUSE_OUTPUT, "PERF_EVENT_IOC_PAUSE_OUTPUT"},
        {PERF_EVENT_IOC_QUERY_BPF, "PERF_EVENT_IOC_QUERY_BPF"},
        {SIOCGIFNAME, "SIOCGIFNAME"},
        {SIOCGIFINDEX, "SIOCGIFINDEX"},
    };
    std::string name = format("{:#x}", call.args[1]);
    for (const Request &request : kRequests)
        if (request.number == call.args[1]) name = request.name;
    const uint64_t value = call.args[2];
    std::string argument = format("{}", static_cast<int64_t>(value));
    if (call.args[1] == PERF_EVENT_IOC_SET_BPF || (call.args[1] == PERF_EVENT_IOC_SET_OUTPUT))
        argument = descriptor(static_cast<int>(value), detail);
    if (call.args[1] == PERF_EVENT_IOC_SET_FILTER) argument = quoted(own_string(value, kFew.text + 1));
    if (call.args[1] == PERF_EVENT_IOC_QUERY_BPF) argument = pointer(value);
    if (call.args[1] == PERF_EVENT_IOC_PERIOD || call.args[1] == PERF_EVENT_IOC_ID) {
        const std::vector<std::byte> number = own_memory(value, 8);
        const bool there = number.size() == 8 && (result >= 0 || call.args[1] == PERF_EVENT_IOC_PERIOD);
        argument = there ? bytes_text(number, kFew) : pointer(value);
    }
    if (call.args[1] == SIOCGIFNAME || call.args[1] == SIOCGIFINDEX) {
        constexpr size_t kName = 16; // of struct ifreq; the index stands behind it
        const std::vector<std::byte> request = own_memory(value, kName + sizeof(uint32_t));
        argument = pointer(value);
        if (request.size() == kName + sizeof(uint32_t)) {
            const char *text = reinterpret_cast<const char *>(request.data());
            argument = format("{{ifr_name={}, ifr_ifindex={}}}", quoted({text, strnlen(text, kName)}),
                              load<uint32_t>(request.data() + kName));
        }
    }
    Described out;
    out.call = "ioctl";
    out.arguments = {{"fd", descriptor(static_cast<int>(call.args[0]), detail), false},
                     {"request", std::move(name), false},
                     {"argument", std::move(argument), false}};
    return out;
}

Described mmap_call(const Call &call, const Detail &detail) {
    constexpr FlagName kProtections[] = {{PROT_READ, "PROT_READ"}, {PROT_WRITE, "PROT_WRITE"}, {PROT_EXEC, "PROT_EXEC"}};
    constexpr FlagName kFlags[] = {{MAP_SHARED, "MAP_SHARED"},     {MAP_PRIVATE, "MAP_PRIVATE"},
                                   {MAP_FIXED, "MAP_FIXED"},       {MAP_ANONYMOUS, "MAP_ANONYMOUS"},
                                   {MAP_POPULATE, "MAP_POPULATE"}, {MAP_NORESERVE, "MAP_NORESERVE"},
                                   {MAP_LOCKED, "MAP_LOCKED"}};
    Described out;
    out.call = "mmap";
    out.result_is_address = true;
    const auto add = [&](std::string_view name, std::string value) {
        out.arguments.push_back({std::string(name), std::move(value), false});
    };
    add("addr", pointer(call.args[0]));
    add("length", format("{}", call.args[1]));
    add("prot", call.args[2] == 0 ? "PROT_NONE" : flag_names(call.args[2], kProtections));
    add("flags", flag_names(call.args[3], kFlags));
    add("fd", descriptor(static_cast<int>(call.args[4]), detail));
    add("offset", format("{}", call.args[5]));
    return out;
}

} // namespace

bool is_narrated(const Call &call) {
    if (call.number == __NR_ioctl) return _IOC_TYPE(call.args[1]) != 'T'; // a terminal's: how wide it is
    return call.number == __NR_bpf || call.number == __NR_perf_event_open || call.number == __NR_mmap;
}

Described describe_parts(const Call &call, long result, const Detail &detail) {
    if (!is_narrated(call)) return {};
    Described out = call.number == __NR_bpf               ? bpf_call(call, result, detail)
                    : call.number == __NR_perf_event_open ? perf_call(call, detail)
                    : call.number == __NR_ioctl           ? ioctl_call(call, result, detail)
                                                          : mmap_call(call, detail);
    out.result = result;
    if (result < 0 && result > -4096) {
        out.error = static_cast<int>(-result);
        out.error_name = errno_name(out.error);
    }
    out.why = std::string(call.why);
    return out;
}

std::string describe(const Call &call, long result, const Detail &detail) {
    if (!is_narrated(call)) return {};
    const Described parts = describe_parts(call, result, detail);
    std::string out = format("{}(", parts.call);
    if (!parts.request.empty()) append(out, "{}, ", parts.request);
    const bool unread = parts.in_struct == 1 && parts.arguments[0].name.empty(); // the struct's address stands for it
    for (size_t i = 0; i < parts.arguments.size(); ++i) {
        const Described::Argument &one = parts.arguments[i];
        if (i != 0) out += ", ";
        if (i == 0 && parts.in_struct != 0 && !unread) out += '{';
        if (one.is_named && !one.name.empty()) append(out, "{}=", one.name);
        out += one.value;
        if (i + 1 == parts.in_struct && !unread) out += '}';
    }
    if (parts.error != 0) {
        const char *sentence = strerrordesc_np(parts.error);
        append(out, ") = -1 {}{}", parts.error_name, sentence ? format(" ({})", sentence) : std::string());
    } else if (parts.result_is_address) {
        append(out, ") = {:#x}", static_cast<uint64_t>(result));
    } else {
        append(out, ") = {}", result);
    }
    if (!parts.why.empty()) append(out, "   # {}", parts.why);
    return out;
}

} // namespace rawbpf::inline v0::sys
