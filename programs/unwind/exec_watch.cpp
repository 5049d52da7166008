// Why user space can't do this alone: between an exec and the moment that we read of it lie milliseconds, and on a machine that
// is busy a process's whole life. For so long addresses of the new program would be looked up in the tables of the old one. Where
// both lie at other addresses, as position-independent programs do, they are found in no mapping. Where both are linked to the
// same address (a compiler's driver and the compiler, a static busybox and what it starts), the walk goes wrong.
//
// The two sides work without a lock:
//
//      the program:  note the time, take the entry away
//      user space:   put the entry, read the time that was noted; newer than all that is known: take the entry away
//
// If the entry is put before the program takes one away, it is gone; if it is put later, the time is there to be read: the map's
// own lock, which both take for the entry, brings it along. In between, what was put knowing of the exec goes with it: then the
// next sample finds nothing, and who reads that tells the process again.
//
// Times are kept in an array in place of a map of processes: nothing has to be forgotten, there is no limit that could be
// exceeded, and it is read without a system call. Of two processes whose numbers share a place the later exec is taken for that
// of either. That costs the other one a stack or two that isn't walked by tables, with which its entry is asked for again.
#include "programs/unwind/exec_watch.h"

#include <cstdlib>
#include <utility>

#include <linux/bpf.h>
#include <sys/mman.h>

#include "asm/builder.h"
#include "programs/identity_dsl.h"
#include "runtime/base/fail.h"
#include "runtime/link/attach.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/invoke.h"
#include "runtime/unwind/layout.h"

namespace rawbpf::inline v0::unwind {

namespace {

constexpr uint32_t kPlaces = 4096; // a power of two
constexpr const char *kProcesses = "unwind_processes", *kWhen = "unwind_execs";

MapDef when_map() {
    MapDef when;
    when.name = kWhen;
    when.type = BPF_MAP_TYPE_ARRAY;
    when.key_size = sizeof(uint32_t);
    when.value_size = sizeof(uint64_t);
    when.max_entries = kPlaces;
    when.flags = BPF_F_MMAPABLE;
    return when;
}

} // namespace

Unit exec_watch_unit(uint32_t processes, const std::optional<sys::Namespace> &ns) {
    Builder b("unwind_exec");
    const MapRef known = b.hash<uint32_t, UnwindProcess>(kProcesses, processes), when = b.map(when_map());
    Code &f = b.program("raw_tp/sched_process_exec", "unwind_exec"); // in the process, when the new program is in place
    const Slot pid = f.stack<uint32_t>("pid"), place = f.stack<uint32_t>("place");
    if (ns) {
        const Slot numbers = f.stack<bpf_pidns_info>("numbers");
        load_ids_of_namespace(f, *ns, numbers);
        f.if_(r0 != 0, [&] { f.ret(0); }); // of another one: what has no number here isn't walked
        f.load<uint32_t>(r0, RAWBPF_AT(numbers, bpf_pidns_info, tgid));
    } else {
        f.call(helper::get_current_pid_tgid);
        f.rsh(r0, 32);
    }
    f.store<uint32_t>(pid, r0);
    f.and_(r0, kPlaces - 1);
    f.store<uint32_t>(place, r0);
    f.call(helper::map_lookup_elem, when, place);
    f.if_(r0 != 0, [&] {
        f.mov(r6, r0);
        f.call(helper::ktime_get_ns);
        f.store<uint64_t>(r6, r0);
    });
    f.call(helper::map_delete_elem, known, pid);
    f.ret(0);
    Built built = b.finish();
    if (!built) std::abort(); // a mistake in this file; the unit test builds both
    return std::move(*built);
}

Result<ExecWatch> ExecWatch::start(const Map &processes) {
    sys::Because why("a process that executes another program isn't walked by the old one's tables");
    const ObjectSpec spec = TRY(object_of(exec_watch_unit(processes.max_entries(), sys::own_pid_namespace())));
    LoadOptions options;
    options.replace_maps.emplace_back(kProcesses, processes.fd());
    ExecWatch watch;
    watch.object_ = TRY(load(spec, options));
    const Map *when = watch.object_.find_map(kWhen);
    const Program *program = watch.object_.find_program("unwind_exec");
    if (!when || !program) return fail(Errc::internal, "{} is without its program or its map", spec.name);
    watch.when_ = TRY(sys::map(when->fd(), 0, kPlaces * sizeof(uint64_t), PROT_READ, MAP_SHARED));
    watch.link_ = TRY_IN(attach_program(spec, watch.object_, *program), "attaching");
    return watch;
}

bool ExecWatch::executed_after(uint32_t pid, uint64_t t_ns) const {
    const auto *when = reinterpret_cast<const uint64_t *>(when_.data());
    return __atomic_load_n(when + pid % kPlaces, __ATOMIC_ACQUIRE) > t_ns;
}

} // namespace rawbpf::inline v0::unwind
