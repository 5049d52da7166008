// Before the kernel puts a uprobe into the memory of processes, it takes a lock that every fork() takes for reading
// (kernel/events/uprobes.c, register_for_each_vma: dup_mmap_sem). Readers of such a lock (percpu_rw_semaphore) pay nothing
// while nobody writes; so after a pause the first writer has to wait until every CPU has noticed: a grace period of RCU, two
// or three ticks, 8 to 12 ms at 250 Hz. That is longer than everything else from rawbpf's start to the first event. A writer
// that comes while another one is there, or soon after, doesn't wait.
//
//      without     | match, compile, load | wait .................. | attached
//      with        | match, compile, load | ...... | attached
//                  | wait .................. |
//
// The second line is a copy of this process, which sets a uprobe on a file of one page that nobody has mapped.
// That probe has to stay until our uprobes are attached: removing it takes the lock for writing as well.
#include "runtime/link/uprobe_head_start.h"

#include "runtime/base/format.h"
#include "runtime/link/probe_event.h"
#include "runtime/sys/file.h"
#include "runtime/sys/memory_file.h"

namespace rawbpf::inline v0 {

UprobeHeadStart UprobeHeadStart::begin() {
    constexpr uint64_t kBytes = 64; // a probe has to lie within its file
    UprobeHeadStart out;
    Result<Fd> file = sys::memory_file("rawbpf-nothing");
    if (!file || !sys::truncate(file->get(), kBytes)) return out;
    ProbePlace place;
    place.user = true;
    place.name = format("/proc/self/fd/{}", file->get());
    Result<sys::PerfEventAttr> attr = probe_attr(place);
    if (!attr) return out;
    Result<sys::BlockingCall> call = sys::perf_event_open_in_copy(*attr, -1, 0, file->get());
    if (!call) return out;
    out.file_ = std::move(*file);
    out.call_ = std::move(*call);
    return out;
}

} // namespace rawbpf::inline v0
