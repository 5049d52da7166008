// Programs that are verified against another BPF program: freplace, and fentry or fexit of one.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// The BTF id of function `name` in the types of a loaded program (the program itself, or a global function of it). Errors:
/// not_found with the functions that there are; unsupported when the program was loaded without types.
[[nodiscard]] Result<uint32_t> function_in_program(int program_fd, std::string_view name);

} // namespace rawbpf::inline v0
