// Every command, and what they share. To add one: a file with its table and its run function, and a line in command_list.cpp.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cli/options.h"
#include "cli/parts.h"

namespace rawbpf::inline v0::cli {

extern const Command kProfile, kReport, kTrace, kCustom;
extern const Command kUsdtList, kUsdtValidate, kUsdtTrace;
extern const Command kRun, kLoad, kAttach, kExec, kStep, kBench, kCompare, kVerify, kExplain, kDraw;
extern const Command kInspect, kRelocs, kCheck, kLink;
extern const Command kLabList, kLabStart, kLabCheck, kLabGrade;
extern const Command kTop, kProgList, kProgShow, kProgDump, kProgRun, kProgPin, kMapList, kMapShow, kMapDump, kMapWatch, kMapGet,
    kMapSet, kMapDelete, kMapPin, kNetList, kLinkList, kLinkShow, kBtfList, kBtfShow;
extern const Command kBtfDump, kBtfMin, kBundle, kGenSkeleton;
extern const Command kAsm, kDisasm, kEncode, kDecode, kIsa, kHelper;
extern const Command kAttr, kNew, kVm, kVmBundle, kDoctor, kCompletion, kWords, kHelp, kVersion, kMan;

/// This build's, in the order in which help lists them (command_list.cpp).
[[nodiscard]] std::span<const Command *const> all_commands();
/// By its whole name: "profile", "btf dump". nullptr: no such command.
[[nodiscard]] const Command *find_command(std::string_view name);
/// The command that a line's first words name.
[[nodiscard]] const Command *find_command(std::span<const std::string_view> words);
/// How many words its name has: 1 or 2.
[[nodiscard]] size_t words_of(const Command &command);
/// Those with this first word of two, without the hidden ones; empty where none is in this build.
[[nodiscard]] std::vector<const Command *> commands_below(std::string_view first);

/// What to say of a command that this build leaves out; nothing if the line's first words name no such command.
[[nodiscard]] std::optional<Error> left_out_command(std::span<const std::string_view> words);
/// The error for a command that doesn't exist, with the nearest one in its hint; unsupported for one that was left out.
[[nodiscard]] Error unknown_command(std::span<const std::string_view> words);
/// It said to who asked for that command; returns the exit status.
[[nodiscard]] int complain_unknown(std::string_view who, std::span<const std::string_view> words);

/// Runs rawbpf with the words behind argv[0]; returns the exit status.
[[nodiscard]] int run(std::span<const std::string_view> words);

} // namespace rawbpf::inline v0::cli
