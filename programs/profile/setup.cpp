#include "programs/profile/setup.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "programs/capture/memory_shares.h"
#include "programs/capture/waiting_threads.h"
#include "programs/labels/choice.h"
#include "programs/processes/advice.h"
#include "programs/profile/left_out.h"
#include "programs/session/run_info.h"
#include "programs/session/session.h"
#include "runtime/base/fail.h"
#include "runtime/sys/cpus.h"
#include "runtime/sys/file.h"
#include "runtime/sys/namespaces.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::profile {
namespace {

constexpr size_t kTypicalRecord = 600; // bytes: 70 frames
constexpr size_t kLeastRing = 256 << 10;
constexpr uint64_t kTypicalRate = 2000; // events a second on a CPU, for the size of the ring
// While tables are made nobody reads the ring. For a second of samples with copies of their stacks there is room, and for as much
// again that is kept free of copies; of a small machine's memory it is a little part.
constexpr size_t kCopiedRecord = 18 << 10, kMostForCopies = 16 << 20, kShareForCopies = 64;
constexpr uint32_t kMostFamily = 4096; // processes that those given have started before, with these

Result<void> check(const ProfileOptions &options, const Event &event, const std::vector<int> &online) {
    if (!options.workload.empty() && !options.pids.empty())
        return fail(Errc::invalid_argument, "either processes or a command can be profiled, not both");
    if (!options.kernel_stacks && !options.user_stacks)
        return fail(Errc::invalid_argument, "neither kernel nor user stacks are wanted: nothing would be left");
    if (options.period > INT32_MAX) return fail(Errc::invalid_argument, "one sample in {} events", options.period);
    if (event.kind == EventKind::clock && options.period != 0)
        return fail(Errc::invalid_argument, "{} ticks by frequency, not each so many-th time", event.name);
    if (options.max_cpu < 0 || !std::isfinite(options.max_cpu) ||
        (options.max_cpu > 0 && (event.counts() || options.period != 0)))
        return fail(Errc::invalid_argument, "a share of {} of a CPU: it is a clock whose rate can be lowered, not {}",
                    options.max_cpu, event.name);
    if (options.frequency == 0) return fail(Errc::invalid_argument, "a frequency of 0 Hz takes no samples");
    if (!options.labels.empty() && options.program)
        return fail(Errc::invalid_argument, "labels are read by rawbpf's own program, not by {}", options.program->name);
    if (options.off_cpu && options.record_fd >= 0) return fail(Errc::invalid_argument, "a capture holds samples, not waits");
    if (options.off_cpu && (event.kind != EventKind::clock || options.max_cpu > 0))
        return fail(Errc::invalid_argument, "waits are no samples of {}, and have no rate", event.name);
    if (options.duration_s < 0 || !std::isfinite(options.duration_s))
        return fail(Errc::invalid_argument, "a duration of {} s", options.duration_s);
    for (int cpu : options.cpus) {
        if (std::find(online.begin(), online.end(), cpu) == online.end())
            return fail(Errc::invalid_argument, "CPU {} isn't online", cpu);
    }
    return session::check_processes(options.pids);
}

} // namespace

Result<Setup> set_up(const ProfileOptions &options) {
    Setup setup{options, {}, 0, TRY(online_cpus())};
    setup.event = TRY(parse_event(options.event));
    TRY(check(options, setup.event, setup.online));
    setup.period = setup.event.counts() ? std::max<uint64_t>(options.period, 1) : options.period;
    return setup;
}

uint32_t ring_bytes(const Setup &setup, bool copies) {
    if (setup.options.ring_bytes) return static_cast<uint32_t>(setup.options.ring_bytes);
    const size_t samples = setup.cpus().size() * (setup.event.counts() ? kTypicalRate : setup.options.frequency);
    const size_t wanted = samples * kTypicalRecord * 2;
    size_t size = std::max(kLeastRing, sys::page_size());
    const MemoryShares shares = memory_shares();
    while (size < wanted && size * 2 <= shares.samples_ring) size *= 2;
    if (copies) {
        const size_t for_copies = std::min<size_t>(kMostForCopies, shares.memory / kShareForCopies);
        while (size < samples * kCopiedRecord * 2 && size * 2 <= for_copies) size *= 2;
    }
    return static_cast<uint32_t>(size);
}

Result<ProgramOptions> program_options(const Setup &setup) {
    const ProfileOptions &options = setup.options;
    ProgramOptions program;
    ProfileConfig &config = program.config;
    config.want_kernel = options.kernel_stacks;
    config.want_user = options.user_stacks;
    config.skip_idle = !options.idle;
    if (setup.by_descent())
        config.filter_pid = PROFILE_PIDS_LEFT_OUT;
    else if (!options.pids.empty())
        config.filter_pid = PROFILE_PIDS_WANTED;
    std::memcpy(config.comm, options.comm.data(), std::min(options.comm.size(), sizeof config.comm - 1));
    config.filter_cgroup = !options.cgroup.empty();
    config.tracepoint = setup.event.kind == EventKind::tracepoint;
    if (setup.event.counts()) config.every = config.tracepoint ? static_cast<uint32_t>(setup.period) : 1;
    const sys::Namespace ns = sys::own_pid_namespace().value_or(sys::Namespace{});
    config.pidns_dev = ns.device, config.pidns_ino = ns.inode;
    // Waits come faster than ticks: a thousand threads that sleep a millisecond each are as many bytes as copies of stacks.
    program.ring_bytes = ring_bytes(setup, options.off_cpu != nullptr);
    program.cpus = static_cast<uint32_t>(TRY(possible_cpu_count()));
    if (options.off_cpu)
        program.threads =
            waiting_threads((options.language_view == processes::ScriptView::native ? kWaitingBytes : kWaitingLanguageBytes) +
                            (options.labels.empty() ? 0 : kWaitingLabelBytes));
    program.labels = TRY(choose_labels(options.labels));
    program.pids = static_cast<uint32_t>(std::max<size_t>(1, options.pids.size()));
    if (setup.by_descent()) program.pids = options.off_cpu ? kMostFamily : kMostLeftOut;
    return program;
}

processes::Remedy remedy(const ProfileOptions &options) {
    if (options.program && unwind::has_machine(kHostArch)) return {.by_tables = "the program of the DSL (leave --object out)"};
    return processes::remedy_of(options.unwind);
}

RunInfo describe(const Setup &setup, uint64_t start_ns) {
    const ProfileOptions &options = setup.options;
    RunInfo run = session::describe_run(options.command, options.version, setup.online.size(), start_ns);
    run.event = options.off_cpu ? kWaits : std::string_view(setup.event.name);
    run.period = setup.period;
    if (setup.period == 0 && !options.off_cpu) run.frequency = static_cast<double>(options.frequency);
    return run;
}

} // namespace rawbpf::inline v0::profile
