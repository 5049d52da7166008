// The ways to attach, as parts that a product chooses (RAWBPF_PARTS). A row refers to its function, so the linker takes the
// functions of the parts that were named and no others. Takes the place of link/ways.cpp.
#include <iterator>

#include "runtime/base/fail.h"
#include "runtime/core/parts.h"

namespace rawbpf::inline v0 {
namespace {

using Way = rawbpf_part::Way;

constexpr Way kKprobes[] = {
    {Attachment::kprobe, attach_kprobe},
    {Attachment::kretprobe, attach_kprobe},
    {Attachment::ksyscall, attach_ksyscall},
    {Attachment::kretsyscall, attach_ksyscall},
    {Attachment::kprobe_multi, attach_kprobe_multi},
    {Attachment::kretprobe_multi, attach_kprobe_multi},
    {Attachment::kprobe_session, attach_kprobe_multi},
};
constexpr Way kUprobes[] = {
    {Attachment::uprobe, attach_uprobe},
    {Attachment::uretprobe, attach_uprobe},
    {Attachment::uprobe_multi, attach_uprobe_multi},
    {Attachment::uretprobe_multi, attach_uprobe_multi},
    {Attachment::uprobe_session, attach_uprobe_multi},
};
constexpr Way kUsdt[] = {
    {Attachment::usdt, attach_usdt},
};
constexpr Way kTracepoints[] = {
    {Attachment::tracepoint, attach_tracepoint},
    {Attachment::raw_tracepoint, attach_raw_tracepoint},
};
constexpr Way kTrampolines[] = {
    {Attachment::trampoline, attach_trampoline},
    {Attachment::replace, attach_trampoline},
    {Attachment::trampoline_multi, attach_trampoline_multi},
};
constexpr Way kIterators[] = {
    {Attachment::iterator, attach_iterator},
};
constexpr Way kPerfEvents[] = {
    {Attachment::perf_event, attach_perf_event},
};
constexpr Way kNetwork[] = {
    {Attachment::xdp, attach_interface},         {Attachment::tcx, attach_interface},
    {Attachment::tc, attach_interface},          {Attachment::netkit, attach_interface},
    {Attachment::cgroup, attach_cgroup},         {Attachment::network_namespace, attach_network_namespace},
    {Attachment::socket_map, attach_socket_map}, {Attachment::netfilter, attach_netfilter},
    {Attachment::socket, attach_socket},         {Attachment::reuseport, attach_socket},
};
constexpr Way kInfrared[] = {
    {Attachment::lirc, attach_lirc},
};

} // namespace

Result<Link> attach_by_kind(const Attaching &a) {
    for (const rawbpf_part *const *part = rawbpf_parts; *part; ++part)
        for (size_t i = 0; i < (*part)->count; ++i)
            if ((*part)->ways[i].kind == a.kind.attachment) return (*part)->ways[i].attach(a);
    return Unexpected(make_error(
        Errc::unsupported, format("section {}: this program was linked without the part that attaches it", a.program.section),
        "name the part in RAWBPF_PARTS, or leave RAWBPF_PARTS out: then the program has all"));
}

} // namespace rawbpf::inline v0

// NOLINTBEGIN: C's names
const rawbpf_part rawbpf_kprobes = {rawbpf::kKprobes, std::size(rawbpf::kKprobes)};
const rawbpf_part rawbpf_uprobes = {rawbpf::kUprobes, std::size(rawbpf::kUprobes)};
const rawbpf_part rawbpf_usdt = {rawbpf::kUsdt, std::size(rawbpf::kUsdt)};
const rawbpf_part rawbpf_tracepoints = {rawbpf::kTracepoints, std::size(rawbpf::kTracepoints)};
const rawbpf_part rawbpf_trampolines = {rawbpf::kTrampolines, std::size(rawbpf::kTrampolines)};
const rawbpf_part rawbpf_iterators = {rawbpf::kIterators, std::size(rawbpf::kIterators)};
const rawbpf_part rawbpf_perf_events = {rawbpf::kPerfEvents, std::size(rawbpf::kPerfEvents)};
const rawbpf_part rawbpf_network = {rawbpf::kNetwork, std::size(rawbpf::kNetwork)};
const rawbpf_part rawbpf_infrared = {rawbpf::kInfrared, std::size(rawbpf::kInfrared)};
// NOLINTEND
