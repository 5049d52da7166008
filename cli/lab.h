// The other executable: rawbpf-lab, which has the laboratory's commands too.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rawbpf::inline v0::cli {

/// Whether this executable is the one with every command (command_list.cpp says so).
extern const bool kHasLab;

/// Where this executable lies.
[[nodiscard]] std::string own_path();
/// Where rawbpf-lab lies, given where this executable does: beside it, named alike ("rawbpf-arm64" -> "rawbpf-lab-arm64"). PURE.
[[nodiscard]] std::string lab_beside(std::string_view own_path);

/// Gives a command line to rawbpf-lab where it is a matter for it: the laboratory's commands, commands that don't exist, and
/// what speaks of all commands (help, man pages, completions). Doesn't return when rawbpf-lab takes over; nullopt: go on here;
/// otherwise the exit status, and what is missing has been said.
[[nodiscard]] std::optional<int> pass_to_lab(std::span<const std::string_view> words);

} // namespace rawbpf::inline v0::cli
