// The kernel's error numbers, which helpers return to programs. The C library of WebAssembly has others.
#ifndef RAWBPF_PAGE_ERRNO_H
#define RAWBPF_PAGE_ERRNO_H

#include <asm-generic/errno.h>

#define ENOTSUP EOPNOTSUPP

#ifdef __cplusplus
extern "C"
#endif
    int *
    __errno_location(void);
#define errno (*__errno_location())

#endif
