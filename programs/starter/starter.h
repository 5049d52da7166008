// A small project to begin with: files as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::starter {

/// What the project's program does.
enum class Subject : uint8_t { hello, map, ringbuf, uprobe, xdp, experiment };
/// What it is written in.
enum class Language : uint8_t { text, c, dsl };

struct File {
    std::string name;
    std::string text;
    bool executable = false;
};

/// The words of the command line for them.
inline constexpr std::string_view kSubjects = "hello map ringbuf uprobe xdp experiment";
/// The subject of that word, which is one of them.
[[nodiscard]] Subject subject_named(std::string_view word);

/// The files of a project. PURE. Errors: invalid_argument for a name that isn't one of letters, digits, `_` and `-`, with a
/// letter in front, and for an experiment in C++.
[[nodiscard]] Result<std::vector<File>> project(Subject subject, Language language, std::string_view name);

/// Those of an experiment, with @NAME@ for the project's name. PURE. Errors: invalid_argument for Language::dsl.
[[nodiscard]] Result<std::vector<File>> experiment_files(Language language);

/// The program's source (not of an experiment), with @NAME@ for the project's name, @LENGTH@ for the greeting's length, and
/// @ARGUMENT@ for the place of the first argument in the registers of this machine. PURE.
[[nodiscard]] std::string_view program_source(Subject subject, Language language);

} // namespace rawbpf::inline v0::starter
