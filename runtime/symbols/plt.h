// The stubs of the procedure linkage table, which have no symbols of their own.
#pragma once

#include <vector>

#include "runtime/elf/elf.h"
#include "runtime/symbols/function_table.h"

namespace rawbpf::inline v0::symbols {

/// The PLT entries of an x86_64 or arm64 file.
struct PltEntries {
    FunctionTable named;             ///< calls of a dynamic symbol; Hit::name is its name's offset in .dynsym's string table
    FunctionTable indirect;          ///< calls of an IFUNC of the same file; Hit::name counts into `resolvers`
    std::vector<uint64_t> resolvers; ///< addresses of the functions that choose
};
/// Reads them; empty for other machines and files without a PLT. Malformed parts are passed over.
[[nodiscard]] PltEntries read_plt(const elf::Elf &elf);

} // namespace rawbpf::inline v0::symbols
