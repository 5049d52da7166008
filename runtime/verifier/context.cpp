// The context: what r1 points to when a program begins.
//
//      tracepoint   the event's record     reads of it after the first 8 bytes
//      kprobe       struct pt_regs         reads
//      xdp          struct xdp_md          reads of 4 bytes; data and data_end are pointers
//      tc           struct __sk_buff       reads, also of parts; writes to some
//
// The structs of networking programs don't exist in memory: the kernel rewrites each access into an access to its own structs. So
// offset and size must match a member, and a pointer has 32 bits in some of these structs and 64 bits in the register. This file
// has a table of members for each struct. The layout is that of include/uapi/linux/bpf.h; who may write what is in each type's
// is_valid_access() (net/core/filter.c, kernel/bpf/cgroup.c, kernel/trace/bpf_trace.c of 6.18).
#include "runtime/verifier/context.h"

#include <span>

#include "asm/attach_types.h"
#include "asm/kinds.h"
#include "runtime/verifier/state.h"

namespace rawbpf::inline v0::verifier {

namespace {

using P = ProgramType;
using T = AttachType;
using A = ContextAnswer;

// Which users of struct __sk_buff: bits of Member::reads and writes. Of other structs: kAll, or which attach types (kOnly...).
enum : uint8_t { kFilter = 1, kTc = 2, kCgroup = 4, kLwt = 8, kStream = 16, kDissector = 32, kAll = 0xff };

/// How a member may be accessed.
enum class Form : uint8_t {
    part,  ///< four bytes, or an aligned part when reading
    word,  ///< four bytes
    wide,  ///< eight bytes
    byte,  ///< one byte
    bytes, ///< any aligned piece
    half,  ///< two bytes or one; all four, too, for programs from when it had four
    pair,  ///< as `part`, and eight bytes at once where eight are left
    least2 ///< as `part`, two bytes at least
};

struct Member {
    uint16_t begin, end;
    Form form;
    uint8_t reads, writes;
    ContextAnswer answer = ContextAnswer::number;
};

// struct __sk_buff
constexpr Member kPacketMembers[] = {
    {0, 8, Form::part, kAll & ~kDissector, 0},                                 // len, pkt_type
    {8, 12, Form::part, kAll & ~(kDissector | kStream), kTc | kCgroup | kLwt}, // mark
    {12, 16, Form::part, kAll & ~kDissector, kTc},                             // queue_mapping
    {16, 32, Form::part, kAll & ~kDissector, 0},                               // protocol, vlan_present, vlan_tci, vlan_proto
    {32, 36, Form::part, kAll & ~kDissector, kTc | kCgroup | kLwt | kStream},  // priority
    {36, 44, Form::part, kAll & ~kDissector, 0},                               // ingress_ifindex, ifindex
    {44, 48, Form::part, kAll & ~kDissector, kTc | kStream},                   // tc_index
    {48, 68, Form::bytes, kAll & ~kDissector, kFilter | kTc | kCgroup | kLwt}, // cb
    {68, 72, Form::part, kAll & ~kDissector, 0},                               // hash
    {72, 76, Form::part, kTc, kTc},                                            // tc_classid
    {76, 80, Form::word, kAll & ~kFilter, 0, A::packet},                       // data
    {80, 84, Form::word, kAll & ~kFilter, 0, A::packet_end},                   // data_end
    {84, 88, Form::part, kAll & ~kDissector, 0},                               // napi_id
    {88, 92, Form::part, kCgroup | kStream, 0},                                // family
    {92, 100, Form::word, kCgroup | kStream, 0},                               // remote_ip4, local_ip4
    {100, 132, Form::word, kCgroup | kStream, 0},                              // remote_ip6, local_ip6
    {132, 140, Form::part, kCgroup | kStream, 0},                              // remote_port, local_port
    {140, 144, Form::word, kTc, 0, A::packet_meta},                            // data_meta
    {144, 152, Form::wide, kDissector, 0, A::flow_keys},                       // flow_keys
    {152, 160, Form::wide, kTc | kCgroup, kTc | kCgroup},                      // tstamp
    {160, 164, Form::part, kTc, 0},                                            // wire_len
    {164, 168, Form::part, kAll & ~kDissector, 0},                             // gso_segs
    {168, 176, Form::wide, kAll & ~kDissector, 0, A::sock_common_or_null},     // sk
    {176, 180, Form::part, kAll & ~kDissector, 0},                             // gso_size
    {180, 181, Form::byte, kTc, 0},                                            // tstamp_type
    {184, 192, Form::wide, kTc | kCgroup, 0},                                  // hwtstamp
};
// struct xdp_md
constexpr Member kXdpMembers[] = {{0, 4, Form::word, kAll, 0, A::packet},
                                  {4, 8, Form::word, kAll, 0, A::packet_end},
                                  {8, 12, Form::word, kAll, 0, A::packet_meta},
                                  {12, 20, Form::word, kAll, 0}, // ingress_ifindex, rx_queue_index
                                  {20, 24, Form::word, kTc, 0}}; // egress_ifindex: kTc stands for those attached to a device map
// struct bpf_sock. kTc: sock_create and sock_release, kCgroup: post_bind4, kLwt: post_bind6, kFilter: a pointer to a socket
constexpr uint8_t kAsSocket = kFilter, kOnCreate = kTc, kOnBind4 = kCgroup, kOnBind6 = kLwt;
constexpr Member kSockMembers[] = {
    {0, 4, Form::word, kOnCreate | kAsSocket, kOnCreate},     // bound_dev_if
    {4, 16, Form::part, kAll, 0},                             // family, type, protocol
    {16, 24, Form::word, kOnCreate | kAsSocket, kOnCreate},   // mark, priority
    {24, 28, Form::part, kOnBind4 | kAsSocket, 0},            // src_ip4
    {28, 44, Form::part, kOnBind6 | kAsSocket, 0},            // src_ip6
    {44, 48, Form::part, kOnBind4 | kOnBind6 | kAsSocket, 0}, // src_port
    {48, 50, Form::half, kAll, 0},                            // dst_port
    {52, 80, Form::part, kAll, 0},                            // dst_ip4, dst_ip6, state, rx_queue_mapping
};
// struct bpf_tcp_sock, bpf_xdp_sock
constexpr Member kTcpMembers[] = {{0, 80, Form::word, kAll, 0}, {80, 96, Form::wide, kAll, 0}, {96, 112, Form::word, kAll, 0}};
constexpr Member kXskMembers[] = {{0, 4, Form::word, kAll, 0}};
// struct bpf_sock_addr. kFilter: of IPv4, kTc: of IPv6, kCgroup: sendmsg of IPv4, kLwt: sendmsg of IPv6, kStream: others
constexpr Member kAddressMembers[] = {
    {0, 4, Form::word, kAll, 0},                              // user_family
    {4, 8, Form::part, kFilter | kCgroup, kFilter | kCgroup}, // user_ip4
    {8, 24, Form::pair, kTc | kLwt, kTc | kLwt},              // user_ip6
    {24, 28, Form::part, kAll, kAll},                         // user_port
    {28, 40, Form::word, kAll, 0},                            // family, type, protocol
    {40, 44, Form::part, kCgroup, kCgroup},                   // msg_src_ip4
    {44, 60, Form::pair, kLwt, kLwt},                         // msg_src_ip6
    {64, 72, Form::wide, kAll, 0, A::socket},                 // sk
};
// struct bpf_sock_ops
constexpr Member kSockOpsMembers[] = {
    {0, 4, Form::word, kAll, 0},                        // op
    {4, 8, Form::word, kAll, kAll},                     // reply
    {8, 164, Form::word, kAll, 0},                      // args, addresses, the connection's figures
    {164, 168, Form::word, kAll, kAll},                 // sk_txhash
    {168, 184, Form::wide, kAll, 0},                    // bytes_received, bytes_acked
    {184, 192, Form::wide, kAll, 0, A::socket_or_null}, // sk
    {192, 200, Form::wide, kAll, 0, A::packet},         // skb_data
    {200, 208, Form::wide, kAll, 0, A::packet_end},     // skb_data_end
    {208, 212, Form::word, kAll, 0},                    // skb_len
    {212, 216, Form::part, kAll, 0},                    // skb_tcp_flags
    {216, 224, Form::wide, kAll, 0},                    // skb_hwtstamp
};
// struct sk_msg_md
constexpr Member kMessageMembers[] = {{0, 8, Form::wide, kAll, 0, A::packet},
                                      {8, 16, Form::wide, kAll, 0, A::packet_end},
                                      {16, 72, Form::word, kAll, 0},
                                      {72, 80, Form::wide, kAll, 0, A::socket}};
// struct sk_reuseport_md
constexpr Member kReuseMembers[] = {
    {0, 8, Form::wide, kAll, 0, A::packet},
    {8, 16, Form::wide, kAll, 0, A::packet_end},
    {16, 20, Form::part, kAll, 0},                         // len
    {20, 24, Form::least2, kAll, 0},                       // eth_protocol
    {24, 32, Form::part, kAll, 0},                         // ip_protocol, bind_inany
    {32, 36, Form::word, kAll, 0},                         // hash
    {40, 48, Form::wide, kAll, 0, A::socket},              // sk
    {48, 56, Form::wide, kAll, 0, A::sock_common_or_null}, // migrating_sk
};
// struct bpf_sk_lookup
constexpr Member kLookupMembers[] = {
    {0, 8, Form::wide, kAll, 0, A::socket_or_null}, // sk
    {8, 36, Form::part, kAll, 0},                   // family, protocol, remote_ip4, remote_ip6
    {36, 40, Form::half, kAll, 0},                  // remote_port, and two bytes of 0
    {40, 68, Form::part, kAll, 0},                  // local_ip4, local_ip6, local_port, ingress_ifindex
};
// struct bpf_cgroup_dev_ctx, bpf_sysctl
constexpr Member kDeviceMembers[] = {{0, 4, Form::part, kAll, 0}, {4, 12, Form::word, kAll, 0}};
constexpr Member kSysctlMembers[] = {{0, 4, Form::part, kAll, 0}, {4, 8, Form::part, kAll, kAll}};
// struct bpf_sockopt. kTc: getsockopt, kFilter: setsockopt
constexpr Member kSockoptMembers[] = {
    {0, 8, Form::wide, kAll, 0, A::socket},       // sk
    {8, 16, Form::wide, kAll, 0, A::packet},      // optval
    {16, 24, Form::wide, kAll, 0, A::packet_end}, // optval_end
    {24, 32, Form::word, kAll, kFilter},          // level, optname
    {32, 36, Form::word, kAll, kAll},             // optlen
    {36, 40, Form::word, kTc, kTc},               // retval
};

ContextAnswer by_table(std::span<const Member> members, uint8_t who, int64_t offset, unsigned size, bool write,
                       bool extends_sign) {
    if (offset < 0 || offset % size != 0) return A::refused;
    for (const Member &m : members) {
        if (offset < m.begin || offset >= m.end) continue;
        if (!((write ? m.writes : m.reads) & who)) return A::refused;
        const auto left = static_cast<unsigned>(m.end - offset);
        bool good = true;
        switch (m.form) {
        case Form::part: good = size <= 4 && !(write && size != 4); break;
        case Form::word: good = size == 4 && !(extends_sign && m.answer != A::number); break;
        case Form::wide: good = size == 8 && (offset - m.begin) % 8 == 0; break;
        case Form::byte: good = size == 1; break;
        case Form::bytes: good = size <= left; break;
        case Form::half: good = size <= 2 || size == 4; break;
        case Form::pair: good = (size <= 4 && !(write && size != 4)) || (size == 8 && left >= 8); break;
        case Form::least2: good = size == 2 || size == 4; break;
        }
        return good ? m.answer : A::refused;
    }
    return A::refused;
}

// A record that is read as it is.
ContextAnswer record(int64_t offset, unsigned size, bool write, int64_t least, int64_t end) {
    return write || offset < least || offset >= end || offset % size != 0 ? A::refused : A::number;
}

uint8_t address_user(uint32_t attach_type) {
    switch (static_cast<T>(attach_type)) {
    case T::CGROUP_UDP4_SENDMSG: return kCgroup;
    case T::CGROUP_UDP6_SENDMSG: return kLwt;
    case T::CGROUP_INET4_BIND:
    case T::CGROUP_INET4_CONNECT:
    case T::CGROUP_INET4_GETPEERNAME:
    case T::CGROUP_INET4_GETSOCKNAME:
    case T::CGROUP_UDP4_RECVMSG: return kFilter;
    case T::CGROUP_INET6_BIND:
    case T::CGROUP_INET6_CONNECT:
    case T::CGROUP_INET6_GETPEERNAME:
    case T::CGROUP_INET6_GETSOCKNAME:
    case T::CGROUP_UDP6_RECVMSG: return kTc;
    default: return kStream;
    }
}

uint8_t socket_user(uint32_t attach_type) {
    switch (static_cast<T>(attach_type)) {
    case T::CGROUP_INET4_POST_BIND: return kOnBind4;
    case T::CGROUP_INET6_POST_BIND: return kOnBind6;
    default: return kOnCreate;
    }
}

} // namespace

ContextAnswer context_access(const ProgramSpec &program, int64_t offset, unsigned size, bool write, bool extends_sign,
                             uint32_t registers_size) {
    const uint32_t attach = program.expected_attach_type;
    auto table = [&](std::span<const Member> members, uint8_t who) {
        return by_table(members, who, offset, size, write, extends_sign);
    };
    switch (static_cast<P>(program.type)) {
    case P::SOCKET_FILTER: return table(kPacketMembers, kFilter);
    case P::SCHED_CLS:
    case P::SCHED_ACT: return table(kPacketMembers, kTc);
    case P::CGROUP_SKB: return table(kPacketMembers, kCgroup);
    case P::LWT_IN:
    case P::LWT_OUT:
    case P::LWT_XMIT:
    case P::LWT_SEG6LOCAL: return table(kPacketMembers, kLwt);
    case P::SK_SKB: return table(kPacketMembers, kStream);
    case P::FLOW_DISSECTOR: return table(kPacketMembers, kDissector);
    case P::XDP: {
        const bool to_device = attach == static_cast<uint32_t>(T::XDP_DEVMAP);
        return table(kXdpMembers, to_device ? kTc : kFilter);
    }
    case P::CGROUP_SOCK: return table(kSockMembers, socket_user(attach));
    case P::CGROUP_SOCK_ADDR: return table(kAddressMembers, address_user(attach));
    case P::SOCK_OPS: return table(kSockOpsMembers, kAll);
    case P::SK_MSG: return table(kMessageMembers, kAll);
    case P::SK_REUSEPORT: return table(kReuseMembers, kAll);
    case P::SK_LOOKUP: return table(kLookupMembers, kAll);
    case P::CGROUP_DEVICE: return table(kDeviceMembers, kAll);
    case P::CGROUP_SYSCTL: return table(kSysctlMembers, kAll);
    case P::CGROUP_SOCKOPT: return table(kSockoptMembers, attach == static_cast<uint32_t>(T::CGROUP_GETSOCKOPT) ? kTc : kFilter);
    case P::TRACEPOINT: return record(offset, size, write, 8, 8192); // PERF_MAX_TRACE_SIZE
    case P::KPROBE: return record(offset, size, write, 0, registers_size);
    case P::RAW_TRACEPOINT: return record(offset, size, write, 0, 12 * 8); // MAX_BPF_FUNC_ARGS
    case P::RAW_TRACEPOINT_WRITABLE:
        // Its first word is a buffer, whose size the tracepoint says when it is attached.
        return offset == 0 && size == 8 && !write ? A::undecided : record(offset, size, write, 0, 12 * 8);
    case P::PERF_EVENT:
        if (offset >= registers_size) return record(offset, size, write, registers_size, registers_size + 16);
        return size != 8 ? A::refused : record(offset, size, write, 0, registers_size);
    case P::SYSCALL: return offset < 0 || offset >= UINT16_MAX ? A::refused : A::number;
    case P::TRACING:
    case P::STRUCT_OPS:
    case P::LSM:
    case P::NETFILTER: return A::btf;
    default: return A::undecided;
    }
}

ContextAnswer socket_access(SocketKind kind, int64_t offset, unsigned size, bool write) {
    switch (kind) {
    case SocketKind::common:
        if (offset >= 8 && offset < 24) return A::refused; // type to priority: not every socket has them
        [[fallthrough]];
    case SocketKind::full: return by_table(kSockMembers, kAsSocket, offset, size, write, false);
    case SocketKind::tcp: return by_table(kTcpMembers, kAll, offset, size, write, false);
    case SocketKind::xdp: return by_table(kXskMembers, kAll, offset, size, write, false);
    }
    return A::refused;
}

} // namespace rawbpf::inline v0::verifier
