// Who runs, by the ids that our pid namespace gives: a container's first process is 1 there, and some other number on the
// machine. The helper (bpf_get_ns_current_pid_tgid, 5.7) knows the ids of threads in the namespace that it is asked about, and of
// none below or beside it.
#pragma once

#include <cstdint>
#include <optional>

#include <linux/bpf.h>

#include "asm/builder.h"
#include "runtime/sys/namespaces.h"

namespace rawbpf::inline v0 {

/// `pid` and `tid` (u32) = the current thread's as the kernel numbers them, of which r0 is what bpf_get_current_pid_tgid gave. r0
/// is the process's then.
inline void take_pid_tgid(Code &f, const Slot &pid, const Slot &tid) {
    f.store<uint32_t>(tid, r0);
    f.rsh(r0, 32);
    f.store<uint32_t>(pid, r0);
}

/// `numbers` (struct bpf_pidns_info: pid is the thread, tgid its process) = the current thread's ids in that namespace. r0 isn't
/// 0 where it isn't in it. r1 to r5 are gone.
inline void load_ids_of_namespace(Code &f, const sys::Namespace &ns, const Slot &numbers) {
    f.call(helper::get_ns_current_pid_tgid, runtime(static_cast<int64_t>(ns.device)), runtime(static_cast<int64_t>(ns.inode)),
           numbers, sizeof(bpf_pidns_info));
}

/// `pid` and `tid` (u32) = what load_ids_of_namespace() has found. r1 is gone.
inline void take_ids(Code &f, const Slot &numbers, const Slot &pid, const Slot &tid) {
    f.load<uint32_t>(r1, RAWBPF_AT(numbers, bpf_pidns_info, tgid));
    f.store<uint32_t>(pid, r1);
    f.load<uint32_t>(r1, RAWBPF_AT(numbers, bpf_pidns_info, pid));
    f.store<uint32_t>(tid, r1);
}

/// Both together. `stranger` emits what jumps where the thread isn't in the namespace.
template <class Stranger> void ids_of_namespace(Code &f, const sys::Namespace &ns, const Slot &numbers, const Slot &pid,
                                                const Slot &tid, Stranger &&stranger) {
    load_ids_of_namespace(f, ns, numbers);
    f.if_(r0 != 0, stranger);
    take_ids(f, numbers, pid, tid);
}

/// `thread` (u32) = the current thread's number on the machine, r0 = its process's in that namespace (nullopt: the machine's).
/// Goes to `stranger` where it isn't in it; `thread` is set there, too. r1 to r5 are gone.
inline void load_process(Code &f, const std::optional<sys::Namespace> &ns, const Slot &thread, const Label &stranger) {
    f.call(helper::get_current_pid_tgid);
    f.store<uint32_t>(thread, r0);
    if (!ns) {
        f.rsh(r0, 32);
        return;
    }
    const Slot numbers = f.stack(sizeof(bpf_pidns_info), 8, "numbers");
    load_ids_of_namespace(f, *ns, numbers);
    f.jump_if(r0 != 0, stranger);
    f.load<uint32_t>(r0, RAWBPF_AT(numbers, bpf_pidns_info, tgid));
}

} // namespace rawbpf::inline v0
