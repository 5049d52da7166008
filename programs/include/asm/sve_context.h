// SPDX-License-Identifier: MIT
// For BPF programs: this one differs between architectures, so it is the host's, which programs with struct pt_regs mean.
#if __has_include_next(<asm/sve_context.h>)
#include_next <asm/sve_context.h>
#elif __has_include("/usr/include/x86_64-linux-gnu/asm/sve_context.h")
#include "/usr/include/x86_64-linux-gnu/asm/sve_context.h"
#elif __has_include("/usr/include/aarch64-linux-gnu/asm/sve_context.h")
#include "/usr/include/aarch64-linux-gnu/asm/sve_context.h"
#endif
