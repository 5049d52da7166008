// Whose event it is. `workload` is 1 in the commands that the experiment starts, in all that these start, and 0 elsewhere: a
// count of "dd" would also count the dd of somebody else.
//
//      experiment_roots     the processes that rawbpf has started, by the numbers that rawbpf's pid namespace gives them. rawbpf
//                           adds one with 0, when it is still a copy of rawbpf that waits; at its exec, experiment_exec makes
//                           that a 1; rawbpf removes it when it has ended
//      experiment_threads   the threads that these have started, by the machine's numbers: capture/followed_threads_dsl.h adds
//                           them, and removes them at their sched_process_exit
//
// So that the first event, the exec itself, is the command's, experiment_exec is attached before the experiment's probes; what
// removes threads is attached behind them (kernel_lab.cpp).
#include "programs/capture/followed_threads_dsl.h"
#include "programs/experiment/compiling.h"
#include "programs/identity_dsl.h"

namespace rawbpf::inline v0::experiment {
namespace {

constexpr uint32_t kMostRoots = 1024, kMostThreads = 65536;

} // namespace

bool Compiler::follow_workload(TextPlace at) {
    if (workload_) return true;
    if (!surroundings_.forks) return fail(at, "nothing follows what a workload starts here");
    Result<Forks> forks = surroundings_.forks();
    if (!forks) return fail(at, forks.error().message(), forks.error().hint);
    workload_ = Workload{builder_.hash<uint32_t, uint8_t>(std::string(kRootsMap), kMostRoots),
                         builder_.hash<uint32_t, uint8_t>(std::string(kThreadsMap), kMostThreads), *forks};
    return true;
}

// r0, a process as rawbpf's pid namespace numbers it --> the address of its element of experiment_roots; goes to `none` where
// there is none.
void Compiler::find_root(Code &f, Slot process, Label none) {
    f.store<uint32_t>(process, r0);
    f.call(helper::map_lookup_elem, workload_->roots, process);
    f.jump_if(r0 == 0, none);
}

// `thread` and `process` (u32): the keys. Goes to `out` where the current thread isn't the workload's.
void Compiler::is_workload(Code &f, Slot thread, Slot process, Label out) {
    const auto has_begun = [&](Code &code, const Label &otherwise) {
        find_root(code, process, otherwise);
        code.load<uint8_t>(r1, r0 + 0);
        code.jump_if(r1 == 0, otherwise);
    };
    is_of_family(f, workload_->forks.pid_namespace, thread, has_begun, workload_->threads, out);
}

void Compiler::add_followers() {
    if (!workload_) return;
    Code &exec = builder_.program("tracepoint/sched/sched_process_exec", std::string(kExecProgram));
    const Label out = exec.label("out");
    load_process(exec, workload_->forks.pid_namespace, exec.stack<uint32_t>("thread"), out);
    find_root(exec, exec.stack<uint32_t>("process"), out);
    exec.store<uint8_t>(r0 + 0, 1);
    exec.bind(out);
    exec.ret(0);
    follow_threads(
        builder_, "experiment", workload_->threads, workload_->forks.child_at,
        [this](Code &f, const Slot &thread, const Label &out) { is_workload(f, thread, f.stack<uint32_t>("process"), out); });
}

bool ProbeCode::in_workload(TextPlace at) {
    if (!all_.follow_workload(at)) return false;
    const Space thread(*this, 8), process(*this, 8);
    const Label no = f_.label("not_workload");
    all_.is_workload(f_, thread.slot(), process.slot(), no);
    one_unless(no);
    return true;
}

} // namespace rawbpf::inline v0::experiment
