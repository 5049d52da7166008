// Four ways to ask, because there are four ways to attach:
//
//      RTM_GETLINK      all interfaces, each with its XDP programs: driver, generic, offloaded
//      RTM_GETTFILTER   filters of an interface's ingress and egress (ffff:fff2, ffff:fff3), of which those of kind bpf have a program
//      BPF_PROG_QUERY   tcx and netkit of an interface; flow dissector and sk_lookup of a network namespace
//      links            netfilter; and which link a program of the others belongs to
//
// A message of netlink is a header, a struct, and attributes (length, type, value), which may hold attributes again.
#include "programs/running/network.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "asm/kinds.h"
#include "programs/render/columns.h"
#include "programs/render/json_line.h"
#include "programs/running/rows.h"
#include "runtime/base/bytes.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/each_object.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/net.h"

namespace rawbpf::inline v0::running {
namespace {

constexpr uint32_t kMostPrograms = 64; // of one place; the kernel takes as many (BPF_MPROG_MAX)

template <class Body> Result<std::vector<std::byte>> dump(uint16_t type, const Body &body) {
    std::vector<std::byte> message(NLMSG_ALIGN(sizeof(nlmsghdr)) + sizeof body);
    nlmsghdr header{};
    header.nlmsg_type = type;
    header.nlmsg_flags = NLM_F_DUMP;
    std::memcpy(message.data(), &header, sizeof header);
    std::memcpy(message.data() + NLMSG_ALIGN(sizeof(nlmsghdr)), &body, sizeof body);
    return sys::netlink(std::move(message));
}

/// Shows each attribute; stops at one that doesn't fit.
void each_attribute(Bytes bytes, const std::function<void(uint16_t type, Bytes value)> &see) {
    while (bytes.size() >= sizeof(nlattr)) {
        const auto head = load<nlattr>(bytes.data());
        if (head.nla_len < sizeof(nlattr) || head.nla_len > bytes.size()) return;
        see(head.nla_type & NLA_TYPE_MASK, bytes.subspan(sizeof(nlattr), head.nla_len - sizeof(nlattr)));
        bytes = bytes.subspan(std::min<size_t>(NLA_ALIGN(head.nla_len), bytes.size()));
    }
}
/// Shows each message's struct and attributes.
template <class Body> void each_message(Bytes bytes, const std::function<void(const Body &body, Bytes attributes)> &see) {
    constexpr size_t kHead = NLMSG_ALIGN(sizeof(nlmsghdr)), kBody = NLMSG_ALIGN(sizeof(Body));
    while (bytes.size() >= sizeof(nlmsghdr)) {
        const auto head = load<nlmsghdr>(bytes.data());
        if (head.nlmsg_len < sizeof(nlmsghdr) || head.nlmsg_len > bytes.size()) return;
        if (head.nlmsg_len >= kHead + kBody)
            see(load<Body>(bytes.data() + kHead), bytes.subspan(kHead + kBody, head.nlmsg_len - kHead - kBody));
        bytes = bytes.subspan(head.nlmsg_len);
    }
}

uint32_t number(Bytes value) {
    return value.size() < 4 ? value.empty() ? 0 : static_cast<uint32_t>(value[0]) : load<uint32_t>(value.data());
}
std::string text(Bytes value) {
    const char *begin = reinterpret_cast<const char *>(value.data());
    return {begin, strnlen(begin, value.size())};
}

class Search {
  public:
    explicit Search(Names &names) : names_(names) {}

    Result<NetworkRows> run() {
        find_links();
        const std::vector<std::byte> links = TRY_IN(dump(RTM_GETLINK, ifinfomsg{}), "listing interfaces");
        std::vector<std::pair<uint32_t, std::string>> interfaces;
        each_message<ifinfomsg>(links, [&](const ifinfomsg &body, Bytes attributes) {
            const auto index = static_cast<uint32_t>(body.ifi_index);
            std::string name;
            Bytes xdp_part;
            each_attribute(attributes, [&](uint16_t type, Bytes value) {
                if (type == IFLA_IFNAME) name = text(value);
                if (type == IFLA_XDP) xdp_part = value;
            });
            xdp(index, name, xdp_part);
            interfaces.emplace_back(index, std::move(name));
        });
        for (const auto &[index, name] : interfaces) {
            filters(index, name);
            for (const AttachPoint &place : kPlaces) query(place, index, index, name);
        }
        if (const Result<Fd> here = sys::open("/proc/self/ns/net", O_RDONLY))
            for (const AttachPoint &place : kNamespacePlaces) query(place, static_cast<uint32_t>(here->get()), 0, "");
        out_.rows.insert(out_.rows.end(), netfilter_.begin(), netfilter_.end());
        return std::move(out_);
    }

  private:
    struct AttachPoint {
        AttachType attach;
        std::string_view kind, where;
    };
    static constexpr AttachPoint kPlaces[] = {{AttachType::TCX_INGRESS, "tcx", "ingress"},
                                              {AttachType::TCX_EGRESS, "tcx", "egress"},
                                              {AttachType::NETKIT_PRIMARY, "netkit", "primary"},
                                              {AttachType::NETKIT_PEER, "netkit", "peer"}};
    static constexpr AttachPoint kNamespacePlaces[] = {{AttachType::FLOW_DISSECTOR, "flow_dissector", ""},
                                                       {AttachType::SK_LOOKUP, "sk_lookup", ""}};

    void add(NetworkRow row) {
        if (row.name.empty()) row.name = names_.program(row.program);
        out_.rows.push_back(std::move(row));
    }

    /// XDP's links, since netlink doesn't say them; and netfilter's, which are asked for in no other way.
    void find_links() {
        const Result<void> done = each_object(sys::ObjectKind::link, [&](uint32_t id, Fd fd) -> Result<bool> {
            const Result<LinkRow> row = link_row(fd.get(), names_);
            if (!row) return true; // it has gone
            const sys::LinkInfoTail &info = row->details.info;
            if (LinkType{info.type} == LinkType::XDP) xdp_links_.push_back({info.interface.ifindex, info.prog_id, id});
            if (LinkType{info.type} == LinkType::NETFILTER)
                netfilter_.push_back({.kind = "netfilter",
                                      .where = row->what.substr(std::min<size_t>(row->what.find(' ') + 1, row->what.size())),
                                      .program = info.prog_id,
                                      .name = row->program,
                                      .link = id});
            return true;
        });
        if (!done)
            out_.notes.push_back(
                format("links can't be listed, so netfilter's programs are missing: {}", done.error().message()));
    }

    void xdp(uint32_t index, const std::string &name, Bytes part) {
        uint32_t mode = 0, one = 0;
        std::array<uint32_t, 3> ids{}; // driver, generic, offloaded
        each_attribute(part, [&](uint16_t type, Bytes value) {
            if (type == IFLA_XDP_ATTACHED) mode = number(value);
            if (type == IFLA_XDP_PROG_ID) one = number(value);
            if (type == IFLA_XDP_DRV_PROG_ID) ids[0] = number(value);
            if (type == IFLA_XDP_SKB_PROG_ID) ids[1] = number(value);
            if (type == IFLA_XDP_HW_PROG_ID) ids[2] = number(value);
        });
        constexpr std::string_view kModes[] = {"driver", "generic", "offloaded"};
        if (mode == XDP_ATTACHED_NONE) return;
        if (mode != XDP_ATTACHED_MULTI && one != 0) { // before 4.20 there is no more than this
            ids = {};
            ids[mode == XDP_ATTACHED_DRV ? 0 : mode == XDP_ATTACHED_SKB ? 1 : 2] = one;
        }
        for (size_t i = 0; i < ids.size(); ++i) {
            if (ids[i] == 0) continue;
            NetworkRow row{.kind = "xdp", .device = name, .interface = index, .where = std::string(kModes[i]), .program = ids[i]};
            for (const XdpLink &link : xdp_links_)
                if (link.interface == index && link.program == ids[i]) row.link = link.id;
            add(std::move(row));
        }
    }

    void filters(uint32_t index, const std::string &name) {
        for (const auto &[parent, where] : {std::pair{TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS), "ingress"},
                                            std::pair{TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS), "egress"}}) {
            tcmsg body{};
            body.tcm_ifindex = static_cast<int>(index);
            body.tcm_parent = parent;
            const Result<std::vector<std::byte>> answer = dump(RTM_GETTFILTER, body);
            if (!answer) continue; // no such qdisc
            each_message<tcmsg>(*answer, [&, where = where](const tcmsg &filter, Bytes attributes) {
                bool bpf = false;
                Bytes options;
                each_attribute(attributes, [&](uint16_t type, Bytes value) {
                    if (type == TCA_KIND) bpf = text(value) == "bpf";
                    if (type == TCA_OPTIONS) options = value;
                });
                if (!bpf) return;
                NetworkRow row{.kind = "tc", .device = name, .interface = index, .where = where};
                row.parent = filter.tcm_parent;
                row.handle = filter.tcm_handle;
                row.priority = filter.tcm_info >> 16;
                each_attribute(options, [&](uint16_t type, Bytes value) {
                    if (type == TCA_BPF_ID) row.program = number(value);
                    if (type == TCA_BPF_NAME) row.name = text(value);
                });
                if (row.program != 0) add(std::move(row));
            });
        }
    }

    void query(const AttachPoint &place, uint32_t target, uint32_t index, const std::string &name) {
        std::array<uint32_t, kMostPrograms> programs{}, links{};
        sys::ProgQueryAttr attr;
        attr.target_fd = target;
        attr.attach_type = static_cast<uint32_t>(place.attach);
        attr.prog_ids = sys::reg(programs.data());
        attr.prog_cnt = kMostPrograms;
        if (index != 0) attr.link_ids = sys::reg(links.data());
        if (!sys::prog_query(attr)) return; // the kernel or the interface has no such place
        for (uint32_t i = 0; i < std::min(attr.prog_cnt, kMostPrograms); ++i)
            add({.kind = std::string(place.kind),
                 .device = name,
                 .interface = index,
                 .where = std::string(place.where),
                 .program = programs[i],
                 .link = links[i]});
    }

    struct XdpLink {
        uint32_t interface, program, id;
    };
    Names &names_;
    NetworkRows out_;
    std::vector<XdpLink> xdp_links_;
    std::vector<NetworkRow> netfilter_;
};

} // namespace

Result<NetworkRows> network_rows(Names &names) { return Search(names).run(); }

std::string as_list(const std::vector<NetworkRow> &rows) {
    render::Columns columns({{"KIND"}, {"INTERFACE"}, {"WHERE"}, {"PROGRAM"}, {"LINK", true}, {"PRIORITY", true}, {"HANDLE"}});
    for (const NetworkRow &row : rows)
        columns.row({row.kind, row.device.empty() ? "-" : row.device, row.where, labelled(row.program, row.name),
                     row.link ? format("{}", row.link) : "-", row.kind == "tc" ? format("{}", row.priority) : "-",
                     row.kind == "tc" ? format("{:#x}", row.handle) : "-"});
    std::string out;
    columns.append_to(out);
    return out;
}

void append_json(std::string &out, const NetworkRow &row) {
    render::JsonLine line(out, "net");
    line.text("kind", row.kind).text_or_null("devname", row.device);
    row.interface ? line.number("ifindex", row.interface) : line.null("ifindex");
    line.text_or_null("where", row.where).number("prog_id", row.program).text_or_null("name", row.name);
    row.link ? line.number("link_id", row.link) : line.null("link_id");
    if (row.kind == "tc")
        line.number("parent", row.parent).number("handle", row.handle).number("priority", row.priority);
    else
        line.null("parent").null("handle").null("priority");
}

} // namespace rawbpf::inline v0::running
