// A Java virtual machine is asked for the names of the code that it has compiled: as `jcmd PID Compiler.perfmap` does, which
// needs a JDK and seconds.
#pragma once

#include <cstdint>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::processes {

/// Whether a process has mapped libjvm.so and is ready to be asked: a signal to it is handled. Before that, SIGQUIT would end it.
[[nodiscard]] bool is_jvm(uint32_t pid);

/// Asks the virtual machine to write /tmp/perf-PID.map, and waits until it is written (at the first time a tenth of a second, at
/// most 2 s). It changes the process that is asked: it starts a thread there that answers, and writes a file. Needs JDK 17.
/// Errors: unsupported (is_jvm() says no; or the virtual machine was started with -XX:+DisableAttachMechanism and doesn't
/// answer), not_found (it ended), permission, and what the virtual machine answered.
[[nodiscard]] Result<void> ask_for_perf_map(uint32_t pid);

} // namespace rawbpf::inline v0::processes
