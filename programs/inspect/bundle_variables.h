// The variables of a section of data as a struct of C with types of fixed width. PURE.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/btf/btf.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::inspect {

/// A variable that has a name in the struct.
struct BundleVariable {
    std::string name;
    uint32_t offset = 0, size = 0; ///< in the section, in bytes
};
struct BundleVariables {
    std::string members; ///< lines of C
    std::vector<BundleVariable> variables;
};

/// Numbers and arrays of them have types of <stdint.h>; what else there is (structs, packed places) are bytes, with a comment
/// that says what they are. Gaps are members, so that the struct has the layout of the section on every compiler. Errors:
/// bad_input.
[[nodiscard]] Result<BundleVariables> bundle_variables(const btf::Btf &types, const MapSpec &map);

} // namespace rawbpf::inline v0::inspect
