// One load in progress: the state that the loader's parts share. Private to the loader.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/kernel/kernel_symbols.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/pins.h"
#include "runtime/kernel/struct_ops.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0 {

/// A reason for the narrator that is made of parts.
struct Why {
    std::string text;
    sys::Because because;
    explicit Why(std::string words) : text(std::move(words)), because(text) {}
};

struct Loading {
    static constexpr int kNotLoaded = -1;

    ObjectSpec &spec;
    const LoadOptions &options;
    LoadedObject &object;
    std::vector<int> place;                       ///< spec.maps index -> object.maps index, or kNotLoaded
    std::map<size_t, KernelStructOps> struct_ops; ///< by spec.maps index
    uint32_t arena_offset = 0;                    ///< where in the arena the object's variables start
    bool by_name = false;                         ///< the caller chose the programs
    Pins pins;                                    ///< of maps pinned by name, made here
    std::unique_ptr<KernelSymbols> names;         ///< nullptr: nothing has asked for it yet

    /// What the object needs from the kernel by name. Errors: unsupported (this program was linked without that part).
    [[nodiscard]] Result<KernelSymbols *> symbols();
};

// ---- load_maps.cpp

/// The struct_ops maps that matter for `chosen`, in the kernel's terms; drops from `chosen` programs of members that this kernel
/// doesn't have, unless the caller named them.
[[nodiscard]] Result<void> prepare_struct_ops(Loading &loading, std::vector<size_t> &chosen);
/// True for each map to make: what a chosen program refers to, and the maps that those hold from the start. Without a choice
/// by name also maps pinned by name and struct_ops maps. An object without any program is a set of maps.
[[nodiscard]] Result<std::vector<bool>> needed_maps(const Loading &loading, const std::vector<size_t> &chosen);
/// Makes (or finds pinned) and fills them; without a choice by name also maps of .maps that nothing refers to, as far as that
/// goes.
[[nodiscard]] Result<void> make_maps(Loading &loading, const std::vector<bool> &needed);
/// Prog arrays, maps of maps and struct_ops values: what can be put in only when everything is there.
[[nodiscard]] Result<void> fill_slots(Loading &loading);

// ---- load_programs.cpp

[[nodiscard]] Result<void> load_programs(Loading &loading, const std::vector<size_t> &chosen);

} // namespace rawbpf::inline v0
