// System calls in words.
//
// A bpf(2) command's attributes are described by a table of its fields: name, place, and how to show them. Fields that are
// zero are left out unless they belong to the command's core, so a line holds what was asked for and no more. The kernel
// writes some answers into the same struct; it is looked at after the call, so they show too.
#include "runtime/sys/describe.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <linux/perf_event.h>
#include <span>
#include <string_view>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "runtime/base/bytes.h"
#include "runtime/base/error.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/names.h"
#include "runtime/sys/perf.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::sys {
namespace {

enum class Show : uint8_t {
    number,
    signed_number,
    pointer,
    characters, ///< char[16] in the struct
    string,     ///< pointer to a C string
    map_type,
    prog_type,
    attach_type,
    map_flags,
    prog_flags,
    update_flags,
    log_level,
    stats_type,
};

struct Field {
    std::string_view name;
    uint16_t offset;
    uint8_t size;
    Show show;
    bool always;
};

#define FIELD(struct_, field, show_, always_)                                                                                    \
    Field { #field, offsetof(struct_, field), sizeof(struct_::field), Show::show_, always_ }
#define CORE(struct_, field, show) FIELD(struct_, field, show, true)
#define MORE(struct_, field, show) FIELD(struct_, field, show, false)

constexpr Field kMapCreate[] = {
    CORE(MapCreateAttr, map_type, map_type),
    CORE(MapCreateAttr, key_size, number),
    CORE(MapCreateAttr, value_size, number),
    CORE(MapCreateAttr, max_entries, number),
    MORE(MapCreateAttr, map_flags, map_flags),
    MORE(MapCreateAttr, inner_map_fd, number),
    MORE(MapCreateAttr, numa_node, number),
    MORE(MapCreateAttr, map_name, characters),
    MORE(MapCreateAttr, map_ifindex, number),
    MORE(MapCreateAttr, btf_fd, number),
    MORE(MapCreateAttr, btf_key_type_id, number),
    MORE(MapCreateAttr, btf_value_type_id, number),
    MORE(MapCreateAttr, btf_vmlinux_value_type_id, number),
    MORE(MapCreateAttr, map_extra, number),
    MORE(MapCreateAttr, value_type_btf_obj_fd, signed_number),
    MORE(MapCreateAttr, map_token_fd, signed_number),
};
constexpr Field kElement[] = {
    CORE(MapElemAttr, map_fd, number),
    CORE(MapElemAttr, key, pointer),
    CORE(MapElemAttr, value, pointer),
    MORE(MapElemAttr, flags, update_flags),
};
constexpr Field kDelete[] = {CORE(MapElemAttr, map_fd, number), CORE(MapElemAttr, key, pointer)};
constexpr Field kNextKey[] = {
    CORE(MapElemAttr, map_fd, number),
    CORE(MapElemAttr, key, pointer),
    Field{"next_key", offsetof(MapElemAttr, value), 8, Show::pointer, true},
};
constexpr Field kFreeze[] = {CORE(MapElemAttr, map_fd, number)};
constexpr Field kBatch[] = {
    CORE(MapBatchAttr, map_fd, number),     CORE(MapBatchAttr, in_batch, pointer), CORE(MapBatchAttr, out_batch, pointer),
    CORE(MapBatchAttr, keys, pointer),      CORE(MapBatchAttr, values, pointer),   CORE(MapBatchAttr, count, number),
    MORE(MapBatchAttr, elem_flags, number), MORE(MapBatchAttr, flags, number),
};
constexpr Field kProgLoad[] = {
    CORE(ProgLoadAttr, prog_type, prog_type),
    CORE(ProgLoadAttr, insn_cnt, number),
    CORE(ProgLoadAttr, insns, pointer),
    CORE(ProgLoadAttr, license, string),
    MORE(ProgLoadAttr, log_level, log_level),
    MORE(ProgLoadAttr, log_size, number),
    MORE(ProgLoadAttr, log_buf, pointer),
    MORE(ProgLoadAttr, kern_version, number),
    MORE(ProgLoadAttr, prog_flags, prog_flags),
    MORE(ProgLoadAttr, prog_name, characters),
    MORE(ProgLoadAttr, prog_ifindex, number),
    MORE(ProgLoadAttr, expected_attach_type, attach_type),
    MORE(ProgLoadAttr, prog_btf_fd, number),
    MORE(ProgLoadAttr, func_info_rec_size, number),
    MORE(ProgLoadAttr, func_info, pointer),
    MORE(ProgLoadAttr, func_info_cnt, number),
    MORE(ProgLoadAttr, line_info_rec_size, number),
    MORE(ProgLoadAttr, line_info, pointer),
    MORE(ProgLoadAttr, line_info_cnt, number),
    MORE(ProgLoadAttr, attach_btf_id, number),
    MORE(ProgLoadAttr, attach_prog_fd, number),
    MORE(ProgLoadAttr, core_relo_cnt, number),
    MORE(ProgLoadAttr, fd_array, pointer),
    MORE(ProgLoadAttr, core_relos, pointer),
    MORE(ProgLoadAttr, core_relo_rec_size, number),
    MORE(ProgLoadAttr, log_true_size, number),
    MORE(ProgLoadAttr, prog_token_fd, signed_number),
    MORE(ProgLoadAttr, fd_array_cnt, number),
};
constexpr Field kObj[] = {
    CORE(ObjAttr, pathname, string),
    MORE(ObjAttr, bpf_fd, number),
    MORE(ObjAttr, file_flags, map_flags),
    MORE(ObjAttr, path_fd, signed_number),
};
constexpr Field kProgAttach[] = {
    CORE(ProgAttachAttr, target_fd, number),         CORE(ProgAttachAttr, attach_bpf_fd, number),
    CORE(ProgAttachAttr, attach_type, attach_type),  MORE(ProgAttachAttr, attach_flags, number),
    MORE(ProgAttachAttr, replace_bpf_fd, number),    MORE(ProgAttachAttr, relative_fd, number),
    MORE(ProgAttachAttr, expected_revision, number),
};
constexpr Field kTestRun[] = {
    CORE(ProgTestRunAttr, prog_fd, number),      CORE(ProgTestRunAttr, retval, number),
    MORE(ProgTestRunAttr, data_size_in, number), MORE(ProgTestRunAttr, data_size_out, number),
    MORE(ProgTestRunAttr, data_in, pointer),     MORE(ProgTestRunAttr, data_out, pointer),
    MORE(ProgTestRunAttr, repeat, number),       MORE(ProgTestRunAttr, duration, number),
    MORE(ProgTestRunAttr, ctx_size_in, number),  MORE(ProgTestRunAttr, ctx_size_out, number),
    MORE(ProgTestRunAttr, ctx_in, pointer),      MORE(ProgTestRunAttr, ctx_out, pointer),
    MORE(ProgTestRunAttr, flags, number),        MORE(ProgTestRunAttr, cpu, number),
    MORE(ProgTestRunAttr, batch_size, number),
};
constexpr Field kNextId[] = {Field{"start_id", 0, 4, Show::number, true}, CORE(IdAttr, next_id, number)};
constexpr Field kProgId[] = {Field{"prog_id", 0, 4, Show::number, true}};
constexpr Field kMapId[] = {Field{"map_id", 0, 4, Show::number, true}};
constexpr Field kBtfId[] = {Field{"btf_id", 0, 4, Show::number, true}};
constexpr Field kLinkId[] = {Field{"link_id", 0, 4, Show::number, true}};
constexpr Field kInfo[] = {CORE(InfoAttr, bpf_fd, number), CORE(InfoAttr, info_len, number), CORE(InfoAttr, info, pointer)};
constexpr Field kQuery[] = {
    CORE(ProgQueryAttr, target_fd, number),          CORE(ProgQueryAttr, attach_type, attach_type),
    MORE(ProgQueryAttr, query_flags, number),        MORE(ProgQueryAttr, attach_flags, number),
    MORE(ProgQueryAttr, prog_ids, pointer),          CORE(ProgQueryAttr, prog_cnt, number),
    MORE(ProgQueryAttr, prog_attach_flags, pointer), MORE(ProgQueryAttr, link_ids, pointer),
    MORE(ProgQueryAttr, revision, number),
};
constexpr Field kRawTracepoint[] = {
    MORE(RawTracepointAttr, name, string),
    CORE(RawTracepointAttr, prog_fd, number),
    MORE(RawTracepointAttr, cookie, number),
};
constexpr Field kBtfLoad[] = {
    CORE(BtfLoadAttr, btf, pointer),          CORE(BtfLoadAttr, btf_size, number),
    MORE(BtfLoadAttr, btf_log_buf, pointer),  MORE(BtfLoadAttr, btf_log_size, number),
    MORE(BtfLoadAttr, btf_log_level, number), MORE(BtfLoadAttr, btf_log_true_size, number),
    MORE(BtfLoadAttr, btf_flags, number),     MORE(BtfLoadAttr, btf_token_fd, signed_number),
};
constexpr Field kTaskFd[] = {
    CORE(TaskFdQueryAttr, pid, number),          CORE(TaskFdQueryAttr, fd, number),
    MORE(TaskFdQueryAttr, buf_len, number),      MORE(TaskFdQueryAttr, buf, string),
    MORE(TaskFdQueryAttr, prog_id, number),      MORE(TaskFdQueryAttr, fd_type, number),
    MORE(TaskFdQueryAttr, probe_offset, number), MORE(TaskFdQueryAttr, probe_addr, pointer),
};
// The tail of BPF_LINK_CREATE is a union by attach type.
#define LINK_HEAD                                                                                                                \
    CORE(LinkCreateAttr, prog_fd, number), CORE(LinkCreateAttr, target_fd, number),                                              \
        CORE(LinkCreateAttr, attach_type, attach_type), MORE(LinkCreateAttr, flags, number)
constexpr Field kLinkCreate[] = {LINK_HEAD};
constexpr Field kLinkEvent[] = {LINK_HEAD, Field{"perf_event.bpf_cookie", 16, 8, Show::number, false}};
constexpr Field kLinkTracing[] = {LINK_HEAD, Field{"tracing.target_btf_id", 16, 4, Show::number, false},
                                  Field{"tracing.cookie", 24, 8, Show::number, false}};
constexpr Field kLinkIter[] = {LINK_HEAD, Field{"iter_info", 16, 8, Show::pointer, false},
                               Field{"iter_info_len", 24, 4, Show::number, false}};
constexpr Field kLinkKprobes[] = {LINK_HEAD,
                                  Field{"kprobe_multi.flags", 16, 4, Show::number, false},
                                  Field{"kprobe_multi.cnt", 20, 4, Show::number, true},
                                  Field{"kprobe_multi.syms", 24, 8, Show::pointer, false},
                                  Field{"kprobe_multi.addrs", 32, 8, Show::pointer, false},
                                  Field{"kprobe_multi.cookies", 40, 8, Show::pointer, false}};
constexpr Field kLinkUprobes[] = {LINK_HEAD,
                                  Field{"uprobe_multi.path", 16, 8, Show::string, true},
                                  Field{"uprobe_multi.offsets", 24, 8, Show::pointer, true},
                                  Field{"uprobe_multi.ref_ctr_offsets", 32, 8, Show::pointer, false},
                                  Field{"uprobe_multi.cookies", 40, 8, Show::pointer, false},
                                  Field{"uprobe_multi.cnt", 48, 4, Show::number, true},
                                  Field{"uprobe_multi.flags", 52, 4, Show::number, false},
                                  Field{"uprobe_multi.pid", 56, 4, Show::number, false}};
constexpr Field kLinkTrampolines[] = {LINK_HEAD, Field{"tracing_multi.ids", 16, 8, Show::pointer, true},
                                      Field{"tracing_multi.cookies", 24, 8, Show::pointer, false},
                                      Field{"tracing_multi.cnt", 32, 4, Show::number, true}};
constexpr Field kLinkNetfilter[] = {
    LINK_HEAD, Field{"netfilter.pf", 16, 4, Show::number, true}, Field{"netfilter.hooknum", 20, 4, Show::number, true},
    Field{"netfilter.priority", 24, 4, Show::signed_number, true}, Field{"netfilter.flags", 28, 4, Show::number, false}};
#undef LINK_HEAD
constexpr Field kLinkUpdate[] = {
    CORE(LinkUpdateAttr, link_fd, number),
    CORE(LinkUpdateAttr, new_prog_fd, number),
    MORE(LinkUpdateAttr, flags, number),
    MORE(LinkUpdateAttr, old_prog_fd, number),
};
constexpr Field kLinkFd[] = {Field{"link_fd", 0, 4, Show::number, true}};
constexpr Field kIter[] = {Field{"link_fd", 0, 4, Show::number, true}, Field{"flags", 4, 4, Show::number, false}};
constexpr Field kStats[] = {Field{"type", 0, 4, Show::stats_type, true}};
constexpr Field kBindMap[] = {Field{"prog_fd", 0, 4, Show::number, true}, Field{"map_fd", 4, 4, Show::number, true},
                              Field{"flags", 8, 4, Show::number, false}};
constexpr Field kToken[] = {Field{"flags", 0, 4, Show::number, false}, Field{"bpffs_fd", 4, 4, Show::number, true}};
constexpr Field kStream[] = {Field{"stream_buf", 0, 8, Show::pointer, true}, Field{"stream_buf_len", 8, 4, Show::number, true},
                             Field{"stream_id", 12, 4, Show::number, true}, Field{"prog_fd", 16, 4, Show::number, true}};

#undef CORE
#undef MORE
#undef FIELD

std::span<const Field> fields_of(uint64_t command) {
    switch (command) {
    case BPF_MAP_CREATE: return kMapCreate;
    case BPF_MAP_LOOKUP_ELEM:
    case BPF_MAP_UPDATE_ELEM:
    case BPF_MAP_LOOKUP_AND_DELETE_ELEM: return kElement;
    case BPF_MAP_DELETE_ELEM: return kDelete;
    case BPF_MAP_GET_NEXT_KEY: return kNextKey;
    case BPF_MAP_FREEZE: return kFreeze;
    case BPF_MAP_LOOKUP_BATCH:
    case BPF_MAP_LOOKUP_AND_DELETE_BATCH:
    case BPF_MAP_UPDATE_BATCH:
    case BPF_MAP_DELETE_BATCH: return kBatch;
    case BPF_PROG_LOAD: return kProgLoad;
    case BPF_OBJ_PIN:
    case BPF_OBJ_GET: return kObj;
    case BPF_PROG_ATTACH:
    case BPF_PROG_DETACH: return kProgAttach;
    case BPF_PROG_TEST_RUN: return kTestRun;
    case BPF_PROG_GET_NEXT_ID:
    case BPF_MAP_GET_NEXT_ID:
    case BPF_BTF_GET_NEXT_ID:
    case BPF_LINK_GET_NEXT_ID: return kNextId;
    case BPF_PROG_GET_FD_BY_ID: return kProgId;
    case BPF_MAP_GET_FD_BY_ID: return kMapId;
    case BPF_BTF_GET_FD_BY_ID: return kBtfId;
    case BPF_LINK_GET_FD_BY_ID: return kLinkId;
    case BPF_OBJ_GET_INFO_BY_FD: return kInfo;
    case BPF_PROG_QUERY: return kQuery;
    case BPF_RAW_TRACEPOINT_OPEN: return kRawTracepoint;
    case BPF_BTF_LOAD: return kBtfLoad;
    case BPF_TASK_FD_QUERY: return kTaskFd;
    case BPF_LINK_CREATE: return kLinkCreate;
    case BPF_LINK_UPDATE: return kLinkUpdate;
    case BPF_LINK_DETACH: return kLinkFd;
    case BPF_ITER_CREATE: return kIter;
    case BPF_ENABLE_STATS: return kStats;
    case BPF_PROG_BIND_MAP: return kBindMap;
    case uapi::BPF_TOKEN_CREATE: return kToken;
    case uapi::BPF_PROG_STREAM_READ_BY_FD: return kStream;
    default: return {};
    }
}

std::span<const Field> fields_of_link(uint32_t attach_type) {
    switch (attach_type) {
    case BPF_PERF_EVENT: return kLinkEvent;
    case BPF_TRACE_ITER: return kLinkIter;
    case uapi::BPF_TRACE_KPROBE_MULTI:
    case uapi::BPF_TRACE_KPROBE_SESSION: return kLinkKprobes;
    case uapi::BPF_TRACE_UPROBE_MULTI:
    case uapi::BPF_TRACE_UPROBE_SESSION: return kLinkUprobes;
    case uapi::BPF_NETFILTER: return kLinkNetfilter;
    case uapi::BPF_TRACE_FENTRY_MULTI:
    case uapi::BPF_TRACE_FEXIT_MULTI:
    case uapi::BPF_TRACE_FSESSION_MULTI: return kLinkTrampolines;
    case BPF_TRACE_RAW_TP:
    case BPF_TRACE_FENTRY:
    case BPF_TRACE_FEXIT:
    case BPF_MODIFY_RETURN:
    case BPF_LSM_MAC: return kLinkTracing;
    default: return kLinkCreate;
    }
}

// Quoted, shortened, and without anything that would disturb a terminal.
std::string quoted(std::string_view text) {
    constexpr size_t kMost = 96;
    std::string out = "\"";
    for (char c : text.substr(0, kMost)) {
        unsigned char byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            append(out, "\\{}", c);
        else if (byte < 0x20 || byte == 0x7f)
            append(out, "\\x{:02x}", byte);
        else
            out += c;
    }
    out += text.size() > kMost ? "\"..." : "\"";
    return out;
}

std::string pointer(uint64_t value) { return value == 0 ? "NULL" : format("{:#x}", value); }

constexpr FlagName kLogLevels[] = {{1, "BPF_LOG_LEVEL1"}, {2, "BPF_LOG_LEVEL2"}, {4, "BPF_LOG_STATS"}, {8, "BPF_LOG_FIXED"}};

std::string shown(const Field &field, uint64_t value, const std::byte *at) {
    switch (field.show) {
    case Show::number: return format("{}", value);
    case Show::signed_number: return format("{}", static_cast<int32_t>(value));
    case Show::pointer: return pointer(value);
    case Show::characters: {
        const char *text = reinterpret_cast<const char *>(at);
        return quoted({text, strnlen(text, field.size)});
    }
    case Show::string: return value == 0 ? "NULL" : quoted(reinterpret_cast<const char *>(value));
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

std::string bpf_call(const Call &call) {
    // The struct as it is now, cut or filled up with zeros to a size that holds every field.
    alignas(8) std::byte attr[256] = {};
    const auto *given = reinterpret_cast<const std::byte *>(call.args[1]);
    if (given) std::memcpy(attr, given, std::min<uint64_t>(call.args[2], sizeof attr));
    std::string out = format("bpf({}, {{", command_name(static_cast<uint32_t>(call.args[0])));
    bool first = true;
    std::span<const Field> fields = call.args[0] == BPF_LINK_CREATE
                                        ? fields_of_link(load<uint32_t>(attr + offsetof(LinkCreateAttr, attach_type)))
                                        : fields_of(call.args[0]);
    for (const Field &field : fields) {
        const std::byte *at = attr + field.offset;
        uint64_t value = field.size == 8 ? load<uint64_t>(at) : load<uint32_t>(at);
        if (field.show == Show::characters) value = static_cast<uint64_t>(*at);
        if (!field.always && value == 0) continue;
        append(out, "{}{}={}", first ? "" : ", ", field.name, shown(field, value, at));
        first = false;
    }
    append(out, "}}, {})", call.args[2]);
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

std::string perf_attributes(const PerfEventAttr &attr) {
    std::string config = attr.type == PERF_TYPE_HARDWARE   ? named(kHardware, attr.config)
                         : attr.type == PERF_TYPE_SOFTWARE ? named(kSoftware, attr.config)
                                                           : format("{:#x}", attr.config);
    std::string out = format("{{type={}, size={}, config={}", named(kTypes, attr.type), attr.size, config);
    if (attr.sample_period) append(out, ", {}={}", attr.bits & kPerfFreq ? "sample_freq" : "sample_period", attr.sample_period);
    if (attr.sample_type) append(out, ", sample_type={}", flag_names(attr.sample_type, kSampleTypes));
    if (attr.read_format) append(out, ", read_format={:#x}", attr.read_format);
    for (const FlagName &bit : kPerfBits)
        if (attr.bits & bit.value) append(out, ", {}=1", bit.name);
    if (attr.bits & kPerfPreciseIp) append(out, ", precise_ip={}", (attr.bits & kPerfPreciseIp) >> 15);
    if (attr.wakeup_events)
        append(out, ", {}={}", attr.bits & kPerfWatermark ? "wakeup_watermark" : "wakeup_events", attr.wakeup_events);
    if (attr.config1) append(out, ", config1={:#x}", attr.config1);
    if (attr.config2) append(out, ", config2={:#x}", attr.config2);
    if (attr.sample_regs_user) append(out, ", sample_regs_user={:#x}", attr.sample_regs_user);
    if (attr.sample_stack_user) append(out, ", sample_stack_user={}", attr.sample_stack_user);
    if (attr.bits & kPerfUseClockid)
        append(out, ", clockid={}", attr.clockid == 1 ? "CLOCK_MONOTONIC" : format("{}", attr.clockid));
    if (attr.sample_max_stack) append(out, ", sample_max_stack={}", attr.sample_max_stack);
    return out + "}";
}

std::string perf_call(const Call &call) {
    PerfEventAttr attr;
    const auto *given = reinterpret_cast<const std::byte *>(call.args[0]);
    if (given) { // the struct's own second word says how long it is
        uint32_t size = load<uint32_t>(given + 4);
        std::memcpy(&attr, given, std::min<size_t>(size < 8 ? 8 : size, sizeof attr));
    }
    constexpr FlagName kFlags[] = {
        {1, "PERF_FLAG_FD_NO_GROUP"}, {2, "PERF_FLAG_FD_OUTPUT"}, {4, "PERF_FLAG_PID_CGROUP"}, {8, "PERF_FLAG_FD_CLOEXEC"}};
    return format("perf_event_open({}, pid={}, cpu={}, group_fd={}, {})", perf_attributes(attr),
                  static_cast<int32_t>(call.args[1]), static_cast<int32_t>(call.args[2]), static_cast<int32_t>(call.args[3]),
                  flag_names(call.args[4], kFlags));
}

// ---- ioctl(2), mmap(2)

std::string ioctl_call(const Call &call) {
    struct Request {
        uint64_t number;
        std::string_view name;
    };
    constexpr Request kRequests[] = {
        {PERF_EVENT_IOC_ENABLE, "PERF_EVENT_IOC_ENABLE"},         {PERF_EVENT_IOC_DISABLE, "PERF_EVENT_IOC_DISABLE"},
        {PERF_EVENT_IOC_REFRESH, "PERF_EVENT_IOC_REFRESH"},       {PERF_EVENT_IOC_RESET, "PERF_EVENT_IOC_RESET"},
        {PERF_EVENT_IOC_PERIOD, "PERF_EVENT_IOC_PERIOD"},         {PERF_EVENT_IOC_SET_OUTPUT, "PERF_EVENT_IOC_SET_OUTPUT"},
        {PERF_EVENT_IOC_SET_FILTER, "PERF_EVENT_IOC_SET_FILTER"}, {PERF_EVENT_IOC_ID, "PERF_EVENT_IOC_ID"},
        {PERF_EVENT_IOC_SET_BPF, "PERF_EVENT_IOC_SET_BPF"},       {PERF_EVENT_IOC_PAUSE_OUTPUT, "PERF_EVENT_IOC_PAUSE_OUTPUT"},
        {PERF_EVENT_IOC_QUERY_BPF, "PERF_EVENT_IOC_QUERY_BPF"},
    };
    std::string name = format("{:#x}", call.args[1]);
    for (const Request &request : kRequests)
        if (request.number == call.args[1]) name = request.name;
    const bool by_pointer = call.args[1] == PERF_EVENT_IOC_ID || call.args[1] == PERF_EVENT_IOC_PERIOD ||
                            call.args[1] == PERF_EVENT_IOC_SET_FILTER || call.args[1] == PERF_EVENT_IOC_QUERY_BPF;
    std::string argument = by_pointer ? pointer(call.args[2]) : format("{}", static_cast<int64_t>(call.args[2]));
    return format("ioctl({}, {}, {})", static_cast<int32_t>(call.args[0]), name, argument);
}

std::string mmap_call(const Call &call) {
    constexpr FlagName kProtections[] = {{PROT_READ, "PROT_READ"}, {PROT_WRITE, "PROT_WRITE"}, {PROT_EXEC, "PROT_EXEC"}};
    constexpr FlagName kFlags[] = {{MAP_SHARED, "MAP_SHARED"},     {MAP_PRIVATE, "MAP_PRIVATE"},
                                   {MAP_FIXED, "MAP_FIXED"},       {MAP_ANONYMOUS, "MAP_ANONYMOUS"},
                                   {MAP_POPULATE, "MAP_POPULATE"}, {MAP_NORESERVE, "MAP_NORESERVE"},
                                   {MAP_LOCKED, "MAP_LOCKED"}};
    return format("mmap({}, {}, {}, {}, {}, {})", pointer(call.args[0]), call.args[1],
                  call.args[2] == 0 ? "PROT_NONE" : flag_names(call.args[2], kProtections), flag_names(call.args[3], kFlags),
                  static_cast<int32_t>(call.args[4]), call.args[5]);
}

} // namespace

bool is_narrated(const Call &call) {
    return call.number == __NR_bpf || call.number == __NR_perf_event_open || call.number == __NR_ioctl ||
           call.number == __NR_mmap;
}

std::string describe(const Call &call, long result) {
    if (!is_narrated(call)) return {};
    std::string out = call.number == __NR_bpf               ? bpf_call(call)
                      : call.number == __NR_perf_event_open ? perf_call(call)
                      : call.number == __NR_ioctl           ? ioctl_call(call)
                                                            : mmap_call(call);
    if (result < 0 && result > -4096) {
        const int os = static_cast<int>(-result);
        const char *sentence = strerrordesc_np(os);
        append(out, " = -1 {}{}", errno_name(os), sentence ? format(" ({})", sentence) : std::string());
    } else if (call.number == __NR_mmap) {
        append(out, " = {:#x}", static_cast<uint64_t>(result));
    } else {
        append(out, " = {}", result);
    }
    if (!call.why.empty()) append(out, "   # {}", call.why);
    return out;
}

} // namespace rawbpf::inline v0::sys
