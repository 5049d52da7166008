// What a profile shows of a Go program's goroutines (programs/labels).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "programs/labels/go_runtime.h"
#include "runtime/base/bytes.h"
#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::doctor {

/// A Go program, or a library by Go.
struct Goroutines {
    std::string path; ///< its file
    labels::GoRuntime runtime;
};

/// nullopt: the file isn't Go's.
[[nodiscard]] std::optional<Goroutines> examine_goroutines(const std::string &path, const elf::Elf &file, Bytes bytes);

/// A line behind append_process_text()'s.
void append_goroutines_text(std::string &out, const Goroutines &goroutines);
/// {"type":"goroutines",...}.
void append_goroutines_json(std::string &out, const Goroutines &goroutines, int pid);

} // namespace rawbpf::inline v0::doctor
