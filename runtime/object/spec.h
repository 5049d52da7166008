// SPDX-License-Identifier: MIT
// ObjectSpec: everything that the loader will ask the kernel for.
//
//      ELF file  --\                       CO-RE against a BTF        fds
//                    >--  ObjectSpec  -->  ObjectSpec (relocated) --> LoadedObject
//      DSL Unit  --/      (PURE: printable, comparable, testable without a kernel)
//
// Instructions are final except for two lists: core_relocations (need a target BTF) and fixups (need fds).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "asm/insn.h"
#include "runtime/base/bytes.h"
#include "runtime/btf/btf.h"

namespace rawbpf::inline v0 {

/// One map to create.
struct MapSpec {
    std::string name;           ///< "events", "profile.rodata"
    uint32_t type = 0;          ///< BPF_MAP_TYPE_*
    uint32_t key_size = 0;      ///< in bytes
    uint32_t value_size = 0;    ///< in bytes, of one CPU's value
    uint32_t max_entries = 0;   ///< bytes of a ring buffer, pages of an arena
    uint32_t flags = 0;         ///< BPF_F_*
    uint64_t map_extra = 0;     ///< bloom filter: hash functions; arena: where user space maps it; else 0 (5.16)
    uint32_t numa_node = 0;     ///< counts only with BPF_F_NUMA_NODE in `flags`
    bool pin_by_name = false;   ///< LIBBPF_PIN_BY_NAME: shared between loads by a pin in LoadOptions::pin_directory
    btf::TypeId key_type = 0;   ///< in ObjectSpec::btf, 0 when unknown
    btf::TypeId value_type = 0; ///< the same
    /// Initial value: of a one-entry array (data sections; empty: all zero, .bss), of an arena's globals, of a struct_ops map
    /// the object's own struct (type value_type), whose members may be changed until it is loaded.
    std::vector<std::byte> contents;
    bool freeze = false;            ///< BPF_MAP_FREEZE after filling (.rodata)
    std::string data_section;       ///< ".rodata", ".bss", ".kconfig" ... for maps made from sections; else empty
    std::shared_ptr<MapSpec> inner; ///< map-in-map: the inner map's template
    bool autocreate = true;         ///< false for "?.struct_ops": made only when asked for
    /// Static initialisers: slot -> program or map name (prog arrays, maps of maps); struct_ops: member -> program.
    struct Slot {
        uint32_t index;     ///< the key; of a hash of maps its first four bytes; of a struct_ops map the member's number
        std::string target; ///< the name of a program or map of the same object
    };
    std::vector<Slot> slots; ///< other slots stay empty
};

/// One patch that needs a descriptor or address of something loaded.
struct Fixup {
    /// Which instruction it is, and what goes into it.
    enum class Kind : uint8_t {
        map_fd,    ///< ld_imm64 src=BPF_PSEUDO_MAP_FD: fd of maps[map]
        map_value, ///< ld_imm64 src=BPF_PSEUDO_MAP_VALUE: maps[map]'s value, second imm = offset
        kfunc,     ///< call src=BPF_PSEUDO_KFUNC_CALL by name
        ksym,      ///< ld_imm64: a kernel symbol by name (typed: BTF id; else address)
        /// ld_imm64 src=BPF_PSEUDO_MAP_VALUE: an instruction array made of ProgramSpec::jump_tables[map], second imm = offset
        /// (6.19)
        jump_table,
    };
    uint32_t insn = 0;        ///< which of ProgramSpec::insns; of an ld_imm64 the first of its two slots
    Kind kind = Kind::map_fd; ///< says which of the fields below count
    uint32_t map = 0;         ///< index into ObjectSpec::maps, or into ProgramSpec::jump_tables
    uint32_t offset = 0;      ///< map_value, jump_table: in bytes
    std::string symbol;       ///< kfunc, ksym
    uint32_t external = 0;    ///< kfunc, ksym: index into ObjectSpec::externs
    bool function = false;    ///< ksym: the address of a kernel function, not of a variable
    bool weak = false;        ///< may be missing: kfunc calls are poisoned, addresses become 0
    btf::TypeId type = 0;     ///< kfunc: FUNC; ksym: type of the variable (0: `extern const void x`, known by address only)
};

/// One variable or function that the object expects the kernel to have.
struct ExternSpec {
    std::string name;         ///< "bpf_task_acquire", "CONFIG_HZ"
    std::string section;      ///< ".ksyms" or ".kconfig"
    bool weak = false;        ///< may be missing: its value or address is 0 then
    bool is_function = false; ///< a kfunc
    btf::TypeId type = 0;     ///< FUNC, or the variable's type (modifiers kept; 0: void)
    uint32_t size = 0,        ///< .kconfig only: bytes
        alignment = 0;        ///< .kconfig only: bytes
    uint32_t offset = 0;      ///< .kconfig only: where its value belongs in the .kconfig map
};

/// A member's offset asked for by name rather than by BTF (DSL units have no types of their own). The first name is a struct,
/// union or typedef; each further one a member, anonymous ones looked through. Past a pointer the offset counts from where it
/// points: "task_struct.mm" is the place of `mm` in task_struct, "task_struct.mm.pgd" that of `pgd` in mm_struct.
struct FieldReference {
    uint32_t insn = 0;  ///< which of ProgramSpec::insns gets the offset
    std::string path;   ///< "task_struct.mm.pgd"
    int64_t addend = 0; ///< added to the offset
};

/// One CO-RE relocation (struct bpf_core_relo, kernel include/uapi/linux/bpf.h).
struct CoreRelocation {
    uint32_t insn = 0;    ///< which of ProgramSpec::insns it is about
    btf::TypeId type = 0; ///< root type in ObjectSpec::btf
    std::string access;   ///< "0:1:2"
    uint32_t kind = 0;    ///< BPF_CORE_*
};

/// A function's type (struct bpf_func_info, include/uapi/linux/bpf.h).
struct FuncInfo {
    uint32_t insn = 0;    ///< its first instruction, in ProgramSpec::insns
    btf::TypeId type = 0; ///< a FUNC in ObjectSpec::btf
};
/// Where instructions come from: this one, and those up to the next entry (struct bpf_line_info, include/uapi/linux/bpf.h).
struct LineInfo {
    uint32_t insn = 0;          ///< which of ProgramSpec::insns
    uint32_t file = 0,          ///< the file's name: a string offset in ObjectSpec::btf
        line = 0;               ///< the line's text: a string offset in ObjectSpec::btf
    uint32_t number_column = 0; ///< line number << 10 | column, both from 1
};

/// One program to load, with the functions that it calls.
struct ProgramSpec {
    std::string name;                  ///< of its function
    std::string section;               ///< as in the file: "kprobe/vfs_read"
    uint32_t type = 0;                 ///< BPF_PROG_TYPE_*
    uint32_t expected_attach_type = 0; ///< BPF_*
    std::string attach_target;         ///< what the section name says after the slash, or empty
    bool needs_attach_btf = false;     ///< verified against attach_target's BTF id (fentry, lsm, iter, tp_btf, freplace)
    bool sleepable = false;            ///< flags has BPF_F_SLEEPABLE too
    bool autoload = true;              ///< false for "?" sections
    uint32_t flags = 0;                ///< BPF_F_* for PROG_LOAD
    std::vector<Insn> insns;           ///< entry function first, subprograms appended, calls aimed
    std::vector<Fixup> fixups;         ///< for load()
    std::vector<std::vector<uint32_t>> jump_tables; ///< instructions that gotox may go to; in the order of first use
    std::vector<CoreRelocation> core_relocations;   ///< for relocate_core()
    std::vector<FieldReference> field_references;   ///< for relocate_core() too
    std::vector<FuncInfo> func_info;                ///< by `insn`, ascending; empty: the object has none
    std::vector<LineInfo> line_info;                ///< by `insn`, ascending; empty: the object has none
    /// One function in `insns`.
    struct Subprogram {
        uint32_t insn;    ///< its first instruction
        std::string name; ///< the function's
    };
    std::vector<Subprogram> subprograms; ///< where each appended function starts, entry included
    /// Filled by relocate_core(): instructions that became a call to an impossible helper, and why, for reading the verifier's
    /// log.
    struct Poison {
        uint32_t insn;   ///< which of `insns`
        std::string why; ///< "struct task_struct has no field foo"
    };
    std::vector<Poison> poisoned; ///< empty until relocate_core()
};

/// One object: its programs, maps and types, before any of them is in a kernel.
struct ObjectSpec {
    std::string name;            ///< file name or unit name, for messages
    std::string license = "GPL"; ///< the kernel offers some helpers only to programs with a GPL-compatible one
    uint32_t kernel_version = 0; ///< of section "version"; 0: it has none
    /// libbpf's order: .maps in BTF order, data sections in ELF order, .kconfig, struct_ops.
    std::vector<MapSpec> maps;
    std::vector<ProgramSpec> programs; ///< by section, then by place in it
    std::vector<ExternSpec> externs;   ///< .kconfig ones first, in the order of their offsets
    std::vector<std::byte> btf;        ///< ready for BTF_LOAD: DATASEC sizes and offsets filled; empty when there is none
    std::vector<std::string> notes;    ///< what the file says and nobody heeds; sentences
    bool only_functions = false;       ///< there is code, but all of it is functions for programs to call

    /// By name ("events", "profile.rodata") or, for maps made from sections, by section (".rodata").
    [[nodiscard]] MapSpec *find_map(std::string_view name);
    /// By name; nullptr: there is none. Good until `programs` changes.
    [[nodiscard]] ProgramSpec *find_program(std::string_view name);
    /// Where a global variable is.
    struct Global {
        std::span<std::byte> bytes; ///< inside its map's contents
        btf::TypeId type = 0;       ///< in `btf`, modifiers kept
        std::string map;            ///< the name of that map
    };
    /// A global variable by name, to be changed before loading; without bytes when there is none, or the object has no types.
    [[nodiscard]] Global find_variable(std::string_view name);
    /// Its bytes alone.
    [[nodiscard]] std::span<std::byte> find_global(std::string_view name) { return find_variable(name).bytes; }
};

/// The whole spec as text: the same spec gives the same text on any machine. For `inspect`, for tests and for reading.
[[nodiscard]] std::string print_spec(const ObjectSpec &spec);

} // namespace rawbpf::inline v0
