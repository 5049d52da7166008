// Rows as JSON lines. Names of fields are bpftool's where they mean the same ("bytes_xlated", "map_ids", "pids"), so that scripts
// need few changes; "type" says what the line is, as everywhere here, and the object's own type is prog_type, map_type,
// link_type. Fields are never left out: what isn't known is null. Cookies and addresses may pass 2^53 and are strings.
#include "programs/running/rows.h"

#include "asm/kinds.h"
#include "asm/print.h"
#include "programs/render/json_line.h"
#include "runtime/base/format.h"
#include "runtime/base/hex.h"
#include "runtime/sys/clock.h"

namespace rawbpf::inline v0::running {
namespace {

using render::JsonLine;
using render::JsonObject;
using sys::ObjectKind;

void append_ids(std::string &out, const std::vector<uint32_t> &ids) {
    out += '[';
    for (size_t i = 0; i < ids.size(); ++i) append(out, "{}{}", i ? "," : "", ids[i]);
    out += ']';
}

void number_or_null(JsonObject &line, std::string_view name, const std::optional<uint64_t> &number) {
    number ? line.number(name, *number) : line.null(name);
}
void id_or_null(JsonObject &line, std::string_view name, uint32_t id) { id ? line.number(name, id) : line.null(name); }

} // namespace

void append_holders_json(JsonObject &line, const Around &around, ObjectKind kind, uint32_t id) {
    std::string &pinned = line.raw("pinned");
    pinned += '[';
    bool first = true;
    for (const std::string &path : around.pins.of(kind, id)) {
        if (!std::exchange(first, false)) pinned += ',';
        render::append_json(pinned, path);
    }
    pinned += ']';
    std::string &pids = line.raw("pids");
    pids += '[';
    first = true;
    for (const Holder &holder : around.holders.of(kind, id)) {
        if (!std::exchange(first, false)) pids += ',';
        JsonObject one(pids);
        one.number("pid", static_cast<uint64_t>(holder.pid)).text("comm", holder.comm).text_or_null("via", holder.via);
    }
    pids += ']';
}

void append_json(std::string &out, const ProgramRow &row, Around &around) {
    const sys::ProgInfo &info = row.info;
    JsonLine line(out, "prog");
    line.number("id", info.id).text("prog_type", program_type_word(info.type)).text_or_null("name", row.name);
    line.text("tag", hex_text(std::as_bytes(std::span(info.tag))))
        .truth("orphaned", row.orphaned)
        .truth("gpl_compatible", info.gpl_compatible & 1);
    line.number("run_time_ns", info.run_time_ns).number("run_cnt", info.run_cnt);
    line.number("recursion_misses", info.recursion_misses);
    if (info.load_time != 0) {
        line.number("loaded_at", (sys::realtime_ns() - sys::boottime_ns() + info.load_time) / 1'000'000'000);
        line.number("uid", info.created_by_uid);
    } else {
        line.null("loaded_at").null("uid");
    }
    line.number("bytes_xlated", info.xlated_prog_len).truth("jited", info.jited_prog_len != 0);
    line.number("bytes_jited", info.jited_prog_len);
    number_or_null(line, "bytes_memlock", row.memlock);
    id_or_null(line, "verified_insns", info.verified_insns);
    append_ids(line.raw("map_ids"), row.maps);
    id_or_null(line, "btf_id", info.btf_id);
    id_or_null(line, "attach_btf_obj_id", info.attach_btf_obj_id);
    id_or_null(line, "attach_btf_id", info.attach_btf_id);
    line.text_or_null("attach_btf_name", row.target);
    id_or_null(line, "ifindex", info.ifindex);
    append_holders_json(line, around, ObjectKind::program, info.id);
}

void append_json(std::string &out, const MapRow &row, Around &around) {
    const sys::MapInfo &info = row.info;
    JsonLine line(out, "map");
    line.number("id", info.id).text("map_type", map_kind_name(info.type)).text_or_null("name", row.name);
    line.number("flags", info.map_flags).number("bytes_key", info.key_size).number("bytes_value", info.value_size);
    line.number("max_entries", info.max_entries);
    number_or_null(line, "bytes_memlock", row.memlock);
    row.owner_type ? line.text("owner_prog_type", program_type_word(static_cast<uint32_t>(*row.owner_type)))
                   : line.null("owner_prog_type");
    row.owner_jited ? line.truth("owner_jited", *row.owner_jited != 0) : line.null("owner_jited");
    line.number("frozen", row.frozen);
    line.hex("map_extra", info.map_extra);
    id_or_null(line, "btf_id", info.btf_id);
    id_or_null(line, "btf_key_type_id", info.btf_key_type_id);
    id_or_null(line, "btf_value_type_id", info.btf_value_type_id);
    id_or_null(line, "btf_vmlinux_id", info.btf_vmlinux_id);
    id_or_null(line, "ifindex", info.ifindex);
    append_holders_json(line, around, ObjectKind::map, info.id);
}

namespace {

void append_functions(JsonObject &line, const LinkRow &row) {
    std::string &out = line.raw("funcs");
    out += '[';
    for (size_t i = 0; i < row.details.places.size(); ++i) {
        if (i != 0) out += ',';
        JsonObject one(out);
        const bool kernel = LinkType{row.details.info.type} == LinkType::KPROBE_MULTI;
        one.hex(kernel ? "addr" : "offset", row.details.places[i]);
        if (kernel)
            one.text_or_null("func", i < row.places.size() ? std::string_view(row.places[i]) : std::string_view());
        else
            one.hex("ref_ctr_offset", i < row.details.semaphores.size() ? row.details.semaphores[i] : 0);
        one.hex("cookie", i < row.details.cookies.size() ? row.details.cookies[i] : 0);
    }
    out += ']';
}

void append_perf_event(JsonObject &line, const sys::LinkDetails &details) {
    const sys::LinkInfoTail::PerfEvent &event = details.info.perf_event;
    const auto kind = sys::PerfLink{event.type};
    switch (kind) {
    case sys::PerfLink::uprobe:
    case sys::PerfLink::uretprobe:
        line.truth("retprobe", kind == sys::PerfLink::uretprobe).text("file", details.name).number("offset", event.uprobe.offset);
        line.hex("cookie", event.uprobe.cookie).hex("ref_ctr_offset", event.uprobe.ref_ctr_offset);
        break;
    case sys::PerfLink::kprobe:
    case sys::PerfLink::kretprobe:
        line.truth("retprobe", kind == sys::PerfLink::kretprobe).hex("addr", event.kprobe.addr).text("func", details.name);
        line.number("offset", event.kprobe.offset).number("missed", event.kprobe.missed).hex("cookie", event.kprobe.cookie);
        break;
    case sys::PerfLink::tracepoint: line.text("tracepoint", details.name).hex("cookie", event.tracepoint.cookie); break;
    case sys::PerfLink::event:
        line.number("event_type", event.event.type).hex("event_config", event.event.config).hex("cookie", event.event.cookie);
        break;
    case sys::PerfLink::unspec: break;
    }
}

void append_tail(JsonObject &line, const LinkRow &row) {
    const sys::LinkInfoTail &info = row.details.info;
    switch (LinkType{info.type}) {
    case LinkType::RAW_TRACEPOINT: line.text("tp_name", row.details.name).hex("cookie", info.raw_tracepoint.cookie); break;
    case LinkType::TRACING:
        line.text("prog_type", program_type_word(row.program_type))
            .text("attach_type", attach_type_word(info.tracing.attach_type));
        id_or_null(line, "target_obj_id", info.tracing.target_obj_id);
        id_or_null(line, "target_btf_id", info.tracing.target_btf_id);
        line.text_or_null("target_name", row.target).hex("cookie", info.tracing.cookie);
        break;
    case LinkType::CGROUP:
        line.number("cgroup_id", info.cgroup.cgroup_id).text("attach_type", attach_type_word(info.cgroup.attach_type));
        line.text_or_null("cgroup", row.target);
        break;
    case LinkType::ITER:
        line.text("target_name", row.details.name);
        id_or_null(line, "map_id", info.iter.map_id);
        break;
    case LinkType::NETNS:
        line.number("netns_ino", info.netns.netns_ino).text("attach_type", attach_type_word(info.netns.attach_type));
        break;
    case LinkType::XDP:
    case LinkType::TCX:
    case LinkType::NETKIT:
        line.text_or_null("devname", row.target).number("ifindex", info.interface.ifindex);
        if (LinkType{info.type} != LinkType::XDP) line.text("attach_type", attach_type_word(info.interface.attach_type));
        break;
    case LinkType::PERF_EVENT: append_perf_event(line, row.details); break;
    case LinkType::KPROBE_MULTI:
        line.truth("retprobe", info.kprobe_multi.flags & 1).number("func_cnt", info.kprobe_multi.count);
        line.number("missed", info.kprobe_multi.missed);
        append_functions(line, row);
        break;
    case LinkType::UPROBE_MULTI:
        line.truth("retprobe", info.uprobe_multi.flags & 1).text("path", row.details.name);
        line.number("func_cnt", info.uprobe_multi.count);
        line.number("pid", info.uprobe_multi.pid); // 0: all processes
        append_functions(line, row);
        break;
    case LinkType::STRUCT_OPS: line.number("map_id", info.map.map_id); break;
    case LinkType::SOCKMAP:
        line.number("map_id", info.map.map_id).text("attach_type", attach_type_word(info.map.attach_type));
        break;
    case LinkType::NETFILTER:
        line.number("pf", info.netfilter.pf).number("hook", info.netfilter.hooknum);
        line.signed_number("prio", info.netfilter.priority).number("flags", info.netfilter.flags);
        break;
    default: break;
    }
}

} // namespace

void append_json(std::string &out, const LinkRow &row, Around &around) {
    const sys::LinkInfoTail &info = row.details.info;
    JsonLine line(out, "link");
    line.number("id", info.id).text("link_type", link_type_word(info.type));
    id_or_null(line, "prog_id", info.prog_id);
    line.text_or_null("prog_name", row.program).text("what", row.what);
    append_tail(line, row);
    append_holders_json(line, around, ObjectKind::link, info.id);
}

void append_json(std::string &out, const BtfRow &row, Around &around) {
    JsonLine line(out, "btf");
    line.number("id", row.info.id).text_or_null("name", row.name).number("size", row.info.btf_size);
    line.truth("kernel", row.info.kernel_btf != 0);
    append_ids(line.raw("prog_ids"), row.programs);
    append_ids(line.raw("map_ids"), row.maps);
    append_holders_json(line, around, ObjectKind::btf, row.info.id);
}

} // namespace rawbpf::inline v0::running
