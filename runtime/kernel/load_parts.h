// What only some objects need when they are loaded. The loader calls it by these functions, so that a product which links the
// core can leave it out: the library has all (load_parts.cpp), the core a list of the parts that were named (core/ways.cpp). Part
// of the loader. Each has the error unsupported where this program was linked without the part.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/kernel/kernel_symbols.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {

struct Loading;

/// The kernel's types and symbols: CO-RE, kernel functions and variables, targets of fentry. As KernelSymbols' constructor.
[[nodiscard]] Result<std::unique_ptr<KernelSymbols>> kernel_types_part(const ObjectSpec &spec, const std::string &btf_path);
/// struct_ops maps: prepare_struct_ops().
[[nodiscard]] Result<void> struct_ops_part(Loading &loading, std::vector<size_t> &chosen);
/// `extern ... __kconfig` variables: running_kconfig_values().
[[nodiscard]] Result<std::vector<std::byte>> kernel_config_part(const ObjectSpec &spec);

} // namespace rawbpf::inline v0
