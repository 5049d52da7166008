// What a Go program's DWARF says of its functions. PURE.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "programs/trace/go_abi.h"
#include "runtime/base/result.h"
#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::trace {

/// By the functions' addresses, of `addresses` those that it knows. Errors: not_found (no DWARF: -ldflags=-w, stripped),
/// bad_input, unsupported, no_memory (it is larger than anything that is read here).
[[nodiscard]] Result<std::unordered_map<uint64_t, GoSignature>> read_go_signatures(const elf::Elf &elf,
                                                                                   const std::vector<uint64_t> &addresses);

} // namespace rawbpf::inline v0::trace
