// What the verifier must know about an object's types: where the kernel's own structs lie in maps' values, and which functions
// are global. PURE.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/btf/btf.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::verifier {

/// A part of a map's value that is the kernel's: bpf_spin_lock, bpf_timer ...
struct KernelPart {
    std::string name; ///< of the struct
    uint32_t offset, size;
    btf::TypeId target = 0;   ///< a pointer: what it points to, in the object's types
    btf::TypeId contains = 0; ///< a list's or a tree's root: the struct of its nodes
    uint32_t node_offset = 0; ///< and where in it they are linked
};

/// A function that is verified by itself, since anybody may call it with anything.
struct GlobalFunction {
    enum class Parameter : uint8_t {
        number,
        context,
        memory,          ///< a pointer to `sizes` bytes, or NULL
        memory_not_null, ///< the same, tagged arg:nonnull
        arena,           ///< tagged arg:arena
        other,
    };
    uint32_t insn; ///< its first instruction
    std::string name;
    std::vector<Parameter> parameters;
    std::vector<uint32_t> sizes; ///< of what parameters point to
    bool returns_nothing = false;
    bool returns_number = true;
};

/// All of it.
struct Types {
    std::vector<std::vector<KernelPart>> parts; ///< by map, as in ObjectSpec::maps
    std::vector<GlobalFunction> global;         ///< of the program

    [[nodiscard]] const GlobalFunction *find_global(uint32_t insn) const;
    /// Where the map's values have a lock; -1: they have none.
    [[nodiscard]] int lock_of(size_t map) const;
    /// The object's types; nullptr: it has none.
    [[nodiscard]] const btf::Btf *own() const { return own_ ? &*own_ : nullptr; }
    /// The kernel's parts of a struct of the object's types.
    [[nodiscard]] std::vector<KernelPart> parts_of_type(btf::TypeId type) const;
    [[nodiscard]] int lock_of_type(btf::TypeId type) const;
    [[nodiscard]] bool has_part(btf::TypeId type, std::string_view name) const;

    std::optional<uint32_t> catches; ///< the first instruction of the function that exceptions end in

    bool many_catch = false; ///< there is more than one tag that names such a function

    std::optional<btf::Btf> own_; ///< see own()
};

/// A map by the number that values have: those of the object, then the templates of what maps of maps hold, by the outer one.
[[nodiscard]] const MapSpec &map_at(const ObjectSpec &spec, uint32_t number);

/// Reads the object's BTF; without any, nothing is global and no map has a part of the kernel's.
[[nodiscard]] Types types_of(const ObjectSpec &spec, const ProgramSpec &program);

} // namespace rawbpf::inline v0::verifier
