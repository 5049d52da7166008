// The figures of a sweep as a picture (SVG): for people who look before they compute. PURE.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "programs/compare/document.h"

namespace rawbpf::inline v0::compare {

/// One panel per figure. In it, one row per document (a file, kernel or variant) and thing that has the figure: all values, the
/// median, and, of six values or more, the interval in which the median lies in 95 of 100 cases. Rows of the same variant have
/// the same one of eight colours. `only`: these figures; empty: all. Figures without numbers are left out; panels beyond 40, rows
/// beyond 200 in one (each document has its share), and values beyond 1e300 are counted in the picture. No figure with numbers: a
/// picture that says so.
[[nodiscard]] std::string chart(std::span<const Document> documents, std::span<const std::string_view> only);

/// Round numbers for an axis from `low` to `high` (low < high, both below 1e300): up to seven, all inside. PURE.
[[nodiscard]] std::vector<double> ticks(double low, double high);

} // namespace rawbpf::inline v0::compare
