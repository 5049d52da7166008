// Runs a workload whose stack is known and samples it by the profile program with tables: for the unwinder's tests and benchmark.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "programs/unwind/live_tables.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/stats.h"
#include "runtime/symbols/elf_symbols.h"
#include "runtime/symbols/maps.h"
#include "tests/support/unwinding.h"

namespace rawbpf::test {

/// The files of one process, by the numbers of its regions.
struct ProcessFiles : unwind::ModuleFiles {
    symbols::ProcessMaps maps;

    /// Errors: not_found when the process is gone.
    [[nodiscard]] Result<void> read(uint32_t pid);
    [[nodiscard]] Result<Fd> open(uint32_t pid, const unwind::CodeMapping &mapping) override;
    [[nodiscard]] std::string name(uint32_t module) const override { return maps.regions[module].path; }
    [[nodiscard]] std::vector<unwind::CodeMapping> mappings() const;
    /// The function, or the file where it has no name there, or "?".
    [[nodiscard]] std::string name_of(uint64_t address);

  private:
    std::map<std::string, symbols::ElfSymbols> symbols_;
};

struct UnwoundStack {
    std::vector<std::string> names; ///< leaf first
    std::vector<uint64_t> frames;
    uint32_t flags = 0; ///< RecordHead's ending
    bool in_kernel = false;
    bool copied = false; ///< and walked afterwards
    /// Names for the addresses.
    void name(ProcessFiles &files);
    [[nodiscard]] std::string text() const;
    /// How many frames of that name follow each other from `at` on.
    [[nodiscard]] size_t run(size_t at, std::string_view name) const;
};

/// What is told of a process whose stacks are copied where that isn't enough.
enum class UnwindCopies : uint8_t {
    off,
    nothing,  ///< so all stacks are
    other,    ///< a mapping that its code isn't in, just now: so all stacks are
    long_ago, ///< the same, too long ago
};

struct UnwindRun {
    bool bpf_loop = true; ///< where the kernel has it
    uint32_t depth = 127;
    uint32_t pools = 64;
    bool tables = true;    ///< the process is made known
    bool prepared = false; ///< its files' tables are made before that, so that it is known at the first update
    UnwindCopies copies = UnwindCopies::off;
    bool old_news = false; ///< meanwhile it is told again and again what the process had mapped in the beginning
    /// What is done to the maps before the workload begins.
    std::function<Result<void>(LoadedObject &, uint32_t pid)> change;
};

struct UnwindSeen {
    std::vector<UnwoundStack> stacks;
    RunCost cost;    ///< of the program
    std::string why; ///< nothing could be seen
};

[[nodiscard]] UnwindSeen see_workload(const std::string &what, int milliseconds, const UnwindRun &how = {});

} // namespace rawbpf::test
