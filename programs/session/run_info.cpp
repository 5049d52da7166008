// Which kernel, which machine, which moment.
#include "programs/session/run_info.h"

#include "asm/machines.h"
#include "programs/doctor/environment.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::session {
namespace {

constexpr std::string_view kArch = kHostArch == Arch::other ? "unknown" : kHost.uname;

} // namespace

RunInfo describe_run(std::vector<std::string> command, std::string version, size_t cpus, uint64_t start_ns) {
    RunInfo run;
    run.environment = doctor::read_environment;
    run.command = std::move(command);
    run.version = std::move(version);
    run.kernel = sys::first_line("/proc/sys/kernel/osrelease");
    run.arch = kArch;
    run.cpus = static_cast<uint32_t>(cpus);
    run.start_wall_ns = start_ns + static_cast<uint64_t>(sys::realtime_offset_ns());
    return run;
}

} // namespace rawbpf::inline v0::session
