// From addresses to the source: what the debug info of a module tells, wherever it comes from. The one implementation
// (programs/dwarf) is in a module of its own, for the libraries that it needs.
#pragma once

#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/symbols/elf_symbols.h"

namespace rawbpf::inline v0::processes {

/// A function that an address is in, and where.
struct SourceFrame {
    std::string function; ///< demangled; empty: unknown
    std::string file;     ///< absolute where the compiler said from where it counts; empty: unknown
    uint32_t line = 0;    ///< 0: unknown
    uint32_t column = 0;  ///< 0: unknown
    uint64_t offset = 0;  ///< of the address from the function's entry, bytes; 0 where it was inlined
};

/// The debug info of one module.
class ModuleLines {
  public:
    virtual ~ModuleLines() = default;
    /// What is at a virtual address of the file: functions inlined there, innermost first, and last the one whose code it is. For
    /// all but the first, `line` is where the one before was inlined. Empty: nothing known.
    [[nodiscard]] virtual std::vector<SourceFrame> find(uint64_t address) = 0;
};

/// Finds debug info: in the file, in a separate file, by debuginfod.
class DebugInfo : public symbols::DebugFetcher {
  public:
    /// Of an open file, which is kept open as long as the lines are. `path`: where it is in the root directory `root` (empty:
    /// ours), for its debug file. Errors: not_found (it has none; the message says where it was looked for), bad_input.
    [[nodiscard]] virtual Result<std::unique_ptr<ModuleLines>> open(Fd file, const std::string &path,
                                                                    const std::string &root) = 0;
    /// `signals` counts those that asked for the end: after the first one servers have a second in all, after a second one none.
    /// It outlives this.
    virtual void end_on(const volatile std::sig_atomic_t &signals) = 0;
    /// What went wrong and belongs to no module: one sentence each.
    [[nodiscard]] virtual std::vector<std::string> warnings() const = 0;
};

/// Which of it frames have.
struct SourceDetail {
    bool lines = false;   ///< file and line
    bool inlined = false; ///< frames for inlined functions
    [[nodiscard]] bool any() const { return lines || inlined; }
};

} // namespace rawbpf::inline v0::processes
