// Examines the kernel: features by the names that people know, then every type and helper by the kernel's names.
//
// All answers come from runtime/kernel/probes.h. A "no" to a feature has one fix: a newer kernel, or a configuration that has
// it. EPERM has two meanings: for a user without privileges it is "not known"; for a user who has them all, a policy forbids
// the feature.
#include "programs/doctor/doctor.h"
#include "programs/doctor/environment.h"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

#include "asm/helpers.h"
#include "asm/kinds.h"
#include "asm/print.h"
#include "runtime/base/format.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/probes.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/cpus.h"
#include "runtime/sys/hints.h"
#include "runtime/sys/privileges.h"

namespace rawbpf::inline v0::doctor {
namespace {

struct Who {
    bool tracing = false, network = false; ///< the capabilities that BPF programs of either kind need
    std::string no_btf = {};               ///< what would help, where the kernel's BTF can't be looked at
};

Who who_we_are() {
    Result<sys::Capabilities> caps = sys::capabilities();
    if (!caps) return {};
    auto has = [&](sys::Capability c) { return caps->has(c) || caps->has(sys::Capability::sys_admin); };
    bool bpf = has(sys::Capability::bpf);
    return {bpf && has(sys::Capability::perfmon), bpf && has(sys::Capability::net_admin)};
}

// A probe's answer as a check.
Check checked(const Who &who, std::string_view group, std::string name, const Probed &probed, std::string_view since,
              std::string_view config = {}) {
    Check check{group, std::move(name), {}, probed.detail, std::string(since)};
    switch (probed.support) {
    case Support::yes: check.ok = true; break;
    case Support::no:
        check.ok = false;
        if (probed.detail == "ENOSYS") { // of bpf(2) itself
            check.fix = sys::bpf_hint(sys::kAnyCommand, ENOSYS);
            break;
        }
        check.fix = since.empty() ? std::string("no released kernel is known to have it") : format("Linux {} or newer", since);
        if (!config.empty())
            check.fix += format(", with {}", config);
        else if (!since.empty())
            check.fix += ", configured with it";
        break;
    case Support::refused:
        if (who.tracing && who.network) {
            check.ok = false;
            check.detail = format("refused with all privileges ({}): a policy of this system", probed.detail);
            check.fix = "outside of the container or sandbox, or without the security module that forbids it";
        } else {
            check.detail = "can't be asked with these privileges";
            check.fix = "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, or root";
        }
        break;
    case Support::unasked:
        check.fix = !who.no_btf.empty()          ? who.no_btf
                    : who.tracing && who.network ? ""
                                                 : "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, or root";
        break;
    }
    return check;
}

struct FeatureRow {
    std::string_view name, since;
    enum Kind : uint8_t { feature, map, attach } kind;
    uint32_t number;
    std::string_view config = {};
};
constexpr uint32_t n(Feature f) { return static_cast<uint32_t>(f); }
using F = FeatureRow;
constexpr FeatureRow of_type(std::string_view name, MapType type, std::string_view config = {}) {
    const uint32_t number = static_cast<uint32_t>(type);
    return {name, map_type_row(number).since, F::map, number, config};
}
constexpr FeatureRow of_type(std::string_view name, AttachType type, std::string_view config = {}) {
    const uint32_t number = static_cast<uint32_t>(type);
    return {name, attach_type_row(number).since, F::attach, number, config};
}
constexpr FeatureRow kFeatureRows[] = {
    {"names of maps and programs", "4.15", F::feature, n(Feature::object_name)},
    {"loading BTF", "4.18", F::feature, n(Feature::btf)},
    {"global data", "5.2", F::feature, n(Feature::global_data)},
    {"freezing maps", "5.2", F::feature, n(Feature::map_freeze)},
    of_type("fentry and fexit", AttachType::TRACE_FENTRY, "CONFIG_DEBUG_INFO_BTF and CONFIG_FUNCTION_TRACER"),
    of_type("typed raw tracepoints", AttachType::TRACE_RAW_TP, "CONFIG_DEBUG_INFO_BTF"),
    {"bpf_probe_read_kernel()", "5.5", F::feature, n(Feature::probe_read_kernel),
     "CONFIG_BPF_EVENTS, and no lockdown=confidentiality"},
    {"batch commands", "5.6", F::feature, n(Feature::batch)},
    of_type("struct_ops", MapType::STRUCT_OPS, "CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF"),
    of_type("LSM programs", AttachType::LSM_MAC, "CONFIG_BPF_LSM"),
    {"ring buffers", "5.8", F::feature, n(Feature::ring_buffer)},
    of_type("iterators", AttachType::TRACE_ITER, "CONFIG_DEBUG_INFO_BTF"),
    {"run-time statistics", "5.8", F::feature, n(Feature::run_stats)},
    of_type("XDP links", AttachType::XDP),
    {"perf event links", "5.15", F::feature, n(Feature::perf_link), "CONFIG_PERF_EVENTS"},
    {"bpf_get_attach_cookie()", "5.15", F::feature, n(Feature::cookie)},
    {"bpf_task_pt_regs()", "5.15", F::feature, n(Feature::task_pt_regs)},
    {"bpf_loop()", "5.17", F::feature, n(Feature::bpf_loop)},
    of_type("kprobe.multi", AttachType::TRACE_KPROBE_MULTI, "CONFIG_FPROBE"),
    of_type("user ring buffers", MapType::USER_RINGBUF),
    of_type("netfilter programs", AttachType::NETFILTER, "CONFIG_NETFILTER_BPF_LINK"),
    of_type("uprobe.multi", AttachType::TRACE_UPROBE_MULTI, "CONFIG_UPROBES"),
    of_type("tcx", AttachType::TCX_INGRESS, "CONFIG_NET_XGRESS"),
    of_type("netkit", AttachType::NETKIT_PRIMARY, "CONFIG_NETKIT"),
    of_type("arenas", MapType::ARENA),
    of_type("kprobe sessions", AttachType::TRACE_KPROBE_SESSION, "CONFIG_FPROBE"),
    of_type("uprobe sessions", AttachType::TRACE_UPROBE_SESSION, "CONFIG_UPROBES"),
};

Probed ask(const FeatureRow &row) {
    switch (row.kind) {
    case FeatureRow::feature: return probe_feature(Feature{static_cast<uint8_t>(row.number)});
    case FeatureRow::map: return probe_map_type(row.number);
    case FeatureRow::attach: return probe_attach_type(row.number);
    }
    return {};
}

struct List {
    std::string_view group;
    uint32_t first, count;
    std::string (*word)(uint32_t);
    std::string_view (*since)(uint32_t);
    Probed (*probe)(uint32_t);
};
constexpr List kLists[] = {
    {"program types", 1, kProgramTypeCount, program_type_word, program_type_since, probe_program_type},
    {"map types", 1, kMapTypeCount, map_kind_name, map_type_since, probe_map_type},
    {"attach types", 0, kAttachTypeCount, attach_type_word, attach_type_since, probe_attach_type},
    {"link types", 1, kLinkTypeCount, link_type_word, link_type_since, probe_link_type},
};

void examine_kernel(std::vector<Check> &out) {
    Who who = who_we_are();
    // Held, or each name looked up would read it again.
    Result<std::shared_ptr<const btf::Btf>> btf = kernel_btf();
    if (!btf) who.no_btf = btf.error().hint;
    for (const FeatureRow &row : kFeatureRows)
        out.push_back(checked(who, "features", std::string(row.name), ask(row), row.since, row.config));
    for (const List &list : kLists)
        for (uint32_t i = list.first; i < list.count; ++i) {
            Check check = checked(who, list.group, list.word(i), list.probe(i), list.since(i));
            check.listed = true;
            out.push_back(std::move(check));
        }
    for (const HelperInfo &helper : all_helpers()) {
        Check check = checked(who, "helpers", format("bpf_{}", helper.name), probe_helper(helper.id),
                              format("{}.{}", helper.since.major, helper.since.minor));
        check.listed = true;
        out.push_back(std::move(check));
    }
}

} // namespace

std::vector<Check> examine() {
    std::vector<Check> out;
    examine_policies(out);
    examine_kernel(out);
    return out;
}

RunInfo describe_run() {
    RunInfo run;
    run.environment = read_environment;
    if (Result<sys::SystemName> name = sys::system_name()) {
        run.kernel = name->release;
        run.arch = name->machine == "aarch64" ? "arm64" : name->machine;
    }
    Result<std::vector<int>> cpus = online_cpus();
    run.cpus = cpus ? static_cast<uint32_t>(cpus->size()) : static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
    run.start_wall_ns = sys::realtime_ns();
    return run;
}

} // namespace rawbpf::inline v0::doctor
