// kprobes and uprobes as perf events: no names in tracefs, nothing left behind. Private to this folder.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/sys/perf.h"

namespace rawbpf::inline v0 {

/// Where a kprobe or uprobe goes.
struct ProbePlace {
    bool user = false;
    bool returns = false;
    std::string name;       ///< kprobe: the function, or empty: `address`; uprobe: the file's path
    uint64_t address = 0;   ///< kprobe without a name
    uint64_t offset = 0;    ///< from the function; in the file for a uprobe
    uint64_t semaphore = 0; ///< uprobe: file offset of a counter raised while it is there (4.20)
    int pid = -1;           ///< uprobe: one process; 0 and less: all
};

/// perf_event_open(2) with the type, the bit for returns and the place of the semaphore that sysfs tells. Errors: unsupported
/// where this kernel has no such PMU (CONFIG_KPROBE_EVENTS, CONFIG_UPROBE_EVENTS); everything else is the kernel's errno.
[[nodiscard]] Result<Fd> open_probe(const ProbePlace &place);
/// The attr that open_probe() asks with. `place` has to outlive it.
[[nodiscard]] Result<sys::PerfEventAttr> probe_attr(const ProbePlace &place);

} // namespace rawbpf::inline v0
