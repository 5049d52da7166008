// The ledger as text. Its first lines are a sum that a reader can check by eye:
//
//      rawbpf profile: 2,997 samples in 3.0 s at 999 Hz
//        fired       3,054
//        shown       2,997   98.1 %
//        filtered       57    1.9 %
//        lost            0
//
// fired = shown + filtered + sampled_out + lost. `degraded` counts shown samples that are incomplete; it is outside the sum and
// printed only where there is something to say. A ledger that doesn't add up is a bug of ours, and says so itself.
#include "programs/render/ledger.h"

#include <algorithm>

#include "programs/render/text.h"
#include "runtime/base/format.h"
#include "runtime/base/stable_sort.h"

namespace rawbpf::inline v0::render {
namespace {

// "ring_full" reads better as "ring full".
std::string reason_text(std::string_view reason) {
    std::string out;
    append_printable(out, reason);
    std::replace(out.begin(), out.end(), '_', ' ');
    return out;
}

using Counts = std::vector<std::pair<std::string, uint64_t>>;

// "ring full 12, map full 3": the largest first, at most `most` of them.
std::string counts_text(Counts counts, size_t most, std::string (*name)(std::string_view) = reason_text) {
    std::erase_if(counts, [](auto &c) { return c.second == 0; });
    stable_sort(counts, [](auto &a, auto &b) { return a.second != b.second ? a.second > b.second : a.first < b.first; });
    std::string out;
    for (size_t i = 0; i < std::min(most, counts.size()); ++i)
        append(out, "{}{} {}", i ? ", " : "", name(counts[i].first), grouped(counts[i].second));
    if (counts.size() > most) append(out, ", {} more", counts.size() - most);
    return out;
}

uint64_t sum(const Counts &counts) {
    uint64_t n = 0;
    for (auto &c : counts) n += c.second;
    return n;
}

} // namespace

std::string duration_text(double seconds) {
    if (seconds < 1e-6) return format("{:.0f} ns", seconds * 1e9);
    if (seconds < 1e-3) return format("{:.1f} us", seconds * 1e6);
    if (seconds < 1) return format("{:.1f} ms", seconds * 1e3);
    if (seconds < 10) return format("{:.2f} s", seconds);
    return format("{:.1f} s", seconds);
}

std::string size_text(uint64_t bytes) {
    if (bytes < 1024) return format("{} bytes", bytes);
    if (bytes < 1024 * 1024) return format("{} KB", (bytes + 512) / 1024);
    return format("{:.1f} MB", static_cast<double>(bytes) / (1024 * 1024));
}

std::string progress_text(double seconds, uint64_t samples, uint64_t processes) {
    return format("{:.0f} s  {} sample{}  {} process{}", seconds, grouped(samples), samples == 1 ? "" : "s", grouped(processes),
                  processes == 1 ? "" : "es");
}

std::string StackAdvice::sentence() const {
    const auto all = static_cast<double>(std::max({stacks, early, uint64_t{1}}));
    return format("{:.0f} % of the stacks in {} end early: {}", 100.0 * static_cast<double>(early) / all, where, advice);
}

std::string ledger_text(std::string_view tool, const RunInfo &run, const Ledger &ledger, const RunCost &cost,
                        std::string_view noun) {
    std::string out = format("{}: {} {}{}", tool, grouped(ledger.shown), noun, ledger.shown == 1 ? "" : "s");
    if (cost.seconds > 0) append(out, " in {:.1f} s", cost.seconds);
    if (run.counts_events())
        out += event_text(run);
    else if (run.frequency > 0)
        append(out, " at {:.0f} Hz", run.frequency);
    out += '\n';

    size_t width = std::max<size_t>(7, grouped(ledger.fired).size());
    auto line = [&](std::string_view name, uint64_t n, const std::string &note) {
        append(out, "  {:<12}{:>{}}", name, grouped(n), width);
        bool part = name != "fired" && name != "degraded";
        if (part && ledger.fired > 0)
            append(out, "  {:5.1f} %", 100.0 * static_cast<double>(n) / static_cast<double>(ledger.fired));
        if (!note.empty()) append(out, "{}  {}", part && ledger.fired > 0 ? "" : "         ", note);
        out += '\n';
    };
    line("fired", ledger.fired, {});
    line("shown", ledger.shown, {});
    line("filtered", ledger.filtered, {});
    if (ledger.sampled_out > 0) line("sampled out", ledger.sampled_out, {});
    line("lost", sum(ledger.lost), counts_text(ledger.lost, 8));
    if (sum(ledger.degraded) > 0) line("degraded", sum(ledger.degraded), counts_text(ledger.degraded, 8));
    if (sum(ledger.waits) > 0) append(out, "  of waits    {}\n", counts_text(ledger.waits, 5));
    if (sum(ledger.stack_ends) > 0) append(out, "  stack ends  {}\n", counts_text(ledger.stack_ends, 12));
    if (sum(ledger.languages) > 0) append(out, "  languages   {}\n", counts_text(ledger.languages, 4));
    if (!ledger.adds_up())
        append(out, "  these don't add up: fired should be {}; please report it\n",
               grouped(ledger.shown + ledger.filtered + ledger.sampled_out + sum(ledger.lost)));

    std::string costs;
    auto also = [&](const std::string &part) { append(costs, "{}{}", costs.empty() ? "" : "; ", part); };
    if (cost.bpf_runs > 0)
        also(format("{} {} {} in BPF", duration_text(static_cast<double>(cost.bpf_ns) / static_cast<double>(cost.bpf_runs) / 1e9),
                    noun == "event" ? "an" : "a", noun == "wait" ? "switch" : noun)); // the program runs at each switch
    if (cost.cpu_seconds > 0) {
        also(format("rawbpf used {} of CPU", duration_text(cost.cpu_seconds)));
        // A shorter run is mostly its own start, and of that the time isn't counted.
        if (cost.seconds >= 1) append(costs, " ({:.1f} %)", 100 * cost.cpu_seconds / cost.seconds);
    }
    if (cost.memory_bytes > 0) also(format("{} of memory", size_text(cost.memory_bytes)));
    if (cost.table_bytes > 0) append(costs, ", {} of unwind tables", size_text(cost.table_bytes));
    if (cost.ring_bytes > 0) append(costs, " and {} of ring", size_text(cost.ring_bytes));
    if (!costs.empty()) append(out, "  cost        {}\n", costs);
    if (sum(cost.ended_early) > 0) {
        Counts modules; // two files of one name are one line's worth of news
        for (auto &[path, n] : cost.ended_early) {
            std::string name;
            append_printable(name, path.starts_with("//") ? std::string_view(path).substr(2) : base_name(path)); // "//anon"
            auto same = std::find_if(modules.begin(), modules.end(), [&](auto &m) { return m.first == name; });
            if (same == modules.end())
                modules.emplace_back(std::move(name), n);
            else
                same->second += n;
        }
        append(out, "  ended early {} (user stacks cut short{})\n",
               counts_text(modules, 5, [](std::string_view name) { return std::string(name); }),
               ledger.stack_ends.empty() ? ": the kernel could not follow their frames" : "");
    }
    return out;
}

} // namespace rawbpf::inline v0::render
