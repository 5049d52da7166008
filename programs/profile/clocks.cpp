#include "programs/profile/clocks.h"

#include <algorithm>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::profile {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

} // namespace

Result<void> Clocks::find_tracepoint() {
    if (setup_.event.kind == EventKind::tracepoint) tracepoint_ = TRY(TracepointLink::open(setup_.event.tracepoint()));
    return {};
}

Result<void> Clocks::open(const Program &program) {
    program_ = &program;
    if (setup_.options.max_cpu > 0) {
        uint32_t slowest = 1; // not below 1 Hz
        while (slowest * 2 <= std::min<uint64_t>(kMostWeight, setup_.options.frequency)) slowest *= 2;
        budget_.emplace(setup_.options.max_cpu, slowest);
    }
    if (tracepoint_) return {}; // that is attached when all else is ready, for it doesn't wait
    sys::Because why("what runs the program");
    for (int cpu : setup_.cpus()) {
        SamplingEvent event;
        event.hardware = setup_.event.kind == EventKind::cycles;
        event.frequency = setup_.options.frequency;
        event.period = setup_.period;
        event.software = setup_.event.config;
        event.cpu = cpu;
        links_.push_back(TRY(PerfEventLink::open(event, program.fd.get())));
        cpus_.push_back(static_cast<uint32_t>(cpu));
    }
    return {};
}

Result<void> Clocks::enable() {
    for (const PerfEventLink &link : links_) TRY(link.enable());
    if (tracepoint_) TRY(tracepoint_->attach(program_->fd.get()));
    return {};
}

Result<void> Clocks::disable() {
    sys::Because why("no more samples; when this returns, no CPU runs the program any more");
    for (const PerfEventLink &link : links_) TRY(link.disable());
    if (tracepoint_) tracepoint_->detach();
    return {};
}

Result<void> Clocks::keep_within_budget(uint64_t now_ns, uint64_t spent_ns, const std::function<void(double, double)> &told) {
    if (!budget_) return {};
    spent_ns_ = std::max(spent_ns, spent_ns_);
    const uint32_t slower = budget_->update(now_ns, spent_ns_);
    if (slower == slower_) return {};
    slower_ = slower;
    // The kernel has made a period in ns of the cpu clock's frequency; of cycles it keeps that.
    const uint64_t frequency = setup_.options.frequency;
    const uint64_t rate = setup_.event.kind == EventKind::clock ? kSecond / frequency * slower : frequency / slower;
    for (size_t i = 0; i < links_.size(); ++i) {
        TRY(links_[i].set_period(rate));
        rates_.change(cpus_[i], sys::monotonic_ns(), slower);
    }
    told(static_cast<double>(frequency) / slower, budget_->use());
    return {};
}

std::string Clocks::slowed(uint64_t elapsed_ns) const {
    if (!budget_ || budget_->slowest() == 1) return {};
    const double share = static_cast<double>(budget_->slowed_ns()) / static_cast<double>(std::max<uint64_t>(elapsed_ns, 1));
    const uint64_t frequency = setup_.options.frequency;
    return format(
        "to stay within {:.3g} % of a CPU the clock ticked at less than {} Hz for {:.0f} % of the time, at {:.3g} Hz at "
        "the slowest; samples of that time count for those left out",
        100 * setup_.options.max_cpu, frequency, 100 * std::min(share, 1.0), static_cast<double>(frequency) / budget_->slowest());
}

bool Clocks::on_wanted_cpu(uint32_t cpu) const {
    const std::vector<int> &cpus = setup_.options.cpus;
    return !tracepoint_ || cpus.empty() || std::find(cpus.begin(), cpus.end(), static_cast<int>(cpu)) != cpus.end();
}

} // namespace rawbpf::inline v0::profile
