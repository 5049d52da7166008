// Places to frames with names: the second of the three stages, capture -> name -> render.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "programs/processes/script_frame.h"
#include "programs/processes/source_lines.h"
#include "programs/processes/stacks.h"
#include "programs/render/frame.h"
#include "runtime/symbols/compiled_code.h"
#include "runtime/symbols/symbols.h"

namespace rawbpf::inline v0::processes {

/// Where names come from: this machine (live_symbols.h), a capture file with a directory of binaries, or a fake.
class SymbolSource {
  public:
    virtual ~SymbolSource() = default;
    /// Names of kernel addresses, in one pass; those without a name are left out.
    virtual std::vector<symbols::KernelName> kernel(std::vector<uint64_t> addresses) = 0;
    /// The function at `file_offset` of a file or the vdso.
    virtual std::optional<symbols::Name> in_module(uint32_t module_id, const Module &module, uint64_t file_offset) = 0;
    /// Where in its file the function at `file_offset` begins that in_module() has no name for; nullopt: unknown.
    virtual std::optional<uint64_t> begin_of(uint32_t /*module_id*/, const Module & /*module*/, uint64_t /*file_offset*/) {
        return std::nullopt;
    }
    /// The function at an address that some process made at run time; `layer`: MapsSource::code_layer() of then.
    virtual std::optional<symbols::CompiledName> in_memory(uint32_t pid, uint64_t address, uint64_t layer) = 0;
    /// What an interpreter runs, of a module of kind script.
    virtual std::optional<ScriptFrame> in_script(uint64_t /*offset*/) { return std::nullopt; }
    /// What else is known of such an address, or of a module of kind script: lines and inlined functions, as in_source() has
    /// them; empty: nothing.
    virtual std::vector<SourceFrame> in_made_code(uint64_t /*layer*/) { return {}; }
    /// The module's build-id, empty when it has none or can't be read.
    virtual std::string build_id(uint32_t module_id, const Module &module) = 0;
    /// What the module's debug info says of code at `file_offset`, as ModuleLines::find() does; empty: nothing.
    virtual std::vector<SourceFrame> in_source(uint32_t /*module_id*/, const Module & /*module*/, uint64_t /*file_offset*/) {
        return {};
    }
    /// This module's symbols won't be asked for again: they may be dropped.
    virtual void done_with(uint32_t module_id) = 0;
};

/// Gives each place its frame, once.
class Namer {
  public:
    Namer(const StackTree &tree, const ModuleTable &modules, SymbolSource &source, SourceDetail detail = {})
        : tree_(tree), modules_(modules), source_(source), detail_(detail) {}

    /// Kernel places that have no frame yet: found in one pass over the kernel's symbols, so ask for many at once.
    void name_kernel(const std::vector<uint32_t> &places);
    /// Every place of the tree, module by module, so that one module's symbols are in memory at a time.
    void name_all();
    /// The frame of a place; named now if it wasn't. Of inlined functions the one whose code it is.
    [[nodiscard]] const FramePtr &frame(uint32_t place);
    /// Adds all frames of a place, the innermost first: functions inlined there, and the one whose code it is.
    void add_frames(uint32_t place, std::vector<FramePtr> &to);
    [[nodiscard]] bool named(uint32_t place) const { return place < frames_.size() && frames_[place].frame != nullptr; }
    /// Takes names from elsewhere (symbol, symbol_offset, module, file and line are used): the capture's own. As add_frames() has
    /// them: one at least, the last one's is the code.
    void give(uint32_t place, std::vector<Frame> &&names);
    /// True where a walk that ends here is complete: the function that a thread or a process begins in.
    [[nodiscard]] bool begins(uint32_t place) const { return frames_[place].begins; }
    /// Whether a place is an interpreter's function: no walk ends there, though in a stack that wasn't merged it may be the
    /// outermost.
    [[nodiscard]] bool interpreted(uint32_t place) const {
        const uint32_t module = tree_.places()[place].module;
        return module != kNone && modules_[module].kind == ModuleKind::script;
    }
    /// The tree was cleared.
    void clear() { frames_ = std::vector<Slot>(); }

  private:
    struct Slot {
        FramePtr frame;
        std::unique_ptr<std::vector<FramePtr>> inlined; // innermost first; mostly there are none
        bool begins = false;
    };
    Slot &slot(uint32_t place);
    void name_user(uint32_t place);
    static void add_source(Slot &slot, Frame &frame, bool caller, std::vector<SourceFrame> &&source, SourceDetail detail);
    void set_kernel(uint32_t place, const symbols::KernelName *name);

    const StackTree &tree_;
    const ModuleTable &modules_;
    SymbolSource &source_;
    SourceDetail detail_;
    std::vector<Slot> frames_; // by place
};

/// True for a symbol at the outer end of a complete user stack: "_start", "main", "start_thread", "clone3" ...
[[nodiscard]] bool begins_thread(std::string_view symbol);

} // namespace rawbpf::inline v0::processes
