// Constants of system calls by name. PURE.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rawbpf::inline v0::trace {

/// "O_RDWR|O_CREAT", "AT_FDCWD", "SIGTERM", "0644": what the value of a function's argument is called; empty where nothing is
/// known of that argument, or where the value says it better. Functions of the kernel and of libc go by the system call's name,
/// arguments by the names that the kernel gives them (tracefs) or the manual pages.
[[nodiscard]] std::string constant_name(std::string_view function, std::string_view argument, uint64_t value);
/// Whether any value of that argument has a name.
[[nodiscard]] bool has_constants(std::string_view function, std::string_view argument);

} // namespace rawbpf::inline v0::trace
