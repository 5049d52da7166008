// Changes a copy of BTF so that an older kernel accepts it. PURE.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// Which kinds a kernel's BTF_LOAD takes.
struct BtfSupport {
    bool var_datasec = true; ///< VAR and DATASEC, 5.2
    bool func_global = true; ///< FUNC with a linkage other than static, 5.6
    bool float_kind = true;  ///< 5.13
    bool decl_tag = true;    ///< 5.16
    bool type_tag = true;    ///< 5.17
    bool enum64 = true;      ///< and signed ENUM, 6.0
    bool any_name = true;    ///< DATASEC with a '?' in its name, of sections that may be left out, 6.9
    [[nodiscard]] bool everything() const {
        return var_datasec && func_global && float_kind && decl_tag && type_tag && enum64 && any_name;
    }
};

/// The same types under the same ids, with every kind that isn't supported replaced by an older one of the same shape.
/// Errors: bad_input with the offset.
[[nodiscard]] Result<std::vector<std::byte>> sanitize_btf(Bytes btf, const BtfSupport &support);

} // namespace rawbpf::inline v0
