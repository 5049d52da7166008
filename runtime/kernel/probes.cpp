// Feature probes. A probe is a tiny map, program or a call with arguments that are wrong on purpose: the errno tells whether
// the kernel knew what was asked. Nothing stays behind; the observer sees the calls with "does this kernel have ...".
#include "runtime/kernel/probes.h"

#include <array>
#include <cerrno>
#include <optional>

#include <linux/bpf.h>

#include "runtime/base/fail.h"
#include "runtime/base/remembering.h"
#include "runtime/kernel/probe_helpers.h"
#include "runtime/kernel/probe_load.h"
#include "runtime/kernel/probe_maps.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/kernel_file.h"
#include "runtime/sys/perf.h"

namespace rawbpf::inline v0 {
namespace {

// Each says 0, or the errno that came instead.
template <class T> int errno_of(const Result<T> &result) { return result ? 0 : result.error().os; }

Result<Fd> one_element() { return sys::map_create(tiny_map(MapType::ARRAY, 4, 4, 1)); }

int probe_object_name() {
    sys::MapCreateAttr attr = tiny_map(MapType::ARRAY, 4, 4, 1);
    sys::legal_name("probe", attr.map_name);
    return errno_of(sys::map_create(attr));
}

int probe_global_data() {
    Result<Fd> map = sys::map_create(tiny_map(MapType::ARRAY, 4, 32, 1));
    if (!map) return map.error().os;
    const Insn insns[] = {{0x18, 1, BPF_PSEUDO_MAP_VALUE, 0, map->get()},
                          {0, 0, 0, 0, 16},
                          {0x7a, 1, 0, 0, 42}, // *(r1 + 0) = 42
                          {0xb7, 0, 0, 0, 0},  // r0 = 0
                          {0x95, 0, 0, 0, 0}}; // exit
    return try_load({.insns = insns}).os;
}

int probe_freeze() {
    Result<Fd> map = one_element();
    return map ? errno_of(sys::map_freeze(map->get())) : map.error().os;
}

int probe_batch() {
    Result<Fd> map = one_element();
    if (!map) return map.error().os;
    uint32_t key = 0, value = 0, position = 0;
    return errno_of(sys::map_lookup_batch(map->get(), nullptr, &position, &key, &value, 1));
}

// Where the stack of a function with 64 bytes of it lies, as seen from that of its caller, which has none: beside it, or
// elsewhere.
Probed probe_private_stack() {
    const Insn insns[] = {{0xbf, 1, 10, 0, 0}, // r1 = r10
                          {0x85, 0, BPF_PSEUDO_CALL, 0, 1},
                          {0x95, 0, 0, 0, 0},    // exit
                          {0x7a, 10, 0, -64, 0}, // *(r10 - 64) = 0
                          {0xbf, 0, 1, 0, 0},    // r0 = r1
                          {0x1f, 0, 10, 0, 0},   // r0 -= r10
                          {0x77, 0, 0, 0, 20},   // r0 >>= 20
                          {0x15, 0, 0, 1, 0},    // if r0 == 0: not 1
                          {0xb7, 0, 0, 0, 1},    // r0 = 1
                          {0x95, 0, 0, 0, 0}};   // exit
    const Attempt program = try_load({.type = ProgramType::RAW_TRACEPOINT, .insns = insns});
    if (!program.fd) return {support_from(program.os), errno_name(program.os)};
    sys::ProgTestRunAttr run;
    run.prog_fd = static_cast<uint32_t>(program.fd.get());
    if (Result<void> ran = sys::prog_test_run(run); !ran) return {Support::unasked, "the kernel doesn't run it on request"};
    return {run.retval == 0 ? Support::no : Support::yes};
}

// Callbacks run in programs that are compiled to machine code, and in no interpreted ones (kernel/bpf/verifier.c, "callbacks are
// not allowed in non-JITed programs"). Whether programs are compiled is asked of one: a kernel without net.core.bpf_jit_enable
// may have no compiler, or no way to do without.
Probed probe_callbacks(Probed helper) {
    if (helper.support != Support::yes) return helper;
    const Attempt program = try_load({.type = ProgramType::KPROBE});
    if (!program.fd) return helper;
    const Result<sys::ProgInfo> info = sys::prog_info(program.fd.get());
    if (!info || info->jited_prog_len != 0) return helper;
    return {Support::no, "programs are interpreted here (net.core.bpf_jit_enable), and callbacks are for compiled ones"};
}

Probed from_errno(int os) { return os == 0 ? Probed{Support::yes} : Probed{support_from(os), errno_name(os)}; }

Probed probe_kernel_btf() {
    constexpr const char *kPath = "/sys/kernel/btf/vmlinux";
    const Result<struct stat> file = sys::stat_file(kPath);
    if (file) return {Support::yes};
    if (file.error().os != ENOENT) return {Support::unasked, file.error().message()};
    std::string hidden = sys::hidden_below(kPath);
    return {hidden.empty() ? Support::no : Support::unasked, std::move(hidden)};
}

struct Entry {
    Feature feature;
    std::string_view name; ///< for messages, with the version
};
constexpr Entry kFeatures[kFeatureCount] = {
    {Feature::object_name, "names of maps and programs, 4.15"},
    {Feature::btf, "BTF, 4.18"},
    {Feature::global_data, "global data, 5.2"},
    {Feature::map_freeze, "freezing of maps, 5.2"},
    {Feature::batch, "batch commands, 5.6"},
    {Feature::ring_buffer, "ring buffers, 5.8"},
    {Feature::run_stats, "run-time statistics, 5.8"},
    {Feature::perf_link, "links to perf events, 5.15"},
    {Feature::probe_read_kernel, "bpf_probe_read_kernel(), 5.5"},
    {Feature::task_pt_regs, "bpf_task_pt_regs(), 5.15"},
    {Feature::cookie, "bpf_get_attach_cookie(), 5.15"},
    {Feature::bpf_loop, "bpf_loop(), 5.17"},
    {Feature::kernel_btf, "the kernel's own BTF (CONFIG_DEBUG_INFO_BTF), 5.4"},
    {Feature::uprobe_call, "uprobes without a trap (x86_64), 7.2"},
    {Feature::private_stack, "a stack for each CPU (x86_64), 6.13"},
};

Probed probe(Feature feature) {
    sys::Because why("a probe: does this kernel have it?");
    switch (feature) {
    case Feature::object_name: return from_errno(probe_object_name());
    case Feature::btf: return from_errno(errno_of(load_int_btf()));
    case Feature::global_data: return from_errno(probe_global_data());
    case Feature::map_freeze: return from_errno(probe_freeze());
    case Feature::batch: return from_errno(probe_batch());
    case Feature::ring_buffer: return probe_map_type(BPF_MAP_TYPE_RINGBUF);
    case Feature::run_stats: return from_errno(errno_of(sys::enable_stats(BPF_STATS_RUN_TIME)));
    case Feature::perf_link: return probe_attach_type(static_cast<uint32_t>(AttachType::PERF_EVENT));
    case Feature::probe_read_kernel: return probe_helper_in(BPF_PROG_TYPE_KPROBE, 113);
    case Feature::task_pt_regs: return probe_helper_in(BPF_PROG_TYPE_KPROBE, 175);
    case Feature::cookie: return probe_helper_in(BPF_PROG_TYPE_PERF_EVENT, 174);
    case Feature::bpf_loop: return probe_callbacks(probe_helper_in(BPF_PROG_TYPE_KPROBE, 181));
    case Feature::uprobe_call: return {sys::has_uprobe_call() ? Support::yes : Support::no};
    case Feature::private_stack: return probe_private_stack();
    case Feature::kernel_btf: return probe_kernel_btf();
    }
    return {};
}

std::array<std::optional<Probed>, kFeatureCount> answers;

} // namespace

Probed probe_feature(Feature feature) {
    const Remembering lock;
    std::optional<Probed> &answer = answers[static_cast<size_t>(feature)];
    if (!answer || answer->support == Support::unasked) answer = probe(feature);
    return *answer;
}

bool has_feature(Feature feature) { return probe_feature(feature).support == Support::yes; }

std::optional<bool> known_feature(Feature feature) {
    const Remembering lock;
    const std::optional<Probed> &answer = answers[static_cast<size_t>(feature)];
    if (!answer) return std::nullopt;
    return answer->support == Support::yes;
}

void note_feature(Feature feature, bool there) {
    const Remembering lock;
    answers[static_cast<size_t>(feature)] = Probed{there ? Support::yes : Support::no};
}

std::string_view feature_name(Feature feature) {
    for (const Entry &entry : kFeatures)
        if (entry.feature == feature) return entry.name;
    return "an unknown feature";
}

Result<void> need(Feature feature) {
    const Probed there = probe_feature(feature);
    if (there.support == Support::yes) return {};
    if (there.support == Support::no)
        return fail(Errc::unsupported, "needs {}{}{}", feature_name(feature), there.detail.empty() ? "" : ": ", there.detail);
    return fail(Errc::unsupported, "needs {}, and rawbpf couldn't find out whether this kernel has that: {}",
                feature_name(feature), there.detail.empty() ? "no answer" : there.detail);
}

void forget_features() {
    const Remembering lock;
    answers.fill({});
    forget_map_types();
    forget_attach_types();
    forget_helpers();
}

} // namespace rawbpf::inline v0
