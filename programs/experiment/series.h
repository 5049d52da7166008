// One experiment many times: with several values of its parameters, each several times. PURE.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "programs/experiment/evaluate.h"
#include "programs/experiment/parse.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::experiment {

/// One combination of values.
struct Variant {
    std::string name; ///< "block=512 n=1": the parameters with several values; empty where there is none
    std::vector<Setting> settings;
};

/// Every combination of values in texts like "block=512,4k,64k", the last text's values changing first; one variant where each
/// has one value. A comma within a value is written \,. Errors: invalid_argument for what is no NAME=VALUE, an empty value among
/// several, a name that is given twice, more than 1,000 combinations.
[[nodiscard]] Result<std::vector<Variant>> variants_of(std::span<const std::string_view> given);

/// Which variant is the n-th of a round: each round begins with another one, so that what drifts meets all of them.
[[nodiscard]] size_t turn_of(size_t round, size_t n, size_t variants);

/// The figures of all runs.
class Series {
  public:
    explicit Series(std::vector<std::string> variants) : variants_(std::move(variants)) {}

    /// What one run measured.
    void add(size_t variant, std::span<const std::pair<std::string, Number>> measures);
    /// What somebody else has collected, in the order in which it came.
    void add(size_t variant, const std::string &measure, std::span<const double> values);
    /// A row for each figure of each variant: how many values, minimum, median, its 95 % interval (of six values or more), MAD.
    void append_text(std::string &out) const;
    void append_csv(std::string &out) const;
    /// A line of type "figure" each, with all values in the order in which they came.
    void append_json(std::string &out) const;

  private:
    struct Row {
        size_t variant = 0;
        std::string measure;
        std::vector<double> values{};
    };
    [[nodiscard]] Row &row_of(size_t variant, const std::string &measure);
    std::vector<std::string> variants_;
    std::vector<Row> rows_; ///< by variant, then in the order in which a run measures
};

} // namespace rawbpf::inline v0::experiment
