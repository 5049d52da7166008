// What would make stacks whole that end early.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "asm/machines.h"
#include "programs/render/ledger.h"
#include "programs/unwind/choice.h"
#include "runtime/unwind/layout.h"
#include "runtime/unwind/machines.h"

namespace rawbpf::inline v0::processes {

/// The user stacks that come through a module.
struct ModuleEnds {
    std::string_view path;  ///< of its file; "//anon" and the like: memory that code was written to
    bool anonymous = false; ///< the latter
    uint64_t stacks = 0;    ///< that have a frame in it
    std::array<uint64_t, UNWIND_ENDINGS>
        early{};                    ///< those that ended in it before a thread's first function, by UNWIND_ENDED_...
    uint64_t by_frame_pointers = 0; ///< likewise, of stacks that weren't to be walked by tables, so no reason is known
};

/// What is known of a runtime by the name of its file.
struct RuntimeAdvice {
    std::string_view file;   ///< the beginning of its program's or library's name
    bool whole;              ///< that is the whole name
    std::string_view name;   ///< of the language or the runtime: "Java", "node"
    std::string_view advice; ///< what makes a profile show more of it
};
/// nullptr: no runtime's file that is known here. PURE.
[[nodiscard]] const RuntimeAdvice *runtime_of(std::string_view path);

/// For stacks that weren't walked by tables.
struct Remedy {
    std::string_view by_tables = {}; ///< what makes them be, as the user chose otherwise; empty: by the kernel they can't be
    Arch arch = kHostArch;           ///< of the machine that they are of: the kernel follows other frames on each
};
[[nodiscard]] constexpr Remedy remedy_of(UnwindBy chosen, Arch arch = kHostArch) {
    return {chosen == UnwindBy::fp && unwind::has_machine(arch) ? "--unwind auto" : "", arch};
}

/// For each module of whose stacks more than a twentieth ends early: how many, and what would help, the largest first. `mapped`:
/// the files that the sampled processes have mapped, which tell what wrote the code that is in no file. `remedy`: see
/// remedy_of(). PURE.
[[nodiscard]] std::vector<render::StackAdvice> advice_on(std::span<const ModuleEnds> modules,
                                                         std::span<const std::string_view> mapped, const Remedy &remedy = {});

} // namespace rawbpf::inline v0::processes
