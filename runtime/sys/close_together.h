// Closes descriptors at the same time: each close waits for the kernel, and so all of them wait only once.
#pragma once

#include <vector>

#include "runtime/base/fd.h"

namespace rawbpf::inline v0::sys {

/// Whether somebody sees the calls that are made (invoke.h): those come from one thread only.
[[nodiscard]] bool is_watched();

/// Closes them all, and returns when all are closed. A few, or where the calls are watched, one after the other; more by threads,
/// which are gone when this returns.
void close_together(std::vector<Fd> files);

} // namespace rawbpf::inline v0::sys
