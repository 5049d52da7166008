// Constants of system calls by name. PURE.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rawbpf::inline v0::trace {

/// How a value is made of constants. A recording has these numbers: add new ones at the end.
enum class ConstantStyle : uint8_t {
    bits,       ///< values, or'ed
    one_of,     ///< one of the values
    low4_and,   ///< one of the values in the lowest 4 bits, and bits of `more`
    low7_and,   ///< the same with 7
    open_flags, ///< O_RDONLY, O_WRONLY or O_RDWR, and bits
    access,     ///< F_OK or bits
    octal,      ///< a file's mode
    signal,     ///< a signal
    clone,      ///< bits, and in the lowest byte the signal that the parent gets
    at,         ///< a directory's descriptor, or AT_FDCWD
};

struct Constant {
    uint32_t value;
    std::string_view name;
};

/// What the values of an argument are called on a machine: of this one, or of another one, which a recording brings along.
struct Constants {
    ConstantStyle style = ConstantStyle::bits;
    std::span<const Constant> values = {}, more = {};
};

/// What is known of a function's argument; nullopt: nothing. Its names are this machine's.
[[nodiscard]] std::optional<Constants> constants_of(std::string_view function, std::string_view argument);
/// A value by them; see below.
[[nodiscard]] std::string constant_name(const Constants &constants, uint64_t value);

/// "O_RDWR|O_CREAT", "AT_FDCWD", "SIGTERM", "0644": what the value of a function's argument is called; empty where nothing is
/// known of that argument, or where the value says it better. Functions of the kernel and of libc go by the system call's name,
/// arguments by the names that the kernel gives them (tracefs) or the manual pages.
[[nodiscard]] std::string constant_name(std::string_view function, std::string_view argument, uint64_t value);

} // namespace rawbpf::inline v0::trace
