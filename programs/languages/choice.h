// Whether a tool's programs walk interpreters' frames, as choice.h of programs/unwind has it of native ones.
//
//      UnwindProgramOptions, ScriptView --walks_languages--> yes, or why not     load()     --refused--> without, and a note
#pragma once

#include <optional>
#include <string>

#include "programs/unwind/program.h"
#include "runtime/base/error.h"

namespace rawbpf::inline v0 {

/// Of programs that walk user stacks by `unwind`, on this machine and kernel. No: `why` says it, a sentence for -v.
[[nodiscard]] bool walks_languages(const std::optional<UnwindProgramOptions> &unwind, std::string &why);
/// The kernel has refused such a program, and takes it without: a sentence.
[[nodiscard]] std::string languages_refused(const Error &refused);

} // namespace rawbpf::inline v0
