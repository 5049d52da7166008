// What the render stage works on: samples whose frames already have names. Between capture, name and render stands this format,
// so that a board can capture, a host can name, and each output is one pure function.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "programs/render/run_cost.h"

namespace rawbpf::inline v0 {

namespace render {
struct Environment;
}

/// One named frame. Shared: the same address in the same module is one object, however many samples it appears in. With inlined
/// functions one address is several frames, innermost first; all but the last are inlined.
struct Frame {
    uint64_t address = 0;
    std::string symbol; ///< empty: unknown
    uint64_t symbol_offset = 0;
    std::string module; ///< path, "vmlinux", a kernel module's name, "[vdso]"; empty: unknown
    uint64_t file_offset = 0;
    std::string build_id; ///< hex; empty: unknown
    bool kernel = false;
    // Only where lines or inlined functions were asked for, and the module has debug info.
    std::string file = {}; ///< of the source, as the debug info has it; empty: unknown
    uint32_t line = 0;     ///< 0: unknown; of a caller the call's, of an inlined function's caller where it was inlined
    uint32_t column = 0;   ///< 0: unknown
    bool inlined = false;  ///< in the code of the next frame with inlined = false, which has the same address
    // For want of a symbol: where in its file the function begins.
    uint64_t function_offset = 0; ///< as file_offset; 0: unknown
};
using FramePtr = std::shared_ptr<const Frame>;

/// What a sample says beside its stacks, of the request that ran: keys and values, in the order that was asked for.
using Labels = std::vector<std::pair<std::string, std::string>>;
using LabelsPtr = std::shared_ptr<const Labels>;

/// One sample with named stacks, leaf first.
struct NamedSample {
    uint64_t wall_ns = 0; ///< Unix time
    uint64_t t_ns = 0;    ///< since the start of the recording
    uint32_t pid = 0, tid = 0, cpu = 0;
    std::string comm;
    std::vector<FramePtr> kernel, user;
    uint32_t kernel_bytes = 0, user_bytes = 0; ///< as captured
    bool user_missed = false;                  ///< a user stack was wanted and could not be read
    bool kernel_missed = false;
    std::string_view user_end = {}; ///< why the walk of the user stack ended, as Ledger::stack_ends has it; empty: unknown
    LabelsPtr labels = {};          ///< nullptr: none
    /// What it stands for: events (RunInfo::event), ticks of the clock at RunInfo::frequency, or of a wait nanoseconds.
    uint64_t weight = 1;
};

/// fired = shown + filtered + sampled_out + the sum of lost, exact.
struct Ledger {
    uint64_t fired = 0, shown = 0, filtered = 0, sampled_out = 0;
    std::vector<std::pair<std::string, uint64_t>> lost;     ///< by reason, e.g. "ring_full"
    std::vector<std::pair<std::string, uint64_t>> degraded; ///< shown but incomplete; outside the sum
    uint64_t elapsed_ns = 0;                                ///< how long the recording was; 0: unknown
    /// Why user stacks ended, where they were walked by unwind tables ("root", "no_table" ...); outside the sum. Empty: unknown.
    std::vector<std::pair<std::string, uint64_t>> stack_ends = {};
    /// Stacks of interpreters, by whether their native frames and the functions of the language prove each other ("merged",
    /// "one_more", "one_less", "astray"; programs/languages/merge.h); outside the sum. Empty: there were none.
    std::vector<std::pair<std::string, uint64_t>> languages = {};
    /// Off-CPU: what else is known of waits: those of the shown that weren't over, those of the filtered that were too short, and
    /// how often a thread was preempted, which is no wait. Outside the sum. Empty: samples, not waits.
    std::vector<std::pair<std::string, uint64_t>> waits = {};
    std::optional<render::RunCost> cost = {}; ///< nullopt: a report's, which costs nothing
    [[nodiscard]] bool adds_up() const {
        uint64_t sum = shown + filtered + sampled_out;
        for (auto &[reason, n] : lost) sum += n;
        return sum == fired;
    }
};

/// RunInfo::event of `profile --off-cpu`.
inline constexpr std::string_view kWaits = "off-cpu";

/// What the json header says.
struct RunInfo {
    std::vector<std::string> command;
    std::string version, kernel, arch;
    uint32_t cpus = 0;
    uint64_t start_wall_ns = 0;
    double frequency = 0; ///< Hz, for the graphs' captions; 0 unknown
    /// What was sampled, as perf calls it: "cpu-clock", "page-faults", "sched:sched_switch"; empty: unknown. kWaits is ours.
    std::string event = {};
    /// What figures depend on besides what is measured, as it is when it is written down; nullptr: another machine's capture.
    render::Environment (*environment)() = nullptr;
    uint64_t period = 0; ///< a sample is taken at each so many-th event; 0: `frequency` times a second, or waits
    /// Whether samples stand for events, and not for time.
    [[nodiscard]] bool counts_events() const { return period != 0; }
    /// Whether samples are waits, each of which stands for its nanoseconds from t_ns on.
    [[nodiscard]] bool waits() const { return event == kWaits; }
};

} // namespace rawbpf::inline v0
