// A process that executes another program forgets at once what it had mapped, and the kernel's side of ours must, too.
//
//      exec of 4711 --> raw_tp/sched_process_exec --> when[4711 % 4096] = now; unwind_processes without 4711
//      samples of it --> not known: copied, or by frame pointers
//      its mappings come by the perf rings, some milliseconds later --> put 4711 --> did it execute one after all that is known?
//                                                                                    then the entry goes again
#pragma once

#include <cstdint>

#include "asm/unit.h"
#include "runtime/base/result.h"
#include "runtime/kernel/loader.h"
#include "runtime/link/link.h"
#include "runtime/sys/file.h"
#include "runtime/sys/namespaces.h"

namespace rawbpf::inline v0::unwind {

/// The program: on kernels from 5.10 on. `processes`: entries of unwind_processes; `ns`: the pid namespace that its keys count
/// in, nullopt: the initial one.
[[nodiscard]] Unit exec_watch_unit(uint32_t processes, const std::optional<sys::Namespace> &ns);

class ExecWatch {
  public:
    /// From here on until it is dropped each exec takes the process's entry out of `processes` (unwind_processes), which must
    /// outlive it. Errors: permission; whatever the kernel says.
    [[nodiscard]] static Result<ExecWatch> start(const Map &processes);
    /// Whether the process executed a program after that time (CLOCK_MONOTONIC). One whose number differs by a multiple of a few
    /// thousand may be taken for it. An exec that this doesn't say yet takes away whatever is in unwind_processes by now; one
    /// that it does say may be just about to.
    [[nodiscard]] bool executed_after(uint32_t pid, uint64_t t_ns) const;

  private:
    LoadedObject object_;
    sys::Mapping when_;
    Link link_; // goes first
};

} // namespace rawbpf::inline v0::unwind
