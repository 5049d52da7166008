// SPDX-License-Identifier: MIT
// A loaded program -> a Link: where its section's name says, or where the caller says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/kernel/loader.h"
#include "runtime/link/link.h"
#include "runtime/object/sections.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {

/// All of it is optional where the section's name says where.
struct AttachOptions {
    std::string target;                 ///< instead of what the section's name says after the slash
    std::vector<std::string> functions; ///< .multi: exactly these instead of a pattern; one that can't be attached is an error
    std::vector<std::string> names;     ///< .multi: what each of `functions` is called in notes, where those are addresses
    /// .multi: one of `functions` that can't be attached is left out, with a note, as where a pattern describes it.
    bool pass_over = false;
    uint64_t cookie = 0;           ///< bpf_get_attach_cookie() (5.15; fentry and LSM 5.19, raw tracepoints 6.10)
    std::vector<uint64_t> cookies; ///< .multi: one for each of `functions`
    int pid = -1;                  ///< uprobes, USDT: this process only; 0 and less: all
    uint32_t interface = 0;        ///< xdp, tc, tcx, netkit: its index
    bool egress = false;           ///< "tc" and "classifier", whose names don't say which way
    uint32_t flags = 0;            ///< xdp: XDP_FLAGS_*; cgroup, netfilter, tcx: BPF_F_*
    /// Borrowed: a cgroup's or network namespace's directory or file, a SOCKMAP, a perf event, an infrared device, a socket.
    int target_fd = -1;
    std::vector<uint64_t> semaphores; ///< .multi: one for each of `functions`, 0: none; else as the next one
    uint64_t semaphore = 0; ///< uprobes: file offset of a counter that the kernel raises while attached (ref_ctr_offset, 4.20)
    /// A hook of netfilter (6.4).
    struct Netfilter {
        uint32_t family = 0,         ///< NFPROTO_*
            hook = 0;                ///< NF_INET_*
        int32_t priority = 0;        ///< lower ones run earlier
    } netfilter;                     ///< netfilter: where
    std::vector<std::byte> iterator; ///< union bpf_iter_link_info: which map, task, cgroup; empty: all
};

/// Attaches one program of a loaded object. `program` is one of `object.programs`; `spec` is what the object was loaded from.
/// Errors: invalid_argument when neither the section's name nor the options say where (the text says what is needed), not_found
/// (with the nearest names), unsupported (with the version that brings it), permission, busy.
[[nodiscard]] Result<Link> attach_program(const ObjectSpec &spec, LoadedObject &object, const Program &program,
                                          const AttachOptions &options = {});

/// Registers a struct_ops map that was loaded. With a link (BPF_F_LINK, 6.4) for as long as that lives, else until it is dropped,
/// which kill -9 doesn't do (a note says so). Errors: not_found, busy (that name is registered already), invalid_argument.
[[nodiscard]] Result<Link> attach_struct_ops(const ObjectSpec &spec, LoadedObject &object, const std::string &map);

/// Whether attach_program() needs no options for it.
[[nodiscard]] bool attaches_by_itself(const Program &program);

/// What came of an object's programs.
struct Attached {
    std::vector<Link> links;        ///< one for each program or struct_ops map that was attached
    std::vector<std::string> names; ///< of the program or map of each link
    /// Programs that weren't attached, each with the reason: those that need something named, and members of struct_ops maps,
    /// which are attached with their map.
    std::vector<std::string> notes;
};
/// Where programs go whose sections don't say it; what isn't given stays away from them.
struct AttachPlaces {
    uint32_t interface = 0;        ///< xdp, tc, tcx, netkit
    bool egress = false;           ///< "tc" and "classifier"
    int cgroup_fd = -1;            ///< cgroup, lsm_cgroup, sockops; borrowed, as the next one
    int network_namespace_fd = -1; ///< sk_lookup, flow_dissector
    uint64_t frequency = 0;        ///< perf_event: the software clock of every CPU, at so many Hz
    int pid = -1;                  ///< uprobes, USDT: this process only; 0 and less: all
};
/// Every program whose section or `places` say where, socket programs where the object has one socket map, and every struct_ops
/// map. An error detaches what was attached before it.
[[nodiscard]] Result<Attached> attach_object(const ObjectSpec &spec, LoadedObject &object, const AttachPlaces &places = {});

/// A perf_event program on the software clock of every CPU that is online: one link a CPU. Errors: those of
/// PerfEventLink::open().
[[nodiscard]] Result<Link> attach_clock(const Program &program, uint64_t frequency);

} // namespace rawbpf::inline v0
