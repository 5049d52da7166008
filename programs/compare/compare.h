// Which figures of two or more files differ beyond noise, and by how much. PURE.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "programs/compare/document.h"
#include "programs/measure/statistics.h"

namespace rawbpf::inline v0::compare {

enum class Verdict : uint8_t {
    same,        ///< counted, and equal
    within,      ///< measured, and no difference beyond noise
    differs,     ///< counted and unequal, or measured and beyond noise
    few,         ///< measured, and too few values to tell
    only_before, ///< the other file doesn't have it
    only_after,
};
/// "same", "within noise", "differs", "too few values", "only before", "only after".
[[nodiscard]] std::string_view verdict_text(Verdict verdict);

/// One figure of the first document beside one of another.
struct Row {
    size_t other = 1;               ///< which document
    const Figure *before = nullptr; ///< of the first document; nullptr: it has none
    const Figure *after = nullptr;  ///< both live as long as the documents
    Verdict verdict = Verdict::same;
    measure::Interval difference;             ///< of the medians; of counted figures without width
    double before_value = 0, after_value = 0; ///< medians
    /// The difference's share of the value before; 0 where that is 0.
    [[nodiscard]] double relative() const;
    [[nodiscard]] const Figure &figure() const { return before ? *before : *after; }
};

/// Something that the machines of two documents don't have in common.
struct Change {
    size_t other = 1;
    std::string kernel, fact, before, after; ///< kernel: where there are several
};

struct Comparison {
    std::vector<Row> rows; ///< in the order of the first document, for each of the others in turn
    std::vector<Change> changes;
    bool kernels = false;    ///< there are figures of several kernels, and each is compared with itself
    bool files = false;      ///< likewise of several objects
    size_t least_values = 0; ///< that a measured figure needs on each side
};

/// Compares each document with the first. Measured figures differ if the interval of the difference of their medians holds no
/// zero, and intervals are so wide that of all of them together one does by chance in 5 cases of 100. At least two documents.
[[nodiscard]] Comparison with_first(std::span<const Document> documents);

/// What one file holds, to be compared with itself: a document for each of its kernels; of one kernel for each variant of an
/// experiment, or each file of a bench. Empty: there is only one of all.
[[nodiscard]] std::vector<Document> parts_of(const Document &document);

} // namespace rawbpf::inline v0::compare
