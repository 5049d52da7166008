// What the program counted.
#pragma once

#include "programs/render/ledger.h"
#include "runtime/kernel/loader.h"

namespace rawbpf::inline v0::profile {

/// Adds the sums of all CPUs: fired, filtered, sampled out, and first among the losses that the ring was full. Of the loaded
/// program, when no CPU runs the program any more.
[[nodiscard]] Result<void> read_counts(LoadedObject &object, Ledger &ledger);

} // namespace rawbpf::inline v0::profile
