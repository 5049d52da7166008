// A link as one phrase, whatever its type:
//
//      raw_tp sched_process_exec      fentry vfs_read        xdp on eth0           uprobe /usr/bin/x+0x1139
//      cgroup_skb on /sys/fs/cgroup   iter task              tracepoint sys_exit   kprobe.multi: 12 functions
//
// The kernel says numbers: of interfaces (their names are those of our network namespace), of cgroups (the inode of their
// directory), of functions (type ids or addresses).
#include "programs/running/rows.h"

#include <algorithm>

#include "asm/kinds.h"
#include "runtime/base/fail.h"
#include "runtime/symbols/kallsyms.h"
#include "runtime/sys/file.h"
#include "runtime/sys/mounts.h"
#include "runtime/sys/net.h"

namespace rawbpf::inline v0::running {
namespace {

constexpr size_t kMostCgroups = 20'000;

/// The directory of a cgroup (v2), whose inode is its id; empty: there is none that we see.
std::string cgroup_path(uint64_t id) {
    for (const std::string &root : sys::mount_points("cgroup2")) {
        std::vector<std::string> waiting{root};
        for (size_t i = 0; i < waiting.size() && i < kMostCgroups; ++i) {
            const Result<struct stat> st = sys::stat_file(waiting[i]);
            if (!st || !S_ISDIR(st->st_mode)) continue;
            if (st->st_ino == id) return waiting[i];
            if (st->st_nlink <= 2) continue; // no cgroup below
            for (const std::string &name : sys::list_directory(waiting[i]).value_or(std::vector<std::string>()))
                if (name.find('.') == std::string::npos || name.ends_with(".slice") || name.ends_with(".scope") ||
                    name.ends_with(".service") || name.ends_with(".mount") || name.ends_with(".socket"))
                    waiting.push_back(format("{}/{}", waiting[i], name));
        }
    }
    return {};
}

std::string interface_name(uint32_t index) {
    return sys::interface_name(index).value_or(std::string()); // of another namespace, or gone
}
std::string on_interface(const LinkRow &row, uint32_t index) {
    if (index == 0) return "on an interface that has gone";
    return row.target.empty() ? format("on interface {}", index) : format("on {}", row.target);
}

std::string_view tracing_word(uint32_t attach_type) {
    switch (AttachType{attach_type}) {
    case AttachType::TRACE_RAW_TP: return "tp_btf";
    case AttachType::TRACE_FENTRY: return "fentry";
    case AttachType::TRACE_FEXIT: return "fexit";
    case AttachType::MODIFY_RETURN: return "fmod_ret";
    case AttachType::LSM_MAC: return "lsm";
    default: return {};
    }
}

std::string netfilter_words(const sys::LinkInfoTail::Netfilter &at) {
    constexpr std::string_view kHooks[] = {"prerouting", "input", "forward", "output", "postrouting"};
    const std::string family = at.pf == 2 ? "ipv4" : at.pf == 10 ? "ipv6" : format("family {}", at.pf);
    const std::string hook = at.hooknum < std::size(kHooks) ? std::string(kHooks[at.hooknum]) : format("hook {}", at.hooknum);
    return format("netfilter {} {}, priority {}", family, hook, at.priority);
}

std::string perf_words(const sys::LinkDetails &details) {
    const auto &event = details.info.perf_event;
    switch (sys::PerfLink{event.type}) {
    case sys::PerfLink::uprobe: return format("uprobe {}+{:#x}", details.name, event.uprobe.offset);
    case sys::PerfLink::uretprobe: return format("uretprobe {}+{:#x}", details.name, event.uprobe.offset);
    case sys::PerfLink::kprobe: return format("kprobe {}+{:#x}", details.name, event.kprobe.offset);
    case sys::PerfLink::kretprobe: return format("kretprobe {}", details.name);
    case sys::PerfLink::tracepoint: return format("tracepoint {}", details.name);
    case sys::PerfLink::event: return format("perf event, type {}, config {:#x}", event.event.type, event.event.config);
    case sys::PerfLink::unspec: break;
    }
    return "perf event"; // before 6.6 the kernel says no more
}

std::string iterator_words(const sys::LinkDetails &details, Names &names) {
    const auto &iter = details.info.iter;
    std::string out = format("iter {}", details.name);
    if (details.name.find("map") != std::string::npos && iter.map_id != 0)
        append(out, " of map {}", names.labelled_map(iter.map_id));
    if (details.name.starts_with("task") && (iter.task.tid != 0 || iter.task.pid != 0))
        append(out, " of {} {}", iter.task.tid ? "thread" : "process", iter.task.tid ? iter.task.tid : iter.task.pid);
    return out;
}

/// 0: it has gone.
uint32_t program_type(uint32_t id) {
    const Result<Fd> program = sys::fd_by_id(sys::ObjectKind::program, id);
    if (!program) return 0;
    const Result<sys::ProgInfo> info = sys::prog_info(program->get());
    return info ? info->type : 0;
}

void name_functions(LinkRow &row) {
    std::vector<uint64_t> addresses;
    for (uint64_t address : row.details.places)
        if (address != 0) addresses.push_back(address);
    if (addresses.empty()) return;
    const auto named = symbols::name_kernel_addresses(addresses);
    if (!named) return;
    for (uint64_t address : row.details.places) {
        const auto at = std::lower_bound(named->begin(), named->end(), address,
                                         [](const symbols::KernelName &name, uint64_t value) { return name.address < value; });
        row.places.push_back(at != named->end() && at->address == address ? at->symbol : std::string());
    }
}

} // namespace

Result<LinkRow> link_row(int fd, Names &names) {
    LinkRow row;
    row.details = TRY_IN(sys::link_details(fd), "asking what the link is");
    const sys::LinkInfoTail &info = row.details.info;
    if (info.prog_id != 0) row.program = names.program(info.prog_id);
    switch (LinkType{info.type}) {
    case LinkType::RAW_TRACEPOINT: // tp_btf programs have the same links
        row.program_type = program_type(info.prog_id);
        row.what = format("{} {}", row.program_type == static_cast<uint32_t>(ProgramType::TRACING) ? "tp_btf" : "raw_tp",
                          row.details.name);
        break;
    case LinkType::TRACING: {
        row.program_type = program_type(info.prog_id);
        const bool extension = row.program_type == static_cast<uint32_t>(ProgramType::EXT);
        if (extension) { // its target is a function of another program
            if (const Result<Fd> target = sys::fd_by_id(sys::ObjectKind::program, info.tracing.target_obj_id))
                if (const Result<sys::ProgInfo> asked = sys::prog_info(target->get()))
                    row.target = names.type(asked->btf_id, info.tracing.target_btf_id);
        } else if (info.tracing.target_btf_id != 0) {
            row.target = names.type(info.tracing.target_obj_id, info.tracing.target_btf_id);
        }
        const std::string_view word = extension ? "freplace" : tracing_word(info.tracing.attach_type);
        row.what = format("{} {}", word.empty() ? attach_type_word(info.tracing.attach_type) : std::string(word), row.target);
        break;
    }
    case LinkType::CGROUP:
        row.target = cgroup_path(info.cgroup.cgroup_id);
        row.what = format("{} on {}", attach_type_word(info.cgroup.attach_type),
                          row.target.empty() ? format("cgroup {}", info.cgroup.cgroup_id) : row.target);
        break;
    case LinkType::ITER: row.what = iterator_words(row.details, names); break;
    case LinkType::NETNS:
        row.what = format("{} in network namespace {}", attach_type_word(info.netns.attach_type), info.netns.netns_ino);
        break;
    case LinkType::XDP:
        row.target = interface_name(info.interface.ifindex);
        row.what = format("xdp {}", on_interface(row, info.interface.ifindex));
        break;
    case LinkType::TCX:
    case LinkType::NETKIT:
        row.target = interface_name(info.interface.ifindex);
        row.what = format("{} {}", attach_type_word(info.interface.attach_type), on_interface(row, info.interface.ifindex));
        break;
    case LinkType::PERF_EVENT: row.what = perf_words(row.details); break;
    case LinkType::KPROBE_MULTI:
        name_functions(row);
        row.what = format("{}.multi: {} function{}", info.kprobe_multi.flags & 1 ? "kretprobe" : "kprobe",
                          info.kprobe_multi.count, info.kprobe_multi.count == 1 ? "" : "s");
        if (info.kprobe_multi.count == 1 && !row.places.empty() && !row.places[0].empty())
            row.what = format("{} {}", info.kprobe_multi.flags & 1 ? "kretprobe.multi" : "kprobe.multi", row.places[0]);
        break;
    case LinkType::UPROBE_MULTI:
        row.what = format("{}.multi {}: {} place{}", info.uprobe_multi.flags & 1 ? "uretprobe" : "uprobe", row.details.name,
                          info.uprobe_multi.count, info.uprobe_multi.count == 1 ? "" : "s");
        break;
    case LinkType::STRUCT_OPS: row.what = format("struct_ops map {}", names.labelled_map(info.map.map_id)); break;
    case LinkType::NETFILTER: row.what = netfilter_words(info.netfilter); break;
    case LinkType::SOCKMAP:
        row.what = format("{} of map {}", attach_type_word(info.map.attach_type), names.labelled_map(info.map.map_id));
        break;
    default: row.what = link_type_word(info.type);
    }
    return row;
}

} // namespace rawbpf::inline v0::running
