// SPDX-License-Identifier: MIT
// For BPF programs where <asm/bpf_perf_event.h> lies in a folder of one architecture (Debian), which clang doesn't search for the
// BPF target. Whatever the search path has comes first. See types.h.
#if __has_include_next(<asm/bpf_perf_event.h>)
#include_next <asm/bpf_perf_event.h>
#else
#include <asm-generic/bpf_perf_event.h>
#endif
