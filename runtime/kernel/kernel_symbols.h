// What an object needs from the kernel by name: CO-RE relocations, kernel functions and variables, attach targets. Part of the
// loader. It opens the kernel's BTF when the first of them needs it, and the modules' BTF when the kernel's own doesn't have
// the name. Its functions are virtual for the linker: a program that makes no KernelSymbols has no code of it (load_parts.h).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "asm/insn.h"
#include "runtime/base/result.h"
#include "runtime/btf/btf.h"
#include "runtime/kernel/module_btf.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {

/// A type of the running kernel's.
struct KernelType {
    const btf::Btf *btf = nullptr;
    btf::TypeId id = 0;
    ModuleBtf *module = nullptr; ///< nullptr: of the kernel itself
};

/// What a program is verified against.
struct AttachTarget {
    uint32_t id = 0;
    uint32_t btf_fd = 0; ///< of a module; 0: the kernel itself
};

class KernelSymbols {
  public:
    /// `btf_path`: types that CO-RE relocates against instead of the running kernel's; empty: those. Both must outlive it.
    KernelSymbols(const ObjectSpec &spec, const std::string &btf_path) : spec_(&spec), btf_path_(&btf_path) {}
    /// Of another kernel than the running one: by its types alone, without modules and addresses.
    KernelSymbols(const ObjectSpec &spec, const btf::Btf &kernel) : spec_(&spec), given_(&kernel) {}
    KernelSymbols(const KernelSymbols &) = delete;
    KernelSymbols &operator=(const KernelSymbols &) = delete;
    virtual ~KernelSymbols() = default;

    /// CO-RE: patches the instructions of the programs with autoload for the target BTF; what isn't there is poisoned, with the
    /// reason noted. Modules are asked when the kernel itself has no type of that name.
    [[nodiscard]] virtual Result<void> relocate(ObjectSpec &spec);
    /// A call of a kernel function (5.13), also of a module's (5.16). A weak one that isn't there, or has other parameters, is
    /// poisoned and noted in the program.
    [[nodiscard]] virtual Result<void> patch_call(ProgramSpec &program, const Fixup &fixup);
    /// An ld_imm64 of a kernel variable or function: by BTF id where it is typed (5.10), else its address from /proc/kallsyms.
    [[nodiscard]] virtual Result<void> patch_address(Insn &low, Insn &high, const Fixup &fixup);
    /// The BTF id that a tracing program is verified against; "module:function" looks in that module only.
    [[nodiscard]] virtual Result<AttachTarget> attach_target(const ProgramSpec &program);

    /// The BTF of the module that a program for many functions names ("fentry.multi/MODULE:PATTERN"), which ids mean nothing
    /// without; 0: none is named.
    [[nodiscard]] virtual Result<uint32_t> attach_module(const ProgramSpec &program);

    /// By name and kind, in the kernel's types, then in its modules'. Errors: those of opening the kernel's types.
    [[nodiscard]] virtual Result<std::optional<KernelType>> find(std::string_view name, btf::Kind kind,
                                                                 std::string_view module = {});
    [[nodiscard]] virtual Result<int> module_fd(ModuleBtf &module) { return modules_->fd_of(module); }
    /// The running kernel's types. Errors: those of opening them.
    [[nodiscard]] virtual Result<const btf::Btf *> kernel();
    /// The object's own types; nullptr: it has none.
    [[nodiscard]] virtual Result<const btf::Btf *> local();
    /// Descriptors of module BTFs that calls of kernel functions refer to by position; empty: there are no such calls.
    [[nodiscard]] const std::vector<int> &fd_array() const { return fd_array_; }

  private:
    Result<bool> same_type(const Fixup &fixup, const KernelType &found);
    Result<uint64_t> address_of(std::string_view symbol);

    const ObjectSpec *spec_;
    const std::string *btf_path_ = nullptr;
    const btf::Btf *given_ = nullptr;
    std::shared_ptr<const btf::Btf> kernel_, other_;
    std::optional<btf::Btf> local_;
    std::optional<ModuleTypes> modules_;
    std::vector<int> fd_array_;
    std::map<std::string, Result<uint64_t>, std::less<>> addresses_; // of all externs, read in one go
};

/// The address of a kernel symbol, from /proc/kallsyms. Errors: not_found; permission when the kernel hides addresses; bad_input
/// when there are several of that name.
[[nodiscard]] Result<uint64_t> kernel_symbol_address(std::string_view name);
/// Whether the functions behind system calls are called __x64_sys_... (__arm64_sys_...), as since 4.17.
[[nodiscard]] bool has_syscall_wrapper();

} // namespace rawbpf::inline v0
