// SPDX-License-Identifier: MIT
// Addresses of a process that runs, as names: maps, symbol tables, JIT maps, the vdso and the kernel's own symbols behind one
// question.
//
//      ProcessSymbols symbols = RAWBPF_TRY(ProcessSymbols::of(pid));
//      for (const NamedAddress &at : symbols.name(addresses)) std::printf("%s+0x%lx\n", at.function.c_str(), at.offset);
//
// (The tools name stacks in another way, programs/processes: what they look at ends before it is named.)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/symbols/elf_symbols.h"
#include "runtime/symbols/maps.h"
#include "runtime/symbols/perf_map.h"

namespace rawbpf::inline v0::symbols {

/// An address, and all that is known of it.
struct NamedAddress {
    uint64_t address = 0; ///< as asked
    std::string function; ///< demangled; empty: `why` says why
    uint64_t offset = 0;  ///< from the function's start, in bytes
    std::string
        module; ///< the mapping as the kernel prints it: "/usr/lib/libc.so.6", "[vdso]"; "vmlinux" or a kernel module's name
    uint64_t file_offset = 0; ///< of `address` in that file; 0 where no file is behind it
    std::string why; ///< why there is no function: "no code is mapped there", "the file has no symbol there", an error's words
};

/// What ProcessSymbols may use besides the files on this machine.
struct ProcessSymbolsOptions {
    ElfSymbols::Decompress decompress =
        nullptr;                     ///< an xz decoder for .gnu_debugdata (Fedora's small symbol tables); nullptr: none
    DebugFetcher *fetcher = nullptr; ///< asked for debug files of stripped files; must outlive the symbols; nullptr: nobody
};

/// Names code of one process. It keeps the tables of the files that it has met, open, so repeated questions are cheap. For one
/// thread at a time.
class ProcessSymbols {
  public:
    /// The process `pid` (of our pid namespace; 0: this one). Errors: not_found when there is none, permission when
    /// /proc/PID/maps may not be read (another user's).
    [[nodiscard]] static Result<ProcessSymbols> of(int pid, const ProcessSymbolsOptions &options = {});

    /// One answer for each address, in the order asked. Addresses of the kernel (the upper half) are named by kallsyms. For a
    /// return address ask for the byte before it: the call may be the last instruction of its function. Code that was mapped
    /// since the last question is found, as long as the process lives.
    [[nodiscard]] std::vector<NamedAddress> name(std::span<const uint64_t> addresses);
    /// The same for one address.
    [[nodiscard]] NamedAddress name(uint64_t address);

  private:
    struct Table {
        std::optional<ElfSymbols> symbols;
        std::string problem; // why there are none
    };
    ProcessSymbols() = default;
    void read_again();
    void name_user(NamedAddress &at);
    Table &table_of(const Region &region);
    void name_compiled(NamedAddress &at);

    int pid_ = 0;
    Fd process_; // a pidfd: the number may be another process's one day
    ProcessSymbolsOptions options_;
    ProcessMaps maps_;
    std::map<std::pair<uint64_t, std::string>, Table> tables_; // by inode and path
    std::optional<PerfMap> compiled_;
    bool fresh_ = false; // whether the maps were read since the question began
};

} // namespace rawbpf::inline v0::symbols
