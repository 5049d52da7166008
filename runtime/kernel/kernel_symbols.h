// What an object asks of the kernel by name: CO-RE relocations, kernel functions and variables, attach targets. Part of the
// loader. The kernel's BTF is opened when the first of them needs it, and not before.
#pragma once

#include <memory>
#include <string>

#include "asm/insn.h"
#include "runtime/base/result.h"
#include "runtime/btf/btf.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {

class KernelSymbols {
  public:
    /// `btf_path` must outlive it; empty: the running kernel.
    explicit KernelSymbols(const std::string &btf_path) : btf_path_(&btf_path) {}

    /// CO-RE: patches the instructions of the programs with autoload for the target BTF; what isn't there is poisoned, with the
    /// reason noted. Modules are asked when the kernel itself has no type of that name.
    [[nodiscard]] Result<void> relocate(ObjectSpec &spec);
    /// A call of a kernel function (5.13): its BTF id. Only functions of the kernel itself, not of modules.
    [[nodiscard]] Result<void> patch_call(Insn &call, const Fixup &fixup);
    /// An ld_imm64 of a kernel variable: by BTF id where it is typed (5.10), else its address from /proc/kallsyms.
    [[nodiscard]] Result<void> patch_address(Insn &low, Insn &high, const Fixup &fixup);
    /// The BTF id that a tracing program is verified against.
    [[nodiscard]] Result<uint32_t> attach_target(const ProgramSpec &program);

  private:
    Result<const btf::Btf *> target();
    const std::string *btf_path_;
    std::shared_ptr<const btf::Btf> target_;
};

/// The address of a kernel symbol, from /proc/kallsyms. Errors: not_found; permission when the kernel hides addresses.
[[nodiscard]] Result<uint64_t> kernel_symbol_address(std::string_view name);

} // namespace rawbpf::inline v0
