// The programs of new projects: each does one thing, in three languages, and is short enough to be read whole.
//
//      hello      prints a line and returns 42; a socket filter, because that runs anywhere, also in the emulator
//      map        counts what the machine executes, in an array
//      ringbuf    sends a record for each program that is executed, and counts records sent and lost
//      uprobe     counts the calls of a function by its first argument, in a hash
//      xdp        drops UDP packets for port 9, and counts them
#include "programs/starter/starter.h"

namespace rawbpf::inline v0::starter {
namespace {

constexpr std::string_view kHelloText = R"(# Prints a line and returns 42.
.license "GPL"
.rodata greeting "hello from @NAME@"

.program hello "socket"
    r1 = greeting ll               # the text ...
    r2 = @LENGTH@                        # ... and its length, the zero at its end included
    call bpf_trace_printk
    r0 = 42
    exit
)";
constexpr std::string_view kHelloC = R"(// Prints a line and returns 42.
#include <rawbpf/bpf.h>

SEC("socket")
int hello(struct __sk_buff *packet)
{
    (void)packet;
    bpf_printk("hello from @NAME@");
    return 42;
}

char LICENSE[] SEC("license") = "GPL";
)";
constexpr std::string_view kHelloDsl = R"(    // Prints a line and returns 42.
    Code &f = b.program("socket", "hello");
    f.print("hello from @NAME@\n");
    f.ret(42);
)";

constexpr std::string_view kMapText = R"(# Counts the programs that are executed on this machine.
.license "GPL"
.map counts array key u32 value u64 entries 1

.program on_exec "raw_tp/sched_process_exec"
    *(u32 *)(r10 - 4) = 0          # the key, on the stack
    r1 = counts ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem       # r0: the address of the value, or 0
    if r0 == 0 goto out
    r1 = 1
    lock *(u64 *)(r0 + 0) += r1    # other CPUs count, too
    r0 = *(u64 *)(r0 + 0)
    exit
out:
    r0 = 0
    exit
)";
constexpr std::string_view kMapC = R"(// Counts the programs that are executed on this machine.
#include <rawbpf/bpf.h>

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} counts SEC(".maps");

SEC("raw_tp/sched_process_exec")
int on_exec(void *ctx)
{
    (void)ctx;
    __u32 key = 0;
    __u64 *count = bpf_map_lookup_elem(&counts, &key);
    if (!count)
        return 0;
    __sync_fetch_and_add(count, 1); // other CPUs count, too
    return *count;
}

char LICENSE[] SEC("license") = "GPL";
)";
constexpr std::string_view kMapDsl = R"(    // Counts the programs that are executed on this machine.
    MapRef counts = b.array<uint64_t>("counts", 1);
    Code &f = b.program("raw_tp/sched_process_exec", "on_exec");
    auto key = f.stack<uint32_t>("key");
    f.store<uint32_t>(key, 0);
    f.lookup(counts, key, [&] { // r0 is the value's address in here
        f.mov(r1, 1);
        f.atomic_add<uint64_t>(r0, r1); // other CPUs count, too
        f.load<uint64_t>(r0, r0);
        f.exit();
    });
    f.ret(0);
)";

constexpr std::string_view kRingText =
    R"(# Sends a record for each program that is executed: who, and under which name. Counts what was sent (0) and lost (1).
.license "GPL"
.map records ringbuf entries 65536
.map counts array key u32 value u64 entries 2

.struct record
    pid u64
    comm char[16]
.end

.program on_exec "raw_tp/sched_process_exec"
    r7 = 1                         # lost, until it is sent
    r1 = records ll
    r2 = sizeof(record)
    r3 = 0
    call bpf_ringbuf_reserve       # r0: room for the record, or 0: the ring is full
    if r0 == 0 goto count
    r6 = r0
    call bpf_get_current_pid_tgid
    r0 >>= 32
    *(u64 *)(r6 + record.pid) = r0
    r1 = r6
    r1 += record.comm
    r2 = 16
    call bpf_get_current_comm
    r1 = r6
    r2 = 0
    call bpf_ringbuf_submit        # from here on the reader sees it
    r7 = 0
count:
    *(u32 *)(r10 - 4) = r7
    r1 = counts ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r1 = 1
    lock *(u64 *)(r0 + 0) += r1
    r0 = *(u64 *)(r0 + 0)
    exit
out:
    r0 = 0
    exit
)";
constexpr std::string_view kRingC =
    R"(// Sends a record for each program that is executed: who, and under which name. Counts what was sent (0) and lost (1).
#include <rawbpf/bpf.h>

struct record {
    __u64 pid;
    char comm[16];
};

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 65536);
} records SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 2);
    __type(key, __u32);
    __type(value, __u64);
} counts SEC(".maps");

SEC("raw_tp/sched_process_exec")
int on_exec(void *ctx)
{
    (void)ctx;
    __u32 key = 1; // lost, until it is sent
    struct record *record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
    if (record) {
        record->pid = bpf_get_current_pid_tgid() >> 32;
        bpf_get_current_comm(record->comm, sizeof(record->comm));
        bpf_ringbuf_submit(record, 0); // from here on the reader sees it
        key = 0;
    }
    __u64 *count = bpf_map_lookup_elem(&counts, &key);
    if (!count)
        return 0;
    __sync_fetch_and_add(count, 1);
    return *count;
}

char LICENSE[] SEC("license") = "GPL";
)";
constexpr std::string_view kRingDsl =
    R"(    // Sends a record for each program that is executed: who, and under which name. Counts what was sent (0) and lost (1).
    struct Record {
        uint64_t pid;
        char comm[16];
    };
    MapRef records = b.ringbuf("records", 65536);
    MapRef counts = b.array<uint64_t>("counts", 2);
    Code &f = b.program("raw_tp/sched_process_exec", "on_exec");
    auto key = f.stack<uint32_t>("key");
    f.store<uint32_t>(key, 1); // lost, until it is sent
    f.reserve(r6, records, sizeof(Record), [&] { // submits at its end
        f.call(helper::get_current_pid_tgid);
        f.rsh(r0, 32);
        f.store<uint64_t>(RAWBPF_AT(r6, Record, pid), r0);
        f.mov(r1, r6);
        f.add(r1, 8);
        f.mov(r2, 16);
        f.call(helper::get_current_comm);
        f.store<uint32_t>(key, 0);
    });
    f.lookup(counts, key, [&] {
        f.mov(r1, 1);
        f.atomic_add<uint64_t>(r0, r1);
        f.load<uint64_t>(r0, r0);
        f.exit();
    });
    f.ret(0);
)";

constexpr std::string_view kUprobeText = R"(# Counts the calls of work() in ./workload by its first argument.
.license "GPL"
.map calls hash key u64 value u64 entries 1024

.program on_work "uprobe/./workload:work"
    r6 = *(u64 *)(r1 + @ARGUMENT@)       # the first argument, in the registers of the traced thread (struct pt_regs)
    *(u64 *)(r10 - 8) = r6
    *(u64 *)(r10 - 16) = 0
    r1 = calls ll
    r2 = r10
    r2 += -8
    r3 = r10
    r3 += -16
    r4 = 1                         # BPF_NOEXIST: an entry that is there stays
    call bpf_map_update_elem
    r1 = calls ll
    r2 = r10
    r2 += -8
    call bpf_map_lookup_elem
    if r0 == 0 goto out            # the map is full
    r1 = 1
    lock *(u64 *)(r0 + 0) += r1
out:
    r0 = 0
    exit
)";
constexpr std::string_view kUprobeC = R"(// Counts the calls of work() in ./workload by its first argument.
#include <rawbpf/bpf.h>

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __type(key, __u64);
    __type(value, __u64);
} calls SEC(".maps");

SEC("uprobe/./workload:work")
int BPF_KPROBE(on_work, long argument)
{
    __u64 key = argument, zero = 0;
    bpf_map_update_elem(&calls, &key, &zero, BPF_NOEXIST); // an entry that is there stays
    __u64 *count = bpf_map_lookup_elem(&calls, &key);
    if (count)
        __sync_fetch_and_add(count, 1);
    return 0;
}

char LICENSE[] SEC("license") = "GPL";
)";
constexpr std::string_view kUprobeDsl = R"(    // Counts the calls of work() in ./workload by its first argument.
    MapRef calls = b.hash<uint64_t, uint64_t>("calls", 1024);
    Code &f = b.program("uprobe/./workload:work", "on_work");
    auto key = f.stack<uint64_t>("key");
    auto zero = f.stack<uint64_t>("zero");
    f.mov(r6, r1);
    f.argument(r7, r6, 1); // of the traced function; r6 holds the context
    f.store<uint64_t>(key, r7);
    f.store<uint64_t>(zero, 0);
    f.call(helper::map_update_elem, calls, key, zero, 1); // BPF_NOEXIST: an entry that is there stays
    f.lookup(calls, key, [&] {
        f.mov(r1, 1);
        f.atomic_add<uint64_t>(r0, r1);
    });
    f.ret(0);
)";

constexpr std::string_view kXdpText = R"(# Drops UDP packets for port 9 (discard), and counts them.
.license "GPL"
.map dropped array key u32 value u64 entries 1

.program filter "xdp"
    r2 = *(u32 *)(r1 + 0)          # where the packet begins ...
    r3 = *(u32 *)(r1 + 4)          # ... and ends: struct xdp_md
    r4 = r2
    r4 += 42                       # Ethernet 14, IPv4 20, UDP 8
    if r4 > r3 goto pass           # the verifier wants to see that the bytes are there
    r5 = *(u16 *)(r2 + 12)
    if r5 != 0x0008 goto pass      # ETH_P_IP, in the network's order of bytes
    r5 = *(u8 *)(r2 + 14)
    if r5 != 0x45 goto pass        # IPv4 without options
    r5 = *(u8 *)(r2 + 23)
    if r5 != 17 goto pass          # UDP
    r5 = *(u16 *)(r2 + 36)
    if r5 != 0x0900 goto pass      # port 9
    *(u32 *)(r10 - 4) = 0
    r1 = dropped ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto pass
    r1 = 1
    lock *(u64 *)(r0 + 0) += r1
    r0 = 1                         # XDP_DROP
    exit
pass:
    r0 = 2                         # XDP_PASS
    exit
)";
constexpr std::string_view kXdpC = R"(// Drops UDP packets for port 9 (discard), and counts them.
#include <rawbpf/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/udp.h>

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} dropped SEC(".maps");

SEC("xdp")
int filter(struct xdp_md *packet)
{
    void *data = (void *)(long)packet->data, *end = (void *)(long)packet->data_end;
    struct ethhdr *eth = data;
    struct iphdr *ip = (void *)(eth + 1);
    struct udphdr *udp = (void *)(ip + 1);

    if ((void *)(udp + 1) > end) // the verifier wants to see that the bytes are there
        return XDP_PASS;
    if (eth->h_proto != bpf_htons(ETH_P_IP) || ip->version != 4 || ip->ihl != 5 || ip->protocol != 17 || udp->dest != bpf_htons(9))
        return XDP_PASS;
    __u32 key = 0;
    __u64 *count = bpf_map_lookup_elem(&dropped, &key);
    if (!count)
        return XDP_PASS;
    __sync_fetch_and_add(count, 1);
    return XDP_DROP;
}

char LICENSE[] SEC("license") = "GPL";
)";
constexpr std::string_view kXdpDsl = R"(    // Drops UDP packets for port 9 (discard), and counts them.
    MapRef dropped = b.array<uint64_t>("dropped", 1);
    Code &f = b.program("xdp", "filter");
    auto key = f.stack<uint32_t>("key");
    Label pass = f.label("pass");
    f.load<uint32_t>(r2, r1);     // where the packet begins ...
    f.load<uint32_t>(r3, r1 + 4); // ... and ends: struct xdp_md
    f.mov(r4, r2);
    f.add(r4, 42); // Ethernet 14, IPv4 20, UDP 8
    f.jump_if(r4 > r3, pass); // the verifier wants to see that the bytes are there
    f.load<uint16_t>(r5, r2 + 12);
    f.jump_if(r5 != 0x0008, pass); // ETH_P_IP, in the network's order of bytes
    f.load<uint8_t>(r5, r2 + 14);
    f.jump_if(r5 != 0x45, pass); // IPv4 without options
    f.load<uint8_t>(r5, r2 + 23);
    f.jump_if(r5 != 17, pass); // UDP
    f.load<uint16_t>(r5, r2 + 36);
    f.jump_if(r5 != 0x0900, pass); // port 9
    f.store<uint32_t>(key, 0);
    f.lookup(dropped, key, [&] {
        f.mov(r1, 1);
        f.atomic_add<uint64_t>(r0, r1);
        f.ret(1); // XDP_DROP
    });
    f.bind(pass);
    f.ret(2); // XDP_PASS
)";

constexpr std::string_view kSources[][3] = {
    {kHelloText, kHelloC, kHelloDsl},    {kMapText, kMapC, kMapDsl}, {kRingText, kRingC, kRingDsl},
    {kUprobeText, kUprobeC, kUprobeDsl}, {kXdpText, kXdpC, kXdpDsl},
};

} // namespace

std::string_view program_source(Subject subject, Language language) {
    return kSources[static_cast<int>(subject)][static_cast<int>(language)];
}

} // namespace rawbpf::inline v0::starter
