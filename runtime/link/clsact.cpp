// Runs a program on packets by tc, with three messages to rtnetlink:
//
//      RTM_NEWQDISC   clsact at ffff:fff1 of the interface           the place where filters for in and out can stand
//      RTM_NEWTFILTER bpf, TCA_BPF_FD, direct action                 the program, whose result is what happens to the packet
//      RTM_DELTFILTER, RTM_DELQDISC                                  undone
//
//      [ nlmsghdr | tcmsg: family, ifindex, handle, parent, info = priority << 16 | protocol |
//        TCA_KIND "bpf" | TCA_OPTIONS [ ... ] ]
//
// A filter belongs to the interface, not to a process: after kill -9 it stays. So rawbpf uses tcx links if the kernel has them
// (6.6), and otherwise says in the attachment's notes that a filter may stay. The kernel chooses handle and priority;
// NLM_F_ECHO makes it report them.
#include "runtime/link/clsact.h"

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "runtime/base/bytes.h"
#include "runtime/base/fail.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/net.h"

namespace rawbpf::inline v0 {
namespace {

class Message {
  public:
    Message(uint16_t type, uint16_t flags, const tcmsg &body) {
        nlmsghdr header{};
        header.nlmsg_type = type;
        header.nlmsg_flags = flags;
        put(&header, sizeof header);
        put(&body, sizeof body);
    }
    void attribute(uint16_t type, const void *value, size_t size) {
        nlattr header{static_cast<uint16_t>(sizeof(nlattr) + size), type};
        put(&header, sizeof header);
        put(value, size);
    }
    void number(uint16_t type, uint32_t value) { attribute(type, &value, sizeof value); }
    void text(uint16_t type, const std::string &value) { attribute(type, value.c_str(), value.size() + 1); }
    size_t open(uint16_t type) {
        size_t at = bytes_.size();
        attribute(type, nullptr, 0);
        return at;
    }
    void close(size_t at) {
        auto size = static_cast<uint16_t>(bytes_.size() - at);
        std::memcpy(bytes_.data() + at, &size, sizeof size);
    }
    Result<std::vector<std::byte>> send() && { return sys::netlink(std::move(bytes_)); }

  private:
    void put(const void *from, size_t size) {
        const auto *bytes = static_cast<const std::byte *>(from);
        bytes_.insert(bytes_.end(), bytes, bytes + size);
        bytes_.resize(NLMSG_ALIGN(bytes_.size()));
    }
    std::vector<std::byte> bytes_;
};

tcmsg about(uint32_t interface, uint32_t handle, uint32_t parent, uint32_t info = 0) {
    tcmsg out{};
    out.tcm_family = AF_UNSPEC;
    out.tcm_ifindex = static_cast<int>(interface);
    out.tcm_handle = handle;
    out.tcm_parent = parent;
    out.tcm_info = info;
    return out;
}

constexpr uint32_t kClsactHandle = TC_H_MAKE(TC_H_CLSACT, 0);
uint32_t filter_info(uint32_t priority) { return priority << 16 | htons(ETH_P_ALL); }

// ENOENT may be any part that isn't there (the interface, a parent); the kernel's own sentence says that it is the kind.
bool is_unknown_kind(const Error &error, std::string_view words) {
    return error.os == ENOENT && error.context.find(words) != std::string::npos;
}

// True when it was made, false when it was there.
Result<bool> add_qdisc(uint32_t interface) {
    sys::Because why("the place on the interface where filters for both ways can stand");
    Message message(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, about(interface, kClsactHandle, TC_H_CLSACT));
    message.text(TCA_KIND, "clsact");
    Result<std::vector<std::byte>> done = std::move(message).send();
    if (done) return true;
    if (done.error().os == EEXIST) return false;
    Error error = std::move(done).error();
    if (is_unknown_kind(error, "qdisc kind is unknown")) {
        error.kind = Errc::unsupported;
        error.hint =
            "this kernel has no clsact qdisc (CONFIG_NET_SCH_INGRESS), or its module can't be loaded: modprobe sch_ingress";
    }
    return Unexpected(std::move(error));
}

Result<void> remove_qdisc(uint32_t interface) {
    sys::Because why("the qdisc was made for our filter");
    Message message(RTM_DELQDISC, 0, about(interface, kClsactHandle, TC_H_CLSACT));
    message.text(TCA_KIND, "clsact");
    TRY(std::move(message).send());
    return {};
}

} // namespace

Result<ClsactFilter> add_clsact_filter(uint32_t interface, bool egress, int program_fd, const std::string &name) {
    ClsactFilter out;
    out.interface = interface;
    out.parent = TC_H_MAKE(TC_H_CLSACT, egress ? TC_H_MIN_EGRESS : TC_H_MIN_INGRESS);
    out.made_qdisc = TRY_IN(add_qdisc(interface), "adding a clsact qdisc to interface number {}", interface);

    sys::Because why("a filter that is the program");
    Message message(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ECHO, about(interface, 0, out.parent, filter_info(0)));
    message.text(TCA_KIND, "bpf");
    size_t options = message.open(TCA_OPTIONS);
    message.number(TCA_BPF_FD, static_cast<uint32_t>(program_fd));
    message.text(TCA_BPF_NAME, name);
    message.number(TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
    message.close(options);
    Result<std::vector<std::byte>> answer = std::move(message).send();
    if (!answer) {
        if (out.made_qdisc) (void)remove_qdisc(interface);
        Error error = std::move(answer).error();
        if (is_unknown_kind(error, "classifier not found")) {
            error.kind = Errc::unsupported;
            error.hint =
                "this kernel has no filters of type bpf (CONFIG_NET_CLS_BPF), or their module can't be loaded: modprobe cls_bpf";
        }
        return Unexpected(in_context(std::move(error), format("adding a filter to interface number {}", interface)));
    }
    if (answer->size() >= sizeof(nlmsghdr) + sizeof(tcmsg)) {
        auto made = load<tcmsg>(answer->data() + sizeof(nlmsghdr));
        out.handle = made.tcm_handle;
        out.priority = made.tcm_info >> 16;
        return out;
    }
    if (out.made_qdisc) (void)remove_qdisc(interface);
    return fail(Errc::kernel, "interface number {}: the kernel didn't say which filter it made", interface);
}

Result<void> remove_clsact_filter(const ClsactFilter &filter) {
    sys::Because why("only the interface holds a filter, so rawbpf removes it itself");
    Message message(RTM_DELTFILTER, 0, about(filter.interface, filter.handle, filter.parent, filter_info(filter.priority)));
    message.text(TCA_KIND, "bpf");
    Result<std::vector<std::byte>> done = std::move(message).send();
    if (filter.made_qdisc) TRY(remove_qdisc(filter.interface));
    if (!done) return Unexpected(std::move(done).error());
    return {};
}

} // namespace rawbpf::inline v0
