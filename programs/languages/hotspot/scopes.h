// What was inlined where in compiled code: at each place that the virtual machine may stop at, the chain of methods.
//
//      pc --> PcDesc: the first whose offset is as large, or larger --> a place in the stream of scopes
//      a scope: where its caller's scope is (before it in the stream; 0: none) | its method's number | bytecode + 1 | ...
//      a method's number --> the metadata of the code --> Method
//
// A return address has a PcDesc of its own. Of a leaf it is the next place where the virtual machine may stop, or where there is
// none the last: which is right for the method whose code it is, and mostly for those inlined there. With
// -XX:+DebugNonSafepoints each instruction has its own.
//
// The outermost method must be the one whose code it is: this proves where the tables are, and how numbers are written. What the
// tables of the virtual machine (vm_structs.h) don't say: that the tables lie behind one another, in the order that is used here,
// and that up to JDK 22 all offsets count from the blob; since then those of scopes count from memory of their own, and those of
// metadata from the blob's data (23) or from where the relocations end (24).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "programs/languages/hotspot/vm_structs.h"
#include "programs/languages/memory.h"

namespace rawbpf::inline v0::languages::hotspot {

struct Code;

/// Where the tables of an nmethod are.
struct ScopeOffsets {
    std::optional<Number> apart;             ///< the pointer to memory of their own; nullopt: in the blob
    Number pcs, pcs_end, scopes, scopes_end; ///< offsets; `scopes` in the blob is an address
    Number metadata, metadata_base;          ///< in the blob: from there, or from its data
    std::optional<Number> writable;          ///< the pointer to memory with metadata, behind
    Number relocation_bytes, writable_bytes; ///< these, up to its end
    Number pc_offset, scope_offset;          ///< of a PcDesc
    uint64_t pc_bytes = 0;                   ///< of a PcDesc
    bool metadata_by_base = false;           ///< metadata_base counts
    bool scopes_by_offset = false;           ///< `scopes` in the blob is an offset, too (before JDK 9)
};

/// nullopt: the virtual machine doesn't tell of all that is needed. PURE.
[[nodiscard]] std::optional<ScopeOffsets> scopes_of(const VmStructs &structs);

/// A method that runs at some address.
struct Scope {
    uint64_t method;
    uint32_t bytecode;
};

/// Those at an address in a method's code, a return address (`caller`) or a leaf's: the innermost first, and last the one whose
/// code it is. Empty: nothing is known, or makes no sense. Bounded, whatever is read.
[[nodiscard]] std::vector<Scope> scopes_at(Memory &memory, const ScopeOffsets &layout, const Code &code, uint64_t pc,
                                           bool caller);

} // namespace rawbpf::inline v0::languages::hotspot
