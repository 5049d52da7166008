// What a product has that doesn't say RAWBPF_PARTS: everything. A file of its own in the archive, which the linker only takes
// where the product defines no such list itself.
#include "runtime/core/rawbpf/core.h"

// NOLINTNEXTLINE: C's names
RAWBPF_PARTS(&rawbpf_kprobes, &rawbpf_uprobes, &rawbpf_usdt, &rawbpf_tracepoints, &rawbpf_trampolines, &rawbpf_iterators,
             &rawbpf_perf_events, &rawbpf_network, &rawbpf_infrared, &rawbpf_kernel_types, &rawbpf_struct_ops,
             &rawbpf_kernel_config);
