// Section names as the loader sees them: targets, and what an attachment needs. The list itself is asm/section_names.cpp.
#include "runtime/object/sections.h"

namespace rawbpf::inline v0 {

namespace {

using T = SectionTarget;
using W = Attachment;

std::string_view without_mark(std::string_view section) {
    if (section.starts_with('?')) section.remove_prefix(1);
    return section;
}

} // namespace

std::string_view section_target(const SectionKind &kind, std::string_view section) {
    section = without_mark(section);
    return section.size() > kind.name.size() ? section.substr(kind.name.size() + 1) : std::string_view();
}

std::string_view attachment_needs(Attachment attachment) {
    switch (attachment) {
    case W::perf_event: return "a perf event";
    case W::xdp:
    case W::tcx:
    case W::tc: return "a network interface";
    case W::netkit: return "a netkit interface";
    case W::cgroup: return "a cgroup (v2)";
    case W::network_namespace: return "a network namespace";
    case W::socket_map: return "a SOCKMAP or SOCKHASH";
    case W::netfilter: return "a protocol family and a hook";
    case W::lirc: return "an infrared device";
    case W::socket: return "a socket";
    case W::reuseport: return "a socket with SO_REUSEPORT";
    case W::route: return "a route";
    case W::action: return "a tc filter";
    case W::map_entry: return "an entry of a map";
    case W::run: return "a call of BPF_PROG_TEST_RUN";
    default: return {};
    }
}

bool needs_attach_btf(const SectionKind &kind) {
    switch (kind.target) {
    case T::btf_function:
    case T::btf_tracepoint:
    case T::lsm_hook:
    case T::iterator:
    case T::program: return true;
    default: return false;
    }
}

} // namespace rawbpf::inline v0
