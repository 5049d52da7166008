// What a profile shows of a language's functions in a process: those of an interpreter, and those of code made at run time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/elf/elf.h"
#include "runtime/symbols/maps.h"

namespace rawbpf::inline v0::doctor {

/// A runtime that a process has mapped.
struct Runtime {
    std::string path;       ///< its file
    std::string language;   ///< "Python", "Java", "node" ...
    std::string version;    ///< "CPython 3.11.2"; empty: not known
    bool functions = false; ///< the language's own functions are shown, as far as `how` says
    std::string how;        ///< a sentence: how they are found, or why they aren't
    std::string advice;     ///< what would show more; empty: nothing
};

/// Looks at a file that the process has mapped at `region`. Of an interpreter whose frames can be walked their layout is learnt
/// from the process as it is now, which changes nothing in it. nullopt: no runtime's file.
[[nodiscard]] std::optional<Runtime> examine_runtime(int pid, const symbols::Region &region, const elf::Elf &file, Bytes bytes);

/// What tells the names of code that was made at run time: a jitdump that is mapped, or the perf map.
struct CompiledNames {
    std::string text = {}; ///< half a sentence; empty: there is no such code
    bool any = false;
};
[[nodiscard]] CompiledNames compiled_names(int pid, const symbols::ProcessMaps &maps, size_t anonymous);

/// Of several files of one language the one whose functions are shown is kept: a program that only starts its library isn't told
/// of. Advice on names goes where code made at run time is named already (`named`).
void settle_runtimes(std::vector<Runtime> &runtimes, bool named);

/// Lines behind append_process_text()'s.
void append_runtime_text(std::string &out, const Runtime &runtime);
/// {"type":"runtime",...}.
void append_runtime_json(std::string &out, const Runtime &runtime, int pid);
/// {"type":"compiled_code",...}: what compiled_names() says.
void append_compiled_json(std::string &out, int pid, size_t regions, std::string_view names);

} // namespace rawbpf::inline v0::doctor
