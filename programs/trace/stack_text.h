// A named stack as text, as JSON, as a folded line: of an event, and of a group of events.
#pragma once

#include <string>

#include "programs/trace/names.h"

namespace rawbpf::inline v0::trace {

/// A frame a line, the innermost first: the kernel's, then the user's.
void append_stack_lines(std::string &out, const NamedStack &stack);
/// {"kernel":[frame...],"user":[frame...]}, where unwind tables were used "user_end".
void append_json_stack(std::string &out, const NamedStack &stack);
/// "main;parse;vfs_read_[k]": the outermost frame first, as the folded format has it.
[[nodiscard]] std::string folded(const NamedStack &stack);

} // namespace rawbpf::inline v0::trace
