// Where the running kernel has the members that our programs read. PURE.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/btf/btf.h"

namespace rawbpf::inline v0 {

/// Bytes from the structure's start to the member, also in anonymous members. Errors: not_found.
[[nodiscard]] Result<uint32_t> member_offset(const btf::Btf &kernel, std::string_view type_name, std::string_view member_name);

/// Whether the kernel has the members that return_probes.h follows: probes at returns, probed instructions.
[[nodiscard]] bool has_return_instances(const btf::Btf &kernel);
[[nodiscard]] bool has_probed_instructions(const btf::Btf &kernel);

} // namespace rawbpf::inline v0
