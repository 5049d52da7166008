// What a program gets when it reads through a pointer to a kernel struct. PURE.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/btf/btf.h"
#include "runtime/verifier/value.h"

namespace rawbpf::inline v0::verifier {

/// What lies at some offset of a struct.
struct Walked {
    enum class What : uint8_t { nothing, number, pointer } what = What::nothing;
    std::string refusal;                             ///< nothing: why, in the kernel's words
    btf::TypeId type = 0;                            ///< pointer: the struct that it is to
    std::string_view parent, field;                  ///< pointer: the innermost struct and the member
    bool rcu = false, user = false, per_cpu = false; ///< pointer: tagged so
    bool in_union = false;                           ///< it isn't sure which member is there
};
/// `flexible`: an access behind the struct may be one of an array without a size at its end.
[[nodiscard]] Walked walk_struct(const btf::Btf &types, btf::TypeId type, int64_t off, unsigned size, bool flexible);

/// What is known of a pointer that was read from a member of an object that is trusted itself.
enum class Inherits : uint8_t { nothing, rcu, rcu_or_null, trusted, trusted_or_null };
[[nodiscard]] Inherits inherited(std::string_view parent, std::string_view field);

/// Whether the struct `type` at `off` is, or begins with, `wanted`: the kernel's rule for passing one for the other. Structs
/// are compared by name and by walking first members.
[[nodiscard]] bool is_a(const btf::Btf &types, btf::TypeId type, int64_t off, std::string_view wanted, bool strict);
/// The name of a type, without modifiers; empty: none.
[[nodiscard]] std::string_view type_name(const btf::Btf &types, btf::TypeId type);

} // namespace rawbpf::inline v0::verifier
