// The ways to attach, and what only some objects need when they are loaded, as parts that a product chooses (RAWBPF_PARTS). A row
// refers to its function, so the linker takes the functions of the parts that were named and no others. Takes the place of
// link/ways.cpp, kernel/load_parts.cpp and object/struct_ops_part.cpp.
#include <iterator>

#include "runtime/base/fail.h"
#include "runtime/core/parts.h"
#include "runtime/kernel/kconfig.h"
#include "runtime/kernel/loading.h"

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
// Of these, what many a product has alone.
constexpr Way kCgroups[] = {
    {Attachment::cgroup, attach_cgroup},
};
constexpr Way kInterfaces[] = {
    {Attachment::xdp, attach_interface},
    {Attachment::tcx, attach_interface},
    {Attachment::tc, attach_interface},
    {Attachment::netkit, attach_interface},
};
constexpr Way kInfrared[] = {
    {Attachment::lirc, attach_lirc},
};

Result<std::unique_ptr<KernelSymbols>> make_kernel_symbols(const ObjectSpec &spec, const std::string &btf_path) {
    return std::make_unique<KernelSymbols>(spec, btf_path);
}

// What of the parts that were named has this; nullptr: none.
template <typename Function> Function named(Function rawbpf_part::*what) {
    for (const rawbpf_part *const *part = rawbpf_parts; *part; ++part)
        if ((*part)->*what) return (*part)->*what;
    return nullptr;
}

Unexpected lacks(std::string_view what, std::string_view part) {
    return Unexpected(make_error(Errc::unsupported, format("{}: this program was linked without the part for it", what),
                                 format("name &{} in RAWBPF_PARTS, or leave RAWBPF_PARTS out: then the program has all", part)));
}

} // namespace

Result<std::unique_ptr<KernelSymbols>> kernel_types_part(const ObjectSpec &spec, const std::string &btf_path) {
    if (const auto make = named(&rawbpf_part::kernel_types)) return make(spec, btf_path);
    return lacks("the kernel's types and symbols (CO-RE, kernel functions and variables, fentry)", "rawbpf_kernel_types");
}

Result<void> object::read_struct_ops_part(Image &image, ObjectSpec &spec) {
    if (const auto read = named(&rawbpf_part::read_struct_ops)) return read(image, spec);
    return lacks("struct_ops maps", "rawbpf_struct_ops");
}

Result<void> struct_ops_part(Loading &loading, std::vector<size_t> &chosen) {
    if (const auto prepare = named(&rawbpf_part::struct_ops)) return prepare(loading, chosen);
    return lacks("struct_ops maps", "rawbpf_struct_ops");
}

Result<std::vector<std::byte>> kernel_config_part(const ObjectSpec &spec) {
    if (const auto values = named(&rawbpf_part::kernel_config)) return values(spec);
    return lacks("variables of the kernel's configuration (.kconfig)", "rawbpf_kernel_config");
}

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
const rawbpf_part rawbpf_kprobes = {.ways = rawbpf::kKprobes, .count = std::size(rawbpf::kKprobes)};
const rawbpf_part rawbpf_uprobes = {.ways = rawbpf::kUprobes, .count = std::size(rawbpf::kUprobes)};
const rawbpf_part rawbpf_usdt = {.ways = rawbpf::kUsdt, .count = std::size(rawbpf::kUsdt)};
const rawbpf_part rawbpf_tracepoints = {.ways = rawbpf::kTracepoints, .count = std::size(rawbpf::kTracepoints)};
const rawbpf_part rawbpf_trampolines = {.ways = rawbpf::kTrampolines, .count = std::size(rawbpf::kTrampolines)};
const rawbpf_part rawbpf_iterators = {.ways = rawbpf::kIterators, .count = std::size(rawbpf::kIterators)};
const rawbpf_part rawbpf_perf_events = {.ways = rawbpf::kPerfEvents, .count = std::size(rawbpf::kPerfEvents)};
const rawbpf_part rawbpf_network = {.ways = rawbpf::kNetwork, .count = std::size(rawbpf::kNetwork)};
const rawbpf_part rawbpf_cgroups = {.ways = rawbpf::kCgroups, .count = std::size(rawbpf::kCgroups)};
const rawbpf_part rawbpf_interfaces = {.ways = rawbpf::kInterfaces, .count = std::size(rawbpf::kInterfaces)};
const rawbpf_part rawbpf_infrared = {.ways = rawbpf::kInfrared, .count = std::size(rawbpf::kInfrared)};
const rawbpf_part rawbpf_kernel_types = {.kernel_types = rawbpf::make_kernel_symbols};
const rawbpf_part rawbpf_struct_ops = {.kernel_types = rawbpf::make_kernel_symbols,
                                       .read_struct_ops = rawbpf::object::read_struct_ops,
                                       .struct_ops = rawbpf::prepare_struct_ops};
const rawbpf_part rawbpf_kernel_config = {.kernel_config = rawbpf::running_kconfig_values};
// NOLINTEND
