// A struct_ops map in the running kernel's terms. Part of the loader.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/kernel/kernel_symbols.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {

struct KernelStructOps {
    btf::TypeId type = 0;       ///< the kernel's struct, which its programs are verified against
    btf::TypeId value_type = 0; ///< struct bpf_struct_ops_NAME, which holds it
    ModuleBtf *module = nullptr;
    std::vector<std::byte> value; ///< of value_type; pointers to functions are still zero
    struct Member {
        uint32_t index = 0;  ///< in the kernel's struct; the program's expected_attach_type
        uint32_t offset = 0; ///< in `value`: where the program's descriptor goes, as 8 bytes
        std::string program;
    };
    std::vector<Member> members;
    /// Programs of members that this kernel's struct doesn't have: they can't be loaded for this map.
    std::vector<std::string> without_place;
};

/// Translates map.contents and map.slots, whose layout is the object's, into the kernel's. Errors: not_found (no such struct),
/// unsupported (a member that is set and that the kernel doesn't have, or has otherwise).
[[nodiscard]] Result<KernelStructOps> find_struct_ops(KernelSymbols &symbols, const MapSpec &map);

} // namespace rawbpf::inline v0
