// C of an experiment -> an object, by the clang that is installed.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::experiment {

/// What is compiled.
struct CSource {
    std::string path; ///< of a file; empty: `text`
    std::string text;
    std::string name;                 ///< what messages and debug information call `text`
    std::vector<std::string> folders; ///< of headers
};

/// The object's bytes. What clang says of the source goes to standard error, as it says it. Errors: unsupported where there is no
/// clang that knows BPF; bad_input when it doesn't compile; the kernel's.
[[nodiscard]] Result<std::string> compile_c(const CSource &source);

} // namespace rawbpf::inline v0::experiment
