// __arg_ctx for kernels before 6.8. PURE.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/result.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {

/// The object's BTF with types added, and function information that uses them.
struct ContextArguments {
    std::vector<std::byte> btf;
    std::vector<FuncInfo> func_info;
};

/// Gives the parameters that are marked as the context (DECL_TAG "arg:ctx" on a global function of `program`) the type that older
/// kernels know a context by: struct __sk_buff *, struct xdp_md * ... as the program's type has it. nullopt when no parameter
/// needs it, or programs of this type have no named context. Errors: bad_input.
[[nodiscard]] Result<std::optional<ContextArguments>> type_context_arguments(Bytes btf, const ProgramSpec &program);

} // namespace rawbpf::inline v0
