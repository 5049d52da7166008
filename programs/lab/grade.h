// Carries out a lesson's check on a student's file.
#pragma once

#include <string>
#include <vector>

#include "programs/lab/lesson.h"
#include "programs/lab/report.h"
#include "runtime/base/result.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::lab {

/// What a check may use, all in all.
inline constexpr sys::Bounded kBounds{.memory_bytes = uint64_t{1} << 30, .file_bytes = 64 << 20, .cpu_s = 30};
/// Seconds until it is ended.
[[nodiscard]] double patience_s(bool kernel);

struct GradeOptions {
    std::vector<std::string> headers; ///< where headers of programs in C are
    std::string rawbpf;               ///< the path of this program, for scripts
};

/// Whether the lesson's check loads into the running kernel. False too when there is no check.exp.
[[nodiscard]] bool needs_kernel(const Lesson &lesson);

/// `folder`: the student's. What is wrong with the student's file is a Finding. Errors: there is no such file, or more than one;
/// the check itself is wrong (bad_input); permission and unsupported, where the kernel is needed and can't be had.
[[nodiscard]] Result<Report> grade(const Lesson &lesson, const std::string &folder, const GradeOptions &options);

} // namespace rawbpf::inline v0::lab
