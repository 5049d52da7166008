// SPDX-License-Identifier: MIT
// For BPF programs: this one differs between architectures, so it is the host's, which programs with struct pt_regs mean.
#if __has_include_next(<asm/processor-flags.h>)
#include_next <asm/processor-flags.h>
#elif __has_include("/usr/include/x86_64-linux-gnu/asm/processor-flags.h")
#include "/usr/include/x86_64-linux-gnu/asm/processor-flags.h"
#elif __has_include("/usr/include/aarch64-linux-gnu/asm/processor-flags.h")
#include "/usr/include/aarch64-linux-gnu/asm/processor-flags.h"
#endif
