// Interfaces, network namespaces, cgroups, sockets and their maps.
//
//      xdp                  BPF_LINK_CREATE (5.9)          an interface
//      tcx, tc              BPF_LINK_CREATE (6.6)          an interface and a way; before: a clsact filter by netlink
//      netkit               BPF_LINK_CREATE (6.7)          a netkit device
//      cgroup/...           BPF_LINK_CREATE (5.7)          a directory of cgroup v2; always as one of several (BPF_F_ALLOW_MULTI)
//      sk_lookup, flow_dissector  BPF_LINK_CREATE (5.8)    a network namespace
//      sk_msg, sk_skb       BPF_LINK_CREATE (6.10)         a SOCKMAP; before: BPF_PROG_ATTACH
//      netfilter            BPF_LINK_CREATE (6.4)          protocol family, hook, priority
//      lirc_mode2           BPF_PROG_ATTACH                an infrared device
//      socket, sk_reuseport setsockopt                     a socket
//
// What isn't a link is undone by a call when the Link is dropped, and says so in its notes, because kill -9 leaves it.
#include <cerrno>

#include <sys/socket.h>

#include "runtime/base/fail.h"
#include "runtime/link/attaching.h"
#include "runtime/link/clsact.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/facts.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/net.h"
#include "runtime/sys/uapi.h"

#ifndef SO_DETACH_REUSEPORT_BPF
#define SO_DETACH_REUSEPORT_BPF 68 // 5.3
#endif

namespace rawbpf::inline v0 {
namespace {

Unexpected missing(const Attaching &a, std::string_view hint) {
    return Unexpected(
        make_error(Errc::invalid_argument,
                   format("section {} needs {}, and none was given", a.program.section, attachment_needs(a.kind.attachment)),
                   std::string(hint)));
}

std::string interface_called(uint32_t index) {
    Result<std::string> name = sys::interface_name(index);
    return name ? *name : format("number {}", index);
}

Unexpected explain_interface(const Attaching &a, Error error) {
    // XDP says EINVAL of an interface that isn't there, the others ENODEV.
    if (Result<std::string> name = sys::interface_name(a.options.interface); !name && name.error().kind == Errc::not_found)
        return Unexpected(in_context(std::move(name).error(), a.what()));
    switch (error.os) {
    case EBUSY:
        error.hint =
            "another program is attached there already, without a link; XDP takes one program for each interface and mode";
        break;
    case ENXIO:
        if (a.kind.attachment == Attachment::netkit) error.hint = "that isn't a netkit device, or it is the peer of one";
        break;
    case EEXIST: error.hint = "this program is attached there already, or another mode of XDP is in use"; break;
    case EOPNOTSUPP:
        error.kind = Errc::unsupported;
        error.hint = "the interface's driver can't do it in this mode; XDP_FLAGS_SKB_MODE works with every driver";
        break;
    case EINVAL:
        error.hint =
            "the interface is set in a way that forbids it (an MTU too large for XDP without frags, LRO), or its driver does";
        break;
    case EPERM:
        error.kind = Errc::permission;
        error.hint = sys::refusal_hint({sys::Capability::bpf, sys::Capability::net_admin},
                                       "a network namespace of another user namespace");
        break;
    default: break;
    }
    return Unexpected(in_context(std::move(error), format("{} on {}", a.what(), interface_called(a.options.interface))));
}

// SCHED_CLS programs run as tcx whatever they were compiled as.
bool goes_out(const Attaching &a) {
    return a.kind.attachment == Attachment::tcx ? a.program.expected_attach_type == uapi::BPF_TCX_EGRESS : a.options.egress;
}

Result<Link> by_filter(const Attaching &a) {
    const bool egress = goes_out(a);
    ClsactFilter filter = TRY(add_clsact_filter(a.options.interface, egress, a.program_fd(), a.program.name));
    Link link;
    link.undo_by([filter] { return remove_clsact_filter(filter); });
    link.note(format("{}: this kernel has no tcx (6.6), so rawbpf made a tc filter. If the process is killed, the filter stays: "
                     "tc filter show dev {} {}",
                     a.what(), interface_called(a.options.interface), egress ? "egress" : "ingress"));
    return link;
}

// How to undo a BPF_PROG_ATTACH; the target is kept by a descriptor of our own.
Result<Link> by_prog_attach(const Attaching &a, int target, std::string_view since) {
    auto held = std::make_shared<Fd>(TRY(sys::duplicate(target)));
    auto program = std::make_shared<Fd>(TRY(sys::duplicate(a.program_fd())));
    sys::ProgAttachAttr attr;
    attr.target_fd = static_cast<uint32_t>(held->get());
    attr.attach_bpf_fd = static_cast<uint32_t>(program->get());
    attr.attach_type = a.program.expected_attach_type;
    {
        sys::Because why("attached without a link: rawbpf must detach it by a call");
        TRY_IN(sys::prog_attach(attr), "{}", a.what());
    }
    Link link;
    link.undo_by([held, program, attr] { return sys::prog_detach(attr); });
    link.note(format("{}: attached without a link{}; if the process is killed, the program stays attached", a.what(), since));
    return link;
}

} // namespace

Result<Link> attach_interface(const Attaching &a) {
    if (a.options.interface == 0) return missing(a, "give one: lo, eth0 ...");
    sys::LinkCreateAttr attr = link_attr(a);
    attr.target_fd = a.options.interface;
    attr.flags = a.options.flags;
    const bool tc = a.kind.attachment == Attachment::tc || a.kind.attachment == Attachment::tcx;
    if (tc) attr.attach_type = goes_out(a) ? uapi::BPF_TCX_EGRESS : uapi::BPF_TCX_INGRESS;
    sys::Because why("run this program on the interface's packets");
    Result<Fd> made = sys::link_create(attr);
    if (!made) {
        if (tc && made.error().os == EINVAL && probe_attach_type(attr.attach_type).support == Support::no) return by_filter(a);
        return explain_interface(a, std::move(made).error());
    }
    Link link({}, std::move(*made));
    link.name(format("{}{} on {}", a.what(),
                     a.kind.attachment != Attachment::tc ? ""
                     : a.options.egress                  ? " egress"
                                                         : " ingress",
                     interface_called(a.options.interface)),
              1);
    return link;
}

Result<Link> attach_cgroup(const Attaching &a) {
    if (a.options.target_fd < 0) return missing(a, "give a directory below the mount of cgroup2: /sys/fs/cgroup/...");
    sys::LinkCreateAttr attr = link_attr(a);
    attr.target_fd = static_cast<uint32_t>(a.options.target_fd);
    attr.flags = a.options.flags;
    sys::Because why("run this program for everything in the cgroup and below");
    Result<Fd> link = sys::link_create(attr);
    if (link) return Link({}, std::move(*link));
    Error error = std::move(link).error();
    if (error.os == EBADF || error.os == EINVAL)
        error.hint = "it must be an open directory of cgroup v2, and the kernel must know this hook";
    if (error.os == EPERM) {
        error.kind = Errc::permission;
        error.hint = sys::refusal_hint({sys::Capability::bpf, sys::Capability::net_admin},
                                       "a program of a parent cgroup allows no other programs below it");
    }
    return Unexpected(in_context(std::move(error), a.what()));
}

Result<Link> attach_network_namespace(const Attaching &a) {
    if (a.options.target_fd < 0)
        return missing(a, "give one: /proc/self/ns/net is that of the process, /run/netns/NAME those of ip netns");
    sys::LinkCreateAttr attr = link_attr(a);
    attr.target_fd = static_cast<uint32_t>(a.options.target_fd);
    sys::Because why("run this program for the whole network namespace");
    Result<Fd> link = sys::link_create(attr);
    if (link) return Link({}, std::move(*link));
    Error error = std::move(link).error();
    if (error.os == EEXIST || error.os == E2BIG)
        error.kind = Errc::busy, error.hint = "a program is attached already, and no more fit";
    if (error.os == EINVAL || error.os == EBADF) error.hint = "it must be an open file of a network namespace: /proc/PID/ns/net";
    return Unexpected(in_context(std::move(error), a.what()));
}

Result<Link> attach_socket_map(const Attaching &a) {
    int map = a.options.target_fd;
    if (map < 0) { // an object with one socket map leaves no doubt
        size_t count = 0;
        for (const Map &one : a.object.maps)
            if (one.type() == BPF_MAP_TYPE_SOCKMAP || one.type() == BPF_MAP_TYPE_SOCKHASH) map = one.fd(), ++count;
        if (count != 1) return missing(a, format("the object has {} of them", count));
    }
    if (a.program.section == "sk_skb" || a.program.section == "?sk_skb")
        return Unexpected(make_error(Errc::invalid_argument,
                                     "section sk_skb doesn't say which of its three attach types it is for",
                                     "name it sk_skb/stream_parser, sk_skb/stream_verdict or sk_skb/verdict"));
    sys::LinkCreateAttr attr = link_attr(a);
    attr.target_fd = static_cast<uint32_t>(map);
    sys::Because why("run this program for the sockets in the map");
    Result<Fd> link = sys::link_create(attr);
    if (link) return Link({}, std::move(*link));
    if (link.error().os == EINVAL && probe_link_type(static_cast<uint32_t>(LinkType::SOCKMAP)).support == Support::no)
        return by_prog_attach(a, map, " (before 6.10), so to the map");
    Error error = std::move(link).error();
    if (error.os == EBUSY) error.hint = "another program is attached to the map already";
    return Unexpected(in_context(std::move(error), a.what()));
}

Result<Link> attach_netfilter(const Attaching &a) {
    const AttachOptions::Netfilter &where = a.options.netfilter;
    if (where.family == 0) return missing(a, "NFPROTO_IPV4 (2) or NFPROTO_IPV6 (10), and NF_INET_LOCAL_IN (1) for instance");
    sys::LinkCreateAttr attr = link_attr(a);
    attr.attach_type = uapi::BPF_NETFILTER;
    attr.netfilter = {where.family, where.hook, where.priority, a.options.flags};
    sys::Because why("run this program at a hook of netfilter");
    Result<Fd> link = sys::link_create(attr);
    if (link)
        return Link(format("netfilter, family {} hook {} priority {}", where.family, where.hook, where.priority),
                    std::move(*link));
    Error error = std::move(link).error();
    if (error.os == EAFNOSUPPORT) error.kind = Errc::invalid_argument, error.hint = "only IPv4 and IPv6 have such hooks";
    if (error.os == EBUSY) error.hint = "another program has that priority at that hook";
    if (error.os == EINVAL && probe_attach_type(uapi::BPF_NETFILTER).support == Support::no)
        error.kind = Errc::unsupported, error.hint = "needs netfilter programs, 6.4";
    return Unexpected(in_context(std::move(error), a.what()));
}

Result<Link> attach_lirc(const Attaching &a) {
    if (a.options.target_fd < 0) return missing(a, "open one: /dev/lirc0");
    return by_prog_attach(a, a.options.target_fd, "");
}

Result<Link> attach_socket(const Attaching &a) {
    if (a.options.target_fd < 0) return missing(a, "its descriptor");
    const bool group = a.kind.attachment == Attachment::reuseport;
    auto held = std::make_shared<Fd>(TRY(sys::duplicate(a.options.target_fd)));
    sys::Because why("attach the program by setsockopt; the socket keeps it until it is closed");
    TRY_IN(sys::set_socket_option(held->get(), group ? SO_ATTACH_REUSEPORT_EBPF : SO_ATTACH_BPF, a.program_fd()), "{}", a.what());
    Link link;
    link.undo_by(
        [held, group] { return sys::set_socket_option(held->get(), group ? SO_DETACH_REUSEPORT_BPF : SO_DETACH_BPF, 0); });
    return link;
}

} // namespace rawbpf::inline v0
