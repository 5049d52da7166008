// The kernel adds up runs and nanoseconds of each program (BPF_ENABLE_STATS, 5.8), and nothing else: no histogram, no maximum. So
// a rate is the difference of two looks, and the worst that can be said is the worst mean of an interval.
//
// Two system calls a program and look; its name is asked for once. Reading both sums isn't atomic with the program's runs: a
// look in between may miss a run that the next one has.
#include "programs/running/activity.h"

#include <algorithm>

#include "asm/kinds.h"
#include "asm/print.h"
#include "programs/render/columns.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/each_object.h"
#include "runtime/sys/clock.h"

namespace rawbpf::inline v0::running {
namespace {

double seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

double rate(uint64_t count, uint64_t ns) { return ns == 0 ? 0 : static_cast<double>(count) / seconds(ns); }

double share(uint64_t ns, uint64_t of) { return of == 0 ? 0 : static_cast<double>(ns) / static_cast<double>(of); }

/// Those to be shown, which stand in front.
size_t shown(const ActivityInterval &interval, size_t rows, bool idle) {
    return std::min(rows, idle ? interval.rows.size() : interval.active());
}

} // namespace

size_t ActivityInterval::active() const {
    return static_cast<size_t>(std::count_if(rows.begin(), rows.end(), [](const Activity &row) { return row.runs != 0; }));
}

double ActivityInterval::cpus() const {
    uint64_t sum = 0;
    for (const Activity &row : rows) sum += row.ns;
    return share(sum, ns);
}

Result<ActivityInterval> ActivityWatch::look() {
    ActivityInterval out;
    ++looks_;
    const uint64_t now = sys::monotonic_ns();
    out.ns = before_ns_ == 0 ? 0 : now - before_ns_;
    before_ns_ = now;
    TRY(each_object(sys::ObjectKind::program, [&](uint32_t id, Fd program) -> Result<bool> {
        const sys::ProgInfo info = TRY(sys::prog_info(program.get()));
        const auto [at, fresh] = seen_.try_emplace(id);
        Seen &seen = at->second;
        if (fresh) seen.name = names_.program(program.get(), info);
        if (fresh && looks_ == 1) { // what it did before isn't ours
            seen.runs = info.run_cnt;
            seen.ns = info.run_time_ns;
            seen.missed = info.recursion_misses;
        }
        Activity row{.id = id, .type = info.type, .name = seen.name, .load_time = info.load_time};
        row.runs = info.run_cnt - std::min(seen.runs, info.run_cnt);
        row.ns = info.run_time_ns - std::min(seen.ns, info.run_time_ns);
        row.missed = info.recursion_misses - std::min(seen.missed, info.recursion_misses);
        row.all_runs = info.run_cnt;
        row.all_ns = info.run_time_ns;
        row.worst = std::max(seen.worst, row.mean());
        seen = {.name = std::move(seen.name),
                .runs = info.run_cnt,
                .ns = info.run_time_ns,
                .missed = info.recursion_misses,
                .worst = row.worst,
                .look = looks_};
        out.rows.push_back(std::move(row));
        return true;
    }));
    std::erase_if(seen_, [&](const auto &one) { return one.second.look != looks_; }); // an id may come again one day
    std::sort(out.rows.begin(), out.rows.end(), [](const Activity &a, const Activity &b) {
        if (a.ns != b.ns) return a.ns > b.ns;
        if ((a.runs == 0) != (b.runs == 0)) return a.runs != 0;
        return a.id < b.id;
    });
    return out;
}

std::string activity_text(const ActivityInterval &interval, const Around &around, size_t rows, bool idle) {
    std::string out = format("{} of {} program{} ran in {:.1f} s, {:.2f} % of a CPU\n", interval.active(), interval.rows.size(),
                             interval.rows.size() == 1 ? "" : "s", seconds(interval.ns), interval.cpus() * 100);
    const size_t count = shown(interval, rows, idle);
    if (count == 0) return out;
    render::Columns columns({{"ID", true},
                             {"TYPE"},
                             {"NAME"},
                             {"RUNS/S", true},
                             {"CPU", true},
                             {"MEAN", true},
                             {"WORST", true},
                             {"RUNS", true},
                             {"SINCE", true},
                             {"HELD BY"}});
    const uint64_t now = sys::boottime_ns();
    for (size_t i = 0; i < count; ++i) {
        const Activity &row = interval.rows[i];
        const bool ran = row.runs != 0, ever = row.worst > 0;
        columns.row({format("{}", row.id), program_type_word(row.type), row.name,
                     render::grouped(static_cast<uint64_t>(rate(row.runs, interval.ns) + 0.5)),
                     format("{:.2f} %", share(row.ns, interval.ns) * 100), ran ? format("{:.0f} ns", row.mean()) : "-",
                     ever ? format("{:.0f} ns", row.worst) : "-", render::grouped(row.all_runs),
                     row.load_time == 0 || row.load_time > now ? std::string() : render::duration_text(now - row.load_time),
                     held_by(around, sys::ObjectKind::program, row.id)});
    }
    columns.append_to(out);
    return out;
}

void append_activity_json(std::string &out, const ActivityInterval &interval, const Around &around, uint64_t number, size_t rows,
                          bool idle) {
    const size_t count = shown(interval, rows, idle);
    for (size_t i = 0; i < count; ++i) {
        const Activity &row = interval.rows[i];
        render::JsonLine line(out, "prog_activity");
        line.number("interval", number)
            .number("id", row.id)
            .text("prog_type", program_type_word(row.type))
            .text_or_null("name", row.name);
        line.number("runs", row.runs).number("ns", row.ns).number("recursion_misses", row.missed);
        append(line.raw("runs_per_s"), "{:.3f}", rate(row.runs, interval.ns));
        append(line.raw("cpu"), "{:.6f}", share(row.ns, interval.ns));
        if (row.runs != 0)
            append(line.raw("mean_ns"), "{:.1f}", row.mean());
        else
            line.null("mean_ns");
        if (row.worst > 0)
            append(line.raw("worst_mean_ns"), "{:.1f}", row.worst);
        else
            line.null("worst_mean_ns");
        line.number("run_cnt", row.all_runs).number("run_time_ns", row.all_ns);
        append_holders_json(line, around, sys::ObjectKind::program, row.id);
    }
    render::JsonLine line(out, "interval");
    line.number("number", number);
    append(line.raw("seconds"), "{:.6f}", seconds(interval.ns));
    line.number("programs", interval.rows.size()).number("active", interval.active());
    append(line.raw("cpu"), "{:.6f}", interval.cpus());
}

} // namespace rawbpf::inline v0::running
