// The context: what r1 points to when a program begins.
//
//      tracepoint   the event's record     reads of it after the first 8 bytes
//      kprobe       struct pt_regs         reads
//      xdp          struct xdp_md          reads of 4 bytes; data and data_end are pointers
//      tc           struct __sk_buff       reads, also of parts; writes to some
//
// The last two don't exist in memory: the kernel rewrites each access to its own structs, which is why offset and size have to
// match a member, and why a pointer has 32 bits there and 64 in the register. The layout is that of include/uapi/linux/bpf.h; who
// may write what is in each type's is_valid_access() (net/core/filter.c, kernel/trace/bpf_trace.c of 6.18).
#include "runtime/verifier/context.h"

#include "asm/kinds.h"
#include "runtime/verifier/state.h"

namespace rawbpf::inline v0::verifier {

namespace {

using P = ProgramType;

// Which programs: bits of Member::reads and writes.
enum : uint8_t { kFilter = 1, kTc = 2, kCgroup = 4, kAll = 7 };

/// How a member may be accessed.
enum class Form : uint8_t {
    part,  ///< four bytes, or an aligned part when reading
    word,  ///< four bytes
    wide,  ///< eight bytes
    byte,  ///< one byte
    bytes, ///< any aligned piece
};

struct Member {
    uint16_t begin, end;
    Form form;
    uint8_t reads, writes;
    ContextAnswer answer = ContextAnswer::number;
};

using A = ContextAnswer;
// struct __sk_buff
constexpr Member kPacketMembers[] = {
    {0, 8, Form::part, kAll, 0},                           // len, pkt_type
    {8, 12, Form::part, kAll, kTc | kCgroup},              // mark
    {12, 16, Form::part, kAll, kTc},                       // queue_mapping
    {16, 32, Form::part, kAll, 0},                         // protocol, vlan_present, vlan_tci, vlan_proto
    {32, 36, Form::part, kAll, kTc | kCgroup},             // priority
    {36, 44, Form::part, kAll, 0},                         // ingress_ifindex, ifindex
    {44, 48, Form::part, kAll, kTc},                       // tc_index
    {48, 68, Form::bytes, kAll, kAll},                     // cb
    {68, 72, Form::part, kAll, 0},                         // hash
    {72, 76, Form::part, kTc, kTc},                        // tc_classid
    {76, 80, Form::word, kTc | kCgroup, 0, A::packet},     // data
    {80, 84, Form::word, kTc | kCgroup, 0, A::packet_end}, // data_end
    {84, 88, Form::part, kAll, 0},                         // napi_id
    {88, 92, Form::part, kCgroup | kFilter, 0},            // family
    {92, 100, Form::word, kCgroup | kFilter, 0},           // remote_ip4, local_ip4
    {100, 132, Form::word, kCgroup | kFilter, 0},          // remote_ip6, local_ip6
    {132, 140, Form::part, kCgroup | kFilter, 0},          // remote_port, local_port
    {140, 144, Form::word, kTc, 0, A::packet_meta},        // data_meta
    {152, 160, Form::wide, kTc | kCgroup, kTc | kCgroup},  // tstamp
    {160, 164, Form::part, kTc, 0},                        // wire_len
    {164, 168, Form::part, kAll, 0},                       // gso_segs
    {168, 176, Form::wide, kAll, 0, A::undecided},         // sk
    {176, 180, Form::part, kAll, 0},                       // gso_size
    {180, 181, Form::byte, kTc, 0},                        // tstamp_type
    {184, 192, Form::wide, kTc | kCgroup, 0},              // hwtstamp
};
constexpr uint32_t kPacketContext = 192;

ContextAnswer packet_context(uint8_t who, int64_t offset, unsigned size, bool write, bool extends_sign) {
    if (offset < 0 || offset + size > kPacketContext || offset % size != 0) return A::refused;
    for (const Member &m : kPacketMembers) {
        if (offset < m.begin || offset >= m.end) continue;
        if (!((write ? m.writes : m.reads) & who) || offset + size > m.end) return A::refused;
        switch (m.form) {
        case Form::part:
            if (size > 4 || (write && size != 4)) return A::refused;
            break;
        case Form::word:
            if (size != 4 || (extends_sign && m.answer != A::number)) return A::refused;
            break;
        case Form::wide:
            if (size != 8) return A::refused;
            break;
        case Form::byte:
            if (size != 1) return A::refused;
            break;
        case Form::bytes: break;
        }
        return m.answer;
    }
    return A::refused;
}

ContextAnswer xdp_context(int64_t offset, unsigned size, bool write, bool extends_sign, bool to_device) {
    if (write || offset < 0 || offset >= 24 || size != 4 || offset % 4 != 0) return A::refused;
    if (extends_sign && offset < 12) return A::refused;
    switch (offset) {
    case 0: return A::packet;
    case 4: return A::packet_end;
    case 8: return A::packet_meta;
    case 20: return to_device ? A::number : A::refused; // egress_ifindex
    default: return A::number;
    }
}

// A record that is read as it is.
ContextAnswer record(int64_t offset, unsigned size, bool write, int64_t least, int64_t end) {
    return write || offset < least || offset >= end || offset % size != 0 ? A::refused : A::number;
}

} // namespace

std::string_view not_modelled(const ProgramSpec &program) {
    switch (static_cast<P>(program.type)) {
    case P::SOCKET_FILTER:
    case P::KPROBE:
    case P::SCHED_CLS:
    case P::SCHED_ACT:
    case P::TRACEPOINT:
    case P::XDP:
    case P::PERF_EVENT:
    case P::CGROUP_SKB:
    case P::RAW_TRACEPOINT: return {};
    default: return program_type_name(program.type);
    }
}

ContextAnswer context_access(const ProgramSpec &program, int64_t offset, unsigned size, bool write, bool extends_sign,
                             uint32_t registers_size) {
    switch (static_cast<P>(program.type)) {
    case P::SOCKET_FILTER: return packet_context(kFilter, offset, size, write, extends_sign);
    case P::SCHED_CLS:
    case P::SCHED_ACT: return packet_context(kTc, offset, size, write, extends_sign);
    case P::CGROUP_SKB: return packet_context(kCgroup, offset, size, write, extends_sign);
    case P::XDP:
        return xdp_context(offset, size, write, extends_sign,
                           program.expected_attach_type == static_cast<uint32_t>(AttachType::XDP_DEVMAP));
    case P::TRACEPOINT: return record(offset, size, write, 8, 8192); // PERF_MAX_TRACE_SIZE
    case P::KPROBE: return record(offset, size, write, 0, registers_size);
    case P::RAW_TRACEPOINT: return record(offset, size, write, 0, 12 * 8); // MAX_BPF_FUNC_ARGS
    case P::PERF_EVENT:
        if (offset >= registers_size) return record(offset, size, write, registers_size, registers_size + 16);
        return size != 8 ? A::refused : record(offset, size, write, 0, registers_size);
    default: return A::undecided;
    }
}

PacketUse packet_use(uint32_t program_type) {
    switch (static_cast<P>(program_type)) {
    case P::SCHED_CLS:
    case P::SCHED_ACT:
    case P::XDP: return PacketUse::write;
    case P::CGROUP_SKB: return PacketUse::read;
    default: return PacketUse::none;
    }
}

std::optional<Range<int32_t>> returns_of(const ProgramSpec &program) {
    if (static_cast<P>(program.type) != P::CGROUP_SKB) return {};
    return Range<int32_t>{0, program.expected_attach_type == static_cast<uint32_t>(AttachType::CGROUP_INET_EGRESS) ? 3 : 1};
}

char helper_set(uint32_t program_type) {
    switch (static_cast<P>(program_type)) {
    case P::SOCKET_FILTER: return 'F';
    case P::KPROBE: return 'K';
    case P::TRACEPOINT: return 'T';
    case P::RAW_TRACEPOINT: return 'R';
    case P::PERF_EVENT: return 'P';
    case P::SCHED_CLS:
    case P::SCHED_ACT: return 'S';
    case P::XDP: return 'X';
    case P::CGROUP_SKB: return 'C';
    default: return 0;
    }
}

} // namespace rawbpf::inline v0::verifier
