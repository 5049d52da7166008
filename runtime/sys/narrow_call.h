// System calls on 32-bit machines. Callers say what a 64-bit kernel takes; here it becomes what a 32-bit one takes.
#pragma once

#include <sys/syscall.h>

#include "runtime/sys/invoke.h"

#if __SIZEOF_LONG__ == 4
/// What 32-bit machines call these; narrow() turns the arguments.
///@{
#ifndef __NR_mmap
#define __NR_mmap __NR_mmap2
#endif
#ifndef __NR_newfstatat
#define __NR_newfstatat __NR_fstatat64
#endif
///@}

namespace rawbpf::inline v0::sys {

/// The call as this 32-bit kernel takes it, made: the return value, or -errno. Structures of the C library that differ from the
/// kernel's (struct stat, struct rusage) are filled in from the kernel's.
long narrow_call(const Call &call);

} // namespace rawbpf::inline v0::sys
#endif
