// SPDX-License-Identifier: MIT
// CO-RE: compile once, run everywhere.
//
//      compiled against                     runs on
//      struct task_struct {                 struct task_struct {
//          int pid;        // offset 0          long state;
//      }                                        int pid;       // offset 8
//      r1 = *(u32 *)(r0 + 0)     -->        r1 = *(u32 *)(r0 + 8)
//
// The compiler records which instruction depends on which field, type or enum value of its own BTF; relocate_core() finds the
// same in the target's BTF and rewrites the instruction. What can't be found doesn't fail the load: the instruction becomes a
// call to a helper that no kernel has, because the program may be asking first (bpf_core_field_exists) and never get there.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/btf/btf.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {

/// The helper number that a poisoned instruction calls; in the verifier's log: "invalid func unknown#195896080".
inline constexpr int32_t kPoisonHelper = 195896080; // 0xbad2310, as libbpf and the kernel have it

/// BPF_CORE_*, include/uapi/linux/bpf.h (5.17; type_matches 6.0).
enum class CoreKind : uint32_t {
    field_byte_offset = 0,
    field_byte_size = 1,
    field_exists = 2,
    field_signed = 3,
    field_lshift = 4, ///< of a u64, to bring a bitfield to the top
    field_rshift = 5, ///< and down again
    type_id_local = 6,
    type_id_target = 7,
    type_exists = 8,
    type_size = 9,
    enum_value_exists = 10,
    enum_value = 11,
    type_matches = 12,
};

/// "byte_off", "field_exists" ... as libbpf's logs call them; "?" for a number that isn't known.
[[nodiscard]] std::string_view core_kind_name(uint32_t kind);

/// A type of the target that was looked at.
struct CoreCandidate {
    std::string btf;      ///< "vmlinux" or a module
    btf::TypeId type = 0; ///< its id there
    std::string name;     ///< with its flavour
    bool fits = false;    ///< it has what the relocation asks for
    std::string why;      ///< what it came to, a number: "16"; or why not: "has no field foo"
};

/// What became of one relocation.
struct CoreOutcome {
    std::string program;                   ///< its name
    uint32_t insn = 0;                     ///< which of ProgramSpec::insns
    uint32_t kind = 0;                     ///< CoreKind; 0 for a FieldReference
    std::string what;                      ///< "struct task_struct.mm.total_vm (0:2:0)", or FieldReference::path
    uint64_t before = 0,                   ///< the value by the object's own types; 0 for a FieldReference
        after = 0;                         ///< by the target's; means nothing where `poisoned`
    bool poisoned = false;                 ///< the instruction became a call of kPoisonHelper
    std::string why;                       ///< why it was poisoned; else empty
    std::vector<CoreCandidate> candidates; ///< in the order in which they were looked at
};

/// What became of all relocations.
struct CoreReport {
    size_t relocated = 0,              ///< instructions that hold the target's values
        poisoned = 0;                  ///< instructions that became calls of kPoisonHelper
    std::vector<CoreOutcome> outcomes; ///< empty unless CoreOptions::details
};

/// What relocate_core() reports.
struct CoreOptions {
    bool details = false; ///< keep an outcome for every relocation, with candidates
};

/// Where types are looked for.
struct CoreTargets {
    const btf::Btf *kernel = nullptr; ///< nullptr: there is none; then an object with relocations can't be loaded
    /// Asked at most once, and only when the kernel itself has no type of some name. May be null.
    std::span<const btf::Btf *const> (*modules)(void *context) = nullptr;
    void *context = nullptr; ///< what `modules` is called with
};

/// Relocates all programs with autoload. Poisoned instructions are also noted in ProgramSpec::poisoned.
/// Errors: bad_input (the object contradicts itself: broken access string, an instruction that doesn't hold the local value),
/// unsupported (candidates disagree, all of them listed; no target BTF).
[[nodiscard]] Result<CoreReport> relocate_core(ObjectSpec &spec, const CoreTargets &targets, const CoreOptions &options = {});

/// The same with everything at hand: the kernel first, then its modules.
[[nodiscard]] Result<CoreReport> relocate_core(ObjectSpec &spec, std::span<const btf::Btf *const> targets,
                                               const CoreOptions &options = {});

/// Whether anything in the programs to load needs a target.
[[nodiscard]] bool needs_core(const ObjectSpec &spec);
/// Whether relocate_core() has anything to do: also where ids of the object's own types are all that is asked for.
[[nodiscard]] bool has_core_relocations(const ObjectSpec &spec);

} // namespace rawbpf::inline v0
