// SPDX-License-Identifier: MIT
// For BPF programs. A 64-bit Debian keeps <asm/*.h> in /usr/include/x86_64-linux-gnu, which clang doesn't search for the BPF
// target, so that <linux/types.h> and all that includes it fail. The files of this folder stand in: what the search path has
// comes first (so a program for the host never sees this), then the generic ones of linux/ that every architecture with BPF
// shares.
#if __has_include_next(<asm/types.h>)
#include_next <asm/types.h>
#else
#include <asm-generic/types.h>
#endif
