// Programs that are verified against another BPF program: freplace, and fentry or fexit of one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// The BTF id of function `name` in the types of a loaded program (the program itself, or a global function of it). Errors:
/// not_found with the functions that there are; unsupported when the program was loaded without types.
[[nodiscard]] Result<uint32_t> function_in_program(int program_fd, std::string_view name);

/// A loaded program as a person names it: its id ("47"), where it is pinned (anything with a slash), or its name, of which the
/// kernel keeps 15 characters. Errors: not_found; invalid_argument where several have the name (the text lists their ids) or
/// the path holds something else; permission.
[[nodiscard]] Result<Fd> find_loaded_program(const std::string &which);

} // namespace rawbpf::inline v0
