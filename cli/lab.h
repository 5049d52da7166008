// The other executable: rawbpf-lab, which has the laboratory's commands too.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "programs/usdt/fetch.h"

namespace rawbpf::inline v0::cli {

/// Whether this executable is the one with every command (commands_all.cpp says so, commands_tools.cpp not).
extern const bool kHasLab;
/// What puts an argument's instructions into words, where this executable has the printer; else nullptr.
extern const usdt::Explain kExplainArgument;

/// Where rawbpf-lab lies, given where this executable does: beside it, named alike ("rawbpf-arm64" -> "rawbpf-lab-arm64"). PURE.
[[nodiscard]] std::string lab_beside(std::string_view own_path);

/// Gives a command line to rawbpf-lab where it is a matter for it: the laboratory's commands, commands that don't exist, and
/// what speaks of all commands (help, man pages, completions). Doesn't return when rawbpf-lab takes over; nullopt: go on here;
/// otherwise the exit status, and what is missing has been said.
[[nodiscard]] std::optional<int> pass_to_lab(std::span<const std::string_view> words);
/// The same for a command line that is known to be for rawbpf-lab, by its words behind "rawbpf": returns only where that can't be
/// run, with the exit status.
[[nodiscard]] int become_lab(std::span<const std::string_view> words);

} // namespace rawbpf::inline v0::cli
