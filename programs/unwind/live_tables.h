// What user space keeps for the programs that unwind: tables of files, mappings of processes, in the maps that such a program
// has.
//
//      process events, samples --> update(pid, mappings) --> Tables, Processes --> Pools, Rules --> maps of the loaded object
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "programs/unwind/processes.h"
#include "programs/unwind/tables.h"
#include "programs/unwind/walk.h"
#include "runtime/base/fd.h"
#include "runtime/kernel/loader.h"
#include "runtime/symbols/jit_dump.h"

namespace rawbpf::inline v0::unwind {

/// Code that a process has mapped.
struct CodeMapping {
    enum class Kind : uint8_t {
        file,
        vdso,
        other,
        listed,  ///< ModuleFiles::listed() says how its frames are left: their stacks are copied
        uniform, ///< nobody says it, but all frames there are alike
    } kind = Kind::file;
    uint64_t start = 0, end = 0, file_offset = 0;
    uint32_t module = 0;     ///< the caller's number of the file
    bool copied = false;     ///< programs walk it; but all stacks of its process are copied, too
    UniformFrame frame = {}; ///< of kind `uniform`
    /// Whether there is a file that may have a table.
    [[nodiscard]] bool has_table() const { return kind == Kind::file || kind == Kind::vdso; }
};

/// Whoever knows how to get at the files of processes.
class ModuleFiles {
  public:
    virtual ~ModuleFiles() = default;
    /// The very file, while `pid` most likely lives.
    virtual Result<Fd> open(uint32_t pid, const CodeMapping &mapping) = 0;
    /// Of an address in a mapping of kind `listed`; nullopt: it isn't known.
    [[nodiscard]] virtual std::optional<ListedRule> listed(uint32_t /*pid*/, uint64_t /*pc*/) const { return std::nullopt; }
    /// What a process has told of code that it has made, of kind `listed` without listed(): empty where it told nothing of the
    /// function at `pc`, which is left by its frame pointer then; nullopt: it isn't asked.
    [[nodiscard]] virtual std::optional<symbols::JitDump::Unwinding> told(uint32_t /*pid*/, uint64_t /*pc*/) const {
        return std::nullopt;
    }
    /// For messages.
    [[nodiscard]] virtual std::string name(uint32_t module) const = 0;
};

struct LiveTablesOptions {
    uint64_t memory = 64 << 20;   ///< of all pools; rounded down to whole ones, at least one
    UnwindProgramOptions program; ///< for walk(): what the program is made for
};

class LiveTables {
  public:
    /// The maps unwind_pools, unwind_rules and unwind_processes of a loaded object, which must outlive it. Starts making the
    /// first pool visible, which takes the kernel some milliseconds, and doesn't wait for it; and a program of its own at the
    /// kernel's exec (exec_watch.h). Errors: those of loading and attaching that.
    [[nodiscard]] static Result<std::unique_ptr<LiveTables>> create(LoadedObject &object, ModuleFiles &files,
                                                                    const LiveTablesOptions &options);
    virtual ~LiveTables() = default;

    /// What a process had mapped at `as_of_ns`, ascending and without overlap. If it has executed a program since, programs see
    /// nothing of it. False: tables had to be made for it, which took some time (some of them; all, if that took less than some
    /// milliseconds), and until then programs see only what has tables: ask again with what is mapped by now.
    [[nodiscard]] virtual Result<bool> update(uint32_t pid, std::span<const CodeMapping> mappings, uint64_t as_of_ns,
                                              uint64_t now_ns) = 0;
    /// Whether the kernel's side has noticed an exec of the process after that time (CLOCK_MONOTONIC). Of an exec that began then
    /// and isn't noticed yet nothing should be told: it would be taken away with what was told before.
    [[nodiscard]] virtual bool executed_after(uint32_t pid, uint64_t t_ns) const = 0;
    /// Makes the table of a file that will most likely be mapped, so that update() finds it. Where there is no room, it isn't
    /// made; and it is the first to go.
    virtual void prepare(const Fd &file, const std::string &name) = 0;
    /// Walks a stack that a program has copied, by what the process had mapped in that moment (ascending, without overlap).
    /// Tables are made where it comes by one that is missing. Errors: as update().
    [[nodiscard]] virtual Result<Walked> walk(uint32_t pid, std::span<const CodeMapping> mappings, const StackCopy &copy,
                                              uint64_t now_ns) = 0;
    /// It has ended.
    [[nodiscard]] virtual Result<void> ended(uint32_t pid) = 0;
    /// A sample of that process was seen with a frame in that file.
    virtual void used(uint32_t pid, uint32_t module, uint64_t now_ns) = 0;
    [[nodiscard]] virtual bool published(uint32_t pid) const = 0;

    struct Stats {
        size_t modules = 0;      ///< with tables, now
        uint64_t bytes = 0;      ///< in use
        uint64_t pool_bytes = 0; ///< of memory taken
        uint64_t tables_dropped = 0, tables_without_room = 0, rules_without_room = 0, processes_evicted = 0;
    };
    [[nodiscard]] virtual Stats stats() const = 0;
    /// Sentences for the end of the run: files that couldn't be used, and why; what had no room.
    [[nodiscard]] virtual std::vector<std::string> warnings() const = 0;
};

} // namespace rawbpf::inline v0::unwind
