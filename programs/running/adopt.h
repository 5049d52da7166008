// A program that is already loaded, as an object with this one program, so that it can be attached.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/kernel/loader.h"

namespace rawbpf::inline v0::running {

/// The name of a section for what a person calls a place: "kprobe:vfs_read" and "kprobe/vfs_read" are kprobe/vfs_read,
/// "tracepoint:sched:sched_switch" is tracepoint/sched/sched_switch. What is none stays as it is. PURE.
[[nodiscard]] std::string section_of_place(std::string_view place);

/// The program, with its maps, in section_of_place(place). Errors: invalid_argument where no section is called so, where the
/// place lacks its target, or where the program isn't of the type that such a section has; permission.
[[nodiscard]] Result<LoadedObject> adopt_program(Fd program, std::string_view place);

} // namespace rawbpf::inline v0::running
