// SPDX-License-Identifier: MIT
// For BPF programs where <asm/socket.h> lies in a folder of one architecture (Debian), which clang doesn't search for the BPF
// target. Whatever the search path has comes first. See types.h.
#if __has_include_next(<asm/socket.h>)
#include_next <asm/socket.h>
#else
#include <asm-generic/socket.h>
#endif
