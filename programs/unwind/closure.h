// Which files' code a command will run, before it runs: so that their tables are there when its first sample comes.
//
//      "timeout 5 sh -c 'make | tee log'" --> timeout, sh, make, tee      runners, whose arguments are commands
//      /usr/bin/make                      --> itself, its #! interpreter or PT_INTERP, what they need (DT_NEEDED), and so on
//
// A guess that costs nothing when it is wrong: what is missed gets its table when it is seen, and what isn't run goes first when
// there is no room.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/fd.h"

namespace rawbpf::inline v0::unwind {

/// Where a command's files are looked for, as its shell and its dynamic linker would.
struct CommandEnvironment {
    std::string path;         ///< $PATH
    std::string library_path; ///< $LD_LIBRARY_PATH
    std::string preload;      ///< $LD_PRELOAD
    std::string cache = "/etc/ld.so.cache";
    size_t most = 128; ///< files
    /// This process's, which a workload inherits.
    [[nodiscard]] static CommandEnvironment own();
};

/// The commands that one starts: itself first, then what env, timeout, sh -c and their like run.
[[nodiscard]] std::vector<std::vector<std::string>> commands_of(const std::vector<std::string> &argv);

/// Calls `found` for each file once: ELF files of this machine, the important ones first. False from it ends the search. What
/// isn't there is passed over.
void files_of_command(const std::vector<std::string> &argv, const CommandEnvironment &environment,
                      const std::function<bool(const std::string &path, const Fd &file)> &found);

} // namespace rawbpf::inline v0::unwind
