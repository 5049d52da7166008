// Files of the kernel: /proc, /sys and what is mounted below them. Tells "it doesn't exist" apart from "it can't be seen".
//
// A missing file of the kernel says something about the kernel only if its file system is visible. In a container, a sandbox
// or a small system it often isn't: nothing is mounted there, something else covers it, or /proc shows processes only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::sys {

/// Why nothing can be said of the file at `path`, which wasn't found: "no sysfs at /sys/kernel"; empty: the kernel has no such
/// file, as its file system can be seen and it isn't there.
[[nodiscard]] std::string hidden_below(const std::string &path);

/// The file's text. Errors: not_found only where the kernel has no such file; `unsupported`, with ENOENT, where that can't be
/// seen (the message says why); bad_input where it is empty, as a file is that something was put over.
Result<std::string> read_kernel_file(const std::string &path, size_t limit = 64 << 20);
/// The same of its first line, without the newline.
Result<std::string> kernel_line(const std::string &path);
/// The same of a directory's names, unsorted. An empty one is none's error.
Result<std::vector<std::string>> list_kernel_directory(const std::string &path);

/// Says of an ENOENT below /proc or /sys that nothing is mounted there, and how it is: "opening /proc/kallsyms (no procfs at
/// /proc)". Other errors stay as they are. sys::open() does this.
[[nodiscard]] Error unmounted(Error error, const std::string &path);

/// Whether such an error says that the kernel has no such file.
[[nodiscard]] bool is_absent(const Error &error);
/// The hint for something whose file wasn't found: `absent`, or that it can't be seen whether this kernel has it, and why.
[[nodiscard]] std::string absent_hint(const std::string &path, std::string_view absent);

} // namespace rawbpf::inline v0::sys
