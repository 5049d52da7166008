// Naming a capture with the binaries of this machine, or of a directory brought along.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "programs/profile/namer.h"

namespace rawbpf::inline v0::profile {

/// Symbols of files found by path and build-id. What only the capturing machine knew (kernel, JIT, vdso) is in the capture
/// itself.
class FileSymbols : public SymbolSource {
  public:
    /// `symfs`: looked into first, by path and then as .build-id/xx/yyyy.debug; empty: this machine's root only.
    explicit FileSymbols(std::string symfs) : symfs_(std::move(symfs)) {}

    std::vector<symbols::KernelName> kernel(std::vector<uint64_t>) override { return {}; }
    std::optional<symbols::Name> in_module(uint32_t module_id, const Module &module, uint64_t file_offset) override;
    std::optional<symbols::Name> in_memory(uint32_t, uint64_t) override { return std::nullopt; }
    std::string build_id(uint32_t, const Module &module) override { return module.build_id; }
    void done_with(uint32_t module_id) override { tables_.erase(module_id); }
    /// What could not be named, and why; one sentence a module.
    [[nodiscard]] const std::vector<std::string> &warnings() const { return warnings_; }

  private:
    std::optional<symbols::ElfSymbols> find(const Module &module);

    std::string symfs_;
    std::unordered_map<uint32_t, std::optional<symbols::ElfSymbols>> tables_;
    std::vector<std::string> warnings_;
};

} // namespace rawbpf::inline v0::profile
