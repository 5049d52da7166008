// Figures as ratios to a peer in the same run.
//
// A machine that is shared, virtual or hot changes by the second, so absolute times mean little. Ours and the peer's are
// measured in turns, round by round, and the medians are compared. Each program prints its rows as lines of tab-separated
// fields; tests/bench/run lines them up:
//
//      name | ours: median (least..most) | peer | ratio | mark | ok?
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/format.h"

namespace rawbpf::bench {

inline double now_ns() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

/// Several measurements of one thing.
struct Figure {
    double median = 0, least = 0, most = 0;
};

inline Figure figure(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const size_t n = values.size();
    return {n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2, values.front(), values.back()};
}

/// How many rounds of so many: one in the short form (RAWBPF_BENCH_SHORT, the gate), which tests that a benchmark still runs.
inline int rounds(int full) { return std::getenv("RAWBPF_BENCH_SHORT") ? 1 : full; }

/// `full` measurements of one function returning a double.
template <class F> Figure repeat(int full, F &&measure) {
    std::vector<double> values;
    for (int i = 0; i < rounds(full); ++i) values.push_back(measure());
    return figure(std::move(values));
}

/// Ours and the peer's in turns, the first of a round alternating.
template <class F, class G> std::pair<Figure, Figure> in_turns(int full, F &&ours, G &&peer) {
    std::vector<double> a, b;
    for (int i = 0; i < rounds(full); ++i) {
        if (i % 2 == 0) a.push_back(ours());
        b.push_back(peer());
        if (i % 2 == 1) a.push_back(ours());
    }
    return {figure(std::move(a)), figure(std::move(b))};
}

inline std::string shown(const Figure &f, const char *unit) {
    if (f.least == f.most) return format("{:.4g} {}", f.median, unit);
    return format("{:.4g} {} ({:.4g}..{:.4g})", f.median, unit, f.least, f.most);
}

inline void print_row(const std::string &name, const std::string &ours, const std::string &peer, const std::string &ratio,
                      const std::string &mark, const char *ok) {
    std::printf("%s\t%s\t%s\t%s\t%s\t%s\n", name.c_str(), ours.c_str(), peer.c_str(), ratio.c_str(), mark.c_str(), ok);
    std::fflush(stdout);
}

enum class Mark : unsigned char { at_most, at_least };

/// A row held to `ours / peer` at most or at least `limit`.
inline void row(const std::string &name, const char *unit, const Figure &ours, const Figure &peer, Mark mark, double limit) {
    const double ratio = ours.median / peer.median;
    const bool ok = mark == Mark::at_most ? ratio <= limit : ratio >= limit;
    print_row(name, shown(ours, unit), shown(peer, unit), format("{:.2f}", ratio),
              format("{} {:.4g} x peer", mark == Mark::at_most ? "<=" : ">=", limit), ok ? "ok" : "MISSED");
}

/// A row without a peer, held to a limit of its own.
inline void row(const std::string &name, const char *unit, const Figure &ours, Mark mark, double limit) {
    const bool ok = mark == Mark::at_most ? ours.median <= limit : ours.median >= limit;
    print_row(name, shown(ours, unit), "-", "-", format("{} {:.4g} {}", mark == Mark::at_most ? "<=" : ">=", limit, unit),
              ok ? "ok" : "MISSED");
}

/// A row for information.
inline void row(const std::string &name, const char *unit, const Figure &ours) {
    print_row(name, shown(ours, unit), "-", "-", "-", "-");
}

/// A row that could not be measured.
inline void skipped(const std::string &name, const std::string &reason) { print_row(name, "-", "-", "-", reason, "skipped"); }

} // namespace rawbpf::bench
