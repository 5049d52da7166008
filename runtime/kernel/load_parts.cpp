// All that an object may need when it is loaded. The core has core/ways.cpp in place of this file.
#include "runtime/kernel/load_parts.h"

#include "runtime/kernel/kconfig.h"
#include "runtime/kernel/loading.h"

namespace rawbpf::inline v0 {

Result<std::unique_ptr<KernelSymbols>> kernel_types_part(const ObjectSpec &spec, const std::string &btf_path) {
    return std::make_unique<KernelSymbols>(spec, btf_path);
}

Result<void> struct_ops_part(Loading &loading, std::vector<size_t> &chosen) { return prepare_struct_ops(loading, chosen); }

Result<std::vector<std::byte>> kernel_config_part(const ObjectSpec &spec) { return running_kconfig_values(spec); }

} // namespace rawbpf::inline v0
