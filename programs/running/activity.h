// What the programs in the kernel do: how often each ran since the last look, and for how long.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "programs/running/rows.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::running {

/// A program between two looks.
struct Activity {
    uint32_t id = 0, type = 0;
    std::string name;
    uint64_t load_time = 0;            ///< by boottime_ns(); 0: before 4.15
    uint64_t runs = 0, ns = 0;         ///< in the interval
    uint64_t missed = 0;               ///< times that it was skipped, because it was running already
    uint64_t all_runs = 0, all_ns = 0; ///< since it was loaded, while statistics were on
    double worst = 0;                  ///< nanoseconds a run, in the worst interval so far

    [[nodiscard]] double mean() const { return runs == 0 ? 0 : static_cast<double>(ns) / static_cast<double>(runs); }
};
struct ActivityInterval {
    uint64_t ns = 0;            ///< how long it was
    std::vector<Activity> rows; ///< every program that was there at its end; by time in it, then by id
    [[nodiscard]] size_t active() const;
    [[nodiscard]] double cpus() const; ///< that all of them kept busy
};

/// Compares looks at all programs. Somebody has to count meanwhile (RunStats).
class ActivityWatch {
  public:
    /// What happened since the look before; a program that came since then counts from its beginning. The first look has no
    /// interval: its rows have done nothing yet. Errors: each_object()'s.
    [[nodiscard]] Result<ActivityInterval> look();

  private:
    struct Seen {
        std::string name;
        uint64_t runs = 0, ns = 0, missed = 0;
        double worst = 0;
        uint64_t look = 0;
    };
    std::map<uint32_t, Seen> seen_;
    Names names_;
    uint64_t looks_ = 0, before_ns_ = 0;
};

/// As a table, with a line above it; `rows`: at most so many programs; `idle`: also those that didn't run.
[[nodiscard]] std::string activity_text(const ActivityInterval &interval, const Around &around, size_t rows, bool idle);
/// {"type":"prog_activity",...} a program and {"type":"interval",...} at the end.
void append_activity_json(std::string &out, const ActivityInterval &interval, const Around &around, uint64_t number, size_t rows,
                          bool idle);

} // namespace rawbpf::inline v0::running
