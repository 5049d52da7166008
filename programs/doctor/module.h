// What a profile can show of one file: how stacks go through it, which names its functions have, what else it contains.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/elf/elf.h"
#include "runtime/symbols/elf_symbols.h"
#include "runtime/unwind/coverage.h"
#include "runtime/unwind/table.h"

namespace rawbpf::inline v0::doctor {

/// One file.
struct Module {
    std::string path;             ///< as it was named, or as the process has it
    std::string_view machine;     ///< "x86_64", "arm64" ...
    std::string build_id;         ///< lower-case hex; empty: none
    unwind::TableStats unwinding; ///< functions, frames, frame pointers, what is odd or malformed
    size_t rows = 0, bytes = 0;   ///< of the table
    unwind::Coverage code;        ///< how stacks go through it
    std::string no_table;         ///< why there is none; empty otherwise
    bool go = false;              ///< has .gopclntab
    size_t symbols = 0;           ///< functions with names
    std::string symbols_from;     ///< ".symtab", ".dynsym", ".gnu_debugdata", ".gopclntab", or a debug file; empty: nowhere
    std::string debug_link;       ///< the name in .gnu_debuglink; empty: none
    std::string debug_info;       ///< the file that has .debug_info: itself or its debug file; empty: none was found
    size_t probes = 0;            ///< USDT sites
    std::string probes_bad;       ///< what is wrong with their notes

    /// Of 100 functions that make a frame, how many set up a frame pointer; -1 where that isn't known.
    [[nodiscard]] int frame_pointers() const;
    /// One sentence: what a profile of it will show.
    [[nodiscard]] std::string outlook() const;
};

/// Looks at a file's bytes. `names`: its symbols, where they could be read. `debug_path`: where its debug file is looked for
/// from; `root`: under which directory (/proc/PID/root), empty: the own one.
[[nodiscard]] Module examine_module(const elf::Elf &file, const std::string &path, const symbols::ElfSymbols *names,
                                    const std::string &root);

/// A block of lines.
void append_module_text(std::string &out, const Module &module);
/// {"type":"module",...}; `pid` 0: null.
void append_module_json(std::string &out, const Module &module, int pid);
/// A line a module, and what a profile of the process will show. `anonymous`: its regions of code that no file is behind;
/// `compiled`: who names it (runtime.h).
void append_process_text(std::string &out, int pid, std::span<const Module> modules, size_t anonymous, std::string_view compiled);

} // namespace rawbpf::inline v0::doctor
