// SPDX-License-Identifier: MIT
// ObjectSpec -> LoadedObject: maps created and filled, BTF loaded, programs verified.
//
// Everything made here is owned by the LoadedObject; dropping it closes every descriptor and the kernel frees the rest.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/btf/btf.h"
#include "runtime/kernel/map.h"
#include "runtime/object/spec.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0 {

/// A loaded program.
struct Program {
    std::string name;                  ///< of its function, as in ProgramSpec
    std::string section;               ///< "kprobe/vfs_read", as in ProgramSpec
    uint32_t type = 0;                 ///< BPF_PROG_TYPE_*
    uint32_t expected_attach_type = 0; ///< BPF_*, as it was loaded: 0 for a multi probe that became an ordinary one
    std::string attach_target;         ///< as in ProgramSpec
    Fd fd;                             ///< the kernel keeps the program while this, a link or a pin is there
    std::string log;                   ///< the verifier's log when LoadOptions::log_level asked for one
};

/// What was given to the kernel for one program, whatever it answered.
struct LoadAttempt {
    std::string program; ///< its name
    uint32_t insns = 0;  ///< of 8 bytes each
    /// Comparable between runs and loaders: FNV-1a 64 over the instructions with descriptors replaced, a map's by its position
    /// in ObjectSpec::maps, a jump table's by the number of these maps and its position in the program's, others by 0.
    uint64_t insn_hash = 0;
};

/// What load() does differently from its defaults.
struct LoadOptions {
    std::string btf_path;              ///< kernel BTF to relocate against; empty: the running kernel's
    std::vector<std::string> programs; ///< load only these (with the maps they need); empty: all with autoload
    /// Use this map (a descriptor, borrowed) for the definition of that name. Both must agree in type, sizes of key and value,
    /// number of entries and flags, else the load fails with all that differs; a name that isn't there is not_found.
    std::vector<std::pair<std::string, int>> replace_maps;
    std::string pin_directory = "/sys/fs/bpf"; ///< where maps that are pinned by name live
    bool pin_by_name = true;                   ///< false: such maps are made and nothing is pinned or looked for
    /// A loaded program (borrowed) that extensions (freplace), and fentry and fexit programs whose target is a function of it,
    /// are verified against.
    int target_program = -1;
    /// Where the kernel can't attach a program to many functions at once (kprobe.multi 5.18, uprobe.multi 6.6), load it as an
    /// ordinary probe, which attach() puts on one function after the other. false: as its section says, for whoever attaches it.
    bool single_probes = true;
    /// The kernel's BPF_LOG_LEVEL1 (1), _LEVEL2 (2), _STATS (4), for Program::log. 0: a log only of a refusal, in Error::log.
    uint32_t log_level = 0;
    std::vector<LoadAttempt> *attempts = nullptr; ///< filled, also when loading fails
};

/// An object in the kernel. It owns every descriptor.
struct LoadedObject {
    std::string name;                        ///< the spec's
    std::vector<Map> maps;                   ///< in the spec's order
    std::vector<Program> programs;           ///< those that were loaded
    Fd btf;                                  ///< invalid when the kernel takes no BTF
    std::vector<std::string> pinned_by_name; ///< pins that this load made, of maps whose definition asks for it; they stay
    std::vector<std::string> notes;          ///< the spec's, and what was left out because this kernel lacks it; sentences for -v
    sys::Mapping arena;                      ///< of the arena's map, where there is one; as large as the arena
    /// What makes a struct_ops map active when its only element (key 0) is updated with it: the kernel's struct, with the
    /// programs' descriptors in it.
    struct StructOps {
        std::string map;              ///< its name
        std::vector<std::byte> value; ///< of the only element
    };
    std::vector<StructOps> struct_ops; ///< one for each such map that was made; attach_struct_ops() uses it
    /// Which entries of the map __bpf_usdt_specs attachments use; made by the first of them.
    std::shared_ptr<std::vector<bool>> usdt_specs;

    /// nullptr: none of that name was made. Good for as long as the object stays where it is.
    [[nodiscard]] Map *find_map(std::string_view name);
    /// One that the object was made with. Errors: internal.
    [[nodiscard]] Result<Map *> needed_map(std::string_view name);
    /// nullptr: none of that name was loaded. Good for as long as the object stays where it is.
    [[nodiscard]] Program *find_program(std::string_view name);
};

/// FNV-1a 64 of instructions that were patched for the kernel, as in LoadAttempt. `maps`: ObjectSpec::maps.size().
[[nodiscard]] uint64_t insn_hash(const ProgramSpec &program, size_t maps);

/// Creates, fills, relocates and loads. On failure nothing stays behind. Errors: permission (names the capability), unsupported
/// (names the feature and its kernel version), rejected (log: the verifier's, hint: what it means), bad_input.
[[nodiscard]] Result<LoadedObject> load(ObjectSpec spec, const LoadOptions &options = {});

struct KernelBtf; // what keeps the bytes; private to the room
/// The running kernel's BTF (/sys/kernel/btf/vmlinux), mapped where the kernel allows it (6.16), else read. Shared, lazily made.
/// `path`: another file; empty: the running kernel's.
[[nodiscard]] Result<std::shared_ptr<const btf::Btf>> kernel_btf(const std::string &path = {});

} // namespace rawbpf::inline v0
