// Explains EPERM. Part of the loader.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/error.h"
#include "runtime/sys/privileges.h"

namespace rawbpf::inline v0 {

/// PURE. What somebody with `own` lacks for loading programs of these types (BPF_PROG_TYPE_*; none: maps alone), as a sentence
/// that says what helps; empty: nothing. `first_namespace`: in the first user namespace, the only one whose capabilities bpf(2)
/// counts.
[[nodiscard]] std::string missing_privileges(std::span<const uint32_t> program_types, sys::Capabilities own,
                                             bool first_namespace);

/// The same for this process.
[[nodiscard]] std::string missing_privileges(std::span<const uint32_t> program_types);

} // namespace rawbpf::inline v0
