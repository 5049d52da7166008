// SPDX-License-Identifier: MIT
// For BPF programs where <asm/bitsperlong.h> lies in a folder of one architecture (Debian), which clang doesn't search for the
// BPF target. Whatever the search path has comes first. See types.h.
#if __has_include_next(<asm/bitsperlong.h>)
#include_next <asm/bitsperlong.h>
#else
#define __BITS_PER_LONG 64
#include <asm-generic/bitsperlong.h>
#endif
