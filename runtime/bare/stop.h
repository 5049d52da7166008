// The last words of a static executable that can't go on.
#pragma once

namespace rawbpf {
/// Prints one line to standard error and aborts.
[[noreturn]] void stop(const char *what);
} // namespace rawbpf
