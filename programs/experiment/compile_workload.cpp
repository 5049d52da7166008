// Whose event it is. `workload` is 1 in the commands that the experiment starts, in all that these start, and 0 elsewhere: a
// count of "dd" would also count the dd of somebody else.
//
//      experiment_roots     the processes that rawbpf has started, by the numbers that rawbpf's pid namespace gives them. rawbpf
//                           adds one before its command begins, and removes it when it has ended
//      experiment_threads   the threads that these have started, by the machine's numbers: capture/followed_threads_dsl.h adds
//                           and removes them
#include "programs/capture/followed_threads_dsl.h"
#include "programs/capture/identity_dsl.h"
#include "programs/experiment/compiling.h"

namespace rawbpf::inline v0::experiment {
namespace {

constexpr uint32_t kMostRoots = 1024, kMostThreads = 65536;

} // namespace

bool Compiler::follow_workload(Place at) {
    if (workload_) return true;
    if (!surroundings_.forks) return fail(at, "nothing follows what a workload starts here");
    Result<Forks> forks = surroundings_.forks();
    if (!forks) return fail(at, forks.error().message(), forks.error().hint);
    workload_ = Workload{builder_.hash<uint32_t, uint8_t>(std::string(kRootsMap), kMostRoots),
                         builder_.hash<uint32_t, uint8_t>(std::string(kThreadsMap), kMostThreads), *forks};
    return true;
}

// `thread` and `process` (u32): the keys. Goes to `out` where the current thread isn't the workload's.
void Compiler::is_workload(Code &f, Slot thread, Slot process, Label out) {
    const Label started = f.label("started"), yes = f.label("workload");
    f.call(helper::get_current_pid_tgid);
    f.store<uint32_t>(thread, r0);
    if (workload_->forks.pid_namespace) {
        const Slot numbers = f.stack(sizeof(bpf_pidns_info), 8, "numbers");
        load_ids_of_namespace(f, *workload_->forks.pid_namespace, numbers);
        f.jump_if(r0 != 0, started);
        f.load<uint32_t>(r0, RAWBPF_AT(numbers, bpf_pidns_info, tgid));
    } else {
        f.rsh(r0, 32);
    }
    f.store<uint32_t>(process, r0);
    f.call(helper::map_lookup_elem, workload_->roots, process);
    f.jump_if(r0 != 0, yes);
    f.bind(started);
    f.call(helper::map_lookup_elem, workload_->threads, thread);
    f.jump_if(r0 == 0, out);
    f.bind(yes);
}

void Compiler::add_followers() {
    if (!workload_) return;
    follow_threads(
        builder_, "experiment", workload_->threads, workload_->forks.child_at,
        [this](Code &f, const Slot &thread, const Label &out) { is_workload(f, thread, f.stack<uint32_t>("process"), out); });
}

bool ProbeCode::in_workload(Place at) {
    if (!all_.follow_workload(at)) return false;
    const Space thread(*this, 8), process(*this, 8);
    const Label no = f_.label("not_workload"), end = f_.label("known_whose");
    all_.is_workload(f_, thread.slot(), process.slot(), no);
    f_.mov(r0, 1);
    f_.jump(end);
    f_.bind(no);
    f_.mov(r0, 0);
    f_.bind(end);
    return true;
}

} // namespace rawbpf::inline v0::experiment
