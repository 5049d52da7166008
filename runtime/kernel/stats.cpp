// Statistics of BPF programs. Measuring costs two clock readings per run (some 40 ns), so it is off by default, and a tool
// that switches it on should say so. Closing the descriptor of BPF_ENABLE_STATS switches it off again, even after kill -9. The
// sysctl of older kernels stays, so there it is switched back explicitly.
#include "runtime/kernel/stats.h"

#include <cerrno>
#include <fcntl.h>

#include "runtime/base/fail.h"
#include "runtime/kernel/loader.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0 {
namespace {

constexpr const char *kSysctl = "/proc/sys/kernel/bpf_stats_enabled"; // 5.1

Result<void> write_sysctl(std::string_view text) {
    Fd fd = TRY(sys::open(kSysctl, O_WRONLY));
    TRY_IN(sys::write_all(fd.get(), text.data(), text.size()), "{}", kSysctl);
    return {};
}

} // namespace

Result<RunStats> RunStats::enable() {
    sys::Because why("count the programs' runs and the time in them while this is open");
    RunStats stats;
    Result<Fd> fd = sys::enable_stats(BPF_STATS_RUN_TIME);
    if (fd) {
        stats.fd_ = std::move(*fd);
        return stats;
    }
    if (fd.error().os != EINVAL) return Unexpected(in_context(std::move(fd).error(), "run-time statistics"));
    std::string now = TRY_IN(sys::read_file(kSysctl, 4096), "run-time statistics");
    if (now.starts_with("0")) {
        TRY_IN(write_sysctl("1\n"), "run-time statistics");
        stats.by_sysctl_ = true;
    }
    return stats;
}

RunStats &RunStats::operator=(RunStats &&other) noexcept {
    if (this != &other) {
        stop();
        fd_ = std::move(other.fd_);
        by_sysctl_ = std::exchange(other.by_sysctl_, false);
    }
    return *this;
}

RunStats::~RunStats() { stop(); }

void RunStats::stop() noexcept {
    fd_.reset();
    // Nothing could be done about a failure here, and the setting is harmless.
    if (std::exchange(by_sysctl_, false)) (void)write_sysctl("0\n");
}

Result<RunCost> run_cost(int program_fd) {
    sys::Because why("how often the program ran, and how long it took");
    sys::ProgInfo info = TRY_IN(sys::prog_info(program_fd), "statistics of program descriptor {}", program_fd);
    return RunCost{info.run_cnt, info.run_time_ns, info.recursion_misses};
}

RunCost run_cost(const LoadedObject &object) {
    RunCost sum;
    for (const Program &program : object.programs)
        if (const Result<RunCost> one = run_cost(program.fd.get())) sum += *one;
    return sum;
}

} // namespace rawbpf::inline v0
