// Other kernels: guests under QEMU, by the scripts that `./dev vm` runs too (tests/vm, installed as share/rawbpf/vm).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::cli {

/// The command that boots guests, with what the environment has to say put there: python3 and the script. Errors: unsupported
/// where it isn't installed, or there is no python3.
[[nodiscard]] Result<std::vector<std::string>> guest_command();

/// One command in one guest.
struct GuestRun {
    std::string kernel;               ///< "6.12", one of the names that `rawbpf vm --list` lists
    std::vector<std::string> options; ///< of `rawbpf vm`
    std::vector<std::string> command;
};
struct GuestEnd {
    int status = 0; ///< the command's; 3: there is no such guest, which was said
    std::string out;
};
/// Boots, runs, collects standard output; standard error comes as it is. Errors: as above; a kernel that doesn't exist is a
/// status of 2, which was said.
[[nodiscard]] Result<GuestEnd> run_in_guest(const GuestRun &run);

/// The same command in several, one after the other; what each printed is given to `each`. Errors are said. Returns the exit
/// status: that of the first guest that failed; 4 where some only said that expectations didn't hold.
[[nodiscard]] int run_in_guests(std::string_view who, std::span<const std::string> kernels, const GuestRun &run,
                                const std::function<Result<void>(const std::string &kernel, std::string &&out)> &each);

/// Where the file is, without links, from the root: the guest finds it there. Errors: it can't be opened.
[[nodiscard]] Result<std::string> whole_path(std::string_view path);
/// This process's working directory.
[[nodiscard]] std::string working_directory();

/// "5.10,6.12" -> names. Errors: invalid_argument for an empty one.
[[nodiscard]] Result<std::vector<std::string>> kernel_names(std::string_view text);

} // namespace rawbpf::inline v0::cli
