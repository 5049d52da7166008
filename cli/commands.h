// Every command, and what they share. To add one: a file with its table and its run function, and a line in commands.cpp.
#pragma once

#include <span>

#include "cli/options.h"

namespace rawbpf::inline v0::cli {

extern const Command kProfile, kReport, kTrace, kCustom;
extern const Command kUsdtList, kUsdtValidate, kUsdtTrace;
extern const Command kLoad, kExec, kStep;
extern const Command kInspect, kRelocs, kCheck, kLink;
extern const Command kBtfDump, kBtfMin, kGenSkeleton;
extern const Command kAsm, kDisasm, kIsa, kHelper;
extern const Command kDoctor, kCompletion, kHelp, kVersion, kMan;

/// This executable's, in the order in which help lists them (commands_all.cpp, commands_tools.cpp).
[[nodiscard]] std::span<const Command *const> all_commands();
/// By its whole name: "profile", "btf dump". nullptr: no such command.
[[nodiscard]] const Command *find_command(std::string_view name);
/// The command that a line's first words name.
[[nodiscard]] const Command *find_command(std::span<const std::string_view> words);
/// How many words its name has: 1 or 2.
[[nodiscard]] size_t words_of(const Command &command);

/// The error for a command that doesn't exist, with the nearest one in its hint.
[[nodiscard]] Error unknown_command(std::span<const std::string_view> words);

/// Runs rawbpf with the words behind argv[0]; returns the exit status.
[[nodiscard]] int run(std::span<const std::string_view> words);

} // namespace rawbpf::inline v0::cli
