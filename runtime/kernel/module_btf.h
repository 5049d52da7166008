// The types of the modules that are loaded. Part of the loader.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/btf/btf.h"

namespace rawbpf::inline v0 {

/// One module.
struct ModuleBtf {
    std::string name;
    btf::Btf types;
    Fd fd = {}; ///< opened by ModuleTypes::fd_of()
};

/// Read when first asked for. One that can't be read is passed over: a module whose BTF is broken (files of 24 bytes have been
/// seen) must not keep every object from loading.
class ModuleTypes {
  public:
    /// `base`: the kernel's own types; must outlive it.
    explicit ModuleTypes(const btf::Btf *base) : base_(base) {}

    [[nodiscard]] const std::vector<std::unique_ptr<ModuleBtf>> &all();
    /// The same for relocate_core().
    [[nodiscard]] std::span<const btf::Btf *const> types();
    /// The kernel's descriptor of a module's BTF, which instructions and attributes name it by (5.11). Owned by the module.
    /// Errors: not_found when the module has gone, permission (CAP_SYS_ADMIN).
    [[nodiscard]] Result<int> fd_of(ModuleBtf &module);

  private:
    const btf::Btf *base_;
    bool read_ = false;
    std::vector<std::unique_ptr<ModuleBtf>> list_;
    std::vector<std::unique_ptr<std::string>> kept_; // the files' bytes
    std::vector<const btf::Btf *> pointers_;
};

} // namespace rawbpf::inline v0
