// SPDX-License-Identifier: MIT
// A unit of the DSL or the assembler as an object file.
#pragma once

#include <cstddef>
#include <vector>

#include "asm/unit.h"
#include "runtime/base/result.h"
#include "runtime/btf/btf.h"

namespace rawbpf::inline v0 {

/// An ELF object as a compiler would have made it: sections of code, .maps, data, license, symbols and relocations, .BTF, and
/// .BTF.ext with functions, source lines and CO-RE relocations. For rawbpf, libbpf and bpftool to load, for llvm-objdump to read.
///
/// `kernel`: a kernel's types, needed where the unit names members of kernel structs (CO-RE relocates from one layout to another,
/// and the members named are written down as they are there) and where it calls kernel functions, whose prototypes are copied.
/// nullptr: neither.
/// Errors: invalid_argument for references to what the unit doesn't have, and for what an object can't hold (maps with contents
/// that aren't data sections); unsupported for members and kernel functions without types; not_found for functions that the
/// kernel doesn't have.
[[nodiscard]] Result<std::vector<std::byte>> write_object(const Unit &unit, const btf::Btf *kernel);

} // namespace rawbpf::inline v0
