#include "programs/session/session.h"

#include <cerrno>
#include <utility>

#include "runtime/base/fail.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::session {
namespace {

// Ctrl-C at a terminal has reached the command as well: it may be on its way out by itself.
constexpr uint64_t kPatienceNs = 250'000'000;

} // namespace

Result<void> check_processes(const std::vector<int> &pids) {
    for (int pid : pids) {
        const auto process = pid > 0 ? sys::status_number(pid, "Tgid") : std::nullopt;
        if (!process) return fail(Errc::not_found, "there is no process {}", pid);
        if (*process != static_cast<uint64_t>(pid))
            return fail(Errc::not_found, "there is no process {}: that is a thread of process {}", pid, *process);
    }
    return {};
}

Session::Session(Observed whom) : whom_(std::move(whom)), cpu_before_ns_(sys::process_cpu_ns()) {}

Result<void> Session::open() {
    TRY(check_processes(whom_.pids));
    TRY(loop_.open());
    if (!whom_.workload.empty()) {
        if (!whom_.as_root) user_ = TRY(sys::invoking_user());
        child_ = TRY(sys::Child::spawn(whom_.workload, user_, whom_.workload_output));
    }
    sys::raise_open_files(); // a process is a descriptor, a CPU three; the command has been forked, so it keeps its own limit
    TRY(loop_.watch(child_));
    std::vector<Fd> targets; // in the order of the numbers
    for (int pid : whom_.pids) {
        Result<Fd> target = sys::pidfd_open(pid);
        if (!target && target.error().os == ESRCH) return fail(Errc::not_found, "there is no process {}", pid);
        targets.push_back(TRY(std::move(target)));
    }
    return loop_.watch(std::move(targets));
}

uint32_t Session::owner() const { return user_ ? user_->uid : sys::effective_uid(); }

Result<void> Session::go() {
    armed_ns_ = sys::monotonic_ns();
    cpu_before_ns_ = sys::process_cpu_ns(); // a share of the run's seconds, which don't have the start in them either
    loop_.begin(armed_ns_, whom_.duration_s, whom_.stop);
    if (whom_.ready_fd >= 0) TRY_IN(sys::write_all(whom_.ready_fd, "", 1), "telling descriptor {} to be ready", whom_.ready_fd);
    if (!whom_.workload.empty()) TRY_IN(child_.start(), "{}", whom_.workload[0]);
    return {};
}

std::string Session::end() {
    ended_ns_ = sys::monotonic_ns();
    if (child_.pid() >= 0) return child_.end_in_words(loop_.told_to_stop() ? kPatienceNs : 0);
    if (!loop_.targets_ended()) return {};
    return loop_.targets() == 1 ? "the process has ended" : "the processes have ended";
}

double Session::seconds() const { return static_cast<double>((ended_ns_ ? ended_ns_ : sys::monotonic_ns()) - armed_ns_) / 1e9; }

uint64_t Session::cpu_ns() const { return sys::process_cpu_ns() - cpu_before_ns_; }

} // namespace rawbpf::inline v0::session
