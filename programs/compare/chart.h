// The figures of a sweep as a picture (SVG): for people who look before they compute. PURE.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "programs/compare/document.h"

namespace rawbpf::inline v0::compare {

/// One panel a figure, in it a row for each document (a file, kernel or variant) and each thing that has the figure: all values,
/// the median, and the interval in which the median lies in 95 of 100 cases. The same variant has the same colour in every row
/// and panel. `only`: these figures; empty: all. Figures without numbers are left out, and panels beyond the 40th: the picture
/// says how many. No figure with numbers: a picture that says so.
[[nodiscard]] std::string chart(std::span<const Document> documents, std::span<const std::string_view> only);

/// Round numbers for an axis from `low` to `high` (low < high, both below 1e300): up to seven, all inside. PURE.
[[nodiscard]] std::vector<double> ticks(double low, double high);

} // namespace rawbpf::inline v0::compare
