// Values of `extern ... __kconfig` variables: the kernel's configuration as constants of a program. Part of the loader.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {

/// What the names that start with LINUX_ stand for: facts about the kernel that no configuration says.
struct VirtualConfig {
    uint32_t version = 0;         ///< LINUX_KERNEL_VERSION: major << 16 | minor << 8 | patch
    bool cookie = false;          ///< LINUX_HAS_BPF_COOKIE: bpf_get_attach_cookie(), 5.15
    bool syscall_wrapper = false; ///< LINUX_HAS_SYSCALL_WRAPPER: __x64_sys_bpf() and not sys_bpf()
};

/// PURE. The bytes of the .kconfig map. `config` is a kernel's configuration as text.
/// Errors: not_found (a name that the configuration doesn't have, and not weak), bad_input (a value that the variable's type
/// can't hold).
[[nodiscard]] Result<std::vector<std::byte>> kconfig_values(const ObjectSpec &spec, std::string_view config,
                                                            const VirtualConfig &facts);
/// Whether any extern is called CONFIG_..., so that a configuration is needed.
[[nodiscard]] bool needs_config(const ObjectSpec &spec);

/// The running kernel's configuration: /boot/config-RELEASE or /proc/config.gz. Errors: not_found when there is neither.
[[nodiscard]] Result<std::string> kernel_config();
/// "6.1.0" and what distributions add as (6 << 16 | 1 << 8 | 0); where the release says too little (Debian: "6.12-amd64"), from
/// the version: "Debian 6.12.48-1". 0 when neither says.
[[nodiscard]] uint32_t kernel_version_code(std::string_view release, std::string_view version);
/// The same for this kernel, and the rest of what it has.
[[nodiscard]] Result<VirtualConfig> virtual_config(const ObjectSpec &spec);
/// The bytes of the .kconfig map on this kernel. Errors: of those above.
[[nodiscard]] Result<std::vector<std::byte>> running_kconfig_values(const ObjectSpec &spec);

} // namespace rawbpf::inline v0
