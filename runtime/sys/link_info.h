// What the kernel says of a link: struct bpf_link_info, whose tail is a union by the link's type.
//
//      type  id  prog_id  pad | raw_tracepoint, tracing, cgroup, iter, netns, xdp, ... by `type`
//
// Names and lists of functions are copied into buffers whose addresses and sizes the caller puts in: link_details() asks twice,
// first how long they are. Source: include/uapi/linux/bpf.h, 6.18.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::sys {

/// struct bpf_link_info. A kernel that knows less leaves the rest 0.
struct LinkInfoTail {
    uint32_t type = 0, id = 0, prog_id = 0, pad = 0;
    struct RawTracepoint { // 5.8
        uint64_t name;
        uint32_t name_len, pad;
        uint64_t cookie; // 6.17
    };
    struct Tracing { // 5.8
        uint32_t attach_type,
            target_obj_id, // 5.14: a program's id for freplace, else BTF's
            target_btf_id, pad;
        uint64_t cookie; // 6.17
    };
    struct Cgroup {
        uint64_t cgroup_id;
        uint32_t attach_type, pad;
    };
    struct Iter { // 5.10
        uint64_t name;
        uint32_t name_len,
            map_id; // bpf_map_elem, bpf_sk_storage_map
        union {
            struct {
                uint64_t cgroup_id;
                uint32_t order;
            } cgroup; // 6.1
            struct {
                uint32_t tid, pid;
            } task; // 6.1
        };
    };
    struct Netns {
        uint32_t netns_ino, attach_type;
    };
    struct Interface { // xdp (5.9), tcx (6.6), netkit (6.7)
        uint32_t ifindex,
            attach_type; // none of xdp
    };
    struct MapBound { // struct_ops (6.4), sockmap (6.10)
        uint32_t map_id,
            attach_type; // none of struct_ops
    };
    struct Netfilter { // 6.4
        uint32_t pf, hooknum;
        int32_t priority;
        uint32_t flags;
    };
    struct KprobeMulti { // 6.6
        uint64_t addrs;
        uint32_t count, flags;
        uint64_t missed;  // 6.7
        uint64_t cookies; // 6.9
    };
    struct UprobeMulti { // 6.8
        uint64_t path, offsets, ref_ctr_offsets, cookies;
        uint32_t path_size, count, flags, pid;
    };
    struct PerfEvent { // 6.6
        uint32_t type, pad;
        struct Uprobe {
            uint64_t file;
            uint32_t name_len, offset;
            uint64_t cookie;         // 6.9
            uint64_t ref_ctr_offset; // 6.16
        };
        struct Kprobe {
            uint64_t function;
            uint32_t name_len, offset;
            uint64_t addr;
            uint64_t missed; // 6.7
            uint64_t cookie; // 6.9
        };
        struct Tracepoint {
            uint64_t name;
            uint32_t name_len, pad;
            uint64_t cookie; // 6.9
        };
        struct Event {
            uint64_t config;
            uint32_t type, pad;
            uint64_t cookie; // 6.9
        };
        union {
            Uprobe uprobe;
            Kprobe kprobe;
            Tracepoint tracepoint;
            Event event;
        };
    };
    union {
        uint64_t zero[8] = {};
        RawTracepoint raw_tracepoint;
        Tracing tracing;
        Cgroup cgroup;
        Iter iter;
        Netns netns;
        Interface interface;
        MapBound map;
        Netfilter netfilter;
        KprobeMulti kprobe_multi;
        UprobeMulti uprobe_multi;
        PerfEvent perf_event;
    };
};
static_assert(sizeof(LinkInfoTail) == 80);

/// enum bpf_perf_event_type (6.6): PerfEvent::type.
enum class PerfLink : uint32_t { unspec, uprobe, uretprobe, kprobe, kretprobe, tracepoint, event };

/// A link with its name and its places.
struct LinkDetails {
    LinkInfoTail info;
    std::string name;                 ///< a tracepoint's, iterator's target's, function's, file's; empty: it has none
    std::vector<uint64_t> places;     ///< .multi: addresses (0: hidden from us), or offsets in the file
    std::vector<uint64_t> cookies;    ///< .multi: one for each place, if there are any
    std::vector<uint64_t> semaphores; ///< uprobe.multi: one for each place, if there are any
};
/// BPF_OBJ_GET_INFO_BY_FD (5.8). Errors: the kernel's.
[[nodiscard]] Result<LinkDetails> link_details(int fd);

} // namespace rawbpf::inline v0::sys
