// What the verifier has to know of an object's types: where the kernel's own structs lie in maps' values, and which functions
// are global. PURE.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/object/spec.h"

namespace rawbpf::inline v0::verifier {

/// A part of a map's value that is the kernel's: bpf_spin_lock, bpf_timer ...
struct KernelPart {
    std::string name; ///< of the struct
    uint32_t offset, size;
};

/// A function that is verified by itself, since anybody may call it with anything.
struct GlobalFunction {
    enum class Parameter : uint8_t { number, context, other };
    uint32_t insn; ///< its first instruction
    std::string name;
    std::vector<Parameter> parameters;
    bool returns_nothing = false;
};

/// All of it.
struct Types {
    std::vector<std::vector<KernelPart>> parts; ///< by map, as in ObjectSpec::maps
    std::vector<GlobalFunction> global;         ///< of the program

    [[nodiscard]] const GlobalFunction *find_global(uint32_t insn) const;
    /// Where the map's values have a lock; -1: they have none.
    [[nodiscard]] int lock_of(size_t map) const;
};

/// Reads the object's BTF; without any, nothing is global and no map has a part of the kernel's.
[[nodiscard]] Types types_of(const ObjectSpec &spec, const ProgramSpec &program);

} // namespace rawbpf::inline v0::verifier
