// Judges a student's text by the steps of a lesson's check. The caller provides what depends on the machine, so that this works
// the same without a kernel and a file system.
#pragma once

#include <string>

#include "programs/experiment/compile.h"
#include "programs/experiment/run.h"
#include "programs/lab/report.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::lab {

struct Exercise {
    uint32_t number = 0; ///< of the lesson
    std::string lesson;  ///< "03-maps"
    std::string file;    ///< "lab.asm": its ending says what the text is
    std::string text;    ///< the student's
    std::string folder;  ///< what paths in it count from, with a slash at its end, or empty
};

/// Bytes of a student's file.
inline constexpr size_t kMostText = 1 << 20;

/// An empty report on an exercise.
[[nodiscard]] Report report_on(const Exercise &exercise);
/// Whether a file of that size is no larger than kMostText; if not, the report tells it. PURE.
[[nodiscard]] bool small_enough(Report &report, uint64_t bytes);
/// Whether the text is more than comments, and doesn't say that it is of another lesson; if not, the report tells it. PURE.
[[nodiscard]] bool worth_checking(const Exercise &exercise, Report &report);

/// What the machine has.
struct Means {
    experiment::Surroundings surroundings;
    experiment::MakeLab lab = nullptr; ///< where the steps are done
};
/// Carries the check's steps (the text of check.exp) out on the exercise. What is wrong with the exercise is a Finding. Errors:
/// the check itself is wrong (bad_input); permission and unsupported, where the kernel is needed and can't be had.
[[nodiscard]] Result<void> judge(const Exercise &exercise, const std::string &check, const Means &means, Report &report);

/// Adds a finding; its line is found in the sentence where that names it.
void add_finding(Report &report, std::string_view kind, std::string sentence, std::string hint = {});

} // namespace rawbpf::inline v0::lab
