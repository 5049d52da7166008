// Lessons: folders with a text, an exercise, and what students don't get (check, solution, wrong).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::lab {

struct Lesson {
    uint32_t number = 0;
    std::string name;   ///< "03-maps"
    std::string title;  ///< "Maps"
    std::string folder; ///< where it is, with a slash at its end
};

/// "# 3 · Maps" -> 3 and "Maps". False: the text begins otherwise. PURE.
[[nodiscard]] bool parse_heading(std::string_view text, uint32_t &number, std::string_view &title);

/// "# Lesson 3: count packets" in the first lines of a student's file -> 3; 0: they don't say it. PURE.
[[nodiscard]] uint32_t lesson_said(std::string_view text);

/// Those in the first of these folders that has any, by number. Errors: not_found if none has; what reading them says.
[[nodiscard]] Result<std::vector<Lesson>> all_lessons(const std::vector<std::string> &folders);
/// By number ("3", "03") or name ("03-maps", "maps"). Errors: not_found, with those that there are.
[[nodiscard]] Result<Lesson> find_lesson(const std::vector<Lesson> &lessons, std::string_view word);

/// Which lesson a folder is of, by the heading of its lesson.md. Errors: bad_input when it is no lesson's folder.
[[nodiscard]] Result<uint32_t> lesson_of(const std::string &folder);

/// A file for the student: where it is in the lesson, and its name in the student's folder.
struct Handout {
    std::string from, name;
};
/// Without what is hidden. Errors: reading the folders.
[[nodiscard]] Result<std::vector<Handout>> handouts(const Lesson &lesson);

/// The one file lab.* of a folder: its name. Errors: bad_input when there is none, or more than one.
[[nodiscard]] Result<std::string> exercise_in(const std::string &folder);

} // namespace rawbpf::inline v0::lab
