// CO-RE, first half: from an access string to a place in a type, in the local BTF and in a candidate. Private to the room.
#pragma once

#include <string>
#include <string_view>

#include "runtime/btf/btf.h"
#include "runtime/object/core.h"

namespace rawbpf::inline v0::object {

/// Which of the three families a kind belongs to.
[[nodiscard]] bool is_field_kind(CoreKind kind);
[[nodiscard]] bool is_type_kind(CoreKind kind);
[[nodiscard]] bool is_enum_kind(CoreKind kind);

/// A place in a type: what an access string says, step by step.
struct CorePath {
    static constexpr size_t kMost = 64; ///< steps; libbpf's and the kernel's limit too

    /// A step with meaning: a named member, an array index, an enumerator. Anonymous members leave none.
    struct Step {
        btf::TypeId type = 0; ///< holds the member; for an index: the element's type
        uint32_t index = 0;
        std::string_view name; ///< empty for an index
    };
    const btf::Btf *btf = nullptr;
    btf::TypeId root = 0;
    CoreKind kind{};
    uint32_t length = 0, depth = 0; ///< steps with meaning; steps in all
    Step steps[kMost];
    uint64_t bit_offset = 0;

    [[nodiscard]] const Step &last() const { return steps[length - 1]; }
};

/// Reads `access` against the local types. Errors: bad_input.
[[nodiscard]] Result<CorePath> parse_core_path(const btf::Btf &local, const CoreRelocation &relocation);

/// Why a candidate doesn't fit; turned into words only when somebody wants to read them.
struct Mismatch {
    enum class Reason : uint8_t { none, no_member, member_type, no_struct, no_array, out_of_bounds, no_enum, no_value, type };
    Reason reason = Reason::none;
    btf::TypeId type = 0; ///< in the candidate's BTF
    std::string_view name;
    uint32_t index = 0, count = 0;
};

/// Looks for the place that `local` names in type `id` of `target`. True and `found`, or false and `why`.
/// Errors: broken target BTF, nesting deeper than 64.
[[nodiscard]] Result<bool> match_core_path(const CorePath &local, const btf::Btf &target, btf::TypeId id, CorePath &found,
                                           Mismatch &why);

/// "struct task_struct.mm.total_vm", "enum pid_type::PIDTYPE_PID", "struct rq".
[[nodiscard]] std::string describe(const CorePath &path);
/// "struct task_struct has no field foo".
[[nodiscard]] std::string describe(const Mismatch &why, const btf::Btf &target);
/// "struct task_struct"; "struct (anonymous)".
[[nodiscard]] std::string describe_type(const btf::Btf &btf, btf::TypeId id);

} // namespace rawbpf::inline v0::object
