// Naming a recording with the binaries of this machine, or of a directory brought along.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "programs/processes/namer.h"

namespace rawbpf::inline v0::recording {

/// Symbols of files found by path and build-id. What only the capturing machine knew (kernel, JIT, vdso) is in the capture
/// itself.
class FileSymbols : public processes::SymbolSource {
  public:
    /// `symfs`: looked into first, by path and then as .build-id/xx/yyyy.debug; empty: this machine's root only.
    /// `debug_info`: where lines, inlined functions and missing debug files come from; nullptr: nowhere.
    explicit FileSymbols(std::string symfs, processes::DebugInfo *debug_info = nullptr)
        : symfs_(std::move(symfs)), debug_info_(debug_info) {}

    std::vector<symbols::KernelName> kernel(std::vector<uint64_t>) override { return {}; }
    std::optional<symbols::Name> in_module(uint32_t module_id, const processes::Module &module, uint64_t file_offset) override;
    std::optional<uint64_t> begin_of(uint32_t module_id, const processes::Module &module, uint64_t file_offset) override;
    std::optional<symbols::CompiledName> in_memory(uint32_t, uint64_t, uint64_t) override { return std::nullopt; }
    std::string build_id(uint32_t, const processes::Module &module) override { return module.build_id; }
    std::vector<processes::SourceFrame> in_source(uint32_t module_id, const processes::Module &module,
                                                  uint64_t file_offset) override;
    void done_with(uint32_t module_id) override { tables_.erase(module_id); }
    /// What could not be named, and why; one sentence a module.
    [[nodiscard]] const std::vector<std::string> &warnings() const { return warnings_; }
    /// Some of it is missing because a file that may be here could not be read.
    [[nodiscard]] bool unread() const { return unread_; }

  private:
    struct Table {
        std::optional<symbols::ElfSymbols> symbols;
        std::string path, root; // of the file that they are from
        bool lines_sought = false;
        std::unique_ptr<processes::ModuleLines> lines;
        bool told = false; // that a name could not be read
    };
    Table find(const processes::Module &module);
    Table &table(uint32_t module_id, const processes::Module &module);
    void open_lines(Table &table, const processes::Module &module);

    std::string symfs_;
    processes::DebugInfo *debug_info_;
    std::unordered_map<uint32_t, Table> tables_;
    std::vector<std::string> warnings_;
    bool unread_ = false;
};

} // namespace rawbpf::inline v0::recording
