// The symbolic links of a directory, for directories with very many of them: /proc/PID/fd.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::sys {

/// Shows each entry's name and what the link holds, cut at 255 bytes; one that goes meanwhile, or is no link, is passed over. The
/// directory's path is resolved once. Errors: the kernel's, of the directory or of the first link that can't be read
/// (permission).
[[nodiscard]] Result<void> each_symbolic_link(const std::string &directory,
                                              const std::function<void(std::string_view name, std::string_view target)> &see);

} // namespace rawbpf::inline v0::sys
